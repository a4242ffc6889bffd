"""Pictures of simulations: stopping times, correctness and allocations of several samplers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from simplexplore.errors import SettingError
from simplexplore.problem.messages import count, policy_in_words
from simplexplore.simulation.results import Results

from .bound_words import of_ties, recommended, top_arms
from .canvas import SMALL, Canvas, save_picture, shortened
from .colours import DIM, INK, sampler_colours
from .comparison_figure import budget_figure
from .figure import Array, Bars, Panel, bars, compose, headed, scale, stacked, ticks_between
from .numbers import number
from .results_report import (
    amounts_of,
    circumstances,
    comparable,
    guarantee,
    measures,
    sampler_labels,
)

# More settings than this are counted in words; `plot_comparison` draws many.
MAX_GROUPS = 6

# Arms beyond this are counted in words; so many columns of allocations fit side by side.
MAX_ARMS, MAX_COLUMNS = 16, 8

# Inches.
NAME_WIDTH, TIMES_WIDTH = 2.0, 5.0

# Of rows: the height of one, what stands above all, the numbers of a scale below them.
ROW, ABOVE, TICKS = 0.48, 0.25, 0.3

# And about all of a picture, of which columns of allocations share what there is.
WIDTH = 9.2

# Times are drawn on a logarithmic scale when a long run of one sampler (its 95% quantile) is
# so many times the mean of another.
LOGARITHMIC = 6.0

DENSITY_POINTS = 160

# Of the numbers in the table of results.
COLUMNS = ("mean", "/bound", "samples", "correct", "capped", "runs")

LEGEND = (
    "shape: all runs; bar: middle half; line: 5% to 95%; diamond: mean; dot: longest run; "
    "correct: with its 95% interval"
)


def plot_results(results: Sequence[Results], path: str | os.PathLike[str]) -> None:
    """Draw simulations: stopping times against the lower bound, correctness, allocations.

    Parameters
    ----------
    results : sequence of Results
        From `simulate` or `load_results`. Those of the same instance, scenario, delta and
        threshold are drawn side by side, the first six of such settings.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF or SVG. It is replaced if it exists.

    Raises
    ------
    SettingError
        If no run finished, the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: results_figure(results), path)


def results_figure(results: Sequence[Results]) -> Figure:
    """Draw simulations as a matplotlib figure, for use in a notebook or a report.

    Axes carry labels: for group g of comparable results ``times g``, and ``allocation g i`` for
    its result i. Where all runs have a budget: ``errors g``.
    """
    finished = [result for result in results if result.runs]
    if not finished:
        raise SettingError("there is nothing to draw: no run has finished.")
    if not all(result.has_bound for result in finished):
        raise SettingError(
            "no mix keeps the measured limits, so there is no lower bound to draw times against."
        )
    if all(result.plan.problem.budget for result in finished):
        return budget_figure(finished)
    settings = comparable(finished)
    colour_of = sampler_colours([result.plan.sampler.name for result in finished])
    groups = [_Group(g, group, colour_of) for g, group in enumerate(settings[:MAX_GROUPS])]
    canvas = Canvas()
    columns = max(min(len(group.results), MAX_COLUMNS) for group in groups)
    # A name stands beside a row, and above a column of allocations.
    widest = min(NAME_WIDTH, WIDTH / columns) - 0.15
    names = canvas.short_names([x for group in groups for x in group.names], widest)
    names_width = 0.15 + canvas.widest(names.values(), weight="bold")
    times = [_times(canvas, group, names, names_width) for group in groups]
    width = max(panel.width for panel in times)
    panels = []
    for group, panel in zip(groups, times, strict=True):
        panels += [panel, _allocations(canvas, group, names, names_width, width)]
    remarks = [*_remarks(groups), *shortened(names)]
    if more := len(settings) - len(groups):
        remarks.append(f"Not shown: {more} more settings.")
    return compose(canvas, _title(groups, names), LEGEND, stacked(*panels), remarks)


