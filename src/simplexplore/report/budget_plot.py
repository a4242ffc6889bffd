"""Pictures of simulations with a budget: how often answers are wrong, by the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator

from simplexplore.problem.spelling import count, policy_in_words

from .numbers import number
from .page import DIM, GREY, LINE, SMALL, TEXT, Page, log_axes
from .results_group import Group, colour
from .results_text import comparable, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simplexplore.simulation.results import Results

# Inches.
MARGIN, HEADER, WIDTH, HEIGHT, FOOT, NAMES = 0.4, 0.8, 5.6, 3.6, 0.7, 1.5
LEFT = 0.7

LEGEND = "bars: 95% intervals; open: none of the runs was wrong; dashed: planned, means known"


def budget_figure(results: Sequence[Results]) -> Figure:
    """Draw error rates against budgets, a panel for each scenario, labelled ``errors g``."""
    groups = [Group(group) for group in comparable(results)]
    colour(groups)
    scenarios = list(dict.fromkeys(group.results[0].plan.scenario for group in groups))
    first = results[0]
    page = Page()
    width = LEFT + WIDTH + NAMES
    words = [*dict.fromkeys(standing(result) for result in results)][-1:]
    remarks = [line for remark in words for line in page.wrap(remark, SMALL, width)]
    bottom = MARGIN + HEADER + len(scenarios) * (HEIGHT + FOOT)
    page.resize(width + 2 * MARGIN, bottom + LINE * len(remarks) + MARGIN)

    def title(limit: int) -> str:
        best = policy_in_words(first.bound.policy, first.plan.problem.arms, limit)
        return f"How often the answer is not the best mix, {best}"

    page.title(MARGIN, title, width)
    page.write(MARGIN, MARGIN + 0.33, page.fit(_circumstances(results), 10.5, width), size=10.5)
    for g, scenario in enumerate(scenarios):
        top = MARGIN + HEADER + g * (HEIGHT + FOOT)
        axes = page.axes(MARGIN + LEFT, top, WIDTH, HEIGHT, f"errors {g}")
        own = [group for group in groups if group.results[0].plan.scenario == scenario]
        _draw(axes, own)
        note = f"samples, {scenario}; {LEGEND}"
        below = top + HEIGHT + 0.32
        page.write(
            MARGIN + LEFT, below, page.fit(note, SMALL, WIDTH + NAMES), size=SMALL, color=DIM
        )
    for i, line in enumerate(remarks):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _circumstances(results: Sequence[Results]) -> str:
    problem = results[0].plan.problem
    runs, seeds = ({getattr(r, name) for r in results} for name in ("runs", "seed"))
    return (
        f"{count(problem.size, 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{problem.rewards.in_words}, "
        f"{' to '.join(number(x) for x in sorted(runs))} runs each, "
        f"seed {', '.join(str(seed) for seed in sorted(seeds))}"
    )


def _draw(axes: Axes, groups: list[Group]) -> None:
    budgets = [group.results[0].plan.problem.budget or 1 for group in groups]
    log_axes(axes, sorted(set(budgets)), 1.1)
    axes.yaxis.set_major_locator(LogLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g}%"))
    planned = [(group.results[0].bound.budget, n) for group, n in zip(groups, budgets, strict=True)]
    points = [(n, b.error_probability) for b, n in planned if b and b.error_probability]
    ends = []
    if points:
        axes.plot(*zip(*sorted(points), strict=True), "--", color=GREY, linewidth=1)
    curves: dict[str, list[tuple[int, Results, str]]] = {}
    for group, n in zip(groups, budgets, strict=True):
        for label, result, shade in zip(group.labels, group.results, group.colours, strict=True):
            curves.setdefault(label, []).append((n, result, shade))
    for label, curve in curves.items():
        curve.sort(key=lambda point: point[0])
        x = [n for n, _, _ in curve]
        right = [result.summary()["correct"] for _, result, _ in curve]
        low = np.array([1 - one["high"] for one in right])
        high = np.array([1 - one["low"] for one in right])
        rate = np.array([1 - one["fraction"] for one in right])
        seen, shade = rate > 0, curve[0][2]
        shown = np.where(seen, rate, high)  # no more than that, with so many runs
        axes.plot(x, shown, color=shade, linewidth=1.2)
        floor = np.where(seen, np.maximum(low, shown / 30), shown / 3)
        axes.vlines(x, floor, high, color=shade, linewidth=1, alpha=0.6)
        for i, n in enumerate(x):
            face = shade if seen[i] else "white"
            axes.plot([n], [shown[i]], "o", color=shade, markerfacecolor=face, markersize=4)
        ends.append((float(shown[-1]), label, shade))
    axes.set_ylim(top=1.0)
    _name(axes, ends)


def _name(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write names at the right ends of their curves, apart from each other."""
    low, high = np.log(axes.get_ylim())
    apart, place = 0.055, -np.inf
    for y, label, shade in sorted(ends):
        place = max((np.log(y) - low) / (high - low), place + apart)
        axes.text(
            1.02,
            place,
            label,
            transform=axes.transAxes,
            color=shade,
            size=TEXT,
            va="center",
            parse_math=False,
        )
