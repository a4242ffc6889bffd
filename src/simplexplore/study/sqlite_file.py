"""A SQLite file: connections to it, the queue of its writers, and whether it is there.

Writers queue at a lock file beside the database, because SQLite itself makes waiting writers
sleep and try again. SQLite does not notice either that its file was deleted or replaced: it
goes on with one that has no name any more. And what it remembers of a file's connections is
wrong in a forked child, which therefore may not open a file that is in use at that moment.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simplexplore.errors import SettingError, StoreError
from simplexplore.files import written_aside

try:
    import fcntl
except ImportError:  # not on this platform: SQLite's own waiting has to do
    fcntl = None  # type: ignore[assignment]

# How long a writer waits for others at most, in seconds: far longer than any transaction.
PATIENCE = 60

# What a file is, whatever it is called: device and number.
_FileId = tuple[int, int]


class SqliteConnection(sqlite3.Connection):
    """A connection that knows which file it has open."""

    file: _FileId | None = None
    wal: _FileId | None = None


_CONNECTIONS: weakref.WeakSet[SqliteConnection] = weakref.WeakSet()
_IN_USE_AT_FORK: set[_FileId] = set()

if hasattr(os, "register_at_fork"):  # elsewhere there are no forks
    os.register_at_fork(
        after_in_child=lambda: _IN_USE_AT_FORK.update(one.file for one in _CONNECTIONS if one.file)
    )


def is_database(path: Path) -> bool:
    """Whether a file is empty or begins like a SQLite database."""
    with path.open("rb") as file:
        return file.read(16) in (b"", b"SQLite format 3\0")


class SqliteFile:
    """A SQLite database and the files beside it."""

    def __init__(self, path: Path, *, must_exist: bool) -> None:
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
        self._path = path.absolute()  # the program may go to another folder
        self._lock = self._path.with_name(f"{path.name}-lock")
        self._wal = self._path.with_name(f"{path.name}-wal")
        self._may_make = not must_exist

    # ------------------------------------------------------------------ connections

    def connect(self, **options: Any) -> SqliteConnection:
        """A connection, ready for transactions that are begun by hand."""
        if not self._may_make and not self._path.exists():
            raise self._gone()
        if _id(self._path) in _IN_USE_AT_FORK:
            raise StoreError(
                f"{self._path} was in use when this process was forked; fork when no thread uses "
                "it, or start processes with the method 'spawn'."
            )
        if self._may_make:
            with contextlib.suppress(OSError):  # it is there; or SQLite says what is wrong
                # Digests of tokens are in it: it is for its owner until they say otherwise.
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={'rwc' if self._may_make else 'rw'}",
            uri=True,
            factory=SqliteConnection,
            **options,
        )
        connection.isolation_level = None  # transactions are not begun by the driver
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        self._may_make = False
        connection.file = _id(self._path)
        _CONNECTIONS.add(connection)
        return connection

    def check(self, connection: SqliteConnection, *, writing: bool) -> None:
        """Raise `StoreError` if the file that a transaction uses was deleted or replaced."""
        wal = _id(self._wal) if writing else None
        if writing and connection.wal is None:
            connection.wal = wal  # it is there as soon as somebody writes
        if _id(self._path) != connection.file or (writing and wal != connection.wal):
            raise self._gone()

    def _gone(self) -> StoreError:
        return StoreError(
            f"{self._path} was deleted or replaced while it was open. Nothing was recorded; put "
            "back the file, or a copy of it, and try again."
        )

    # ------------------------------------------------------------------ writing

    @contextlib.contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Queue at the lock file; the system gives it back even if this process is killed."""
        if not hasattr(fcntl, "flock"):
            yield
            return
        # A descriptor of our own, so that threads queue like processes.
        try:
            descriptor = self._open_lock()
        except FileNotFoundError:
            raise self._gone() from None
        except PermissionError as error:
            raise StoreError(
                f"{self._path} cannot be written ({self._lock.name}: {error.strerror}). Nothing "
                "was recorded; check the permissions of the file and its folder."
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            # Given back by hand: a child that was forked meanwhile has it open as well.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _open_lock(self) -> int:
        """The lock file, which is for those who may use the database."""
        with contextlib.suppress(FileNotFoundError):
            return os.open(self._lock, os.O_RDWR)
        mode = stat.S_IMODE(self._path.stat().st_mode)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        with contextlib.suppress(PermissionError):  # somebody else made it meanwhile
            os.fchmod(descriptor, mode)
        return descriptor

    def checkpoint(self, connection: SqliteConnection) -> None:
        """Move what is in the -wal file into the database, for those who copy that alone."""
        connection.execute("PRAGMA wal_checkpoint")

    def backup(self, connection: SqliteConnection, path: Path) -> None:
        """Copy the database as it is at this moment, while others use it."""
        with written_aside(path) as place:
            os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(place)) as copy:
                connection.backup(copy)


def _id(path: Path) -> _FileId | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
