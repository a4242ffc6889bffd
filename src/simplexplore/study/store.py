"""Where studies live: their rows, journals, histories and snapshots in a database.

Writers of a study wait for each other in the store, so that decisions are taken one after
the other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError
from simplexplore.protocol import ALL

from . import migrations, queries
from .checksums import of_snapshot, of_study
from .database import Database
from .events import Event, to_json
from .records import HistoryPoint
from .schema import snapshots, studies

# Events that are in memory at a time.
CHUNK = 50_000

# What points of the history hold as JSON.
_LISTS = ("policy", "counts", "means")


class Head(NamedTuple):
    """The end of a journal: number of the last event, checksum, and whose journal it is."""

    seq: Any  # a number, if the row is whole
    checksum: int | None
    code: str
    identity: str


class Totals(TypedDict):
    """Sums over all studies of a store."""

    running: int
    stopped: int
    paused: int
    archived: int
    asked: int
    rewards: int
    pending: int


class Store(Database):
    """A database of studies.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or just a file's path; ``postgresql://user@host/database``.
    clock : function, optional
        Seconds since 1970: the only clock that studies look at.
    must_exist : bool
        Whether to complain instead of making a file or tables.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        must_exist: bool = False,
    ) -> None:
        super().__init__(url, must_exist=must_exist)
        self.clock = clock
        self._statements = queries.Statements(is_sqlite=self.is_sqlite)
        self._migrate(must_exist)

    def _migrate(self, must_exist: bool) -> None:
        """Bring the store to this version, or say that it is of a newer one."""
        known = len(migrations.MIGRATIONS)
        with self.reading() as connection:
            version = migrations.version_of(connection)
        if version == 0 and must_exist:
            raise StoreError(
                f"{self.name} holds no studies; 'simplexplore study create' makes one."
            )
        if version is not None and version < known:
            with self.writing() as connection:
                self._queue(connection)
                version = migrations.migrate(connection, self.name)
            self.flush()
        if version is None:
            raise StoreError(
                f"{self.name} is damaged: it does not say of which version it is (the table "
                "simplexplore_schema should hold one number). Nothing was changed; put back a "
                "copy of it."
            )
        if version > known:
            raise StoreError(
                f"{self.name} was made by a newer simplexplore (store version {version}; this "
                f"program knows {known}); upgrade simplexplore. Nothing was changed."
            )

    def _queue(self, connection: Connection) -> None:
        """Let one program at a time make tables or studies; until the transaction ends."""
        if not self.is_sqlite:  # there, whoever writes is alone
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7416930518)")

    # ------------------------------------------------------------------ studies

    def reserve(self, connection: Connection, name: str) -> Row[Any] | None:
        """The row of a study, if there is one; else nobody makes it before this transaction."""
        self._queue(connection)
        return self.look_up(connection, name)

    def create(
        self,
        connection: Connection,
        *,
        name: str,
        code: str,
        created: float,
        problem: str,
        settings: str,
        delta: float,
    ) -> None:
        """Add a study, under a name that was reserved."""
        connection.execute(
            studies.insert().values(
                name=name,
                code=code,
                created=created,
                problem=problem,
                settings=settings,
                head=0,
                changed=created,
                state="running",
                delta=delta,
                asked=0,
                rewards=0,
                pending=0,
                fixed=of_study(code, created, problem, settings),
            )
        )

    def look_up(self, connection: Connection, name: str) -> Row[Any] | None:
        """A study's row, by name, if there is one."""
        return connection.execute(queries.STUDY, {"name": name}).first()

    def find(self, connection: Connection, name: str) -> Row[Any]:
        """A study's row, by name."""
        row = self.look_up(connection, name)
        if row is None:
            names = connection.execute(
                sa.select(studies.c.name).order_by(studies.c.changed.desc()).limit(10)
            )
            known = ", ".join(names.scalars())
            hint = f"It holds: {known}." if known else "It holds none yet."
            raise UnknownStudyError(f"there is no study {name!r} in {self.name}. {hint}")
        return row

    def head(self, connection: Connection, study: int) -> Head | None:
        """The end of a study's journal; None if there is no such study."""
        return _head(self.run(connection, self._statements.head, (study,)).fetchone())

    def lock(
        self, connection: Connection, study: int, after: int, keys: Sequence[str] = ()
    ) -> tuple[Head | None, list[Event], list[Event]]:
        """Wait for other writers of a study.

        Returns its head, events after a given one, and events under keys.
        """
        if self.is_sqlite:  # the transaction is the lock
            head = self.head(connection, study)
            added = self.read(connection, study, after, CHUNK)
            return head, added, self.keys(connection, study, keys)
        # In one message: others are waiting.
        values = (study, study, after, CHUNK, study, [*dict.fromkeys(keys)])
        cursor = self.run(connection, self._statements.lock, values)
        head = _head(cursor.fetchone())
        cursor.nextset()
        added = _events(cursor)
        cursor.nextset()
        return head, added, _events(cursor)

    def page(
        self,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
        *,
        archived: bool = False,
    ) -> list[dict[str, Any]]:
        """Studies, the latest change first; `after` is change and name of the last one seen.

        Of what was changed at the same moment, the names decide.
        """
        wanted: dict[str, Any] = {"limit": ALL if limit is None else limit, "archived": archived}
        query = queries.FIRST_PAGE
        if after is not None:
            query = queries.NEXT_PAGE
            wanted |= {"changed": after[0], "name": after[1]}
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(query, wanted).mappings()]

    def totals(self) -> Totals:
        """Sums over all studies."""
        with self.reading() as connection:
            found = connection.execute(queries.TOTALS).mappings().one()
        return cast(Totals, {name: int(value or 0) for name, value in found.items()})

    # ------------------------------------------------------------------ journals

    def read(self, connection: Connection, study: int, after: int, limit: int = ALL) -> list[Event]:
        """Events of a study after a given one."""
        return _events(self.run(connection, self._statements.read, (study, after, limit)))

    def pulls(self, connection: Connection, study: int, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._some(connection, "pull", study, numbers)

    def voids(self, connection: Connection, study: int, head: int) -> list[Event]:
        """Events up to a given one that struck a reward out."""
        found = connection.execute(queries.VOIDS, {"study": study, "head": head})
        return [queries.to_event(row) for row in found.all()]

    def keys(self, connection: Connection, study: int, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._some(connection, "key", study, keys)

    def checksums(
        self, connection: Connection, study: int, numbers: Sequence[int]
    ) -> dict[int, int]:
        """Checksums of the journal up to given events."""
        found = self._some(connection, "seq", study, numbers)
        return {event.seq: event.checksum for event in found}

    def _some(
        self, connection: Connection, column: str, study: int, items: Sequence[Any]
    ) -> list[Event]:
        found: list[Event] = []
        items = [*dict.fromkeys(items)]
        for first in range(0, len(items), 500):
            some = items[first : first + 500]
            statement, places = self._statements.events_by(column, len(some))
            # On SQLite the last one again, until all places are taken.
            values = [*some, *some[-1:] * (places - len(some))] if self.is_sqlite else [some]
            found += _events(self.run(connection, statement, (study, *values)))
        return found

    def append(
        self, connection: Connection, study: int, added: Sequence[Event], head: Mapping[str, Any]
    ) -> None:
        """Add events to a journal, and bring what the list of studies shows up to date."""
        rows = [
            (*event[:5], None if event.data is None else to_json(event.data), *event[6:])
            for event in added
        ]
        values = (*(head[name] for name in queries.HEADS), head["progress"], study)
        if self.is_sqlite:
            given = [(study, *row) for row in rows]
            self.run(connection, self._statements.add_events, given, many=True)
            self.run(connection, self._statements.update, values)
        else:  # in one message: others are waiting
            self.run(connection, self._statements.append, (study, json.dumps(rows), *values))

    def add_point(self, connection: Connection, study: int, point: HistoryPoint) -> None:
        """Add to a study's history."""
        lists = {name: json.dumps(point.get(name)) for name in _LISTS if name in point}
        connection.execute(queries.ADD_POINT, {"means": None, **point, "study": study, **lists})

    def points(self, connection: Connection, study: int, after: int = 0) -> list[HistoryPoint]:
        """A study's history after a given event."""
        found = connection.execute(queries.POINTS, {"study": study, "after": after}).mappings()
        return [
            cast(
                HistoryPoint,
                {
                    **{name: value for name, value in row.items() if value is not None},
                    **{name: json.loads(row[name]) for name in _LISTS if row[name]},
                },
            )
            for row in found
        ]

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, connection: Connection, study: int, code: str) -> bytes | None:
        """The latest snapshot that compiled code can use; None if it is damaged."""
        found = connection.execute(queries.SNAPSHOT, {"study": study, "code": code}).first()
        if found is None or not isinstance(found.data, bytes | memoryview):
            return None
        data = bytes(found.data)
        return data if of_snapshot(data) == found.checksum else None

    def save_snapshot(
        self, connection: Connection, study: int, code: str, seq: int, data: bytes
    ) -> None:
        """Put a snapshot in the place of the last one."""
        own = (snapshots.c.study == study) & (snapshots.c.code == code)
        row = {"seq": seq, "data": data, "checksum": of_snapshot(data)}
        changed = connection.execute(snapshots.update().where(own).values(row))
        if changed.rowcount == 0:
            connection.execute(snapshots.insert().values(study=study, code=code, **row))


def _head(row: Sequence[Any] | None) -> Head | None:
    return None if row is None else Head(*row)


def _events(cursor: Any) -> list[Event]:
    return [queries.to_event(row) for row in cursor.fetchall()]
