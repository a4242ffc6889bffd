"""What is finished, kept on disk: numbers found by all that they depend on.

A file is written whole or not at all, and its name holds a hash of the settings and of the program.
A changed setting is therefore another file, and nothing stale is ever found. Simulations are
kept beside them, by `simplexplore.compare`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import simplexplore as sx

# Told what is under way.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """Where a reproduction is kept, and how it is run.

    Attributes
    ----------
    folder : Path
    runs : int or None
        Of each sampler; None: as in the paper.
    workers : int or None
        Threads; None: all cores. Results do not depend on it.
    tell : function
    """

    folder: Path
    runs: int | None = None
    workers: int | None = None
    tell: Tell = lambda _: None

    @property
    def cells(self) -> Path:
        """The folder of what is finished; it is made if necessary."""
        place = self.folder / "cells"
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise sx.SettingError(
                f"cannot make the folder {str(place)!r}: {error.strerror}."
            ) from None
        return place

    def count(self, most: int) -> int:
        """So many runs, or as few as were asked for."""
        return most if self.runs is None else min(most, self.runs)

    def has(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether numbers are finished."""
        return self._path(name, settings).is_file()

    def keep(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return numbers that were kept, or make them and keep them."""
        path = self._path(name, settings)
        if not path.is_file():
            self.tell(name)
            write(path, json.dumps({"settings": dict(settings), "numbers": make()}, indent=1))
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["numbers"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise sx.SettingError(
                f"{path} is damaged ({error}); delete it to run it again."
            ) from None
        return found

    def _path(self, name: str, settings: Mapping[str, Any]) -> Path:
        content = json.dumps({**settings, "program": program()}, sort_keys=True)
        return self.cells / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.json"


@cache
def program() -> str:
    """A hash of all that numbers come from: simplexplore, and this package."""
    homes = (Path(str(sx.__file__)).parent, Path(__file__).parent)
    contents = sorted(
        hashlib.sha256(path.read_bytes()).digest()
        for home in homes
        for path in home.rglob("*")
        if path.suffix in (".py", ".toml", ".csv")
    )
    return hashlib.sha256(b"".join(contents)).hexdigest()


def write(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees half of it."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise sx.SettingError(f"cannot write {str(path)!r}: {error.strerror}.") from None
