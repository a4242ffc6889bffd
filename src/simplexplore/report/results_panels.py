"""Panels of a picture of simulations: stopping times, right answers, allocations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import LogLocator, MaxNLocator

from .bound_text import recommended
from .numbers import number, percent, share
from .page import DIM, HEADING, INK, LINE, RED, SMALL, TRACK, Page
from .results_group import ARM_ROW, COLUMN_HEAD, MAX_COLUMNS, ROW, Group
from .results_text import times_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = npt.NDArray[np.float64]

# Inches.
MARGIN = 0.3
TIMES_WIDTH, RIGHT_WIDTH = 4.4, 2.0
RATIO_WIDTH, PERCENT_WIDTH = 0.8, 0.65

# Points of a density, and how many runs it is made of at most (quantiles stand for more).
DENSITY_POINTS, DENSITY_RUNS = 160, 1000


# ---------------------------------------------------------------------- stopping times


def draw_times(
    page: Page,
    group: Group,
    g: int,
    top: float,
    names_width: float,
    means_width: float,
    samples_width: float,
    note: str,
    names: Mapping[str, str],
) -> None:
    """One row per sampler: the distribution of its stopping times, or costs, and its mean."""
    page.heading(
        MARGIN,
        top,
        f"{group.what} until stopping, {group.results[0].plan.scenario}",
        f"{note}; logarithmic scale" if group.logarithmic else note,
        names_width + TIMES_WIDTH + means_width + RATIO_WIDTH + samples_width,
    )
    left, head = MARGIN + names_width, top + HEADING
    body = head + COLUMN_HEAD
    rows = len(group.results)
    heads = [("mean", means_width), ("x bound", RATIO_WIDTH)]
    heads += [("samples", samples_width)] * group.has_costs
    _column_heads(page, left + TIMES_WIDTH, head, heads)
    axes = page.axes(left, body, TIMES_WIDTH, ROW * rows, f"times {g}")
    ticks = _time_axis(axes, group)
    axes.set_ylim(rows, 0)
    _grid(axes, ticks, rows, [number(tick) for tick in ticks])
    if not math.isnan(group.least):
        _mark(page, axes, group.least, rows, f"lower bound {number(group.least)}")
    for i, (label, result) in enumerate(zip(group.labels, group.results, strict=True)):
        colour, base = group.colours[i], i + 0.74
        row = body + ROW * (i + 0.62)
        _write_name(page, names[label], group.asides[i], row, names_width)
        _draw_distribution(axes, group.amounts(result), base, colour)
        end = left + TIMES_WIDTH
        for words, (_, width) in zip(
            (group.means[i], times_bound(result), group.samples[i]), heads, strict=False
        ):
            end += width
            page.write(end, row, words, ha="right", va="center_baseline")


def _write_name(page: Page, name: str, aside: str, row: float, width: float) -> None:
    """A sampler's name, and below it the runs that are missing or were capped."""
    place = MARGIN + width - 0.15
    if aside:
        below = row + 0.05
        page.write(place, below, aside, size=SMALL, color=RED, ha="right", va="center_baseline")
        row -= LINE - 0.05
    page.write(place, row, name, weight="bold", ha="right", va="center_baseline")


def _time_axis(axes: Axes, group: Group) -> list[float]:
    """Choose the scale; return places of ticks."""
    longest = max(float(group.amounts(result).max()) for result in group.results)
    shortest = min(float(np.quantile(group.amounts(r), 0.05)) for r in group.results)
    if not math.isnan(group.least):
        shortest, longest = min(shortest, group.least), max(longest, group.least)
    if group.logarithmic:
        axes.set_xscale("log")
        axes.set_axis_off()
        low, high = shortest / 1.1, longest * 1.1
        if high < 10 * low:
            low, high = low / 2, high * 2
        axes.set_xlim(low, high)
        subs = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
        ticks = LogLocator(subs=subs).tick_values(low, high)
    else:
        low, high = 0.0, 1.04 * longest
        axes.set_xlim(low, high)
        ticks = MaxNLocator(6, integer=not group.has_costs).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def _draw_distribution(axes: Axes, times: Array, base: float, colour: str) -> None:
    """A density above a row's base line, quantiles on it."""
    x, height = _density(times, axes.get_xscale() == "log")
    axes.fill_between(x, base - 0.05 - 0.6 * height, base - 0.05, color=colour, alpha=0.3, lw=0)
    axes.plot(x, base - 0.05 - 0.6 * height, color=colour, linewidth=0.8)
    q05, q25, q75, q95 = np.quantile(times, [0.05, 0.25, 0.75, 0.95])
    axes.plot([q05, q95], [base, base], color=colour, linewidth=1.2, solid_capstyle="butt")
    axes.plot([q25, q75], [base, base], color=colour, linewidth=5, solid_capstyle="butt")
    axes.plot(times.max(), base, "o", markersize=3.5, color=colour, clip_on=False)
    axes.plot(
        times.mean(),
        base,
        "D",
        markersize=5.5,
        color="white",
        markeredgecolor=INK,
        markeredgewidth=1.0,
        clip_on=False,
        zorder=4,
    )


