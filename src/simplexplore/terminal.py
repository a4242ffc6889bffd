"""What commands print: JSON that every parser reads, text as it is, how far they are."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def to_json(value: Any) -> str:
    """Write JSON in which an infinite number is 1e999, which every parser reads as infinity.

    Examples
    --------
    >>> to_json({"time": math.inf, "arms": ["a"], "gap": 0.0, "none": None})
    '{"time": 1e999, "arms": ["a"], "gap": 0.0, "none": null}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)


def console() -> Console:
    """A console for standard output."""
    from rich.console import Console

    # Names are printed as they are: brackets and colons in them mean nothing.
    return Console(highlight=False, markup=False, emoji=False)


def progress(unit: str) -> Progress:
    """Bars with the estimated time left, on the error stream; none unless that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit},"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        disable=not console.is_terminal,
    )
