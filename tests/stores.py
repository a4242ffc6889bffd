"""Studies to damage, and changes to a store behind its back."""

import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from nightly import some

STORES = ("sqlite", "postgresql")

# For tests of what happens above the database, or that start many processes: of the fixture `url`
# one kind of store every time.
postgresql_at_night = pytest.mark.parametrize("url", some(STORES, "sqlite"), indirect=True)
sqlite_at_night = pytest.mark.parametrize("url", some(STORES, "postgresql"), indirect=True)

SET = "UPDATE events SET {} WHERE study = 1 AND seq = {}"


def fill(url, name="mix", pairs=6):
    """A study whose 15 events are of all kinds but one."""
    problem = sx.Problem(list("abcde"), scenario="anytime", delta=1e-290)
    study = sx.Study.create(url, name, problem, "ctns", threshold="gk16", expire_after=60)
    pulls = study.ask(pairs, key="first")
    study.tell_many([(pull, 0.5) for pull in pulls[:-1]])
    study.tell(arm="a", reward=1.5, key="k")
    study.note("hello")
    study.extend(1e-300)
    study.ask()
    return study


def connected(url):
    """A transaction of somebody else in a store."""
    text = str(url) if "://" in str(url) else f"sqlite:///{url}"
    text = text.replace("postgresql://", "postgresql+psycopg://")
    return sa.create_engine(text, poolclass=sa.NullPool).begin()


def execute(url, *statements, **values):
    """Change a store behind its back."""
    with connected(url) as connection:
        for statement in statements:
            connection.execute(sa.text(statement), values)


def rows(url, query):
    """What a store holds."""
    with connected(url) as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def answered(url, pairs=20):
    """A study of the star whose pulls are answered."""
    study = sx.Study.create(url, "mix", workers.star(), "ctns")
    for pull in study.ask(pairs):
        study.tell(pull, 0.5)
    return study
