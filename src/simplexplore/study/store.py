"""Where studies live: their rows, journals, histories and snapshots in a database.

Writers of a study wait for each other in the store, so that decisions are taken one after
the other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError
from simplexplore.protocol import ALL

from . import migrations, queries
from .database import Database
from .events import Event
from .records import HistoryPoint
from .schema import events, history, snapshots, studies

# Events that are in memory at a time.
CHUNK = 50_000


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
        if version < known:
            with self.writing() as connection:
                self._queue(connection)
                version = migrations.migrate(connection, self.name)
            self.flush()
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
            )
        )

    def look_up(self, connection: Connection, name: str) -> Row[Any] | None:
        """A study's row, by name, if there is one."""
        return connection.execute(sa.select(studies).where(studies.c.name == name)).first()

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

    def head(self, connection: Connection, study: int, code: str) -> int | None:
        """The number of a study's last event; None if the study is gone.

        The code tells a study from one that got its number in a store made anew.
        """
        return _if_same(connection.execute(queries.HEAD, {"study": study}).first(), code)

    def lock(
        self, connection: Connection, study: int, code: str, after: int
    ) -> tuple[int | None, list[Event]]:
        """Wait for other writers of a study; returns its head, and events after a given one."""
        if self.is_sqlite:  # the transaction is the lock
            return self.head(connection, study, code), self.read(connection, study, after, CHUNK)
        # In one message: others are waiting. The second statement begins when the lock is held,
        # so that it sees all that they have recorded.
        result = connection.exec_driver_sql(queries.LOCK_AND_READ % (study, study, after, CHUNK))
        cursor: Any = result.cursor
        head = _if_same(cursor.fetchone(), code)
        cursor.nextset()
        added = [queries.to_event(row) for row in cursor.fetchall()]
        result.close()
        return head, added

    def page(
        self, limit: int | None = None, after: tuple[float, str] | None = None
    ) -> list[dict[str, Any]]:
        """Studies with the last point of their history, the latest change first.

        `after` is change and name of the last one seen.
        """
        wanted: dict[str, Any] = {"limit": ALL if limit is None else limit}
        query = queries.FIRST_PAGE
        if after is not None:
            query = queries.NEXT_PAGE
            wanted |= {"changed": after[0], "name": after[1]}
        with self.reading() as connection:
            return [dict(row) for row in connection.execute(query, wanted).mappings()]

    def totals(self) -> dict[str, int]:
        """How many studies there are, by state."""
        with self.reading() as connection:
            return dict(connection.execute(queries.TOTALS).mappings().one())

    # ------------------------------------------------------------------ journals

    def read(self, connection: Connection, study: int, after: int, limit: int = ALL) -> list[Event]:
        """Events of a study after a given one."""
        wanted = {"study": study, "after": after, "limit": limit}
        return [queries.to_event(row) for row in connection.execute(queries.READ, wanted).all()]

    def pulls(self, connection: Connection, study: int, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._some(connection, queries.BY_PULL, study, numbers)

    def keys(self, connection: Connection, study: int, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._some(connection, queries.BY_KEY, study, keys)

    def _some(
        self, connection: Connection, query: Any, study: int, items: Sequence[Any]
    ) -> list[Event]:
        found: list[Event] = []
        for first in range(0, len(items), 500):
            some = {"study": study, "items": list(items[first : first + 500])}
            found += [queries.to_event(row) for row in connection.execute(query, some).all()]
        return found

    def append(
        self, connection: Connection, study: int, added: Sequence[Event], head: Mapping[str, Any]
    ) -> None:
        """Add events to a journal, and bring what the list of studies shows up to date."""
        rows = [
            {
                **event._asdict(),
                "study": study,
                "data": None if event.data is None else json.dumps(event.data),
            }
            for event in added
        ]
        if self.is_sqlite:
            connection.execute(events.insert(), rows)
            connection.execute(queries.UPDATE, {**head, "study": study})
        else:  # in one message: others are waiting
            columns = {f"new_{name}": [row[name] for row in rows] for name in Event._fields}
            connection.execute(queries.APPEND, {**columns, **head, "study": study})

    def add_point(self, connection: Connection, study: int, point: HistoryPoint) -> None:
        """Add to a study's history."""
        row = {**point, "study": study, "policy": json.dumps(point["policy"])}
        connection.execute(history.insert(), row)

    def points(self, connection: Connection, study: int, after: int = 0) -> list[HistoryPoint]:
        """A study's history after a given event."""
        found = connection.execute(queries.POINTS, {"study": study, "after": after}).mappings()
        return [cast(HistoryPoint, {**row, "policy": json.loads(row["policy"])}) for row in found]

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, connection: Connection, study: int, code: str) -> bytes | None:
        """The latest snapshot that compiled code can use."""
        found = connection.execute(queries.SNAPSHOT, {"study": study, "code": code}).scalar()
        return None if found is None else bytes(found)

    def save_snapshot(
        self, connection: Connection, study: int, code: str, seq: int, data: bytes
    ) -> None:
        """Put a snapshot in the place of the last one."""
        own = (snapshots.c.study == study) & (snapshots.c.code == code)
        changed = connection.execute(snapshots.update().where(own).values(seq=seq, data=data))
        if changed.rowcount == 0:
            connection.execute(
                snapshots.insert().values(study=study, code=code, seq=seq, data=data)
            )


def _if_same(row: Sequence[Any] | None, code: str) -> int | None:
    """The head in a row, if it is that of the study with this code."""
    return int(row[0]) if row is not None and row[1] == code else None
