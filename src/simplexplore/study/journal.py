"""The journal of one study: what a store holds is checked before anybody acts on it.

Checksums find what was changed, lost, doubled or moved.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError, UnknownStudyError

from .decision import Corrections
from .events import Event, from_json, link, to_json
from .schema import events, snapshots, store, studies
from .settings import Definition
from .store import Store

# Events that are in memory at a time.
CHUNK = 50_000

_STUDY = sa.bindparam("study", type_=sa.Integer)
_COLUMNS = [events.c[name] for name in Event._fields]
_EVENTS = sa.select(*_COLUMNS).where(events.c.study == _STUDY).order_by(events.c.seq)
_READ = _EVENTS.where(events.c.seq > sa.bindparam("after")).limit(sa.bindparam("limit"))
_VOIDS = _EVENTS.where(events.c.kind == "voided", events.c.seq <= sa.bindparam("head"))
_LAST = (
    sa.select(events.c.checksum)
    .where(events.c.study == studies.c.id, events.c.seq == studies.c.head)
    .scalar_subquery()
)
_HEAD = sa.select(
    studies.c.head,
    studies.c.checksum,
    _LAST,
    studies.c.code,
    sa.select(store.c.identity).scalar_subquery(),
).where(studies.c.id == _STUDY)
# On SQLite the transaction is the lock, and this is no more than a look.
_LOCK = sa.select(studies.c.id).where(studies.c.id == _STUDY).with_for_update()
_APPEND = events.insert()
_UPDATE = studies.update().where(studies.c.id == _STUDY)

# Of what events are looked up by on PostgreSQL.
_ITEMS = {"seq": "bigint", "pull": "bigint", "key": "text"}


def _lookup(column: str, *, is_sqlite: bool) -> sa.TextClause:
    """Events of a study by their numbers, pulls or keys: a list, on SQLite as JSON.

    Both would read the whole study where they think that it has few rows: SQLite without
    statistics, PostgreSQL of a study that is younger than its statistics. One is told which index
    to use; the other does not know which study is meant until it has a plan.
    """
    fields = ", ".join(f'"{name}"' for name in Event._fields)
    if is_sqlite:
        index = "" if column == "seq" else f"INDEXED BY events_by_{column}"
        return sa.text(f"""
            SELECT {fields} FROM events {index}
            WHERE study = :study AND "{column}" IN (SELECT value FROM json_each(:items))
            ORDER BY seq
        """)
    return sa.text(f"""
        SELECT found.* FROM unnest(ARRAY[CAST(:study AS integer)]) AS one(study),
        unnest(CAST(:items AS {_ITEMS[column]}[])) AS wanted(item),
        LATERAL (
            SELECT {fields} FROM events
            WHERE events.study = one.study AND events."{column}" = wanted.item OFFSET 0
        ) AS found ORDER BY seq
    """)


_LOOKUPS = {
    (column, is_sqlite): _lookup(column, is_sqlite=is_sqlite)
    for column in _ITEMS
    for is_sqlite in (True, False)
}


class Head(NamedTuple):
    """The end of a journal: number of the last event, checksum, and whose journal it is."""

    seq: Any  # a number, if the row is whole
    checksum: int | None
    last: int | None  # the checksum of that event
    code: str
    identity: str


class Journal:
    """The events of one study, for as long as a transaction of the store.

    Nothing else in a study has the connection.
    """

    def __init__(self, store: Store, made: Definition, connection: Connection) -> None:
        self._store, self._made, self._connection = store, made, connection
        self._number, self._name = made.number, made.ids.study

    def now(self) -> float:
        """What the store's clock says."""
        return self._store.clock()

    def damaged(self, what: str) -> StoreError:
        """What to say of damage."""
        return StoreError(
            f"{self._store.name}: study {self._name!r} is damaged: {what}. Nothing was changed. "
            "Put back a copy of the store; 'events' with a limit still shows what comes before."
        )

    # ------------------------------------------------------------------ reading

    def head(self) -> Head:
        """The end of the journal."""
        return self._whole(self._run(_HEAD).first())

    def lock(self) -> Head:
        """The end of the journal, which others go on with only when the transaction has ended."""
        self._run(_LOCK)
        return self.head()  # a statement that begins when the lock is held sees what others wrote

    def _run(self, statement: sa.Executable, **values: Any) -> sa.CursorResult[Any]:
        return self._connection.execute(statement, {"study": self._number, **values})

    def _by(self, column: str, items: Sequence[Any]) -> list[Event]:
        if not items:
            return []
        wanted: Any = [*dict.fromkeys(items)]
        if self._store.is_sqlite:
            wanted = json.dumps(wanted, ensure_ascii=False)
        return _to_events(self._run(_LOOKUPS[column, self._store.is_sqlite], items=wanted))

    def _whole(self, row: sa.Row[Any] | None) -> Head:
        head = None if row is None else Head._make(row)
        if head is None or head[3:] != (self._made.ids.code, self._made.identity):
            raise UnknownStudyError(
                f"study {self._name!r} is not in {self._store.name} any more: another store "
                "was put in its place. Nothing was recorded; open it again."
            )
        if type(head.seq) is not int or head.seq < 0:
            raise self.damaged(f"its row says that the last event is {head.seq!r}")
        if head.seq == 0 and head.checksum is None:
            return head._replace(checksum=self._number, last=self._number)
        return head

    def holds(self, seq: int, checksum: int) -> bool:
        """Whether the journal up to an event is the one with this checksum."""
        if seq == 0:
            return checksum == self._number
        found = self._by("seq", [seq])
        return bool(found) and found[0].checksum == checksum

    def read(self, after: int, limit: int) -> list[Event]:
        """Events after a given one."""
        if after == 0:
            return self._linked(self._number, 0, _to_events(self._run(_READ, after=0, limit=limit)))
        found = _to_events(self._run(_READ, after=after - 1, limit=limit + 1))
        if not found or found[0].seq != after:
            raise self.damaged(f"event {after} is missing")
        return self._linked(found[0].checksum, after, found[1:])

    def chunks(self, after: int, head: int) -> Iterator[list[Event]]:
        """Events up to the head, so that memory stays flat."""
        while after < head:
            chunk = self.read(after, min(CHUNK, head - after))
            if not chunk:
                raise self.damaged(f"event {after + 1} is missing")
            yield chunk
            after = chunk[-1].seq

    def of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._checked(self._by("pull", numbers))

    def under_keys(self, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._checked(self._by("key", keys))

    def corrections(self, head: int) -> Corrections:
        """Rewards that were voided up to an event."""
        return Corrections.of(self._checked(_to_events(self._run(_VOIDS, head=head))))

    # ------------------------------------------------------------------ writing

    def append(self, added: Sequence[Event], head: Mapping[str, Any]) -> None:
        """Add events, and bring what the list of studies shows up to date."""
        rows = [
            {
                **event._asdict(),
                "study": self._number,
                "data": None if event.data is None else to_json(event.data),
            }
            for event in added
        ]
        self._connection.execute(_APPEND, rows)
        self._run(_UPDATE, **head)

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, code: str) -> bytes | None:
        """The latest snapshot that a program can use; None if it is damaged."""
        query = sa.select(snapshots.c.data, snapshots.c.checksum).where(*self._own(code))
        found = self._connection.execute(query).first()
        if found is None or not isinstance(found.data, bytes | memoryview):
            return None
        data = bytes(found.data)
        return data if zlib.crc32(data) == found.checksum else None

    def save_snapshot(self, code: str, seq: int, data: bytes) -> None:
        """Put a snapshot of the state in the place of the last one."""
        row = {"seq": seq, "data": data, "checksum": zlib.crc32(data)}
        changed = self._connection.execute(snapshots.update().where(*self._own(code)).values(row))
        if changed.rowcount == 0:
            self._connection.execute(
                snapshots.insert().values(study=self._number, code=code, **row)
            )

    def _own(self, code: str) -> tuple[sa.ColumnElement[bool], ...]:
        return snapshots.c.study == self._number, snapshots.c.code == code

    # ------------------------------------------------------------------ checking

    def _linked(self, checksum: int, seq: int, found: Sequence[Event]) -> list[Event]:
        """Events that follow the one with this number and checksum."""
        size = self._made.plan.problem.size
        for event in found:
            seq += 1
            if event.seq != seq:
                raise self.damaged(f"event {seq} is missing; the next one there is {event.seq!r}")
            if link(checksum, event) != event.checksum:
                raise self.damaged(f"event {seq} is not what was recorded: its checksum is wrong")
            if event.arm is not None and not 0 <= event.arm < size:  # compiled code does not look
                raise self.damaged(f"event {seq} names arm number {event.arm}")
            checksum = event.checksum
        return [*found]

    def _checked(self, found: list[Event]) -> list[Event]:
        """Events from anywhere in the journal."""
        if not found:
            return found
        for event in found:
            if type(event.seq) is not int:
                raise self.damaged(f"event {event.seq!r} has no number")
        before = [event.seq - 1 for event in found if event.seq != 1]
        known = {event.seq: event.checksum for event in self._by("seq", before)} | {0: self._number}
        for event in found:
            if event.seq - 1 not in known:
                raise self.damaged(f"event {event.seq - 1} is missing")
            self._linked(known[event.seq - 1], event.seq - 1, [event])
        return found


def _to_events(rows: Iterable[sa.Row[Any]]) -> list[Event]:
    """The rows that a statement found, whole or not."""
    found = [Event(*row) for row in rows]
    return [
        event if event.data is None else event._replace(data=from_json(str(event.data)))
        for event in found
    ]
