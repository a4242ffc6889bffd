"""Pictures of simulations: stopping times, correctness and allocations of several samplers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simplexplore.errors import SettingError
from simplexplore.problem.spelling import policy_in_words

from .bound_text import notes
from .page import DIM, GUTTER, LINE, SMALL, TEXT, Page, save_picture
from .results_group import Group, colour
from .results_panels import (
    MARGIN,
    PERCENT_WIDTH,
    RATIO_WIDTH,
    RIGHT_WIDTH,
    TIMES_WIDTH,
    draw_allocations,
    draw_correct,
    draw_times,
)
from .results_text import circumstances, comparable, standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simplexplore.simulation.results import Results

# Inches.
HEADER, NAME_WIDTH = 0.8, 2.0

LEGEND = "shape: all runs; bar: middle half; line: 5% to 95%; diamond: mean; dot: longest run"


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
    groups = [Group(group) for group in comparable(finished)]
    colour(groups)
    alike = _alike(groups)

    # Measure first, then draw.
    page = Page()
    names_width = min(max(group.widest_name(page) for group in groups) + 0.15, NAME_WIDTH)
    means_width = max(page.width_of(mean, TEXT) for group in groups for mean in group.means) + 0.2
    counted = [words for group in groups if group.has_costs for words in group.samples]
    samples_width = max((page.width_of(x, TEXT) for x in [*counted, "samples"]), default=0) + 0.2
    samples_width *= bool(counted)
    values_width = means_width + RATIO_WIDTH + samples_width
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
        draw_times(page, group, g, top, names_width, means_width, samples_width, note)
        left = MARGIN + names_width + TIMES_WIDTH + values_width + GUTTER
        draw_correct(page, group, g, left, top)
        draw_allocations(page, group, g, top + group.runs_height + GUTTER, names_width, body_width)
        top += group.height + GUTTER
    for i, line in enumerate(remarks):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _alike(groups: list[Group]) -> bool:
    """Whether groups differ in nothing but the scenario."""
    return len({_but_scenario(group.results[0]) for group in groups}) == 1


def _but_scenario(result: Results) -> object:
    plan = result.plan
    means = tuple(result.bound.means.tolist())
    return (plan.problem.replace(scenario="anytime"), means, plan.delta, plan.threshold.name)


def _headlines(groups: list[Group]) -> tuple[str, str]:
    """The picture's title and the line below it."""
    every = [result for group in groups for result in group.results]
    title = f"{groups[0].what} until the best mix is known"
    if not _alike(groups):
        return title, f"{len(groups)} settings; {LEGEND}"
    first = every[0]
    best = policy_in_words(first.bound.policy, first.plan.problem.arms, 4)
    return f"{title}: {best}", circumstances(every)


def _remarks(groups: list[Group]) -> list[str]:
    """What a reader should know beside the picture."""
    every = [result for group in groups for result in group.results]
    remarks = list(dict.fromkeys(standing(result) for result in every))
    for group in groups:
        bound = group.results[0].bound
        if left := bound.problem.size - len(group.arms):
            remarks.append(f"Not shown: {left} arm{'' if left == 1 else 's'}.")
        remarks += [n.text for n in notes(bound) if n.kind in ("ties", "other allocations")]
    return list(dict.fromkeys(remarks))
