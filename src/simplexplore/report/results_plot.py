"""Pictures of simulations: stopping times, correctness and allocations of several samplers."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from simplexplore.errors import SettingError
from simplexplore.problem.spelling import policy_in_words
from simplexplore.simulation.compare import Comparison

from .bound_text import notes
from .budget_plot import budget_figure
from .comparison_plot import comparison_figure
from .page import DIM, GUTTER, LINE, SMALL, TEXT, Page, save_picture
from .results_group import MAX_COLUMNS, Group, colour
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
from .results_text import circumstances, comparable, sampler_labels, standing
from .table import legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simplexplore.simulation.results import Results

# Inches.
HEADER, NAME_WIDTH = 0.8, 2.0

# More settings than this make one comparison, whose size does not grow with them.
MAX_GROUPS = 6

LEGEND = "shape: all runs; bar: middle half; line: 5% to 95%; diamond: mean; dot: longest run"


def plot_results(results: Sequence[Results], path: str | os.PathLike[str]) -> None:
    """Draw simulations: stopping times against the lower bound, correctness, allocations.

    Parameters
    ----------
    results : sequence of Results
        From `simulate` or `load_results`. Those of the same instance, scenario, delta and
        threshold are drawn side by side; more than six such settings as `plot_comparison` does.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF, SVG or PGF. It is replaced if it exists.

    Raises
    ------
    SettingError
        If no run finished, the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: results_figure(results), path)


def results_figure(results: Sequence[Results]) -> Figure:
    """Draw simulations as a matplotlib figure, for use in a notebook or a report.

    Axes carry labels: for group g of comparable results ``times g``, ``correct g``, and
    ``allocation g i`` for its result i. Where all runs have a budget: ``errors g``.
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
    if len(settings) > MAX_GROUPS and (comparison := _comparison(settings)):
        return comparison_figure(comparison)
    groups = [Group(group) for group in settings[:MAX_GROUPS]]
    colour(groups)
    alike = _alike(groups)

    # Measure first, then draw.
    page = Page()
    samplers = dict.fromkeys(name for group in groups for name in group.names)
    names = page.short_names(list(samplers), _label_width(groups))
    asides = [aside for group in groups for aside in group.asides]
    names_width = 0.15 + max(
        *(page.width_of(name, TEXT, "bold") for name in names.values()),
        *(page.width_of(aside, SMALL) for aside in asides),
    )
    means_width = max(page.width_of(mean, TEXT) for group in groups for mean in group.means) + 0.2
    counted = [words for group in groups if group.has_costs for words in group.samples]
    samples_width = max((page.width_of(x, TEXT) for x in [*counted, "samples"]), default=0) + 0.2
    samples_width *= bool(counted)
    values_width = means_width + RATIO_WIDTH + samples_width
    body_width = names_width + TIMES_WIDTH + values_width + GUTTER + RIGHT_WIDTH + PERCENT_WIDTH
    said = [*_remarks(groups), *legend(names)]
    if more := len(settings) - len(groups):
        said.append(f"Not shown: {more} more settings.")
    remarks = [line for remark in said for line in page.wrap(remark, SMALL, body_width)]
    headline = f"{len(groups)} settings; {LEGEND}"
    if alike:
        headline = circumstances([result for group in groups for result in group.results])
    lines = page.wrap(headline, 10.5, body_width)
    header = HEADER + 0.2 * (len(lines) - 1)
    bottom = MARGIN + header + sum(group.height + GUTTER for group in groups)
    page.resize(body_width + 2 * MARGIN, bottom + LINE * len(remarks) + MARGIN)

    page.title(MARGIN, partial(_title, groups, names), body_width)
    for i, line in enumerate(lines):
        page.write(MARGIN, MARGIN + 0.33 + 0.2 * i, line, size=10.5)
    top = MARGIN + header
    for g, group in enumerate(groups):
        note = LEGEND if alike else group.circumstances
        draw_times(page, group, g, top, names_width, means_width, samples_width, note, names)
        left = MARGIN + names_width + TIMES_WIDTH + values_width + GUTTER
        draw_correct(page, group, g, left, top)
        below = top + group.runs_height + GUTTER
        draw_allocations(page, group, g, below, names_width, body_width, names)
        top += group.height + GUTTER
    for i, line in enumerate(remarks):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _comparison(settings: list[list[Results]]) -> Comparison | None:
    """Many settings as a comparison, where all have the same samplers and a bound."""
    labels = sampler_labels(settings[0])
    if any(sampler_labels(group) != labels for group in settings):
        return None
    if not all(0 < group[0].lower_bound < math.inf for group in settings):
        return None
    names = [f"setting {i}" for i in range(1, len(settings) + 1)]
    return Comparison(tuple(names), tuple(labels), tuple(map(tuple, settings)))


def _label_width(groups: list[Group]) -> float:
    """What names may take: a row's name, and as much above a column of allocations."""
    columns = max(min(len(group.results), MAX_COLUMNS) for group in groups)
    # As wide as the picture is when names take their most.
    width = TIMES_WIDTH + RATIO_WIDTH + GUTTER + RIGHT_WIDTH + PERCENT_WIDTH + 1.0
    return min(NAME_WIDTH, width / columns) - 0.15


def _alike(groups: list[Group]) -> bool:
    """Whether groups differ in nothing but the scenario."""
    return len({_but_scenario(group.results[0]) for group in groups}) == 1


def _but_scenario(result: Results) -> object:
    plan = result.plan
    means = tuple(result.bound.means.tolist())
    return (plan.problem.replace(scenario="anytime"), means, plan.delta, plan.threshold.name)


def _title(groups: list[Group], names: Mapping[str, str], limit: int) -> str:
    """What the picture shows, and the best mix if it is the same everywhere."""
    first = groups[0].results[0]
    is_measured = bool(first.plan.problem.measured)
    title = f"{groups[0].what} until {'a good' if is_measured else 'the best'} mix is known"
    if not _alike(groups):
        return title
    arms = [names.get(arm, arm) for arm in first.plan.problem.arms]
    best = policy_in_words(first.bound.policy, arms, limit)
    return f"{title}: {'the best is ' * is_measured}{best}"


def _remarks(groups: list[Group]) -> list[str]:
    """What a reader should know beside the picture."""
    every = [result for group in groups for result in group.results]
    remarks = list(dict.fromkeys(standing(result) for result in every))
    if any(result.capped.any() for result in every):
        remarks.append("Capped runs were ended before they had an answer: the true mean is larger.")
    for group in groups:
        bound = group.results[0].bound
        if left := bound.problem.size - len(group.arms):
            remarks.append(f"Not shown: {left} arm{'' if left == 1 else 's'}.")
        remarks += [n.text for n in notes(bound) if n.kind in ("ties", "other allocations")]
    return list(dict.fromkeys(remarks))
