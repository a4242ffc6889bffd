"""A SQL database by URL: connections, transactions, and its complaints in words.

SQLite (a file, nothing to start; see sqlite_file.py) or PostgreSQL (for many machines).

A transaction outlasts the death of every process; once flushed, a power failure as well.
Flushing comes after the next writer was let in, and before anything is acknowledged. So
many writers wait for the disk together, not in turn.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import SettingError, StoreError

from .forks import FORKS
from .sqlite_file import PATIENCE, SqliteFile

# Connections that are kept open when nobody uses them.
_KEPT_FILES, _KEPT_SESSIONS = 64, 20


class Database:
    """A SQLite file or a PostgreSQL database."""

    def __init__(self, url: str | os.PathLike[str], *, must_exist: bool = False) -> None:
        self._url = _parse(url)
        self.name = self._url.render_as_string(hide_password=True)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._pid = os.getpid()
        self._wanted = threading.local()  # what a thread's next connection is for
        self._file: SqliteFile | None = None
        if self.is_sqlite:
            self._file = SqliteFile(Path(self._url.database or ""), must_exist=must_exist)
        self._engine = self._make_engine()
        self._driver: Any = self._engine.dialect.loaded_dbapi
        weakref.finalize(self, _close, self._engine, self._pid)
        FORKS.before.add(self)
        FORKS.in_child.add(self)

    @property
    def url(self) -> str:
        """Where it is, with the password if there is one: for another process, not for people."""
        return self._url.render_as_string(hide_password=False)

    def _make_engine(self) -> sa.Engine:
        # Each thread uses one connection at a time: their number is limit enough. Those beyond a
        # pool's size are closed after use, and opening one takes longer than most transactions;
        # but a PostgreSQL server has room for a hundred of all its clients.
        if self._file is not None:
            file = self._file
            engine = sa.create_engine(
                self._url,
                pool_size=_KEPT_FILES,
                max_overflow=-1,
                connect_args={"timeout": PATIENCE},
            )

            def connect(_dialect: Any, _record: Any, _path: Any, options: dict[str, Any]) -> Any:
                return file.connect(**options)

            sa.event.listen(engine, "do_connect", connect)
            return engine
        try:
            engine = sa.create_engine(
                self._url,
                pool_size=_KEPT_SESSIONS,
                max_overflow=-1,
                pool_use_lifo=True,
                connect_args={"connect_timeout": 10},
            )
            sa.event.listen(engine, "connect", _prepare_postgresql)
            sa.event.listen(engine, "checkin", _note_use)
            sa.event.listen(engine, "checkout", partial(_check_idle, engine.dialect, self._wanted))
            return engine
        except ModuleNotFoundError as error:
            raise StoreError(
                f"{self.name}: the driver {error.name!r} is missing; install "
                "'simplexplore[postgresql]'."
            ) from None

    def close(self) -> None:
        """Give connections back; later calls open new ones."""
        with FORKS:
            _close(self._engine, self._pid)

    def before_fork(self) -> None:
        """Let a child inherit no connection that it could not leave alone."""
        if self.is_sqlite:
            self._engine.dispose()

    def after_fork(self) -> None:
        """In a child: connections belong to the parent."""
        self._engine.dispose(close=False)
        self._pid = os.getpid()

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the store."""
        with self._explained(), FORKS, self._connected(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite the only one at a time. To be flushed."""
        alone = contextlib.nullcontext() if self._file is None else self._file.alone()
        with (
            self._explained(),
            FORKS,
            alone,
            self._connected(writing=True) as connection,
        ):
            yield connection

    def flush(self) -> None:
        """Wait until what was committed is on the disk."""
        with self._explained():
            if self._file is not None:
                self._file.flush()
                return
            # The server flushes its log up to this message, as durably as it is set up to.
            with FORKS, self._engine.connect() as connection:
                self.run(
                    connection,
                    "SET LOCAL synchronous_commit TO DEFAULT; "
                    "SELECT pg_logical_emit_message(true, 'simplexplore', ''); COMMIT",
                )

    def run(
        self,
        connection: Connection,
        statement: str,
        values: Sequence[Any] = (),
        *,
        many: bool = False,
    ) -> Any:
        """A cursor after a statement, past SQLAlchemy: that takes longer than small statements.

        With `many` there are values for each of many executions. PostgreSQL gets several
        statements as one message.
        """
        raw = _raw(connection)
        # Several statements cannot be prepared, so that it is the client who puts values in.
        cursor = self._driver.ClientCursor(raw) if ";" in statement else raw.cursor()
        try:
            (cursor.executemany if many else cursor.execute)(statement, values)
        except self._driver.Error as error:
            if self._engine.dialect.is_disconnect(error, raw, cursor):
                connection.invalidate(error)
            raise
        return cursor

    @contextlib.contextmanager
    def _connected(self, writing: bool) -> Iterator[Connection]:
        self._wanted.reading = not writing
        with self._engine.connect() as connection:
            with connection.begin():
                if self._file is not None:
                    _raw(connection).execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                    self._check_file(self._file, connection, writing)
                yield connection
            if self._file is not None and _raw(connection).is_frozen:
                connection.invalidate()  # it would not see what others change

    def _check_file(self, file: SqliteFile, connection: Connection, writing: bool) -> None:
        try:
            file.check(_raw(connection), writing=writing)
        except StoreError:
            self._engine.dispose()  # what is open is not what is there
            raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """What a database can complain about, in words."""
        try:
            yield
        except (sa.exc.DBAPIError, self._driver.Error) as error:
            cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            is_operational = isinstance(cause, self._driver.OperationalError)
            lost = not self.is_sqlite and is_operational
            if lost:
                self._engine.dispose()
            passing = lost and not _LASTING.search(str(cause))
            words = _reason(cause, is_operational=is_operational)
            raise StoreError(f"{self.name}: {words}", passing=passing) from error
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


def _raw(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _prepare_postgresql(connection: Any, _record: object) -> None:
    # Commits do not wait for the disk while others wait for them; the store flushes.
    connection.execute("SET synchronous_commit = off")
    connection.commit()


def _note_use(_connection: object, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _check_idle(
    dialect: Any, wanted: threading.local, connection: Any, record: Any, _proxy: object
) -> None:
    """Ask whether the server is still there, unless it was a moment ago.

    Who writes tries again if it is lost; who reads does not.
    """
    idle = time.monotonic() - record.info.get("used", math.inf)
    if idle > _IDLE or getattr(wanted, "reading", True):
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as error:
            raise sa.exc.InvalidatePoolError from error


# Seconds after which a connection that nobody used may be lost without our knowing.
_IDLE = 0.2

_UNWRITABLE = "it cannot be written ({}). Nothing was recorded; "

# Complaints about a connection that trying again does not help.
_LASTING = re.compile(
    "authentication failed|does not exist|no pg_hba.conf entry|could not translate host name"
    "|Name or service not known|resolve host"
)


def _reason(error: BaseException | None, *, is_operational: bool) -> str:
    """A database's complaint in words, with what to do about it."""
    text = str(error).strip().splitlines()[0].rstrip(".")
    name = getattr(error, "sqlite_errorname", "")
    if not name:  # PostgreSQL
        code = getattr(error, "sqlstate", None)
        if code in ("25006", "42501"):
            words = _UNWRITABLE + "connect as a user who may, to a server that takes changes."
            return words.format(text)
        if "No space left" in text:
            return f"no room is left ({text}). Nothing was recorded; make room and try again."
        if is_operational:
            return f"cannot be reached ({text}). What was acknowledged is safe; try again later."
        return f"{text}."
    for start, words in (
        ("SQLITE_FULL", "no room is left ({}). Nothing was recorded; make room and try again."),
        ("SQLITE_IOERR", "the disk failed ({}). Nothing was recorded; check it and try again."),
        ("SQLITE_BUSY", f"another program kept it locked for {PATIENCE} s ({{}}); try again."),
        ("SQLITE_READONLY", _UNWRITABLE + "check the permissions of the file and its folder."),
        ("SQLITE_CANTOPEN", "it cannot be opened ({}); check the path and its permissions."),
    ):
        if name.startswith(start):
            return words.format(text)
    return (
        f"the file is damaged or is no database ({text}). Nothing was changed; put back a copy of "
        "it, or choose another file."
    )
