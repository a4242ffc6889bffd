"""What all pictures share: title, headline, panels, remarks, scales; charts, bars and tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from .canvas import GUTTER, HEADING, HEADLINE, LINE, SMALL, TEXT, TITLE, Canvas
from .colours import DIM, INK, TRACK
from .numbers import share

Array = npt.NDArray[np.float64]

# Inches: around everything, a bar among others, a bar below its words.
MARGIN, ARM_ROW, BAR = 0.3, 0.25, 0.25

# Points.
THICK = 5


@dataclass(frozen=True)
class Panel:
    """Something of a known size, in inches; `draw` takes its left and upper end."""

    width: float
    height: float
    draw: Callable[[float, float], None]


def beside(*panels: Panel) -> Panel:
    """Panels side by side."""

    def draw(left: float, top: float) -> None:
        for panel in panels:
            panel.draw(left, top)
            left += panel.width + GUTTER

    width = sum(panel.width for panel in panels) + GUTTER * (len(panels) - 1)
    return Panel(width, max(panel.height for panel in panels), draw)


def stacked(*panels: Panel, gap: float = GUTTER) -> Panel:
    """Panels one below the other."""

    def draw(left: float, top: float) -> None:
        for panel in panels:
            panel.draw(left, top)
            top += panel.height + gap

    height = sum(panel.height for panel in panels) + gap * (len(panels) - 1)
    return Panel(max(panel.width for panel in panels), height, draw)


def headed(canvas: Canvas, title: str, note: str, panel: Panel, width: float = 0.0) -> Panel:
    """A panel below its title, and a line that says how to read it."""
    width = max(width, panel.width)

    def draw(left: float, top: float) -> None:
        words = canvas.fit(title, HEADLINE, width, "bold")
        canvas.write(left, top, words, size=HEADLINE, weight="bold")
        canvas.write(left, top + 0.2, canvas.fit(note, SMALL, width), size=SMALL, color=DIM)
        panel.draw(left, top + HEADING)

    return Panel(width, HEADING + panel.height, draw)


def compose(
    canvas: Canvas, title: str, headline: str, body: Panel, remarks: Iterable[str]
) -> Figure:
    """A picture as large as its content: a title, a headline, panels, and remarks below.

    The panels measured their texts on the canvas; nothing is drawn yet.
    """
    titles = canvas.wrap(title, TITLE, body.width, "bold")
    lines = canvas.wrap(headline, HEADLINE, body.width)
    below = [line for remark in remarks for line in canvas.wrap(remark, SMALL, body.width)]
    under_title = MARGIN + 0.28 * len(titles) + 0.05
    top = under_title + 0.2 * len(lines) + 0.22
    bottom = top + body.height + 0.15
    canvas.resize(body.width + 2 * MARGIN, bottom + LINE * len(below) + MARGIN)
    for i, line in enumerate(titles):
        canvas.write(MARGIN, MARGIN + 0.28 * i, line, size=TITLE, weight="bold")
    for i, line in enumerate(lines):
        canvas.write(MARGIN, under_title + 0.2 * i, line, size=HEADLINE)
    body.draw(MARGIN, top)
    for i, line in enumerate(below):
        canvas.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return canvas.figure


# ---------------------------------------------------------------------- axes


def add_legend(axes: Axes, corner: tuple[float, float]) -> None:
    """A legend whose upper left corner is given on the axes. Dollar signs mean dollars."""
    style: Any = {"frameon": False, "borderaxespad": 0, "fontsize": SMALL}
    legend = axes.legend(loc="upper left", bbox_to_anchor=corner, **style)
    for text in legend.get_texts():
        text.set_parse_math(False)


def scale(axis: Axis, ticks: Sequence[float], words: Callable[[float], str]) -> None:
    """Thin lines across the axes, with a number at the end of each."""
    axis.set_ticks(ticks, labels=[words(tick) for tick in ticks])
    axis.set_minor_locator(NullLocator())
    axis.grid(visible=True, color=TRACK, linewidth=0.7, clip_on=False)


def ticks_between(
    low: float, high: float, *, logarithmic: bool = False, integer: bool = False
) -> list[float]:
    """Round numbers, about six."""
    subs: tuple[float, ...] = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 12 * low else subs
    locator = LogLocator(subs=subs) if logarithmic else MaxNLocator(6, integer=integer)
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


# ---------------------------------------------------------------------- shares of arms


@dataclass(frozen=True)
class Bars:
    """A column of bars, one for each arm.

    Attributes
    ----------
    label : str
        Of the axes.
    title : str
    values : array, optional
        None: no bars.
    colour : str
    note : str
        What stands below the title.
    marks : array, optional
        Other shares, drawn as black lines.
    """

    label: str
    title: str
    values: Array | None
    colour: str
    note: str = ""
    marks: Array | None = None

    @property
    def longest(self) -> float:
        """The largest share."""
        return max((float(x.max()) for x in (self.values, self.marks) if x is not None), default=0)


def bars(
    canvas: Canvas,
    names: Mapping[str, bool],
    names_width: float,
    columns: Sequence[Bars],
    width: float,
    longest: float,
) -> Panel:
    """Columns of bars beside the names of arms; those that are marked are bold."""
    head = HEADING if any(column.note for column in columns) else HEADING / 2
    # Room for the number at the end of the longest bar.
    reach = longest * width / (width - 0.62)
    rows = len(names)

    def draw(left: float, top: float) -> None:
        for j, column in enumerate(columns):
            start = left + names_width + j * width
            title = canvas.fit(column.title, TEXT, width - 0.08, "bold")
            canvas.write(start, top, title, weight="bold")
            canvas.write(start, top + 0.18, column.note, size=SMALL, color=DIM)
            axes = canvas.axes(start, top + head, width, ARM_ROW * rows, column.label)
            axes.set(xlim=(0, reach), ylim=(rows - 0.5, -0.5))
            axes.plot([0, 0], [-0.5, rows - 0.5], color=TRACK, linewidth=1, clip_on=False)
            if j == 0:
                axes.set_yticks(range(rows), list(names), color=INK, size=TEXT, parse_math=False)
                for text, is_bold in zip(axes.get_yticklabels(), names.values(), strict=True):
                    text.set_fontweight("bold" if is_bold else "normal")
            if column.values is None:
                continue
            axes.barh(range(rows), column.values, height=0.64, color=column.colour)
            ends = column.values
            if column.marks is not None:
                ends = np.maximum(ends, column.marks)
                for i, mark in enumerate(column.marks):
                    axes.plot([mark, mark], [i - 0.44, i + 0.44], color="white", linewidth=4)
                    axes.plot([mark, mark], [i - 0.4, i + 0.4], color=INK, linewidth=1.6)
            for i, (value, end) in enumerate(zip(column.values, ends, strict=True)):
                style: Any = {"color": INK if value > 0 else DIM, "va": "center_baseline"}
                axes.text(end + 0.04 * reach, i, share(float(value)), size=SMALL, **style)

    return Panel(names_width + len(columns) * width, head + ARM_ROW * rows, draw)


# ---------------------------------------------------------------------- words above a track


@dataclass(frozen=True)
class Track:
    """Words, a value at their right, and below them what is drawn between two ends, if anything.

    Attributes
    ----------
    words : str
        On as many lines as they take.
    value : str
    ends : (float, float)
    spans : sequence of (float, float, str)
        From, to, and colour; what lies beyond the ends is left out.
    dots : sequence of (float, str, float)
        Place, colour and size.
    """

    words: str
    value: str = ""
    ends: tuple[float, float] = (0.0, 1.0)
    spans: Sequence[tuple[float, float, str]] = ()
    dots: Sequence[tuple[float, str, float]] = ()

    def place(self, x: float) -> float:
        """Where something is between the ends, from 0 to 1."""
        low, high = self.ends
        return float(np.clip((x - low) / (high - low or 1.0), 0.0, 1.0))


def tracks(canvas: Canvas, rows: Sequence[Track], width: float, label: str) -> Panel:
    """Tracks one below the other."""
    values = [canvas.width_of(row.value, SMALL) + 0.15 if row.value else 0.0 for row in rows]
    lines = [
        canvas.wrap(row.words, TEXT, width - value) for row, value in zip(rows, values, strict=True)
    ]
    heights = [
        LINE * len(words) + (BAR if row.spans else BAR / 2)
        for row, words in zip(rows, lines, strict=True)
    ]
    height = max(sum(heights), 0.01)  # there may be no rows

    def draw(left: float, top: float) -> None:
        axes = canvas.axes(left, top, width, height, label)
        axes.set(xlim=(0, 1), ylim=(height, 0))
        y = 0.0
        for row, words, own in zip(rows, lines, heights, strict=True):
            for i, line in enumerate(words):
                canvas.write(left, top + y + LINE * i, line)
            canvas.write(left + width, top + y, row.value, size=SMALL, color=DIM, ha="right")
            y += own
            bar = y - BAR + 0.09
            thick: Any = {"linewidth": THICK, "solid_capstyle": "butt"}
            for start, stop, colour in row.spans:
                ends = [row.place(start), row.place(stop)]
                axes.plot(ends, [bar, bar], color=colour, **thick)
            for x, colour, size in row.dots:
                dot: Any = {"markersize": size, "markeredgecolor": INK, "clip_on": False}
                axes.plot(row.place(x), bar, "o", color=colour, **dot)

    return Panel(width, height, draw)
