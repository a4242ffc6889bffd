"""The statements of a store, and its rows as events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from .events import Event
from .schema import events, history, snapshots, studies

HEAD = sa.select(studies.c.head, studies.c.code).where(studies.c.id == sa.bindparam("study"))
LOCK_AND_READ = f"""
    SELECT head, code FROM studies WHERE id = %d FOR UPDATE;
    SELECT {", ".join(Event._fields)} FROM events WHERE study = %d AND seq > %d
    ORDER BY seq LIMIT %d
"""
POINTS = (
    sa.select(*[column for column in history.c if column is not history.c.study])
    .where(history.c.study == sa.bindparam("study"), history.c.seq > sa.bindparam("after"))
    .order_by(history.c.seq)
)
SNAPSHOT = sa.select(snapshots.c.data).where(
    snapshots.c.study == sa.bindparam("study"), snapshots.c.code == sa.bindparam("code")
)
_POINTS = history.alias()
_LAST = (
    sa.select(sa.func.max(_POINTS.c.seq))
    .where(_POINTS.c.study == studies.c.id)
    .correlate(studies)
    .scalar_subquery()
)
FIRST_PAGE = (
    sa.select(studies, history.c.statistic, history.c.threshold)
    .select_from(
        studies.outerjoin(history, (history.c.study == studies.c.id) & (history.c.seq == _LAST))
    )
    .order_by(studies.c.changed.desc(), studies.c.name.desc())
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
NEXT_PAGE = FIRST_PAGE.where(
    sa.tuple_(studies.c.changed, studies.c.name)
    < sa.tuple_(sa.bindparam("changed", type_=sa.Double), sa.bindparam("name", type_=sa.Text))
)
TOTALS = sa.select(
    sa.func.count().filter(studies.c.state == "running").label("running"),
    sa.func.count().filter(studies.c.state == "stopped").label("stopped"),
)
_COLUMNS = [events.c[name] for name in Event._fields]
READ = (
    sa.select(*_COLUMNS)
    .where(events.c.study == sa.bindparam("study"), events.c.seq > sa.bindparam("after"))
    .order_by(events.c.seq)
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
BY_PULL = sa.select(*_COLUMNS).where(
    events.c.study == sa.bindparam("study"),
    events.c.pull.in_(sa.bindparam("items", expanding=True)),
)
BY_KEY = (
    sa.select(*_COLUMNS)
    .where(
        events.c.study == sa.bindparam("study"),
        events.c.key.in_(sa.bindparam("items", expanding=True)),
    )
    .order_by(events.c.seq)
)
_HEADS = ("head", "changed", "state", "delta", "asked", "rewards", "pending", "answer")
UPDATE = (
    studies.update()
    .where(studies.c.id == sa.bindparam("study"))
    .values({name: sa.bindparam(name) for name in _HEADS})
)
APPEND = sa.text(
    f"""
    WITH added AS (
        INSERT INTO events (study, {", ".join(Event._fields)})
        SELECT :study, * FROM unnest(
            CAST(:new_kind AS text[]), CAST(:new_pull AS bigint[]), CAST(:new_arm AS integer[]),
            CAST(:new_reward AS double precision[]), CAST(:new_key AS text[]),
            CAST(:new_data AS text[]), CAST(:new_at AS double precision[]),
            CAST(:new_seq AS bigint[])
        )
    )
    UPDATE studies SET {", ".join(f"{name} = :{name}" for name in _HEADS)} WHERE id = :study
    """
)


def to_event(row: Sequence[Any]) -> Event:
    """A row of the events as it was recorded."""
    event = Event(*row)
    return event if event.data is None else event._replace(data=json.loads(str(event.data)))
