"""The statements of a store, and its rows as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from .events import Event, from_json
from .schema import events, history, identity, snapshots, studies

_IDENTITY = sa.select(identity.c.identity).scalar_subquery().label("identity")
STUDY = sa.select(studies, _IDENTITY).where(studies.c.name == sa.bindparam("name"))
HEAD = sa.select(studies.c.head, studies.c.checksum, studies.c.code, _IDENTITY).where(
    studies.c.id == sa.bindparam("study")
)
LOCK_AND_READ = f"""
    SELECT head, checksum, code, (SELECT identity FROM simplexplore_identity)
    FROM studies WHERE id = %d FOR UPDATE;
    SELECT {", ".join(Event._fields)} FROM events WHERE study = %d AND seq > %d
    ORDER BY seq LIMIT %d
"""
POINTS = (
    sa.select(*[column for column in history.c if column is not history.c.study])
    .where(history.c.study == sa.bindparam("study"), history.c.seq > sa.bindparam("after"))
    .order_by(history.c.seq)
)
SNAPSHOT = sa.select(snapshots.c.data, snapshots.c.checksum).where(
    snapshots.c.study == sa.bindparam("study"), snapshots.c.code == sa.bindparam("code")
)
# Studies with the checksum of the event that is their head; from a given place in the order.
_LAST = events.c.checksum.label("last")
_PAGE = (
    sa.select(studies, _LAST)
    .select_from(
        studies.outerjoin(
            events, (events.c.study == studies.c.id) & (events.c.seq == studies.c.head)
        )
    )
    .where(sa.bindparam("archived", type_=sa.Boolean) | (studies.c.state != "archived"))
    .order_by(studies.c.changed.desc(), studies.c.name.desc())
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
FIRST_PAGE = _PAGE
NEXT_PAGE = _PAGE.where(
    sa.tuple_(studies.c.changed, studies.c.name)
    < sa.tuple_(sa.bindparam("changed", type_=sa.Double), sa.bindparam("name", type_=sa.Text))
)
TOTALS = sa.select(
    *[
        sa.func.count().filter(studies.c.state == name).label(name)
        for name in ("running", "stopped", "paused", "archived")
    ],
    *[sa.func.sum(studies.c[name]).label(name) for name in ("asked", "rewards", "pending")],
)
_COLUMNS = [events.c[name] for name in Event._fields]
READ = (
    sa.select(*_COLUMNS)
    .where(events.c.study == sa.bindparam("study"), events.c.seq > sa.bindparam("after"))
    .order_by(events.c.seq)
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)


def _events_by(column: str) -> dict[bool, sa.TextClause]:
    """Some events of a study; by whether it is SQLite.

    Without statistics SQLite takes every study for ten rows, and reads the whole of it unless it
    is told which index to use.
    """
    return {
        is_sqlite: sa.text(
            f"""
            SELECT {", ".join(f'"{name}"' for name in Event._fields)} FROM events
            {f"INDEXED BY events_by_{column}" if is_sqlite else ""}
            WHERE study = :study AND "{column}" IN :items ORDER BY seq
            """
        ).bindparams(sa.bindparam("items", expanding=True))
        for is_sqlite in (True, False)
    }


BY_PULL, BY_KEY = _events_by("pull"), _events_by("key")
CHECKSUMS = sa.select(events.c.seq, events.c.checksum).where(
    events.c.study == sa.bindparam("study"),
    events.c.seq.in_(sa.bindparam("items", expanding=True)),
)
VOIDS = (
    sa.select(*_COLUMNS)
    .where(
        events.c.study == sa.bindparam("study"),
        events.c.kind == "voided",
        events.c.seq <= sa.bindparam("head", type_=sa.BigInteger),
    )
    .order_by(events.c.seq)
)
_HEADS = (
    "head",
    "changed",
    "state",
    "delta",
    "asked",
    "rewards",
    "pending",
    "answer",
    "checksum",
    "tags",
)
# Made once: working out which cached SQL a statement has takes longer than executing it.
ADD_EVENTS = (
    f"""INSERT INTO events (study, {", ".join(f'"{name}"' for name in Event._fields)}) """
    f"VALUES ({', '.join('?' * (1 + len(Event._fields)))})"
)
ADD_POINT = history.insert()
# Progress changes with the history only.
UPDATE = (
    studies.update()
    .where(studies.c.id == sa.bindparam("study"))
    .values(
        {name: sa.bindparam(name) for name in _HEADS}
        | {
            "progress": sa.func.coalesce(
                sa.bindparam("progress", type_=sa.Double), studies.c.progress
            )
        }
    )
)
APPEND = sa.text(
    f"""
    WITH added AS (
        INSERT INTO events (study, {", ".join(Event._fields)})
        SELECT :study, * FROM unnest(
            CAST(:new_kind AS text[]), CAST(:new_pull AS bigint[]), CAST(:new_arm AS integer[]),
            CAST(:new_reward AS double precision[]), CAST(:new_key AS text[]),
            CAST(:new_data AS text[]), CAST(:new_at AS double precision[]),
            CAST(:new_seq AS bigint[]), CAST(:new_checksum AS bigint[])
        )
    )
    UPDATE studies SET {", ".join(f"{name} = :{name}" for name in _HEADS)},
        progress = COALESCE(CAST(:progress AS double precision), progress)
    WHERE id = :study
    """
)


def to_event(row: Sequence[Any]) -> Event:
    """A row of the events as it is there, whole or not."""
    event = Event(*row)
    return event if event.data is None else event._replace(data=from_json(str(event.data)))
