"""A page on which texts and axes are placed in inches and measured before they are placed.

So names of any length stay apart, and a picture is as tall as its content needs.
Only matplotlib's objects are used, never pyplot's global state: drawing is safe in a server,
a thread or a notebook.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox
from rich.cells import cell_len

from simplexplore.errors import SettingError

from .fonts import fonts_with, letters_lacking, quiet_fonts
from .numbers import number, shorten
from .pgf import to_pgf
from .table import told_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Array = npt.NDArray[np.float64]

SUFFIXES = (".pdf", ".pgf", ".png", ".svg")

# Okabe and Ito's colours: told apart with any colour vision, and by lightness in grey.
BLUE, ORANGE, RED, SKY = "#0072B2", "#E69F00", "#D55E00", "#56B4E9"
GREEN, PINK = "#009E73", "#CC79A7"
PALE_RED = "#E8B99B"
INK, DIM, GREY, TRACK, PALE = "#222222", "#666666", "#8C8C8C", "#D9D9D9", "#EFEFEF"

# Points.
TEXT, SMALL, TITLE, HEADLINE = 9.0, 8.0, 10.5, 14.0

# Inches: a block's title with its note, a line of text, space between blocks.
HEADING, LINE, GUTTER = 0.5, 0.17, 0.35

# Where a text may go: x, y, horizontal and vertical alignment.
Spot = tuple[float, float, str, str]


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
    """Draw a figure and write it to a file; its suffix chooses PNG, PDF, SVG or PGF.

    The same content gives the same bytes.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    target = check_plot_path(path)
    (data,) = pictures(draw, [target.suffix.lower()])
    try:
        target.write_bytes(data)
    except OSError as error:
        raise SettingError(f"cannot write {str(target)!r}: {error.strerror}.") from error


def pictures(
    draw: Callable[[], Figure], suffixes: Sequence[str], *, outlines: bool = False
) -> list[bytes]:
    """Draw a figure once and return it in several formats.

    Text stays text in vector files, unless outlines are asked for, which look the same
    whatever fonts a reader has. The same content gives the same bytes.
    """
    style: Any = {
        "svg.fonttype": "path" if outlines else "none",
        "pdf.fonttype": 42,
        "svg.hashsalt": "simplexplore",
        "pgf.rcfonts": False,  # the document's own
    }
    # No dates.
    metadata: dict[str, Any] = {
        ".png": {"Software": None},
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    found = []
    with mpl.rc_context(style), quiet_fonts():
        figure = draw()
        if lacking := letters_lacking(figure):
            mpl.rcParams["font.family"] = [*mpl.rcParams["font.family"], *fonts_with(lacking)]
            figure = draw()  # other letters take other room
        for suffix in suffixes:
            if suffix == ".pgf":
                found.append(to_pgf(figure))
                continue
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix[1:], dpi=130, metadata=metadata[suffix])
            found.append(buffer.getvalue())
    return found