def _density(times: Array, logarithmic: bool) -> tuple[Array, Array]:
    """A smooth density with peak 1, from the shortest run to the longest."""
    if len(times) > DENSITY_RUNS:
        times = np.quantile(times, (np.arange(DENSITY_RUNS) + 0.5) / DENSITY_RUNS)
    y = np.log(times) if logarithmic else times
    low, high = float(y.min()), float(y.max())
    # Silverman's rule, with the quartiles against outliers.
    quartiles = np.quantile(y, [0.25, 0.75])
    spread = min(float(y.std()), float(quartiles[1] - quartiles[0]) / 1.34) or float(y.std())
    width = 0.9 * spread * len(y) ** -0.2
    if not width > 0:
        return np.array([times[0], times[0]]), np.array([0.0, 1.0])
    grid = np.linspace(low, high, DENSITY_POINTS)
    height = np.exp(-0.5 * ((grid[:, None] - y) / width) ** 2).sum(axis=1)
    return (np.exp(grid) if logarithmic else grid), np.asarray(height / height.max())


# ---------------------------------------------------------------------- correctness


def draw_correct(page: Page, group: Group, g: int, left: float, top: float) -> None:
    """The share of right answers with its interval, against what was asked for."""
    page.heading(
        left, top, "Right answers", "dot: share of runs; line: 95% interval", RIGHT_WIDTH + 0.6
    )
    body = top + HEADING + COLUMN_HEAD
    rows = len(group.results)
    _column_heads(page, left + RIGHT_WIDTH, top + HEADING, [("correct", PERCENT_WIDTH)])
    axes = page.axes(left, body, RIGHT_WIDTH, ROW * rows, f"correct {g}")
    summaries = [result.summary()["correct"] for result in group.results]
    wanted = 1 - group.results[0].plan.delta
    low = min(wanted, *(summary["low"] for summary in summaries))
    low = max(0.0, low - 0.1 * (1 - low))
    axes.set_xlim(low, 1)
    axes.set_ylim(rows, 0)
    ticks = [t for t in MaxNLocator(3).tick_values(low, 1.0) if low <= t <= 1]
    # The end of the scale is always said, and nothing is written over it.
    ticks = [t for t in ticks if 1 - t > 0.2 * (1 - low)] + [1.0]
    _grid(axes, ticks, rows, [f"{100 * tick:.6g}%" for tick in ticks])
    _mark(page, axes, wanted, rows, f"asked: {100 * wanted:.6g}%")
    for i, summary in enumerate(summaries):
        y, colour = i + 0.6, group.colours[i]
        axes.plot(
            [summary["low"], summary["high"]],
            [y, y],
            color=colour,
            linewidth=2.5,
            solid_capstyle="butt",
            clip_on=False,
        )
        axes.plot(summary["fraction"], y, "o", markersize=7, color=colour, clip_on=False)
        page.write(
            left + RIGHT_WIDTH + PERCENT_WIDTH,
            body + ROW * (i + 0.62),
            percent(summary["fraction"]),
            ha="right",
            va="center_baseline",
        )


# ---------------------------------------------------------------------- allocations


