"""Files written so that nobody ever sees half of one, and whether there is one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A place to write to; what is there in the end is moved to the path."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "a device or a pipe is not replaced by a file")
    place = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield place
        place.replace(path)
    finally:
        place.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    with written_aside(path) as place:
        place.write_bytes(data)


def is_file(path: Path) -> bool:
    """Whether there is such a file; not if the name is longer than any file's can be."""
    try:
        return path.is_file()
    except OSError:
        return False
