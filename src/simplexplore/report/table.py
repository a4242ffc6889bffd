"""Tables for a terminal of any width, which never cut a number or a name.

Names and sentences are wrapped; numbers never are. Columns that do not fit are left out by their
rank, and named below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

# Rows beyond this are counted in words.
MAX_ROWS = 15

# Columns of words get at least this, if they need it: no number in them is longer.
LEAST_WORDS = 14

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
        Columns of the highest rank are left out first, and the first column never.
    """

    heading: str
    align: Literal["left", "right", "center"] = "right"
    words: bool = False
    rank: int = 0


def text_column(heading: str) -> Column:
    """A column of names or sentences."""
    return Column(heading, "left", True)


_Record = TypeVar("_Record")
# A column, and what it says of a record.
Field: TypeAlias = tuple[Column, Callable[[_Record], str]]


class Table:
    """A table that is filled row by row, and printed as wide as there is room.

    Parameters
    ----------
    title : str
    columns : sequence of Column
    total : int
        How many rows there are in all, where at most `MAX_ROWS` are shown.
    rest : str
        What tells the other rows apart.
    """

    def __init__(
        self, title: str, columns: Sequence[Column], total: int = 0, rest: str = ""
    ) -> None:
        self.title = title
        self._total, self._rest = total, rest
        self._columns = list(columns)
        # Cells and their style; None where a section ends.
        self._rows: list[tuple[Sequence[str], str | None] | None] = []

    @classmethod
    def of(
        cls,
        title: str,
        fields: Sequence[Field[_Record]],
        records: Sequence[_Record],
        total: int = 0,
        rest: str = "",
    ) -> Table:
        """A row for each record, a column for each field."""
        table = cls(title, [column for column, _ in fields], total, rest)
        for record in records:
            table.add_row(*(write(record) for _, write in fields))
        return table

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Add a row; cells that are missing at its end are empty."""
        missing = len(self._columns) - len(cells)
        self._rows.append(((*cells, *[""] * missing), style))

    def add_section(self) -> None:
        """Leave a line empty."""
        self._rows.append(None)

    def print(self, console: Console) -> None:
        """Print it, and below what it leaves out: rows of a total, and columns."""
        shown, gap = self._fitting(console.width)
        console.print(self.title, style="bold")
        self._print_grid(console, shown, gap)
        if (more := self._total - MAX_ROWS) > 0:
            console.print(f"... and {more} more {self._rest}".rstrip(), style="dim")
        if len(shown) < len(self._columns):
            left = (c.heading for i, c in enumerate(self._columns) if i not in shown)
            console.print(f"columns left out at this width: {', '.join(left)}", style="dim")

    def _width(self, i: int) -> int:
        """What a column takes without breaking anything but its heading."""
        cells = [cell_len(row[0][i]) for row in self._rows if row]
        return max([_longest_word(self._columns[i].heading), *cells])

    def _least(self, i: int) -> int:
        """The least that a column can do with."""
        column, width = self._columns[i], self._width(i)
        if not column.words:
            return width
        return max(_longest_word(column.heading), min(width, LEAST_WORDS))

    def _fitting(self, width: int) -> tuple[list[int], int]:
        """The columns that fit, and the space between them."""
        shown = list(range(len(self._columns)))
        while True:
            for gap in GAPS:
                if sum(map(self._least, shown)) + gap * (len(shown) - 1) <= width or not shown[1:]:
                    return shown, gap
            shown.remove(max(shown[1:], key=lambda i: (self._columns[i].rank, i)))

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
            lines = []
            for i in shown:
                wrapped = Text(texts[i]).wrap(console, widths[i], justify=self._columns[i].align)
                lines.append([line.plain for line in wrapped])
            height = max(map(len, lines))
            for i, cell in zip(shown, lines, strict=True):
                blank = [" " * widths[i]] * (height - len(cell))
                # Headings stand on the line below them.
                cell[:] = [*blank, *cell] if texts is heads else [*cell, *blank]
            for cells in zip(*lines, strict=True):
                _line(console, (" " * gap).join(cells).rstrip(), style)

        heads = [column.heading for column in self._columns]
        block(heads, "bold")
        _line(console, "─" * (sum(widths.values()) + gap * (len(shown) - 1)))
        for row in self._rows:
            if row is None:
                _line(console, "")
            else:
                block(*row)


def _line(console: Console, text: str, style: str | None = None) -> None:
    """Print one line as it is."""
    console.print(Text(text, style=style or ""), no_wrap=True, overflow="ignore", crop=False)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)
