"""Pictures of simulations: stopping times, correctness and allocations of several samplers."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import LogLocator, MaxNLocator

from simplexplore.errors import SettingError
from simplexplore.problem.spelling import policy_in_words

from .bound_text import notes, prominent_arms, recommended
from .numbers import mean_and_error, number, percent, ratio, share
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
    PINK,
    RED,
    SKY,
    SMALL,
    TEXT,
    TRACK,
    Page,
    save_picture,
)
from .results_text import circumstances, comparable, sampler_labels, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simplexplore.simulation.results import Results

Array = npt.NDArray[np.float64]

# One colour per sampler in all pictures; names stand beside them, so none has to be guessed.
COLOURS = {
    "ctns": BLUE,
    "cge": ORANGE,
    "ptns": GREEN,
    "uniform": GREY,
    "oracle": INK,
    "top-two": RED,
}
# For samplers of the user's own, in the order they come.
OWN_COLOURS = (PINK, SKY, "#6A51A3", "#8C564B")

# Arms beyond this are counted in words; so many columns of allocations fit side by side.
MAX_ARMS, MAX_COLUMNS = 16, 8

# Inches.
MARGIN, HEADER = 0.3, 0.8
NAME_WIDTH, TIMES_WIDTH, RIGHT_WIDTH = 2.0, 4.4, 2.0
RATIO_WIDTH, PERCENT_WIDTH = 0.65, 0.6
ROW, AXIS, COLUMN_HEAD, ARM_ROW = 0.48, 0.3, 0.25, 0.23

LEGEND = "shape: all runs; bar: middle half; line: 5% to 95%; diamond: mean; dot: longest run"

# Times are drawn on a logarithmic scale when a long run of one sampler (its 95% quantile) is
# so many times the mean of another.
LOGARITHMIC = 6.0

# Points of a density, and how many runs it is made of at most (quantiles stand for more).
DENSITY_POINTS, DENSITY_RUNS = 160, 1000


def plot_results(results: Sequence[Results], path: str | os.PathLike[str]) -> None:
    """Draw simulations: stopping times against the lower bound, correctness, allocations.

    Parameters
    ----------
    results : sequence of Results
        From `simulate` or `load_results`. Those of the same instance, scenario, delta and
        threshold are drawn side by side.
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

    Axes carry labels: for group g of comparable results ``times g``, ``correct g``, and
    ``allocation g i`` for its result i.
    """
    finished = [result for result in results if result.runs]
    if not finished:
        raise SettingError("there is nothing to draw: no run has finished.")
    groups = [_Group(group) for group in comparable(finished)]
    _colour(groups)
    alike = _alike(groups)

    # Measure first, then draw.
    page = Page()
    names_width = min(max(group.widest_name(page) for group in groups) + 0.15, NAME_WIDTH)
    means_width = max(page.width_of(mean, TEXT) for group in groups for mean in group.means) + 0.2
    values_width = means_width + RATIO_WIDTH
    body_width = names_width + TIMES_WIDTH + values_width + GUTTER + RIGHT_WIDTH + PERCENT_WIDTH
    remarks = [line for remark in _remarks(groups) for line in page.wrap(remark, SMALL, body_width)]
    bottom = MARGIN + HEADER + sum(group.height + GUTTER for group in groups)
    page.resize(body_width + 2 * MARGIN, bottom + LINE * len(remarks) + MARGIN)

    title, headline = _headlines(groups)
    page.write(MARGIN, MARGIN, page.fit(title, 14, body_width, "bold"), size=14, weight="bold")
    page.write(MARGIN, MARGIN + 0.33, page.fit(headline, 10.5, body_width), size=10.5)
    top = MARGIN + HEADER
    for g, group in enumerate(groups):
        note = LEGEND if alike else group.circumstances
        _draw_times(page, group, g, top, names_width, means_width, note)
        left = MARGIN + names_width + TIMES_WIDTH + values_width + GUTTER
        _draw_correct(page, group, g, left, top)
        _draw_allocations(page, group, g, top + group.runs_height + GUTTER, names_width, body_width)
        top += group.height + GUTTER
    for i, line in enumerate(remarks):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


@dataclass
class _Group:
    """Results that are drawn side by side."""

    results: list[Results]

    def __post_init__(self) -> None:
        self.labels = sampler_labels(self.results)
        self.colours: list[str] = []
        self.arms = prominent_arms(self.results[0].bound, MAX_ARMS)
        self.circumstances = circumstances(self.results)
        times = [result.summary()["stopping_time"] for result in self.results]
        self.means = [mean_and_error(x["mean"], x["stderr"]) for x in times]
        longest, least = max(x["q95"] for x in times), min(x["mean"] for x in times)
        self.logarithmic: bool = longest > LOGARITHMIC * least

    @property
    def least(self) -> float:
        """The lower bound, or nan where there is none to draw."""
        bound = self.results[0].lower_bound
        return bound if 0 < bound < math.inf else math.nan

    @property
    def runs_height(self) -> float:
        return HEADING + COLUMN_HEAD + ROW * len(self.results) + AXIS

    @property
    def strips(self) -> int:
        """Rows of columns that the allocations need."""
        return -(-len(self.results) // MAX_COLUMNS)

    @property
    def strip_height(self) -> float:
        return COLUMN_HEAD + ARM_ROW * len(self.arms) + 0.1

    @property
    def height(self) -> float:
        return self.runs_height + GUTTER + HEADING + self.strips * self.strip_height

    def widest_name(self, page: Page) -> float:
        names = [self.results[0].plan.problem.arms[a] for a in self.arms]
        return max(page.width_of(name, TEXT, "bold") for name in [*self.labels, *names])


def _colour(groups: list[_Group]) -> None:
    """Give each sampler the same colour everywhere."""
    own: dict[str, str] = {}
    for group in groups:
        for result in group.results:
            name = result.plan.sampler.name
            if name not in COLOURS and name not in own:
                own[name] = OWN_COLOURS[len(own) % len(OWN_COLOURS)]
            group.colours.append(COLOURS.get(name) or own[name])


def _alike(groups: list[_Group]) -> bool:
    """Whether groups differ in nothing but the scenario."""
    return len({_but_scenario(group.results[0]) for group in groups}) == 1


def _but_scenario(result: Results) -> object:
    plan = result.plan
    means = tuple(result.bound.means.tolist())
    return (plan.problem.replace(scenario="anytime"), means, plan.delta, plan.threshold.name)


def _headlines(groups: list[_Group]) -> tuple[str, str]:
    """The picture's title and the line below it."""
    every = [result for group in groups for result in group.results]
    title = "Samples until the best mix is known"
    if not _alike(groups):
        return title, f"{len(groups)} settings; {LEGEND}"
    first = every[0]
    best = policy_in_words(first.bound.policy, first.plan.problem.arms, 4)
    return f"{title}: {best}", circumstances(every)


