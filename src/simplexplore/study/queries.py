"""The statements of a store, and its rows as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from .events import Event, from_json
from .schema import events, history, identity, snapshots, studies

_IDENTITY = sa.select(identity.c.identity).scalar_subquery().label("identity")
STUDY = sa.select(studies, _IDENTITY).where(studies.c.name == sa.bindparam("name"))
_FIELDS = ", ".join(f'"{name}"' for name in Event._fields)
# Of these columns on PostgreSQL.
_TYPES = (
    *("text", "bigint", "integer", "double precision", "text", "text"),
    *("double precision", "bigint", "bigint"),
)
# Of what events are looked up by, there.
_ITEMS = {"seq": "bigint", "pull": "bigint", "key": "text"}
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
VOIDS = (
    sa.select(*_COLUMNS)
    .where(
        events.c.study == sa.bindparam("study"),
        events.c.kind == "voided",
        events.c.seq <= sa.bindparam("head", type_=sa.BigInteger),
    )
    .order_by(events.c.seq)
)
HEADS = (
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
ADD_POINT = history.insert()


# What every request needs is written out: SQLAlchemy takes longer to find out what was meant than
# a database to do it.


class Statements:
    """Statements for `Database.run`, with the marks that a driver knows for values."""

    def __init__(self, *, is_sqlite: bool) -> None:
        mark = "?" if is_sqlite else "%s"
        self._is_sqlite = is_sqlite
        self.head = f"""
            SELECT head, checksum, code, (SELECT identity FROM simplexplore_identity)
            FROM studies WHERE id = {mark}
        """
        self.read = f"""
            SELECT {_FIELDS} FROM events WHERE study = {mark} AND seq > {mark}
            ORDER BY seq LIMIT {mark}
        """
        # The second statement begins when the lock is held, so that it sees all that others have
        # recorded.
        self.lock = f"{self.head} FOR UPDATE; {self.read}; {self.events_by('key')[0]}"
        # Progress changes with the history only.
        self.update = f"""
            UPDATE studies SET {", ".join(f"{name} = {mark}" for name in HEADS)},
            progress = COALESCE(CAST({mark} AS double precision), progress) WHERE id = {mark}
        """
        self.add_events = f"""
            INSERT INTO events (study, {_FIELDS})
            VALUES ({", ".join([mark] * (1 + len(Event._fields)))})
        """
        # Events are one text, which takes a fraction of the time of nine arrays.
        columns = (f"CAST(event ->> {i} AS {kind})" for i, kind in enumerate(_TYPES))
        self.append = f"""
            WITH added AS (
                INSERT INTO events (study, {_FIELDS})
                SELECT {mark}, {", ".join(columns)}
                FROM json_array_elements(CAST({mark} AS json)) AS event
            ) {self.update}
        """

    def events_by(self, column: str, count: int = 1) -> tuple[str, int]:
        """Some events of a study by a number, pull or key; and how many places there are for it.

        PostgreSQL takes a list of any length. For SQLite there are few lengths, so that it knows
        the statement. Both would read the whole study where they think that it has few rows:
        SQLite without statistics, PostgreSQL of a study that is younger than its statistics. One is
        told which index to use; the other does not know which study is meant until it has a plan.
        """
        if not self._is_sqlite:
            return (
                f"""
                SELECT found.* FROM unnest(ARRAY[CAST(%s AS integer)]) AS one(study),
                unnest(CAST(%s AS {_ITEMS[column]}[])) AS wanted(item),
                LATERAL (
                    SELECT {_FIELDS} FROM events
                    WHERE events.study = one.study AND events."{column}" = wanted.item OFFSET 0
                ) AS found ORDER BY seq
                """,
                1,
            )
        what = f"SELECT {_FIELDS} FROM events"
        places = 1 << (count - 1).bit_length()
        index = "" if column == "seq" else f"INDEXED BY events_by_{column}"
        marks = ", ".join("?" * places)
        return f'{what} {index} WHERE study = ? AND "{column}" IN ({marks}) ORDER BY seq', places


def to_event(row: Sequence[Any]) -> Event:
    """A row of the events as it is there, whole or not."""
    event = Event(*row)
    return event if event.data is None else event._replace(data=from_json(str(event.data)))
