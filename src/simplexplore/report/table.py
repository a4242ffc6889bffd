"""Tables for a terminal of any width, which never cut a number or a name.

Names and sentences are wrapped; numbers never are. Columns that do not fit are left out by their
rank, and named below the table. What does not fit even then is written row by row, a value a line.
Very long names are shortened in the middle, the same way everywhere, and a legend has them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len, chop_cells
from rich.text import Text

from .numbers import shorten

if TYPE_CHECKING:
    from rich.console import Console

# Rows beyond this are counted in words.
MAX_ROWS = 15

# Columns of words get at least this, if they need it: no number in them is longer.
LEAST_WORDS = 14

# Names longer than this are shortened.
LONGEST_NAME = 48

GAPS = (3, 2)


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    heading : str
    align : {"left", "right", "center"}
    words : bool
        Whether its cells may be broken between words.
    rank : int
        Columns of the highest rank are left out first; those of rank 0 never.
    """

    heading: str
    align: Literal["left", "right", "center"] = "right"
    words: bool = False
    rank: int = 0


def text_column(heading: str) -> Column:
    """A column of names or sentences."""
    return Column(heading, "left", True)


@dataclass(frozen=True)
class _Row:
    cells: tuple[str, ...]
    style: str | None


class Table:
    """A table that is filled row by row, and printed as wide as there is room."""

    def __init__(self, title: str, columns: Sequence[Column]) -> None:
        self.title = title
        self._columns = list(columns)
        self._rows: list[_Row | None] = []  # None: a section ends

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Add a row; cells that are missing at its end are empty."""
        missing = len(self._columns) - len(cells)
        self._rows.append(_Row((*cells, *[""] * missing), style))

    def add_section(self) -> None:
        """Leave a line empty."""
        self._rows.append(None)

    def print(self, console: Console, total: int = 0, what: str = "") -> None:
        """Print it, and below what it leaves out: rows of a total, columns, parts of names."""
        shown, gap = self._fitting(console.width)
        for line in _wrapped(self.title, console.width):
            _line(console, line, "bold")
        if shown:
            self._print_grid(console, shown, gap)
        else:
            self._print_records(console)
        if total > MAX_ROWS:
            console.print(
                f"... and {total - MAX_ROWS} more{f' {what}' if what else ''}", style="dim"
            )
        if shown and len(shown) < len(self._columns):
            left = (c.heading for i, c in enumerate(self._columns) if i not in shown)
            console.print(f"columns left out at this width: {', '.join(left)}", style="dim")

    def _width(self, i: int) -> int:
        """What a column takes without breaking anything but its heading."""
        cells = [cell_len(row.cells[i]) for row in self._rows if row]
        return max([_longest_word(self._columns[i].heading), *cells])

    def _least(self, i: int) -> int:
        """The least that a column can do with."""
        column, width = self._columns[i], self._width(i)
        if not column.words:
            return width
        return max(_longest_word(column.heading), min(width, LEAST_WORDS))

    def _fitting(self, width: int) -> tuple[list[int], int]:
        """The columns that fit, and the space between them; no columns if these do not."""
        shown = list(range(len(self._columns)))
        while True:
            for gap in GAPS:
                if sum(map(self._least, shown)) + gap * (len(shown) - 1) <= width:
                    return shown, gap
            last = max(shown, key=lambda i: (self._columns[i].rank, i))
            if not self._columns[last].rank:
                return [], 0
            shown.remove(last)

    def _widths(self, shown: list[int], room: int) -> dict[int, int]:
        """Give columns of words what they want as far as it goes, the shortest first."""
        widths = {i: self._least(i) for i in shown}
        room -= sum(widths.values())
        wanting = [i for i in shown if self._columns[i].words]
        for k, i in enumerate(sorted(wanting, key=self._width)):
            more = min(self._width(i) - widths[i], room // (len(wanting) - k))
            widths[i] += more
            room -= more
        for i in shown:  # a heading need not be broken where there is room for it
            more = min(max(cell_len(self._columns[i].heading) - widths[i], 0), room)
            widths[i] += more
            room -= more
        return widths

    def _print_grid(self, console: Console, shown: list[int], gap: int) -> None:
        widths = self._widths(shown, console.width - gap * (len(shown) - 1))

        def block(texts: Sequence[str], style: str | None) -> None:
            lines = [_wrapped(texts[i], widths[i]) for i in shown]
            height = max(map(len, lines))
            for k in range(height):
                # Headings stand on the line below them.
                at = [k - (height - len(column)) if texts is heads else k for column in lines]
                cells = [c[j] if 0 <= j < len(c) else "" for c, j in zip(lines, at, strict=True)]
                parts = [
                    _aligned(cell, widths[i], self._columns[i].align)
                    for i, cell in zip(shown, cells, strict=True)
                ]
                _line(console, (" " * gap).join(parts).rstrip(), style)

        heads = [column.heading for column in self._columns]
        block(heads, "bold")
        _line(console, "─" * (sum(widths.values()) + gap * (len(shown) - 1)))
        for row in self._rows:
            if row is None:
                _line(console, "")
            else:
                block(row.cells, row.style)

    def _print_records(self, console: Console) -> None:
        """One value a line, below the name of its row."""
        for row in self._rows:
            if row is None:
                continue
            for line in _wrapped(row.cells[0], console.width):
                _line(console, line, row.style or "bold")
            for column, cell in zip(self._columns[1:], row.cells[1:], strict=True):
                if cell:
                    for k, line in enumerate(
                        _wrapped(f"{column.heading} {cell}".strip(), max(console.width - 4, 1))
                    ):
                        _line(console, f"{'    ' if k else '  '}{line}")


def short_names(names: Iterable[str], longest: int = LONGEST_NAME) -> dict[str, str]:
    """Names as they are shown: in full, or shortened in the middle, no two of them alike.

    Examples
    --------
    >>> short_names(["a", "Star Trek: The Motion Picture"], longest=16)
    {'a': 'a', 'Star Trek: The Motion Picture': 'Star Tre…Picture'}
    """
    return told_apart(names, lambda name, end: shorten(name, longest - len(end)))


def told_apart(names: Iterable[str], shortened: Callable[[str, str], str]) -> dict[str, str]:
    """Names in full or shortened, those that would look alike with a number at their end.

    Parameters
    ----------
    names : iterable of str
    shortened : callable
        It takes a name and what will stand behind it.
    """
    shown: dict[str, str] = {}
    names = list(names)
    taken = {name for name in names if shortened(name, "") == name}
    for name in names:
        short, k = shortened(name, ""), 1
        while short != name and short in taken:
            k += 1
            short = shortened(name, f"~{k}") + f"~{k}"
        taken.add(short)
        shown[name] = short
    return shown


def legend(shown: Mapping[str, str]) -> list[str]:
    """The names that were shortened, in full."""
    return [f"{short}: {name}" for name, short in shown.items() if short != name]


def print_legend(console: Console, *shown: Mapping[str, str]) -> None:
    """Print the names that were shortened, in full; very many are counted."""
    lines = [line for names in shown for line in legend(names)]
    for line in lines[:MAX_ROWS]:
        console.print(line, style="dim")
    if len(lines) > MAX_ROWS:
        console.print(f"... and {len(lines) - MAX_ROWS} more names", style="dim")


def _line(console: Console, text: str, style: str | None = None) -> None:
    """Print one line as it is."""
    console.print(Text(text, style=style or ""), no_wrap=True, overflow="ignore", crop=False)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _aligned(text: str, width: int, align: str) -> str:
    room = width - cell_len(text)
    left = {"left": 0, "right": room, "center": room // 2}[align]
    return f"{' ' * left}{text}{' ' * (room - left)}"


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text between words, and words that are longer than a line where it ends."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += chop_cells(word, width)
    return lines