def draw_allocations(
    page: Page,
    group: Group,
    g: int,
    top: float,
    names_width: float,
    width: float,
    short: Mapping[str, str],
) -> None:
    """Where each sampler's samples went, arm by arm, against the optimal allocation."""
    bound = group.results[0].bound
    scenario = group.results[0].plan.scenario
    best = recommended(bound.scenarios[scenario])
    marks = "" if best is None else "; black mark: the optimal allocation"
    page.heading(
        MARGIN,
        top,
        f"Where the samples went, {scenario}",
        f"bar: mean share of a run's samples{marks}; bold: used by the best mix",
        width,
    )
    columns = min(len(group.results), MAX_COLUMNS)
    column_width = min((width - names_width) / columns, 1.9)
    shares = [result.allocations().mean(axis=0) for result in group.results]
    longest = max(float(values.max()) for values in shares)
    longest = max(longest, 0.0 if best is None else float(best.max()))
    # Room for the number at the end of the longest bar, and between columns.
    reach = longest * column_width / (column_width - 0.62)
    for strip in range(group.strips):
        head = top + HEADING + strip * group.strip_height
        body = head + COLUMN_HEAD
        names = {short[bound.problem.arms[arm]]: bool(bound.policy[arm] > 0) for arm in group.arms}
        page.names(MARGIN + names_width - 0.15, body, names_width - 0.15, ARM_ROW, names)
        inside = range(strip * MAX_COLUMNS, min((strip + 1) * MAX_COLUMNS, len(group.results)))
        for j, r in enumerate(inside):
            start = MARGIN + names_width + j * column_width
            page.write(start, head, short[group.labels[r]], weight="bold")
            axes = page.axes(
                start, body, column_width, ARM_ROW * len(group.arms), f"allocation {g} {r}"
            )
            axes.set_xlim(0, reach)
            axes.set_ylim(len(group.arms), 0)
            _draw_shares(axes, shares[r][group.arms], group.colours[r])
            if best is not None:
                for i, value in enumerate(best[group.arms]):
                    axes.plot([value, value], [i + 0.06, i + 0.94], color="white", linewidth=4)
                    axes.plot(
                        [value, value],
                        [i + 0.1, i + 0.9],
                        color=INK,
                        linewidth=2,
                        solid_capstyle="butt",
                        clip_on=False,
                    )
            for i, arm in enumerate(group.arms):
                ends = max(shares[r][arm], 0.0 if best is None else best[arm])
                axes.text(
                    ends + 0.05 * reach,
                    i + 0.5,
                    share(float(shares[r][arm])),
                    size=SMALL,
                    color=INK if shares[r][arm] > 0 else DIM,
                    va="center_baseline",
                )


def _draw_shares(axes: Axes, values: Array, colour: str) -> None:
    rows = len(values)
    axes.plot([0, 0], [0, rows], color=TRACK, linewidth=1, clip_on=False)
    axes.barh(np.arange(rows) + 0.5, values, height=0.6, color=colour)


# ---------------------------------------------------------------------- scales


def _column_heads(page: Page, left: float, top: float, heads: list[tuple[str, float]]) -> None:
    """Write what the numbers at the right of the rows are."""
    for words, width in heads:
        left += width
        page.write(left, top + 0.05, words, size=SMALL, color=DIM, ha="right")


def _grid(axes: Axes, ticks: Sequence[float], rows: int, words: Sequence[str]) -> None:
    """Thin lines with numbers below."""
    for tick, label in zip(ticks, words, strict=True):
        axes.plot([tick, tick], [0, rows], color=TRACK, linewidth=0.7, zorder=0, clip_on=False)
        axes.annotate(
            label,
            (tick, rows),
            xytext=(0, -4),
            textcoords="offset points",
            ha="center",
            va="top",
            size=SMALL,
            color=DIM,
            annotation_clip=False,
        )


def _mark(page: Page, axes: Axes, place: float, rows: int, words: str) -> None:
    """A line across all rows, with words on top that stay above the axes."""
    axes.plot([place, place], [0, rows], color=INK, linewidth=1.3, zorder=3, clip_on=False)
    label = axes.annotate(
        words,
        (place, 0),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        size=SMALL,
        color=INK,
        annotation_clip=False,
    )
    box = page.extent(label)
    if box.x0 < axes.bbox.x0:
        label.set_horizontalalignment("left")
    elif box.x1 > axes.bbox.x1:
        label.set_horizontalalignment("right")
