"""A canvas on which texts and axes are placed in inches and measured before they are placed.

So names of any length stay apart, and a picture is as tall as its content needs.
Only matplotlib's objects are used, never pyplot's global state: drawing is safe in a server,
a thread or a notebook.
"""

from __future__ import annotations

import io
import logging
import os
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from rich.cells import cell_len

from simplexplore.errors import SettingError

from .colours import DIM, INK
from .numbers import shorten

SUFFIXES = (".pdf", ".png", ".svg")

# Where to find letters that matplotlib's own font lacks: on Linux, macOS and Windows.
FALLBACK_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Noto Sans", "Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Thai"),
    *("Hiragino Sans GB", "Apple SD Gothic Neo", "Arial Unicode MS"),
    *("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Nirmala UI", "Leelawadee UI"),
)
# That one of them has no bold letters is no news.
logging.getLogger(font_manager.__name__).addFilter(lambda record: "font weight" not in record.msg)

# Points.
TEXT, SMALL, HEADLINE, TITLE = 9.0, 8.0, 10.5, 14.0

# Inches: a block's title with its note, a line of text, space between blocks.
HEADING, LINE, GUTTER = 0.5, 0.17, 0.35


def check_plot_path(path: str | os.PathLike[str]) -> Path:
    """Raise `SettingError` if no picture can be written there; write nothing."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise SettingError(
            f"cannot draw {str(target)!r}: the name of a picture must end in one of {known}."
        )
    folder = target.parent
    if not folder.is_dir():
        raise SettingError(f"cannot write {str(target)!r}: there is no folder {str(folder)!r}.")
    if target.is_dir():
        raise SettingError(f"cannot write {str(target)!r}: it is a folder.")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise SettingError(f"cannot write {str(target)!r}: permission denied.")
    return target


def save_picture(draw: Callable[[], Figure], path: str | os.PathLike[str]) -> None:
    """Draw a figure and write it to a file; its suffix chooses PNG, PDF or SVG.

    Text stays text in vector files. The same content gives the same bytes.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    target = check_plot_path(path)
    suffix = target.suffix.lower()
    # Of a font in the list that is missing, matplotlib would speak at every text.
    fallbacks = [f for f in FALLBACK_FONTS if f in font_manager.get_font_names()]
    style: Any = {
        "font.family": [*mpl.rcParams["font.family"], *fallbacks],
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "svg.hashsalt": "simplexplore",
    }
    dates = {".png": "Software", ".pdf": "CreationDate", ".svg": "Date"}
    buffer = io.BytesIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        # A letter that no font has is a box in the picture.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        metadata: Any = {dates[suffix]: None}
        draw().savefig(buffer, format=suffix[1:], dpi=130, metadata=metadata)
    try:
        target.write_bytes(buffer.getvalue())
    except OSError as error:
        raise SettingError(f"cannot write {str(target)!r}: {error.strerror}.") from error


class Canvas:
    """A figure on which things are placed in inches from the upper left corner."""

    def __init__(self) -> None:
        self.figure = Figure()
        self._renderer = FigureCanvasAgg(self.figure).get_renderer()  # type: ignore[no-untyped-call]

    def resize(self, width: float, height: float) -> None:
        """Set the size; to be done before anything is placed."""
        self.figure.set_size_inches(width, height)

    def axes(self, left: float, top: float, width: float, height: float, label: str) -> Axes:
        """Make empty axes without a frame or ticks."""
        full_width, full_height = self.figure.get_size_inches()
        box = (
            left / full_width,
            1 - (top + height) / full_height,
            width / full_width,
            height / full_height,
        )
        axes = self.figure.add_axes(box, label=label, frame_on=False)
        axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=DIM)
        axes.set(axisbelow=True, xticks=[], yticks=[])
        return axes

    def write(self, left: float, top: float, text: str, **style: Any) -> Text:
        """Write a text whose upper left corner is given. Dollar signs mean dollars."""
        width, height = self.figure.get_size_inches()
        style = {"size": TEXT, "color": INK, "va": "top", "ha": "left", **style}
        return self.figure.text(left / width, 1 - top / height, text, parse_math=False, **style)

    def extent(self, text: Text) -> Bbox:
        """Return the box that a text fills, in pixels."""
        return text.get_window_extent(self._renderer)

    def width_of(self, text: str, size: float, weight: str = "normal") -> float:
        """Return the width of a text in inches."""
        sample = self.figure.text(0, 0, text, size=size, weight=weight, parse_math=False)
        width = self.extent(sample).width / self.figure.dpi
        sample.remove()
        return float(width)

    def widest(self, texts: Iterable[str], size: float = TEXT, weight: str = "normal") -> float:
        """Return the width of the widest text in inches."""
        return max((self.width_of(text, size, weight) for text in texts), default=0.0)

    def fit(self, text: str, size: float, width: float, weight: str = "normal") -> str:
        """Shorten a text, in its middle, so that it is at most that wide."""
        if self.width_of(text, size, weight) <= width:
            return text
        lengths = range(1, cell_len(text))
        fitting = bisect_right(
            lengths, width, key=lambda k: self.width_of(shorten(text, k), size, weight)
        )
        return shorten(text, max(fitting, 1))

    def short_names(self, names: Iterable[str], width: float) -> dict[str, str]:
        """Names as one picture shows them everywhere: at most that wide in bold, no two alike."""
        names = list(names)
        shown: dict[str, str] = {}
        taken = {name for name in names if self.fit(name, TEXT, width, "bold") == name}
        for name in names:
            short, k = self.fit(name, TEXT, width, "bold"), 1
            while short != name and short in taken:
                k += 1
                room = width - self.width_of(f"~{k}", TEXT, "bold")
                short = self.fit(name, TEXT, room, "bold") + f"~{k}"
            taken.add(short)
            shown[name] = short
        return shown

    def wrap(self, text: str, size: float, width: float, weight: str = "normal") -> list[str]:
        """Break a text into lines that are at most that wide."""
        lines: list[str] = []
        for word in text.split():
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.width_of(longer, size, weight) <= width:
                lines[-1] = longer
            else:
                lines.append(self.fit(word, size, width, weight))
        return lines


def shortened(shown: Mapping[str, str]) -> list[str]:
    """The names that were shortened, in full."""
    return [f"{short}: {name}" for name, short in shown.items() if short != name]