class _Group:
    """Results that are drawn side by side: what is written beside them, and their colours."""

    def __init__(self, index: int, results: list[Results], colour_of: Mapping[str, str]) -> None:
        self.index, self.results = index, results
        self.problem, self.bound = results[0].plan.problem, results[0].bound
        self.scenario = results[0].plan.scenario
        self.labels = sampler_labels(results)
        self.colours = [colour_of[result.plan.sampler.name] for result in results]
        self.arms = top_arms(self.bound, MAX_ARMS)
        self.what = "Cost" if self.problem.has_costs else "Samples"
        # What each run took.
        paid = [r.costs if self.problem.has_costs else r.stopping_times for r in results]
        self.amounts = [np.asarray(amounts, dtype=float) for amounts in paid]
        least = results[0].lower_bound
        self.least = least if 0 < least < math.inf else math.nan  # nan: there is none to draw
        longest = max(amounts_of(result)["q95"] for result in results)
        shortest = min(amounts_of(result)["mean"] for result in results)
        self.is_logarithmic: bool = longest > LOGARITHMIC * shortest
        self.names = [*self.labels, *(self.problem.arms[a] for a in self.arms)]


def _title(groups: list[_Group], names: Mapping[str, str]) -> str:
    """What the picture shows, and the best mix if it is the same everywhere."""
    bound, problem = groups[0].bound, groups[0].problem
    what = "the answer" if bound.answer else "the best mix"
    title = f"{groups[0].what} until {'a good mix' if problem.measured else what} is known"
    best = set()
    for group in groups:
        arms = [names.get(arm, arm) for arm in group.problem.arms]
        best.add(group.bound.answer or policy_in_words(group.bound.policy, arms))
    if len(best) > 1:
        return title
    return f"{title}: {'the best is ' * bool(problem.measured)}{best.pop()}"


def _remarks(groups: list[_Group]) -> list[str]:
    """What a reader should know beside the picture."""
    every = [result for group in groups for result in group.results]
    remarks = [guarantee(result) for result in every]
    if any(result.capped.any() for result in every):
        remarks.append("Capped runs were ended before they had an answer: the true mean is larger.")
    for group in groups:
        if left := group.problem.size - len(group.arms):
            remarks.append(f"Not shown: {count(left, 'arm')}.")
        remarks += of_ties(group.bound)
    return list(dict.fromkeys(remarks))


def _times(canvas: Canvas, group: _Group, names: Mapping[str, str], names_width: float) -> Panel:
    """A row for each sampler: the distribution of its stopping times, or costs, and numbers."""
    columns = {
        column.heading: [write(result) for result in group.results]
        for column, write in measures(group.results)
        if column.heading in COLUMNS
    }
    widths = [canvas.widest([head, *texts]) + 0.2 for head, texts in columns.items()]
    height = ROW * len(group.results)

    def draw(left: float, top: float) -> None:
        left, body = left + names_width, top + ABOVE
        middles = [body + ROW * (i + 0.6) for i in range(len(group.results))]
        axes = canvas.axes(left, body, TIMES_WIDTH, height, f"times {group.index}")
        axes.set_ylim(len(group.results), 0)
        _scale_times(axes, group)
        _mark_bound(axes, group.least)
        for i, (amounts, colour) in enumerate(zip(group.amounts, group.colours, strict=True)):
            _distribution(axes, amounts, i + 0.74, colour)
        style: Any = {"ha": "right", "va": "center_baseline"}
        for y, label in zip(middles, group.labels, strict=True):
            canvas.write(left - 0.15, y, names[label], weight="bold", **style)
        right = left + TIMES_WIDTH
        for (head, texts), width in zip(columns.items(), widths, strict=True):
            right += width
            canvas.write(right, top + 0.1, head, size=SMALL, color=DIM, **style)
            for y, text in zip(middles, texts, strict=True):
                canvas.write(right, y, text, **style)

    panel = Panel(names_width + TIMES_WIDTH + sum(widths), ABOVE + height + TICKS, draw)
    title = f"{group.what} until stopping, {group.scenario}"
    title += " (logarithmic scale)" * group.is_logarithmic
    return headed(canvas, title, circumstances(group.results), panel)


