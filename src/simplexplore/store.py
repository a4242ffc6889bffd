"""Where studies live: a SQL database, by URL.

SQLite (a file, nothing to start) or PostgreSQL (for many machines). One table holds the
journals, and nothing in it is ever changed. The rest can be told from them and is there for
speed: the head of each study for lists, a history for plots, snapshots for opening.

Writers of a study wait for each other in the store, so that decisions are taken one after
the other. On SQLite they queue at a lock file beside the database, because SQLite itself
makes waiting writers sleep and try again.

A transaction outlasts the death of every process; once flushed, a power failure as well.
Flushing comes after the next writer was let in, and before anything is acknowledged. So
many writers wait for the disk together, not in turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from .errors import ConflictError, SettingError, StoreError, UnknownStudyError
from .journal import Event

try:
    import fcntl
except ImportError:  # not on this platform: SQLite's own waiting has to do
    fcntl = None  # type: ignore[assignment]

# How long a writer waits for others at most, in seconds: far longer than any transaction.
PATIENCE = 60

# More rows than there are.
ALL = 2**62

_metadata = sa.MetaData()

_schema = sa.Table("simplexplore_schema", _metadata, sa.Column("version", sa.Integer))

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


class Store:
    """A database of studies.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or just a file's path; ``postgresql://user@host/database``.
    clock : function, optional
        Seconds since 1970: the only clock that studies look at.
    must_exist : bool
        Whether to complain instead of making a new SQLite file.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        clock: Callable[[], float] = time.time,
        must_exist: bool = False,
    ) -> None:
        self.clock = clock
        self._url = _parse(url)
        self.name = self._url.render_as_string(hide_password=True)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._pid = os.getpid()
        self._lock_file: Path | None = None
        self._wal_file: Path | None = None
        if self.is_sqlite:
            path = Path(self._url.database or "")
            if must_exist and not path.exists():
                raise StoreError(
                    f"there is no file {str(path)!r}; 'simplexplore study create' makes one."
                )
            if must_exist and path.stat().st_size == 0:
                raise StoreError(f"the file {str(path)!r} is empty; put back a copy of it.")
            if not path.parent.is_dir():
                raise StoreError(f"{path}: there is no folder {str(path.parent)!r}; make it first.")
            self._lock_file = path.with_name(f"{path.name}-lock")
            self._wal_file = path.with_name(f"{path.name}-wal")
        self._engine = self._make_engine()
        weakref.finalize(self, _close, self._engine, self._pid)
        self._migrate()

    def _make_engine(self) -> sa.Engine:
        if self.is_sqlite:
            engine = sa.create_engine(self._url, connect_args={"timeout": PATIENCE})
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
            return engine
        try:
            engine = sa.create_engine(
                self._url, pool_pre_ping=True, connect_args={"connect_timeout": 10}
            )
            sa.event.listen(engine, "connect", _prepare_postgresql)
            return engine
        except ModuleNotFoundError as error:
            raise StoreError(
                f"{self.name}: the driver {error.name!r} is missing; install "
                "'simplexplore[postgresql]'."
            ) from None

    def close(self) -> None:
        """Give connections back; later calls open new ones."""
        self._engine.dispose()

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the store."""
        with self._explained(), self._connected(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite the only one at a time. To be flushed."""
        with self._explained(), self._alone(), self._connected(writing=True) as connection:
            yield connection

    def flush(self) -> None:
        """Wait until what was committed is on the disk."""
        with self._explained():
            self._flush()

    def _flush(self) -> None:
        if self._wal_file is None:
            # The server flushes its log up to this message, as durably as it is set up to.
            with self._engine.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            ) as connection:
                connection.exec_driver_sql(
                    "BEGIN; SET LOCAL synchronous_commit TO DEFAULT; "
                    "SELECT pg_logical_emit_message(true, 'simplexplore', ''); COMMIT"
                )
            return
        with contextlib.suppress(FileNotFoundError):  # its last user moved it into the database
            descriptor = os.open(self._wal_file, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _connected(self, writing: bool) -> Iterator[Connection]:
        if os.getpid() != self._pid:  # forked: connections belong to the parent
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        connecting = self._engine.connect().execution_options(writing=writing)
        with connecting as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Queue at the lock file; the system gives it back even if this process is killed."""
        if self._lock_file is None or fcntl is None:
            yield
            return
        # A descriptor of our own, so that threads queue like processes.
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """What a database can complain about, in words."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            lost = not self.is_sqlite and isinstance(error, sa.exc.OperationalError)
            if lost:
                self._engine.dispose()
            raise StoreError(f"{self.name}: {_reason(error)}", passing=lost) from error
        except OSError as error:
            raise StoreError(f"{self.name}: {error.strerror or error}.") from error

    # ------------------------------------------------------------------ schema

    def _migrate(self) -> None:
        """Bring the store to this version, or say that it is of a newer one."""
        with self.reading() as connection:
            version = _version(connection)
        if version < len(MIGRATIONS):
            with self.writing() as connection:
                if not self.is_sqlite:  # two programs may want to be the first
                    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7416930518)")
                version = self._take_steps(connection)
            self.flush()
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self.name} was made by a newer simplexplore (store version {version}; this "
                f"program knows {len(MIGRATIONS)}); upgrade simplexplore. Nothing was changed."
            )

    def _take_steps(self, connection: Connection) -> int:
        """Migrate, if nobody else did meanwhile; returns the version."""
        version = _version(connection)
        if version == 0 and sa.inspect(connection).has_table(studies.name):
            raise StoreError(
                f"{self.name} holds tables of another program; use a database of its own."
            )
        for step in MIGRATIONS[version:]:
            step(connection)
        now = max(version, len(MIGRATIONS))
        change = _schema.insert() if version == 0 else _schema.update()
        connection.execute(change.values(version=now))
        return now

    # ------------------------------------------------------------------ studies

    def create(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Add a study."""
        name = values["name"]
        if self.look_up(connection, name) is not None:
            raise ConflictError(
                f"there is a study {name!r} in {self.name} already; open it, or choose another "
                "name."
            )
        result = connection.execute(studies.insert().values(**values))
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])

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

    def lock(self, connection: Connection, study: int) -> int:
        """Wait for other writers of a study; returns the number of its last event."""
        return int(connection.execute(_LOCK, {"study": study}).scalar_one())

    def head(self, connection: Connection, study: int) -> int:
        """The number of a study's last event."""
        return int(connection.execute(_HEAD, {"study": study}).scalar_one())

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


def _version(connection: Connection) -> int:
    """The version of a store; 0 if it is empty."""
    if not sa.inspect(connection).has_table(_schema.name):
        return 0
    return int(connection.execute(sa.select(_schema.c.version)).scalar_one())


_HEAD = sa.select(studies.c.head).where(studies.c.id == sa.bindparam("study"))
_LOCK = _HEAD.with_for_update()
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


def _event(row: Row[Any]) -> Event:
    event = Event(*row)
    return event if event.data is None else event._replace(data=json.loads(str(event.data)))


def _parse(url: str | os.PathLike[str]) -> sa.URL:
    """Read a store's URL; what is no URL is the path of a SQLite file."""
    text = os.fspath(url)
    if not re.match(r"[a-z][a-z0-9+]*:", text):
        return sa.URL.create("sqlite", database=text)
    try:
        parsed = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        raise SettingError(
            f"{text!r} is not a store's URL; write sqlite:///file.db or "
            "postgresql://user@host/database."
        ) from None
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise SettingError(
            f"a store is SQLite or PostgreSQL; got {backend!r}. Write sqlite:///file.db or "
            "postgresql://user@host/database."
        )
    if backend == "sqlite" and (parsed.database or ":memory:") == ":memory:":
        raise SettingError(
            "a study outlives its process, so it needs a file: sqlite:///file.db. For one in "
            "memory, use Explorer."
        )
    if backend == "postgresql" and parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed


def _close(engine: sa.Engine, pid: int) -> None:
    # A forked child must not close what its parent uses.
    engine.dispose(close=os.getpid() == pid)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Transactions are begun below, not by the driver, and flushed by the store.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _prepare_postgresql(connection: Any, _record: object) -> None:
    # Commits do not wait for the disk while others wait for them; the store flushes.
    connection.execute("SET synchronous_commit = off")
    connection.commit()


def _reason(error: sa.exc.DBAPIError) -> str:
    """A database's complaint in words, with what to do about it."""
    text = str(error.orig).strip().splitlines()[0].rstrip(".")
    name = getattr(error.orig, "sqlite_errorname", "")
    if not name:  # PostgreSQL
        if "No space left" in text:
            return f"no room is left ({text}). Nothing was recorded; make room and try again."
        if isinstance(error, sa.exc.OperationalError):
            return f"cannot be reached ({text}). What was acknowledged is safe; try again later."
        return f"{text}."
    for start, words in (
        ("SQLITE_FULL", "no room is left ({}). Nothing was recorded; make room and try again."),
        ("SQLITE_IOERR", "the disk failed ({}). Nothing was recorded; check it and try again."),
        ("SQLITE_BUSY", f"another program kept it locked for {PATIENCE} s ({{}}); try again."),
        ("SQLITE_READONLY", "it cannot be written ({}); check its permissions."),
        ("SQLITE_CANTOPEN", "it cannot be opened ({}); check the path and its permissions."),
    ):
        if name.startswith(start):
            return words.format(text)
    return (
        f"the file is damaged or is no database ({text}). Nothing was changed; put back a copy of "
        "it, or choose another file."
    )
