"""A picture of a bound with measured limits: the mixes, what is hard, and what room buys."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simplexplore.bound.information import binary_kl
from simplexplore.bound.measured import trade_off

from .bound_text import headline, notes, prominent_arms, title
from .measured_text import reason
from .numbers import number, share
from .page import (
    BLUE,
    DIM,
    GREEN,
    GREY,
    GUTTER,
    HEADING,
    INK,
    LINE,
    ORANGE,
    RED,
    SMALL,
    TEXT,
    TRACK,
    Page,
    log_axes,
)
from .table import legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simplexplore.bound.measured_result import MeasuredBound

Array = npt.NDArray[np.float64]

# Inches.
MARGIN, HEADER, ROW = 0.3, 0.75, 0.25
NAMES, COLUMN, CHART, CHART_HEIGHT = 1.9, 1.45, 4.4, 3.0

MAX_ARMS = 16

# Epsilon and tolerances that are drawn, as multiples of the problem's.
EPSILON = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
TOLERANCE = np.array([0.5, 1.0, 2.0])


def measured_figure(bound: MeasuredBound) -> Figure:
    """Draw a bound with measured limits.

    Axes carry labels: ``policy``, ``answer``, ``samples``, ``limits``, ``deciding``, ``trade-off``.
    """
    own = bound.own
    shown = prominent_arms(bound, MAX_ARMS)
    page = Page()
    short = page.short_names([bound.problem.arms[a] for a in shown], NAMES - 0.15)
    width = NAMES + 3 * COLUMN
    full = width + GUTTER + CHART
    rows = len(bound.problem.measured)
    deciding = own.deciding[:6]
    reasons = [page.wrap(reason(x, bound), TEXT, width - 0.6) for x in deciding]
    heights = [LINE * len(lines) + ROW for lines in reasons]
    arms_height = 2 * HEADING + ROW * len(shown)
    limits_top = arms_height + GUTTER
    deciding_top = limits_top + HEADING + (LINE + ROW) * rows + GUTTER
    body = max(deciding_top + HEADING + sum(heights), 2 * HEADING + CHART_HEIGHT + 0.9)
    remarks = [note.text for note in notes(bound)] + legend(short)
    lines = [line for remark in remarks for line in page.wrap(remark, SMALL, full)]
    heads = page.wrap(headline(bound), 10.5, full)
    top = MARGIN + HEADER + 0.2 * (len(heads) - 1)
    bottom = top + body + 0.15
    page.resize(full + 2 * MARGIN, bottom + LINE * len(lines) + MARGIN)
    page.title(MARGIN, partial(title, bound), full)
    for i, line in enumerate(heads):
        page.write(MARGIN, MARGIN + 0.33 + 0.2 * i, line, size=10.5)
    _arms(page, bound, shown, short, top, width)
    _limits(page, bound, top + limits_top, width)
    _deciding(page, bound, reasons, heights, top + deciding_top, width)
    _trade_off(page, bound, MARGIN + width + GUTTER, top)
    for i, line in enumerate(lines):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _arms(
    page: Page,
    bound: MeasuredBound,
    shown: list[int],
    short: dict[str, str],
    top: float,
    width: float,
) -> None:
    own = bound.own
    note = "shares of use and of samples; the answer is quickest to be sure of"
    page.heading(MARGIN, top, "The best mix, the answer, and where samples should go", note, width)
    finite = math.isfinite(own.characteristic_time)
    columns = (
        ("policy", f"earns {number(bound.value)}", bound.policy, INK),
        ("answer", f"earns {number(float(bound.means @ own.answer))}", own.answer, GREEN),
        ("samples", bound.problem.scenario, own.allocation, BLUE),
    )
    body = top + 2 * HEADING
    names = {short[bound.problem.arms[a]]: bool(bound.policy[a] > 0) for a in shown}
    page.names(MARGIN + NAMES - 0.1, body, NAMES - 0.1, ROW, names)
    longest = max(float(values.max()) for _, _, values, _ in columns)
    reach = longest * COLUMN / (COLUMN - 0.6)
    for j, (label, words, values, colour) in enumerate(columns):
        start = MARGIN + NAMES + j * COLUMN
        page.write(start, top + HEADING, label, weight="bold")
        page.write(
            start,
            top + HEADING + 0.18,
            page.fit(words, SMALL, COLUMN - 0.08),
            size=SMALL,
            color=DIM,
        )
        axes = page.axes(start, body, COLUMN, ROW * len(shown), label)
        axes.set_xlim(0, reach)
        axes.set_ylim(len(shown), 0)
        axes.plot([0, 0], [0, len(shown)], color=TRACK, linewidth=1, clip_on=False)
        if j and not finite:
            continue
        for y, a in enumerate(shown):
            value = float(values[a])
            axes.barh(y + 0.5, value, height=0.66, color=colour)
            axes.text(
                value + 0.03 * reach,
                y + 0.5,
                share(value),
                size=SMALL,
                color=INK if value > 0 else DIM,
                va="center_baseline",
            )


def _limits(page: Page, bound: MeasuredBound, top: float, width: float) -> None:
    """Each measured limit on the scale of its means: allowed, tolerance, best mix and answer."""
    note = "grey: allowed; orange: tolerance; circle: the best mix; dot: the answer"
    page.heading(MARGIN, top, "Measured limits", note, width)
    rows = list(zip(bound.problem.measured, bound.measured_means, strict=True))
    axes = page.axes(MARGIN, top + HEADING, width, (LINE + ROW) * len(rows), "limits")
    axes.set_xlim(0, 1)
    axes.set_ylim((LINE + ROW) * len(rows), 0)
    for i, (row, means) in enumerate(rows):
        at = [float(means @ policy) for policy in (bound.policy, bound.own.answer)]
        words = f"{row.name}: {row.limit}, tolerance {number(row.tolerance)}"
        finite = math.isfinite(bound.own.characteristic_time)
        values = f"{number(at[0])}, answer {number(at[1])}" if finite else number(at[0])
        y = (LINE + ROW) * i
        left = width - page.width_of(values, SMALL) - 0.15
        page.write(MARGIN, top + HEADING + y, page.fit(words, TEXT, left))
        page.write(MARGIN + width, top + HEADING + y, values, size=SMALL, color=DIM, ha="right")
        ends = [*means.tolist(), row.level, row.level + row.sign * row.tolerance]
        low, high = min(ends), max(ends)
        reach = (high - low) or 1.0

        def place(x: float, low: float = low, reach: float = reach) -> float:
            return (x - low) / reach

        y += LINE + 0.09
        edge = place(row.level)
        axes.plot([0, 1], [y, y], color=TRACK, linewidth=5, solid_capstyle="butt")
        allowed = (0.0, edge) if row.sign > 0 else (edge, 1.0)
        axes.plot(allowed, [y, y], color=GREY, linewidth=5, solid_capstyle="butt")
        more = place(row.level + row.sign * row.tolerance)
        axes.plot([edge, more], [y, y], color=ORANGE, linewidth=5, solid_capstyle="butt")
        axes.plot(
            place(at[0]), y, "o", markersize=8, color="white", markeredgecolor=INK, clip_on=False
        )
        if finite:
            axes.plot(place(at[1]), y, "o", markersize=5, color=GREEN, clip_on=False)


def _deciding(
    page: Page,
    bound: MeasuredBound,
    reasons: list[list[str]],
    heights: list[float],
    top: float,
    width: float,
) -> None:
    note = "what would make the answer wrong, by its part in the proof that nothing is quicker"
    if not reasons:
        note = "no number of samples is enough"
    page.heading(MARGIN, top, "What makes it hard", note, width)
    total = max(sum(heights), 0.01)
    axes = page.axes(MARGIN, top + HEADING, width, total, "deciding")
    axes.set_xlim(0, 1)
    axes.set_ylim(total, 0)
    y = 0.0
    for deciding, lines, height in zip(bound.own.deciding, reasons, heights, strict=False):
        for i, line in enumerate(lines):
            page.write(MARGIN, top + HEADING + y + LINE * i, line)
        page.write(
            MARGIN + width,
            top + HEADING + y,
            f"{100 * deciding.weight:.0f}%",
            size=SMALL,
            color=DIM,
            ha="right",
        )
        bar = y + height - ROW + 0.09
        axes.plot([0, deciding.weight], [bar, bar], color=RED, linewidth=5, solid_capstyle="butt")
        y += height


def _trade_off(page: Page, bound: MeasuredBound, left: float, top: float) -> None:
    """Samples against epsilon, a line for each tolerance."""
    problem = bound.problem
    some = any(row.tolerance for row in problem.measured)
    what = "Cost" if problem.has_costs else "Samples"
    note = "by epsilon; a line for each tolerance" if some else "by epsilon; tolerance 0"
    page.heading(left, top, f"{what} that more room saves", note, CHART)
    base = problem.epsilon
    if not base:
        page.write(left, top + HEADING, "Give epsilon > 0 to see it.", color=DIM)
        return
    factors = TOLERANCE if some else np.ones(1)
    epsilon = base * EPSILON
    amounts = trade_off(bound, epsilon, factors) * binary_kl(bound.delta)
    inset = 0.75
    axes = page.axes(
        left + inset, top + HEADING + 0.1, CHART - inset - 1.0, CHART_HEIGHT, "trade-off"
    )
    _decorate(axes, epsilon)
    ends = []
    for factor, line, colour in zip(factors, amounts, (ORANGE, BLUE, GREEN), strict=False):
        finite = np.isfinite(line)
        if not finite.any():
            continue
        shade = colour if some else BLUE
        axes.plot(epsilon[finite], line[finite], "o-", color=shade, markersize=4, linewidth=1.3)
        first = problem.measured[0] if len(problem.measured) == 1 else None
        words = f"{factor:g}x" if first is None else number(factor * first.tolerance)
        ends.append((float(line[finite][-1]), words, shade))
    if math.isfinite(bound.own.characteristic_time):
        here = bound.own.characteristic_time * binary_kl(bound.delta)
        axes.plot([base], [here], "o", markersize=9, color="none", markeredgecolor=INK)
    low, high = np.log(axes.get_ylim())
    place = -np.inf
    for y, words, shade in sorted(ends):
        place = max((np.log(y) - low) / (high - low), place + 0.06)
        axes.text(
            1.04,
            place,
            words,
            transform=axes.transAxes,
            color=shade,
            size=TEXT,
            va="center",
            parse_math=False,
        )
    if some:
        axes.text(
            1.04,
            place + 0.08,
            "tolerance",
            transform=axes.transAxes,
            color=DIM,
            size=SMALL,
            va="center",
        )
    page.write(
        left + inset,
        top + HEADING + 0.1 + CHART_HEIGHT + 0.32,
        "epsilon; the circle is this problem",
        size=SMALL,
        color=DIM,
    )


def _decorate(axes: Axes, epsilon: Array) -> None:
    log_axes(axes, epsilon.tolist(), 1.15)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: number(float(y))))
    axes.yaxis.set_minor_formatter(NullFormatter())
