"""The journal of one study: what a store holds is checked before anybody acts on it.

Checksums find what was changed, lost, doubled or moved.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import StoreError, UnknownStudyError

from .decision import Corrections
from .events import Event, from_json, link, to_json
from .schema import snapshots
from .settings import Definition
from .store import Store

# Events that are in memory at a time.
CHUNK = 50_000

# What every request needs is written out: SQLAlchemy takes longer to find out what was meant than
# a database to do it.
_FIELDS = ", ".join(f'"{name}"' for name in Event._fields)
# Of these columns on PostgreSQL.
_TYPES = (
    *("text", "bigint", "integer", "double precision", "text", "text"),
    *("double precision", "bigint", "bigint"),
)
# Of what events are looked up by, there.
_ITEMS = {"seq": "bigint", "pull": "bigint", "key": "text"}
# What of its state stands in a study's row.
_HEADS = (
    *("head", "changed", "state", "delta", "asked", "rewards", "pending", "answer"),
    "checksum",
)


class _Statements:
    """For `Database.run`, with the marks that a driver knows for values."""

    def __init__(self, *, is_sqlite: bool) -> None:
        mark = "?" if is_sqlite else "%s"
        self._is_sqlite = is_sqlite
        self.head = f"""
            SELECT head, checksum, code, (SELECT identity FROM simplexplore_store)
            FROM studies WHERE id = {mark}
        """
        self.read = f"""
            SELECT {_FIELDS} FROM events WHERE study = {mark} AND seq > {mark}
            ORDER BY seq LIMIT {mark}
        """
        self.by = {column: self._by(column) for column in _ITEMS}
        self.voids = f"""
            SELECT {_FIELDS} FROM events WHERE study = {mark} AND kind = 'voided' AND seq <= {mark}
            ORDER BY seq
        """
        # The second statement begins when the lock is held, so that it sees all that others have
        # recorded.
        self.lock = f"{self.head} FOR UPDATE; {self.read}; {self.by['key']}"
        # Progress is not known anew each time.
        self.update = f"""
            UPDATE studies SET {", ".join(f"{name} = {mark}" for name in _HEADS)},
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

    def _by(self, column: str) -> str:
        """Events of a study by their numbers, pulls or keys: a list, on SQLite as JSON.

        Both would read the whole study where they think that it has few rows: SQLite without
        statistics, PostgreSQL of a study that is younger than its statistics. One is told which
        index to use; the other does not know which study is meant until it has a plan.
        """
        if self._is_sqlite:
            index = "" if column == "seq" else f"INDEXED BY events_by_{column}"
            return f"""
                SELECT {_FIELDS} FROM events {index}
                WHERE study = ? AND "{column}" IN (SELECT value FROM json_each(?)) ORDER BY seq
            """
        return f"""
            SELECT found.* FROM unnest(ARRAY[CAST(%s AS integer)]) AS one(study),
            unnest(CAST(%s AS {_ITEMS[column]}[])) AS wanted(item),
            LATERAL (
                SELECT {_FIELDS} FROM events
                WHERE events.study = one.study AND events."{column}" = wanted.item OFFSET 0
            ) AS found ORDER BY seq
        """


_STATEMENTS = {is_sqlite: _Statements(is_sqlite=is_sqlite) for is_sqlite in (True, False)}


class HistoryDivergedError(Exception):
    """A store holds other events than it did.

    An older copy was put back, or a server crashed with events that others had seen and nobody
    was told of.
    """


class Head(NamedTuple):
    """The end of a journal: number of the last event, checksum, and whose journal it is."""

    seq: Any  # a number, if the row is whole
    checksum: int | None
    code: str
    identity: str