def _mark_bound(axes: Axes, least: float) -> None:
    """A line across all rows, with words on top that stay above the axes."""
    if math.isnan(least):
        return
    axes.axvline(least, color=INK, linewidth=1.3, zorder=3, clip_on=False)
    # The words stand on the side where there is room for them.
    is_left = axes.transData.transform((least, 0))[0] < np.mean(axes.bbox.intervalx)
    style: Any = {"ha": "left" if is_left else "right", "va": "bottom", "size": SMALL}
    axes.text(least, 0, f"lower bound {number(least)}", color=INK, **style)


def _scale_times(axes: Axes, group: _Group) -> None:
    """From 0 to the longest run, or on a logarithmic scale from where most runs are."""
    ends = [np.quantile(amounts, [0.05, 1.0]) for amounts in group.amounts]
    low, high = (float(f([*np.ravel(ends), group.least])) for f in (np.nanmin, np.nanmax))
    if group.is_logarithmic:
        axes.set_xscale("log")
    low, high = (low / 1.1, high * 1.1) if group.is_logarithmic else (0.0, 1.04 * high)
    axes.set_xlim(low, high)
    is_whole = not group.problem.has_costs
    ticks = ticks_between(low, high, logarithmic=group.is_logarithmic, integer=is_whole)
    scale(axes.xaxis, ticks, number)


def _distribution(axes: Axes, times: Array, base: float, colour: str) -> None:
    """A density above a row's base line, quantiles on it."""
    x, height = _density(times, logarithmic=axes.get_xscale() == "log")
    axes.fill_between(x, base - 0.05 - 0.6 * height, base - 0.05, color=colour, alpha=0.3, lw=0)
    axes.plot(x, base - 0.05 - 0.6 * height, color=colour, linewidth=0.8)
    q05, q25, q75, q95 = np.quantile(times, [0.05, 0.25, 0.75, 0.95])
    axes.plot([q05, q95], [base, base], color=colour, linewidth=1.2, solid_capstyle="butt")
    axes.plot([q25, q75], [base, base], color=colour, linewidth=5, solid_capstyle="butt")
    axes.plot(times.max(), base, "o", markersize=3.5, color=colour, clip_on=False)
    diamond: Any = {"color": "white", "markeredgecolor": INK, "markeredgewidth": 1.0, "zorder": 4}
    axes.plot(times.mean(), base, "D", markersize=5.5, clip_on=False, **diamond)


def _density(times: Array, *, logarithmic: bool) -> tuple[Array, Array]:
    """A smooth density with peak 1, from the shortest run to the longest."""
    y = np.log(times) if logarithmic else times
    if np.ptp(y) == 0:
        return np.repeat(times[0], 2), np.array([0.0, 1.0])
    grid = np.linspace(y.min(), y.max(), DENSITY_POINTS)
    height = np.asarray(GaussianKDE(y, "silverman").evaluate(grid))
    return (np.exp(grid) if logarithmic else grid), height / height.max()


def _allocations(
    canvas: Canvas, group: _Group, names: Mapping[str, str], names_width: float, width: float
) -> Panel:
    """Where each sampler's samples went, arm by arm, against the optimal allocation."""
    bound = group.bound
    best = recommended(bound.scenarios[group.scenario])
    every = [
        Bars(
            f"allocation {group.index} {i}",
            names[label],
            result.allocations().mean(axis=0)[group.arms],
            group.colours[i],
            marks=None if best is None else best[group.arms],
        )
        for i, (label, result) in enumerate(zip(group.labels, group.results, strict=True))
    ]
    longest = max(column.longest for column in every)
    arms = {names[bound.problem.arms[a]]: bool(bound.policy[a] > 0) for a in group.arms}
    columns = min(len(every), MAX_COLUMNS)
    each = min((width - names_width) / columns, 1.9)
    strips = [
        bars(canvas, arms, names_width, every[i : i + columns], each, longest)
        for i in range(0, len(every), columns)
    ]
    note = "" if best is None else "; black mark: the optimal allocation"
    return headed(
        canvas,
        f"Where the samples went, {group.scenario}",
        f"bar: mean share of a run's samples{note}; bold: used by the best mix",
        stacked(*strips, gap=0.1),
        width,
    )
