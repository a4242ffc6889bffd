"""Results of any kind as tables: for pandas, spreadsheets, papers and notebooks."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import SettingError
from .files import write_whole

if TYPE_CHECKING:
    import pandas

Row = Mapping[str, Any]
Rows = Sequence[Row]

# Rows of a notebook's table; the rest is counted.
MAX_ROWS = 30

# What TeX takes for commands, and signs that not every font of its has.
_TEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # \textquotedbl is an error in LaTeX's own encoding of fonts, OT1
    "±": r"$\pm$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "δ": r"$\delta$",
    "ε": r"$\epsilon$",
    "√": r"$\surd$",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
}


class Tabular(ABC):
    """What has rows: names of columns, and under each a plain value."""

    @abstractmethod
    def rows(self) -> Rows:
        """All rows, as `to_frame` and `to_csv` give them."""

    def _brief_rows(self) -> Rows:
        """The rows that people read."""
        return self.rows()

    def to_frame(self) -> pandas.DataFrame:
        """All rows as a pandas DataFrame.

        Raises
        ------
        SettingError
            Without pandas.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise SettingError(
                "to_frame needs the package 'pandas'; install 'simplexplore[pandas]', or use "
                "to_csv or rows(), which need nothing."
            ) from None
        return pd.DataFrame(self.rows())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """All rows as CSV: written to a file, or returned."""
        buffer = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(buffer, _columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _no_formula(value) for key, value in row.items()} for row in rows)
        if path is None:
            return buffer.getvalue()
        _write(path, buffer.getvalue())
        return None

    def to_latex(
        self, path: str | os.PathLike[str] | None = None, *, caption: str = "", label: str = ""
    ) -> str | None:
        r"""The table that people read, in LaTeX: written to a file, or returned.

        The document needs ``\usepackage{booktabs}``. With a caption or a label it is a
        ``table``, else a ``tabular`` alone.
        """
        text = _latex(self._brief_rows())
        if caption or label:
            said = f"\\caption{{{to_tex(caption)}}}\n" if caption else ""
            named = f"\\label{{{label}}}\n" if label else ""
            text = f"\\begin{{table}}\n\\centering\n{said}{named}{text}\\end{{table}}\n"
        if path is None:
            return text
        _write(path, text)
        return None

    def to_text(self) -> str:
        """The table that people read, as plain text."""
        from rich.cells import cell_len

        rows = self._brief_rows()
        names = _columns(rows)
        lines = [names, *([_shown(row.get(name)) for name in names] for row in rows)]
        widths = [max(cell_len(line[j]) for line in lines) for j in range(len(names))]
        right = [_is_number(rows, name) for name in names]
        return "\n".join(
            "  ".join(
                " " * (width - cell_len(cell)) + cell
                if at_right
                else cell + " " * (width - cell_len(cell))
                for cell, width, at_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<p>{escape(repr(self))}</p>{to_html(self._brief_rows())}"


def read_number(text: str, what: str) -> float:
    """A number that somebody wrote, with a decimal point or a decimal comma.

    Examples
    --------
    >>> read_number("7,5", "the reward"), read_number("-0,125", "the reward")
    (7.5, -0.125)
    >>> read_number("1,234", "the reward")
    Traceback (most recent call last):
    simplexplore.errors.SettingError: the reward '1,234' may be 1234 or 1.234: write one of them.
    """
    given = plain = text.strip()
    if given.count(",") == 1 and "." not in given:
        plain = given.replace(",", ".")
        if re.fullmatch(r"[+-]?(?!0)\d{1,3},\d{3}", given):
            whole = given.replace(",", "")
            raise SettingError(f"{what} {given!r} may be {whole} or {plain}: write one of them.")
    try:
        return float(plain)
    except ValueError:
        raise SettingError(f"{what} {text!r} is not a number.") from None


def to_html(rows: Rows) -> str:
    """Rows as an HTML table."""
    names = _columns(rows)
    sides = ["right" if _is_number(rows, name) else "left" for name in names]

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{inside}</tr>"

    body = "".join(line("td", [_shown(row.get(name)) for name in names]) for row in rows[:MAX_ROWS])
    more = f"<p>and {len(rows) - MAX_ROWS:,} more rows</p>" if len(rows) > MAX_ROWS else ""
    return f"<table><thead>{line('th', names)}</thead><tbody>{body}</tbody></table>{more}"


def to_tex(text: str) -> str:
    r"""A text whose signs mean themselves in LaTeX.

    Examples
    --------
    >>> to_tex("50% of a_1 ± 2")
    '50\\% of a\\_1 $\\pm$ 2'
    """
    return "".join(_TEX.get(sign, sign) for sign in text)


def _latex(rows: Rows) -> str:
    names = _columns(rows)
    sides = "".join("r" if _is_number(rows, name) else "l" for name in names)
    lines = [_latex_row(names)]
    body = [_latex_row([_shown(row.get(name)) for name in names]) for row in rows]
    return "\n".join(
        [
            f"\\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            *lines,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    text = " & ".join(map(to_tex, cells))
    # Behind the row before, LaTeX would take a bracket or a star for an option of its end.
    return f"{{}}{text} \\\\" if text.startswith(("[", "*")) else f"{text} \\\\"


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _is_number(rows: Rows, name: str) -> bool:
    values = [row[name] for row in rows if row.get(name) is not None]
    return all(isinstance(v, int | float) or str(v)[:1] in "<>0123456789-" for v in values)


def _shown(value: Any) -> str:
    """A value as people read it: four digits, thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite"
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def _no_formula(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _write(path: str | os.PathLike[str], text: str) -> None:
    try:
        write_whole(Path(path), text.encode())
    except OSError as error:
        raise SettingError(f"cannot write {str(path)!r}: {error.strerror}.") from None
