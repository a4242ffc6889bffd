"""A report as a document: headings, sentences, tables and notes, whoever shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .table import Table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Heading:
    """The most important in one line: of what kind it is, and what it says."""

    kind: str
    text: str


@dataclass(frozen=True)
class Note:
    """How to read what stands above it, or how it came about."""

    text: str


# A text is a sentence.
Part: TypeAlias = Heading | str | Note | Table
# What is shown together.
Section: TypeAlias = list[Part]
Document: TypeAlias = list[Section]


def to_terminal(document: Document, console: Console) -> None:
    """Print a document as wide as the terminal is, an empty line between its sections.

    The console should not interpret markup: names may contain brackets.
    """
    for i, section in enumerate(document):
        if i:
            console.print()
        for part in section:
            match part:
                case Heading():
                    console.print(part.text, style="bold")
                case str():
                    console.print(part)
                case Note():
                    console.print(part.text, style="dim")
                case Table():
                    part.print(console)


def to_dict(document: Document) -> dict[str, str | list[str]]:
    """The words of a document as plain data: headings by what they are, sentences as `notes`."""
    parts = [part for section in document for part in section]
    headings = {part.kind: part.text for part in parts if isinstance(part, Heading)}
    return {**headings, "notes": [part for part in parts if isinstance(part, str)]}
