"""A SQL database by URL: connections, transactions, and its complaints in words.

SQLite (a file, nothing to start; see sqlite_file.py) or PostgreSQL (for many machines).

A transaction that was committed is on the disk: it outlasts the death of every process, and a
power failure.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from simplexplore.errors import SettingError, StoreError
from simplexplore.files import is_file

from .sqlite_file import PATIENCE, SqliteFile, is_database

Result = TypeVar("Result")

# Seconds for which a lost connection is tried again: a database restarts in a few.
RETRY_FOR = 30.0

# Connections that are kept open when nobody uses them.
_KEPT_FILES, _KEPT_SESSIONS = 64, 20


class Database:
    """A SQLite file or a PostgreSQL database."""

    def __init__(self, url: str | os.PathLike[str], *, must_exist: bool = False) -> None:
        self._url = _parse(url)
        self.name = self._url.render_as_string(hide_password=True)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._pid = os.getpid()
        self._file: SqliteFile | None = None
        if self.is_sqlite:
            self._file = SqliteFile(Path(self._url.database or ""), must_exist=must_exist)
        self._engine = self._make_engine()
        self._driver: Any = self._engine.dialect.loaded_dbapi
        weakref.finalize(self, _close, self._engine, self._pid)
        if self.is_sqlite:
            _SQLITE.add(self)

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
            return sa.create_engine(
                self._url,
                pool_size=_KEPT_SESSIONS,
                max_overflow=-1,
                pool_use_lifo=True,
                pool_pre_ping=True,
                connect_args={"connect_timeout": 10},
            )
        except ModuleNotFoundError as error:
            raise StoreError(
                f"{self.name}: the driver {error.name!r} is missing; install "
                "'simplexplore[postgresql]'."
            ) from None

    def close(self) -> None:
        """Give connections back; later calls open new ones."""
        _close(self._engine, self._pid)

    def check_process(self) -> None:
        """Raise `StoreError` in a forked child: connections and locks are those of its parent."""
        if os.getpid() != self._pid:
            raise StoreError(f"{self.name} was opened before a fork; open it in the child process.")

    # ------------------------------------------------------------------ transactions

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the store."""
        self.check_process()
        with self._translate_errors(), self._connected(writing=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; on SQLite the only one at a time."""
        self.check_process()
        lock = contextlib.nullcontext() if self._file is None else self._file.exclusive_lock()
        with self._translate_errors(), lock, self._connected(writing=True) as connection:
            yield connection

    def checkpoint(self) -> None:
        """Let a plain copy of a SQLite file hold what there is by now, if nobody reads."""
        if self._file is not None:
            with self._translate_errors(), self._engine.connect() as connection:
                self._file.checkpoint(_raw(connection))

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a SQLite store to a file, as it is at this moment, while others use it.

        Parameters
        ----------
        path : str or path
            Where to; a store that is there is replaced. Only its owner may read the copy.

        Raises
        ------
        SettingError
            If the store is a PostgreSQL database, which has its own tools, or the file is there
            and no SQLite database.
        """
        if self._file is None:
            raise SettingError(
                f"{self.name}: only SQLite stores are copied here; use PostgreSQL's pg_dump."
            )
        place = Path(path)
        if place.absolute() == Path(self._url.database or "").absolute():
            raise SettingError(f"{place}: that is the store itself; name another file.")
        if is_file(place) and not is_database(place):
            raise SettingError(f"{place}: it is no store, and would be lost; name another file.")
        try:
            with self.reading() as connection:
                self._file.backup(_raw(connection), place)
        except StoreError as error:
            if isinstance(error.__cause__, OSError):
                raise SettingError(f"cannot write the copy: {error}") from None
            raise

    @contextlib.contextmanager
    def _connected(self, writing: bool) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            with connection.begin():
                if self._file is not None:
                    _raw(connection).execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                    self._check_file(self._file, connection, writing)
                yield connection
            if self._file is not None and writing:
                # Nothing is acknowledged that is in a file without a name.
                self._check_file(self._file, connection, writing)

    def _check_file(self, file: SqliteFile, connection: Connection, writing: bool) -> None:
        try:
            file.check(_raw(connection), writing=writing)
        except StoreError:
            self._engine.dispose()  # what is open is not what is there
            raise

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """What a database can complain about, in words."""
        try:
            yield
        except (sa.exc.DBAPIError, self._driver.Error) as error:
            cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            is_operational = isinstance(cause, self._driver.OperationalError)
            lost = not self.is_sqlite and is_operational
            if lost:
                self._engine.dispose()
            retryable = lost and not _LASTING.search(str(cause))
            words = _reason(cause, is_operational=is_operational)
            raise StoreError(f"{self.name}: {words}", retryable=retryable) from error
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise SettingError(f"{wrong!r} is no text that can be stored.") from None
        except OSError as error:
            place = error.filename or self.name  # a lock file, or what is compiled meanwhile
            raise StoreError(f"{place}: {error.strerror or error}.") from error


class Retries:
    """Attempts at the same thing, with longer and longer pauses."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pause = 0.05

    def wait_or_raise(self, error: StoreError) -> None:
        """Wait for the next attempt; raise if there is no use in one."""
        if not error.retryable or time.monotonic() - self._started > RETRY_FOR:
            raise error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, 1.0)


def retried(work: Callable[[], Result]) -> Result:
    """Do what may be done twice, again if the connection was lost."""
    retries = Retries()
    while True:
        try:
            return work()
        except StoreError as error:
            retries.wait_or_raise(error)


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
    if os.getpid() == pid:  # a forked child must not close what its parent uses
        engine.dispose()


_SQLITE: weakref.WeakSet[Database] = weakref.WeakSet()


def _before_fork() -> None:
    # With connections of its parent, a child could not open the file itself; see sqlite_file.py.
    for database in [*_SQLITE]:
        database.close()


if hasattr(os, "register_at_fork"):  # elsewhere there are no forks
    os.register_at_fork(before=_before_fork)


def _raw(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


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
        ("SQLITE_CANTOPEN", "it cannot be opened ({}); check its path, permissions and folder."),
    ):
        if name.startswith(start):
            return words.format(text)
    return (
        f"the file is damaged or is no database ({text}). Nothing was changed; put back a copy of "
        "it, or choose another file."
    )