def _remarks(groups: list[_Group]) -> list[str]:
    """What a reader should know beside the picture."""
    every = [result for group in groups for result in group.results]
    remarks = list(dict.fromkeys(standing(result) for result in every))
    for group in groups:
        bound = group.results[0].bound
        if left := bound.problem.size - len(group.arms):
            remarks.append(f"Not shown: {left} arm{'' if left == 1 else 's'}.")
        remarks += [n.text for n in notes(bound) if n.kind in ("ties", "other allocations")]
    return list(dict.fromkeys(remarks))


# ---------------------------------------------------------------------- stopping times


def _draw_times(
    page: Page,
    group: _Group,
    g: int,
    top: float,
    names_width: float,
    means_width: float,
    note: str,
) -> None:
    """One row per sampler: the distribution of its stopping times, its mean."""
    page.heading(
        MARGIN,
        top,
        f"Samples until stopping, {group.results[0].plan.scenario}",
        f"{note}; logarithmic scale" if group.logarithmic else note,
        names_width + TIMES_WIDTH + means_width + RATIO_WIDTH,
    )
    left, head = MARGIN + names_width, top + HEADING
    body = head + COLUMN_HEAD
    rows = len(group.results)
    _column_heads(page, left + TIMES_WIDTH, head, [("mean", means_width), ("x bound", RATIO_WIDTH)])
    axes = page.axes(left, body, TIMES_WIDTH, ROW * rows, f"times {g}")
    ticks = _time_axis(axes, group)
    axes.set_ylim(rows, 0)
    _grid(axes, ticks, rows, [number(tick) for tick in ticks])
    if not math.isnan(group.least):
        _mark(page, axes, group.least, rows, f"lower bound {number(group.least)}")
    for i, (label, result) in enumerate(zip(group.labels, group.results, strict=True)):
        colour, base = group.colours[i], i + 0.74
        row = body + ROW * (i + 0.62)
        _write_name(page, label, result, row, names_width)
        _draw_distribution(axes, result.stopping_times.astype(float), base, colour)
        times_bound = ratio(float(result.stopping_times.mean()), result.lower_bound)
        end = left + TIMES_WIDTH
        for words, width in ((group.means[i], means_width), (times_bound, RATIO_WIDTH)):
            end += width
            page.write(end, row, words, ha="right", va="center_baseline")


def _write_name(page: Page, label: str, result: Results, row: float, width: float) -> None:
    """A sampler's name, and below it the runs that are missing or were capped."""
    name = page.fit(label, TEXT, width - 0.15, "bold")
    place = MARGIN + width - 0.15
    asides = []
    if capped := int(result.capped.sum()):
        asides.append(f"{number(capped)} capped")
    if result.runs < result.runs_asked:
        asides.append(f"{number(result.runs)} of {number(result.runs_asked)} runs")
    if asides:
        text = page.fit(", ".join(asides), SMALL, width - 0.15)
        page.write(place, row + 0.05, text, size=SMALL, color=RED, ha="right", va="center_baseline")
        row -= LINE - 0.05
    page.write(place, row, name, weight="bold", ha="right", va="center_baseline")


def _time_axis(axes: Axes, group: _Group) -> list[float]:
    """Choose the scale; return places of ticks."""
    longest = max(float(result.stopping_times.max()) for result in group.results)
    shortest = min(float(np.quantile(r.stopping_times, 0.05)) for r in group.results)
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
        ticks = MaxNLocator(6, integer=True).tick_values(low, high)
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


def _draw_correct(page: Page, group: _Group, g: int, left: float, top: float) -> None:
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


def _draw_allocations(
    page: Page, group: _Group, g: int, top: float, names_width: float, width: float
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
        names = {bound.problem.arms[arm]: bool(bound.policy[arm] > 0) for arm in group.arms}
        page.names(MARGIN + names_width - 0.15, body, names_width - 0.15, ARM_ROW, names)
        inside = range(strip * MAX_COLUMNS, min((strip + 1) * MAX_COLUMNS, len(group.results)))
        for j, r in enumerate(inside):
            start = MARGIN + names_width + j * column_width
            label = page.fit(group.labels[r], TEXT, column_width - 0.15, "bold")
            page.write(start, head, label, weight="bold")
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