class Page:
    """A figure on which things are placed in inches from the upper left corner."""

    def __init__(self) -> None:
        self.figure = Figure()
        self._renderer = FigureCanvasAgg(self.figure).get_renderer()  # type: ignore[no-untyped-call]

    def resize(self, width: float, height: float) -> None:
        """Set the size; to be done before anything is placed."""
        self.figure.set_size_inches(width, height)

    def axes(self, left: float, top: float, width: float, height: float, label: str) -> Axes:
        """Make empty axes without a frame."""
        full_width, full_height = self.figure.get_size_inches()
        box = (
            left / full_width,
            1 - (top + height) / full_height,
            width / full_width,
            height / full_height,
        )
        axes = self.figure.add_axes(box, label=label)
        axes.set_axis_off()
        return axes

    def write(self, left: float, top: float, text: str, **style: Any) -> Text:
        """Write a text whose upper left corner is given. Dollar signs mean dollars."""
        width, height = self.figure.get_size_inches()
        style = {"size": TEXT, "color": INK, "va": "top", "ha": "left", **style}
        return self.figure.text(left / width, 1 - top / height, text, parse_math=False, **style)

    def title(self, margin: float, words: Callable[[int], str], width: float) -> None:
        """Write the picture's title; told how many arms to name, it names as many as fit."""
        texts = [words(limit) for limit in (6, 5, 4, 3, 2, 1)]
        fitting = (text for text in texts if self.width_of(text, HEADLINE, "bold") <= width)
        text = next(fitting, None) or self.fit(texts[-1], HEADLINE, width, "bold")
        self.write(margin, margin, text, size=HEADLINE, weight="bold")

    def heading(self, left: float, top: float, title: str, note: str, width: float) -> None:
        """Write a block's title, and a line below it that says how to read the block."""
        self.write(left, top, self.fit(title, TITLE, width, "bold"), size=TITLE, weight="bold")
        self.write(left, top + 0.2, self.fit(note, SMALL, width), size=SMALL, color=DIM)

    def names(
        self, right: float, top: float, width: float, row: float, names: Mapping[str, bool]
    ) -> None:
        """Write names one below the other, right-aligned, the marked ones bold."""
        for i, (name, is_bold) in enumerate(names.items()):
            weight = "bold" if is_bold else "normal"
            self.write(
                right,
                top + row * (i + 0.5),
                self.fit(name, TEXT, width, weight),
                ha="right",
                va="center_baseline",
                weight=weight,
            )

    def extent(self, text: Text) -> Bbox:
        """Return the box that a text fills, in pixels."""
        return text.get_window_extent(self._renderer)

    def width_of(self, text: str, size: float, weight: str = "normal") -> float:
        """Return the width of a text in inches."""
        sample = self.figure.text(0, 0, text, size=size, weight=weight, parse_math=False)
        width = self.extent(sample).width / self.figure.dpi
        sample.remove()
        return float(width)

    def fit(self, text: str, size: float, width: float, weight: str = "normal") -> str:
        """Shorten a text, in its middle, so that it is at most that wide."""
        if self.width_of(text, size, weight) <= width:
            return text
        low, high = 1, cell_len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.width_of(shorten(text, middle), size, weight) <= width:
                low = middle
            else:
                high = middle - 1
        return shorten(text, low)

    def short_names(self, names: Iterable[str], width: float) -> dict[str, str]:
        """Names as one picture shows them everywhere: at most that wide in bold, no two alike."""

        def shortened(name: str, end: str) -> str:
            room = width - (self.width_of(end, TEXT, "bold") if end else 0.0)
            return self.fit(name, TEXT, room, "bold")

        return told_apart(names, shortened)

    def first_fitting(self, texts: Sequence[str], size: float, width: float) -> str:
        """The first text that is at most that wide, or the last: numbers in them are not cut."""
        return next((text for text in texts if self.width_of(text, size) <= width), texts[-1])

    def wrap(self, text: str, size: float, width: float) -> list[str]:
        """Break a text into lines that are at most that wide."""
        lines: list[str] = []
        for word in text.split():
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.width_of(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(self.fit(word, size, width))
        return lines


def log_axes(axes: Axes, places: Sequence[float], margin: float) -> None:
    """Both scales logarithmic, with a grid; the lower one has ticks at some places, none else."""
    axes.set_axis_on()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, color=TRACK, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xlim(places[0] / margin, places[-1] * margin)
    axes.set_xticks(places, [number(x) for x in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=SMALL, colors=INK)


class Labels:
    """Texts on axes that keep clear of each other and of what is drawn."""

    def __init__(self, page: Page, axes: Axes) -> None:
        self._page = page
        self._axes = axes
        self._taken: list[Bbox] = []

    def avoid(self, points: Array) -> None:
        """Keep texts off these points, an array with one point per row."""
        pixels = self._axes.transData.transform(points)
        self._taken += [Bbox.from_extents(x - 2, y - 2, x + 2, y + 2) for x, y in pixels]

    def write(self, text: str, spots: list[Spot], *, always: bool = False, **style: Any) -> None:
        """Write a text at the first free spot; if there is none, nowhere, or at the first."""
        room = self._axes.bbox.padded(2)
        fallback = [spots[0]] if always else []
        for k, (x, y, horizontal, vertical) in enumerate([*spots, *fallback]):
            label = self._axes.text(
                x, y, text, ha=horizontal, va=vertical, color=INK, parse_math=False, **style
            )
            box = self._page.extent(label)
            inside = room.x0 <= box.x0 and box.x1 <= room.x1
            clear = not any(box.overlaps(other) for other in self._taken)
            if (inside and clear) or k == len(spots):
                self._taken.append(box)
                return
            label.remove()
