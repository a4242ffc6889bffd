"""Where in a problem an error lies: the field it is about, and that field's line in a file."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tomllib
from collections.abc import Iterator

from simplexplore.errors import Place, SimplexploreError

# What matters for the shape of a TOML text: strings and comments as a whole, brackets, line ends.
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}=\n]",
    re.DOTALL,
)


@contextlib.contextmanager
def about(field: str) -> Iterator[None]:
    """Note in errors which field they are about; nested, fields are joined by dots.

    Examples
    --------
    >>> from simplexplore.errors import ProblemError
    >>> try:
    ...     with about("rewards"), about("sigma"):
    ...         raise ProblemError("sigma must be positive")
    ... except ProblemError as error:
    ...     error.place.field
    'rewards.sigma'
    """
    try:
        yield
    except SimplexploreError as error:
        inner = error.place and error.place.field
        place = error.place or Place()
        error.place = dataclasses.replace(place, field=f"{field}.{inner}" if inner else field)
        raise


def line_of(text: str, place: Place | None) -> int | None:
    r"""The line of a problem file that a place is at: that of its field, or of the table around.

    Examples
    --------
    >>> text = 'arms = ["a", "b"]\ndelta = 7\n[constraints]\ncap = "a + z <= 1"'
    >>> line_of(text, Place(field="constraints.cap")), line_of(text, Place(field="delta"))
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
