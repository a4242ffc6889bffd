"""Where studies live: their rows, journals, histories and snapshots in a database.

Writers of a study wait for each other in the store, so that decisions are taken one after
the other.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from simplexplore.errors import StoreError, UnknownStudyError

from . import schema
from .database import Database
from .schema import events, history, snapshots, studies
from .state import Event

# More rows than there are.
ALL = 2**62

# Events that are in memory at a time.
PIECE = 50_000


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
        known = len(schema.MIGRATIONS)
        with self.reading() as connection:
            version = schema.version_of(connection)
        if version == 0 and must_exist:
            raise StoreError(
                f"{self.name} holds no studies; 'simplexplore study create' makes one."
            )
        if version < known:
            with self.writing() as connection:
                self._queue(connection)
                version = schema.migrate(connection, self.name)
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
        return _if_same(connection.execute(_HEAD, {"study": study}).first(), code)

    def lock(
        self, connection: Connection, study: int, code: str, after: int
    ) -> tuple[int | None, list[Event]]:
        """Wait for other writers of a study; returns its head, and events after a given one."""
        if self.is_sqlite:  # the transaction is the lock
            return self.head(connection, study, code), self.read(connection, study, after, PIECE)
        # In one message: others are waiting. The second statement begins when the lock is held,
        # so that it sees all that they have recorded.
        result = connection.exec_driver_sql(_LOCK_AND_READ % (study, study, after, PIECE))
        cursor: Any = result.cursor
        head = _if_same(cursor.fetchone(), code)
        cursor.nextset()
        added = [_event(row) for row in cursor.fetchall()]
        result.close()
        return head, added

    def rows(self) -> list[dict[str, Any]]:
        """All studies with the last point of their history, the latest change first."""
        with self.reading() as connection:
            found = connection.execute(_LIST).mappings().all()
        return [dict(row) for row in found]

    # ------------------------------------------------------------------ journals

    def read(self, connection: Connection, study: int, after: int, limit: int = ALL) -> list[Event]:
        """Events of a study after a given one."""
        wanted = {"study": study, "after": after, "limit": limit}
        return [_event(row) for row in connection.execute(_READ, wanted).all()]

    def pulls(self, connection: Connection, study: int, numbers: Sequence[int]) -> list[Event]:
        """Events of given pulls."""
        return self._some(connection, _BY_PULL, study, numbers)

    def keys(self, connection: Connection, study: int, keys: Sequence[str]) -> list[Event]:
        """Events recorded under given keys."""
        return self._some(connection, _BY_KEY, study, keys)

    def _some(
        self, connection: Connection, query: Any, study: int, items: Sequence[Any]
    ) -> list[Event]:
        found: list[Event] = []
        for first in range(0, len(items), 500):
            some = {"study": study, "items": list(items[first : first + 500])}
            found += [_event(row) for row in connection.execute(query, some).all()]
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
            connection.execute(_UPDATE, {**head, "study": study})
        else:  # in one message: others are waiting
            columns = {f"new_{name}": [row[name] for row in rows] for name in Event._fields}
            connection.execute(_APPEND, {**columns, **head, "study": study})

    def add_point(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Add to a study's history."""
        connection.execute(history.insert(), dict(values))

    def points(self, connection: Connection, study: int, after: int = 0) -> list[dict[str, Any]]:
        """A study's history."""
        query = (
            sa.select(history)
            .where(history.c.study == study, history.c.seq > after)
            .order_by(history.c.seq)
        )
        return [
            {**row, "policy": json.loads(row["policy"])}
            for row in connection.execute(query).mappings()
        ]

    # ------------------------------------------------------------------ snapshots

    def snapshot(self, connection: Connection, study: int, code: str) -> bytes | None:
        """The latest snapshot that compiled code can use."""
        query = sa.select(snapshots.c.data).where(
            snapshots.c.study == study, snapshots.c.code == code
        )
        found = connection.execute(query).scalar()
        return None if found is None else bytes(found)

    def keep(self, connection: Connection, study: int, code: str, seq: int, data: bytes) -> None:
        """Put a snapshot in the place of the last one."""
        own = (snapshots.c.study == study) & (snapshots.c.code == code)
        changed = connection.execute(snapshots.update().where(own).values(seq=seq, data=data))
        if changed.rowcount == 0:
            connection.execute(
                snapshots.insert().values(study=study, code=code, seq=seq, data=data)
            )


_HEAD = sa.select(studies.c.head, studies.c.code).where(studies.c.id == sa.bindparam("study"))
_LOCK_AND_READ = f"""
    SELECT head, code FROM studies WHERE id = %d FOR UPDATE;
    SELECT {", ".join(Event._fields)} FROM events WHERE study = %d AND seq > %d
    ORDER BY seq LIMIT %d
"""
_POINTS = history.alias()
_LAST = (
    sa.select(sa.func.max(_POINTS.c.seq))
    .where(_POINTS.c.study == studies.c.id)
    .correlate(studies)
    .scalar_subquery()
)
_LIST = (
    sa.select(studies, history.c.statistic, history.c.threshold)
    .select_from(
        studies.outerjoin(history, (history.c.study == studies.c.id) & (history.c.seq == _LAST))
    )
    .order_by(studies.c.changed.desc(), studies.c.id.desc())
)
_COLUMNS = [events.c[name] for name in Event._fields]
_READ = (
    sa.select(*_COLUMNS)
    .where(events.c.study == sa.bindparam("study"), events.c.seq > sa.bindparam("after"))
    .order_by(events.c.seq)
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
_BY_PULL = sa.select(*_COLUMNS).where(
    events.c.study == sa.bindparam("study"),
    events.c.pull.in_(sa.bindparam("items", expanding=True)),
)
_BY_KEY = (
    sa.select(*_COLUMNS)
    .where(
        events.c.study == sa.bindparam("study"),
        events.c.key.in_(sa.bindparam("items", expanding=True)),
    )
    .order_by(events.c.seq)
)
_HEADS = ("head", "changed", "state", "delta", "asked", "rewards", "pending", "answer")
_UPDATE = (
    studies.update()
    .where(studies.c.id == sa.bindparam("study"))
    .values({name: sa.bindparam(name) for name in _HEADS})
)
_APPEND = sa.text(
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


def _if_same(row: Sequence[Any] | None, code: str) -> int | None:
    """The head in a row, if it is that of the study with this code."""
    return int(row[0]) if row is not None and row[1] == code else None


def _event(row: Sequence[Any]) -> Event:
    event = Event(*row)
    return event if event.data is None else event._replace(data=json.loads(str(event.data)))
