"""The folder where numba keeps machine code for us, safe against stale code and other users.

What lies there is run by this process, so the folder must be ours alone. It is named by a hash of
all that machine code depends on: code of an edited file is never run.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

from simplexplore.errors import SettingError


def cache_folder(own_text: str = "") -> Path | None:
    """Where the code of these kernels, and of a user's own text, is kept; None if nowhere.

    ``SIMPLEXPLORE_CACHE`` names another place than the user's cache folder.
    """
    chosen = os.environ.get("SIMPLEXPLORE_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(chosen) if chosen else Path(home) / "simplexplore"
    folder = place / code_of(own_text)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        if not chosen:
            return None  # it lasts as long as the process
        raise SettingError(
            f"machine code cannot be kept in SIMPLEXPLORE_CACHE, {chosen!r}: {error.strerror}."
        ) from None
    check_folder(place)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


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


def _our_code() -> bytes:
    """What our machine code is made of: kernels, samplers, and the codes of families."""
    package = Path(__file__).parent.parent
    files = [*package.glob("kernels/*.py"), *package.glob("samplers/*.py")]
    files.append(package / "problem" / "families.py")
    try:
        texts = [file.read_bytes() for file in sorted(files)]
    except OSError as error:
        raise SettingError(f"cannot read {error.filename}: {error.strerror}.") from None
    return b"".join([version("numba").encode(), version("llvmlite").encode(), *texts])


# Read when the modules are: files may be replaced while this process runs.
_OUR_CODE = hashlib.sha256(_our_code())


@cache
def code_of(own_text: str = "") -> str:
    """A hash of every text that machine code depends on: our files, and a user's own."""
    digest = _OUR_CODE.copy()
    digest.update(own_text.encode())
    return digest.hexdigest()[:20]
