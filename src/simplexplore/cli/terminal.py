"""What commands print on a terminal: text as it is, how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from simplexplore.report.json_text import to_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from simplexplore.report.document import Document


def console() -> Console:
    """A console for standard output."""
    from rich.console import Console

    # Names are printed as they are: brackets and colons in them mean nothing.
    return Console(highlight=False, markup=False, emoji=False)


def show(document: Document) -> None:
    """Print a report."""
    from simplexplore.report.document import to_terminal

    to_terminal(document, console())


def say(data: Mapping[str, Any], text: str | Document | None, *, as_json: bool) -> None:
    """Print what a command found or did: as one JSON object, or in words."""
    if as_json:
        typer.echo(to_json(data))
    elif isinstance(text, str):
        typer.echo(text)
    elif text is not None:
        show(text)


def progress() -> Progress:
    """Bars with the estimated time left, on the error stream; none unless that is a terminal."""
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    return bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("runs,"),
        bars.TimeRemainingColumn(),
        bars.TextColumn("left"),
        console=console,
        disable=not console.is_terminal,
    )
