"""Where in a problem an error lies: the field it is about, and that field's line in a file."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tomllib
from collections.abc import Iterator

from simplexplore.errors import Location, SimplexploreError

# Texts and comments of TOML.
QUOTED = re.compile(
    r'"""[^\\]*?(?:\\.[^\\]*?)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)

# What matters for the shape of a TOML text: texts and comments as a whole, brackets, line ends.
_PIECE = re.compile(QUOTED.pattern + r"|[\[\]{}=\n]", re.DOTALL)


@contextlib.contextmanager
def error_context(field: str = "", prefix: str = "") -> Iterator[None]:
    """Note in errors which field they are about; nested, fields are joined by dots.

    A prefix goes before what they say.

    Examples
    --------
    >>> from simplexplore.errors import ProblemError
    >>> try:
    ...     with error_context("rewards"), error_context("sigma"):
    ...         raise ProblemError("sigma must be positive")
    ... except ProblemError as error:
    ...     error.place.field
    'rewards.sigma'
    """
    try:
        yield
    except SimplexploreError as error:
        place = error.place or Location()
        fields = [name for name in (field, place.field) if name]
        error.place = dataclasses.replace(place, field=".".join(fields) or None)
        error.args = (f"{prefix}{error}",)
        raise


@contextlib.contextmanager
def in_file(source: str, text: str = "") -> Iterator[None]:
    """Say in errors which file they are about, and note which line of it."""
    try:
        yield
    except SimplexploreError as error:
        place = error.place or Location()
        at = f", line {place.line}" if place.line else ""
        error.place = dataclasses.replace(place, file=source, line=line_of(text, place))
        error.args = (f"{source}{at}: {error}",)
        raise


def line_of(text: str, place: Location | None) -> int | None:
    r"""The line of a problem file that a place is at: that of its field, or of the table around.

    Examples
    --------
    >>> text = 'arms = ["a", "b"]\ndelta = 7\n[constraints]\ncap = "a + z <= 1"'
    >>> line_of(text, Location(field="constraints.cap")), line_of(text, Location(field="delta"))
    (4, 2)
    """
    if place is None or place.field is None or place.line is not None:
        return None if place is None else place.line
    lines, field = _lines_of_fields(text), place.field
    while field and field not in lines:
        # What `each` makes of the entry caps is called caps[a].
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field)


def _lines_of_fields(text: str) -> dict[str, int]:
    """The line on which each entry and table of a valid TOML text begins."""
    lines: dict[str, int] = {}
    table: tuple[str, ...] = ()
    start, line, depth, in_value = 0, 1, 0, False
    for piece in _PIECE.finditer(f"{text}\n"):
        mark = piece.group()
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        elif mark == "=" and not depth and not in_value:
            entry = (*table, *_names(f"{text[start : piece.start()]} = 0"))
            for n in range(len(entry), 0, -1):
                lines.setdefault(".".join(entry[:n]), line)
            in_value = True
        elif mark == "\n" and not depth:
            statement = text[start : piece.start()].strip()
            if not in_value and statement.startswith("["):
                table = _names(statement)
                lines.setdefault(".".join(table), line)
            line += text.count("\n", start, piece.end())
            start, in_value = piece.end(), False
    return lines


def _names(statement: str) -> tuple[str, ...]:
    """The names that one TOML statement joins by dots."""
    names: list[str] = []
    content: object = tomllib.loads(statement)
    while isinstance(content, dict) and content:
        ((name, content),) = content.items()
        names.append(name)
    return tuple(names)