class Journal:
    """The events of one study, for as long as a transaction of the store.

    Nothing else in a study has the connection.
    """

    def __init__(self, store: Store, made: Definition, connection: Connection) -> None:
        self._store, self._made, self._connection = store, made, connection
        self._number, self._name = made.number, made.ids.study
        self._statements = _STATEMENTS[store.is_sqlite]

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
        return self._whole(self._run(self._statements.head))

    def lock(self, after: int, keys: Sequence[str] = ()) -> tuple[Head, list[Event], list[Event]]:
        """Wait for other writers: decisions are taken one after the other.

        Returns the head, events from a given one on, unchecked, and events recorded under keys.
        """
        first = max(0, after - 1)
        if self._store.is_sqlite:  # the transaction is the lock
            head = self.head()
            added = self._read(first, CHUNK)
            keyed = self._by("key", keys)
        else:  # in one message: others are waiting
            values = (first, CHUNK, self._number, [*dict.fromkeys(keys)])
            cursor = self._run(self._statements.lock, self._number, *values)
            head = self._whole(cursor)
            cursor.nextset()
            added = _to_events(cursor)
            cursor.nextset()
            keyed = _to_events(cursor)
        if 0 < after <= head.seq and (not added or added[0].seq != after):
            raise self.damaged(f"event {after} is missing")
        return head, added, self._checked(keyed)

    def _run(self, statement: str, *values: Any) -> Any:
        return self._store.run(self._connection, statement, (self._number, *values))

    def _read(self, after: int, limit: int) -> list[Event]:
        return _to_events(self._run(self._statements.read, after, limit))

    def _by(self, column: str, items: Sequence[Any]) -> list[Event]:
        if not items:
            return []
        wanted: Any = [*dict.fromkeys(items)]
        if self._store.is_sqlite:
            wanted = json.dumps(wanted, ensure_ascii=False)
        return _to_events(self._run(self._statements.by[column], wanted))

    def _whole(self, cursor: Any) -> Head:
        row = cursor.fetchone()
        head = None if row is None else Head(*row)
        if head is None or head[2:] != (self._made.ids.code, self._made.identity):
            raise UnknownStudyError(
                f"study {self._name!r} is not in {self._store.name} any more: another store "
                "was put in its place. Nothing was recorded; open it again."
            )
        if type(head.seq) is not int or head.seq < 0:
            raise self.damaged(f"its row says that the last event is {head.seq!r}")
        if head.seq == 0 and head.checksum is None:
            return head._replace(checksum=self._number)
        return head

    def read(
        self,
        after: int,
        limit: int,
        *,
        found: Sequence[Event] = (),
        checksum: int | None = None,
    ) -> list[Event]:
        """Events after a given one.

        `found` may hold what `lock` has read; `checksum` is that up to the given event, if it
        is known: `HistoryDivergedError` says that the store has another one.
        """
        if not found:
            more = limit + (after > 0)
            found = self._read(max(0, after - 1), more)
        if after == 0:
            return self._linked(self._number, 0, found)
        if not found:
            return []
        if found[0].seq != after:
            raise self.damaged(f"event {after} is missing")
        if checksum not in (None, found[0].checksum):
            raise HistoryDivergedError
        return self._linked(found[0].checksum, after, found[1:])

    def chunks(
        self,
        after: int,
        head: int,
        *,
        found: Sequence[Event] = (),
        checksum: int | None = None,
    ) -> Iterator[list[Event]]:
        """Events up to the head, so that memory stays flat; see `read`."""
        while after < head:
            limit = min(CHUNK, head - after)
            chunk = self.read(after, limit, found=found, checksum=checksum)
            if not chunk:
                raise self.damaged(f"event {after + 1} is missing")
            yield chunk
            after, checksum, found = chunk[-1].seq, chunk[-1].checksum, ()

    def of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._checked(self._by("pull", numbers))

    def under_keys(self, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._checked(self._by("key", keys))

    def corrections(self, head: int) -> Corrections:
        """Rewards that were voided up to an event."""
        found = _to_events(self._run(self._statements.voids, head))
        return Corrections.of(self._checked(found))

    # ------------------------------------------------------------------ writing

    def append(self, added: Sequence[Event], head: Mapping[str, Any]) -> None:
        """Add events, and bring what the list of studies shows up to date."""
        rows = [
            (*event[:5], None if event.data is None else to_json(event.data), *event[6:])
            for event in added
        ]
        values = (*(head[name] for name in _HEADS), head["progress"], self._number)
        if self._store.is_sqlite:
            given = [(self._number, *row) for row in rows]
            self._store.run(self._connection, self._statements.add_events, given, many=True)
            self._store.run(self._connection, self._statements.update, values)
        else:  # in one message: others are waiting
            self._run(self._statements.append, json.dumps(rows), *values)

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

    def _linked(self, checksum: int, seq: int, events: Sequence[Event]) -> list[Event]:
        """Events that follow the one with this number and checksum."""
        size = self._made.plan.problem.size
        for event in events:
            seq += 1
            if event.seq != seq:
                raise self.damaged(f"event {seq} is missing; the next one there is {event.seq!r}")
            if link(checksum, event) != event.checksum:
                raise self.damaged(f"event {seq} is not what was recorded: its checksum is wrong")
            if event.arm is not None and not 0 <= event.arm < size:  # compiled code does not look
                raise self.damaged(f"event {seq} names arm number {event.arm}")
            checksum = event.checksum
        return list(events)

    def _checked(self, events: list[Event]) -> list[Event]:
        """Events from anywhere in the journal."""
        if not events:
            return events
        for event in events:
            if type(event.seq) is not int:
                raise self.damaged(f"event {event.seq!r} has no number")
        before = [event.seq - 1 for event in events if event.seq != 1]
        known = {event.seq: event.checksum for event in self._by("seq", before)} | {0: self._number}
        for event in events:
            if event.seq - 1 not in known:
                raise self.damaged(f"event {event.seq - 1} is missing")
            self._linked(known[event.seq - 1], event.seq - 1, [event])
        return events


def _to_events(cursor: Any) -> list[Event]:
    """The rows that a statement found, whole or not."""
    found = [Event(*row) for row in cursor.fetchall()]
    return [
        event if event.data is None else event._replace(data=from_json(str(event.data)))
        for event in found
    ]
