"""Tests of permissions, also for root, whom they do not bind."""

import contextlib
import os
import tempfile
from pathlib import Path

NOBODY = 65534


@contextlib.contextmanager
def open_folder():
    """A folder that any user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def ordinary_user(folder):
    """Own the files of a folder, as somebody whom permissions bind."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
