"""What is finished, kept on disk: a cell for each computation, found by its settings.

A cell is written at once or not at all, so whatever ends a run, the cells that exist are
whole. Its name holds a hash of everything that its content depends on: the settings, and the
program itself. A changed setting is therefore a new cell, and nothing stale is ever found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from simplexplore.errors import SettingError
from simplexplore.files import write_whole

from .results import Results, load_results

CELLS = "cells"

# Rooms of the program that numbers come from; the others only show them.
ROOMS = ("problem", "geometry", "bound", "kernels", "samplers", "exploration", "simulation")


class Cells:
    """The cells in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CELLS
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingError(
                f"cannot make the folder {str(self._folder)!r}: {error.strerror}."
            ) from None

    def has(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether a cell is finished."""
        place = self._place(name, settings)
        return (place / "results.json").is_file() or place.with_suffix(".json").is_file()

    def results(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], Results]
    ) -> Results:
        """The results of a simulation: those kept, or new ones."""
        place = self._place(name, settings)
        if not (place / "results.json").is_file():
            made = make()
            if made.runs < made.runs_asked:
                raise KeyboardInterrupt  # Ctrl-C; a part of a cell is no cell
            made.save(place)
            return made
        (found,) = load_results(place)
        return found

    def numbers(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Other numbers, which must be plain JSON: those kept, or new ones."""
        path = self._place(name, settings).with_suffix(".json")
        if not path.is_file():
            text = json.dumps({"settings": dict(settings), "numbers": make()}, indent=1)
            try:
                write_whole(path, text.encode())
            except OSError as error:
                raise SettingError(f"cannot write {str(path)!r}: {error.strerror}.") from None
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["numbers"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingError(f"{path} is damaged ({error}); delete it to run it again.") from None
        return found

    def _place(self, name: str, settings: Mapping[str, Any]) -> Path:
        content = json.dumps({**settings, "program": program()}, sort_keys=True)
        return self._folder / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


@cache
def program() -> str:
    """A hash of all that numbers come from."""
    return hash_of_rooms(Path(__file__).parent.parent)


def hash_of_rooms(package: Path) -> str:
    """A hash of what the rooms hold; moving a file or renaming it changes nothing."""
    contents = sorted(
        hashlib.sha256(path.read_bytes()).digest()
        for room in ROOMS
        for path in (package / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12]
