"""The tables of a store, and the steps that made them what they are.

One table holds the journals, and nothing in it is ever changed. The rest can be told from
them and is there for speed: the head of each study for lists, a history for plots, snapshots
for opening.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError

_metadata = sa.MetaData()

versions = sa.Table("simplexplore_schema", _metadata, sa.Column("version", sa.Integer))

studies = sa.Table(
    "studies",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("code", sa.Text, nullable=False),  # part of every pull's id
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("problem", sa.Text, nullable=False),  # a problem file
    sa.Column("settings", sa.Text, nullable=False),  # JSON
    # What follows can be told from the journal.
    sa.Column("head", sa.BigInteger, nullable=False),  # number of the last event
    sa.Column("changed", sa.Double, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # running, stopped
    sa.Column("delta", sa.Double, nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("rewards", sa.BigInteger, nullable=False),
    sa.Column("pending", sa.BigInteger, nullable=False),
    sa.Column("answer", sa.Text),  # JSON
)

events = sa.Table(
    "events",
    _metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("pull", sa.BigInteger),
    sa.Column("arm", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("key", sa.Text),
    sa.Column("data", sa.Text),  # JSON
    sqlite_with_rowid=False,
)
# A pull is asked for once, given up at most once, and answered at most once.
sa.Index(
    "events_by_pull",
    events.c.study,
    events.c.pull,
    sa.text("(CASE WHEN kind = 'late' THEN 'told' ELSE kind END)"),
    unique=True,
    sqlite_where=events.c.pull.is_not(None),
    postgresql_where=events.c.pull.is_not(None),
)
sa.Index(
    "events_by_key",
    events.c.study,
    events.c.key,
    sqlite_where=events.c.key.is_not(None),
    postgresql_where=events.c.key.is_not(None),
)

history = sa.Table(
    "history",
    _metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("rewards", sa.BigInteger, nullable=False),
    sa.Column("statistic", sa.Double, nullable=False),
    sa.Column("threshold", sa.Double, nullable=False),
    sa.Column("policy", sa.Text, nullable=False),  # JSON
)

snapshots = sa.Table(
    "snapshots",
    _metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("code", sa.Text, primary_key=True),  # of the compiled code that can use it
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)


_access = sa.MetaData()

tokens = sa.Table(
    "tokens",
    _access,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),  # of the secret, which is kept nowhere
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("revoked", sa.Double),
)


def _first_schema(connection: Connection) -> None:
    _metadata.create_all(connection, checkfirst=False)


def _add_tokens(connection: Connection) -> None:
    _access.create_all(connection, checkfirst=False)


# Step k brings a store from version k to version k + 1. Steps are never changed once
# released: a change of the schema is a new step, with the tables as they were written out.
MIGRATIONS: list[Callable[[Connection], None]] = [_first_schema, _add_tokens]


def version_of(connection: Connection) -> int:
    """The version of a store; 0 if it is empty."""
    if not sa.inspect(connection).has_table(versions.name):
        return 0
    return int(connection.execute(sa.select(versions.c.version)).scalar_one())


def migrate(connection: Connection, name: str) -> int:
    """Take the steps that are missing, if nobody else did meanwhile; returns the version."""
    version = version_of(connection)
    if version == 0 and sa.inspect(connection).has_table(studies.name):
        raise StoreError(f"{name} holds tables of another program; use a database of its own.")
    for step in MIGRATIONS[version:]:
        step(connection)
    now = max(version, len(MIGRATIONS))
    change = versions.insert() if version == 0 else versions.update()
    connection.execute(change.values(version=now))
    return now
