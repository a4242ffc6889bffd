"""Where machine code is kept on disk, safe against stale code and against other users.

What lies there is run by this process, so the folder must be ours, closed to others, and no link.
A piece of code is filed under a hash of all that it depends on, and carries its own checksum.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from simplexplore.errors import SettingError
from simplexplore.files import write_whole

try:
    import fcntl
except ImportError:  # not on this platform: two processes may compile the same thing
    fcntl = None  # type: ignore[assignment]

_HERE = Path(__file__).parent
_ENDING = ".code"


@cache
def cache_folder() -> Path:
    """The folder; made, for us alone, if it is not there.

    ``SIMPLEXPLORE_CACHE`` names another one. Where the usual one cannot be made, machine code
    lasts as long as the process.
    """
    chosen = os.environ.get("SIMPLEXPLORE_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(chosen) if chosen else Path(home) / "simplexplore" / "native"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if chosen:
            raise SettingError(
                f"machine code cannot be kept in SIMPLEXPLORE_CACHE, {chosen!r}: {error.strerror}."
            ) from None
        return _passing_folder()
    check_folder(folder)
    return folder


def lasts() -> bool:
    """Whether what is kept there is there for other processes, too."""
    return not _HELD or cache_folder() != Path(_HELD[-1].name)


@cache
def _passing_folder() -> Path:
    """A private folder that goes with the process."""
    _HELD.append(tempfile.TemporaryDirectory(prefix="simplexplore-"))
    return Path(_HELD[-1].name)


_HELD: list[tempfile.TemporaryDirectory[str]] = []


def check_folder(folder: Path) -> None:
    """Raise `SettingError` unless nobody else can put anything into a folder."""
    if not hasattr(os, "geteuid"):
        return  # permissions of another kind
    ours = (os.geteuid(), 0)
    for place in (folder, *folder.absolute().parents):
        found = place.lstat()
        trouble = None
        is_it = place == folder
        # Others may write beside it where only owners may remove (as in /tmp).
        is_open = found.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if is_it else 0))
        if is_it and stat.S_ISLNK(found.st_mode):
            trouble = "is a link"
        elif found.st_uid not in (ours[:1] if is_it else ours):
            trouble = "belongs to another user"
        elif is_open and (is_it or not found.st_mode & stat.S_ISVTX):
            trouble = "can be written by others"
        if trouble:
            raise SettingError(
                f"machine code is not kept in {str(folder)!r}: {str(place)!r} {trouble}, who could "
                "put code of theirs there. Make it yours alone (chmod 700), or name another "
                "folder in SIMPLEXPLORE_CACHE."
            )


def code_of(*own: str) -> str:
    """A hash of every text that machine code depends on: our files, and a user's own."""
    return hashlib.sha256("\0".join([_our_code(), *own]).encode()).hexdigest()[:20]


@cache
def _our_code() -> str:
    ours = sorted([*_HERE.glob("*.py"), *(_HERE.parent / "samplers").glob("*.py")])
    digest = hashlib.sha256(f"{version('numba')} {version('llvmlite')}".encode())
    for file in ours:
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Shelf:
    """The machine code of one state of the source, for one processor."""

    def __init__(self, code: str, target: str) -> None:
        self.key = hashlib.sha256(f"{code} {target}".encode()).hexdigest()[:20]

    def _path(self, name: str, ending: str = _ENDING) -> Path:
        return cache_folder() / self.key / (name + ending)

    def holds(self, name: str) -> bool:
        """Whether a unit is there, for us to read."""
        try:
            return self._path(name).exists()
        except OSError:  # a process that became another user may not look
            return False

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Symbol and machine code of a unit; None if it is not there, or damaged."""
        try:
            data = self._path(name).read_bytes()
        except OSError:
            return None
        seal, _, rest = data.partition(b"\n")
        symbol, _, code = rest.partition(b"\n")
        return (symbol.decode(), code) if seal == _seal(rest) else None

    def write(self, name: str, symbol: str, code: bytes) -> None:
        """File a unit, only ever seen whole; with a full disk it lasts as long as the process."""
        path = self._path(name)
        rest = symbol.encode() + b"\n" + code
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(path, _seal(rest) + b"\n" + rest)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Alone with a unit: two processes never compile the same thing at once."""
        path = self._path(name, ".lock")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("w") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
