"""A SQL database by URL: connections, transactions, and its complaints in words.

SQLite (a file, nothing to start) or PostgreSQL (for many machines). On SQLite writers queue at
a lock file beside the database, because SQLite itself makes waiting writers sleep and try
again.

A transaction outlasts the death of every process; once flushed, a power failure as well.
Flushing comes after the next writer was let in, and before anything is acknowledged. So
many writers wait for the disk together, not in turn.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import SettingError, StoreError

try:
    import fcntl
except ImportError:  # not on this platform: SQLite's own waiting has to do
    fcntl = None  # type: ignore[assignment]

# How long a writer waits for others at most, in seconds: far longer than any transaction.
PATIENCE = 60


class Database:
    """A SQLite file or a PostgreSQL database."""

    def __init__(self, url: str | os.PathLike[str], *, must_exist: bool = False) -> None:
        self._url = _parse(url)
        self.name = self._url.render_as_string(hide_password=True)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._pid = os.getpid()
        self._lock_file: Path | None = None
        self._wal_file: Path | None = None
        if self.is_sqlite:
            path = Path(self._url.database or "")
            if path.is_dir():
                raise SettingError(f"{str(path)!r} is a folder; name a file in it.")
            if must_exist and not path.exists():
                raise StoreError(
                    f"there is no file {str(path)!r}; 'simplexplore study create' makes one."
                )
            if must_exist and path.stat().st_size == 0:
                raise StoreError(f"the file {str(path)!r} is empty; put back a copy of it.")
            if not path.parent.is_dir():
                raise StoreError(f"{path}: there is no folder {str(path.parent)!r}; make it first.")
            path = path.absolute()  # the program may go to another folder
            self._lock_file = path.with_name(f"{path.name}-lock")
            self._wal_file = path.with_name(f"{path.name}-wal")
        self._engine = self._make_engine()
        weakref.finalize(self, _close, self._engine, self._pid)

    @property
    def url(self) -> str:
        """Where it is, with the password if there is one: for another process, not for people."""
        return self._url.render_as_string(hide_password=False)

    def _make_engine(self) -> sa.Engine:
        # Each thread uses one connection at a time: their number is limit enough.
        if self.is_sqlite:
            engine = sa.create_engine(
                self._url, max_overflow=-1, connect_args={"timeout": PATIENCE}
            )
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
            return engine
        try:
            engine = sa.create_engine(
                self._url,
                max_overflow=-1,
                pool_pre_ping=True,
                connect_args={"connect_timeout": 10},
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
        _close(self._engine, self._pid)

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
            descriptor = os.open(self._wal_file, os.O_RDWR)
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
        descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o666)
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
        except UnicodeEncodeError as error:
            raise SettingError(f"{error.object!r} is no text that can be stored.") from None
        except OSError as error:
            place = error.filename or self.name  # a lock file, or what is compiled meanwhile
            raise StoreError(f"{place}: {error.strerror or error}.") from error


def _parse(url: str | os.PathLike[str]) -> sa.URL:
    """Read a store's URL; what is no URL is the path of a SQLite file."""
    text = os.fspath(url)
    if re.match(r"[a-z][a-z0-9+]+:", text):  # one letter is a drive
        try:
            parsed = sa.make_url(text)
        except (sa.exc.ArgumentError, ValueError):
            raise SettingError(
                f"{text!r} is not a store's URL; write sqlite:///file.db or "
                "postgresql://user@host/database."
            ) from None
    else:
        parsed = sa.URL.create("sqlite", database=text)
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
