"""Pictures of many settings: how near to the bound on many instances, how wrong by the budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simplexplore.errors import SettingError
from simplexplore.problem.messages import count, policy_in_words
from simplexplore.simulation.compare import Comparison
from simplexplore.simulation.results import Results

from .bound_words import problem_in_words
from .canvas import SMALL, Canvas, save_picture, shortened
from .colours import DIM, INK, sampler_colours
from .figure import Array, Panel, add_legend, compose, headed, scale, stacked, ticks_between
from .numbers import number
from .results_report import comparable, guarantee, runs_in_words, sampler_labels

# Inches: axes, the legend at their right, and the numbers left of them and below.
WIDTH, HEIGHT, LEGEND_WIDTH, LEFT, AXIS = 5.6, 3.6, 1.9, 0.55, 0.5


def curves(
    canvas: Canvas, label: str, title: str, note: str, draw: Callable[[Axes], None]
) -> Panel:
    """Axes on which curves are drawn, with a legend at their right."""

    def place(left: float, top: float) -> None:
        axes = canvas.axes(left + LEFT, top, WIDTH, HEIGHT, label)
        draw(axes)
        add_legend(axes, (1.02, 1.0))

    panel = Panel(LEFT + WIDTH + LEGEND_WIDTH, HEIGHT + AXIS, place)
    return headed(canvas, title, note, panel)


def short_names(canvas: Canvas, labels: Iterable[str]) -> dict[str, str]:
    """What a legend calls curves."""
    return canvas.short_names(dict.fromkeys(labels), LEGEND_WIDTH - 0.5)


# ---------------------------------------------------------------------- many instances


def plot_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw a comparison as a performance profile: how near to the bound on how many instances.

    Parameters
    ----------
    comparison : Comparison
        From `compare`.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF or SVG. It is replaced if it exists.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: comparison_figure(comparison), path)


def comparison_figure(comparison: Comparison) -> Figure:
    """Draw a comparison as a matplotlib figure, for use in a notebook or a report.

    Its size does not depend on the number of instances. Its axes are labelled ``profile``.
    """
    ratios = comparison.ratios()
    if np.isnan(ratios).all():
        raise SettingError("there is nothing to draw: no run has finished.")
    canvas = Canvas()
    names = short_names(canvas, comparison.samplers)
    every = [result for group in comparison.results for result in group]
    remarks = list(dict.fromkeys(guarantee(result) for result in every))
    if any(result.capped.any() for result in every):
        remarks.append("Capped: some runs had no answer by max_steps; a curve ends below 100%.")
    title = f"Samples needed on {count(len(comparison.names), 'instance')}"
    body = curves(
        canvas,
        "profile",
        "Performance profile",
        "share of instances on which the mean is at most so many times the lower bound",
        partial(_profile, comparison=comparison, ratios=ratios, names=names),
    )
    return compose(canvas, title, _settings(every), body, [*remarks, *shortened(names)])


def _settings(every: Sequence[Results]) -> str:
    """What comparisons have in common, or all that differs."""
    plans = [result.plan for result in every]
    words = dict.fromkeys(
        [
            *(plan.scenario for plan in plans),
            *(f"delta {plan.delta:g}" for plan in plans),
            *(f"threshold {plan.threshold.name}" for plan in plans),
        ]
    )
    return ", ".join([*words, runs_in_words(every)])


def _profile(axes: Axes, comparison: Comparison, ratios: Array, names: Mapping[str, str]) -> None:
    """The share of instances on which each sampler comes that close to the bound."""
    colour_of = sampler_colours(comparison.samplers)
    _scale_ratios(axes, ratios)
    axes.set_ylim(0, 1.02)
    scale(axes.yaxis, [0, 0.25, 0.5, 0.75, 1], lambda share: f"{100 * share:g}%")
    for s, (sampler, row) in enumerate(zip(comparison.samplers, comparison.summary(), strict=True)):
        reached = np.sort(ratios[:, s][np.isfinite(ratios[:, s])])
        x = np.concatenate([axes.get_xlim()[:1], reached, axes.get_xlim()[1:]])
        y = np.concatenate([np.arange(len(reached) + 1), [len(reached)]]) / len(ratios)
        middle, capped = row["x bound: median"], row["capped on"]
        words = [] if middle is None else [f"median {number(float(f'{middle:.3g}'))}"]
        words += [f"{capped} capped"] if capped else []
        axes.plot(
            x,
            y,
            drawstyle="steps-post",
            color=colour_of[sampler],
            linewidth=2,
            label=f"{names[sampler]}\n{', '.join(words)}",
        )


def _scale_ratios(axes: Axes, ratios: Array) -> None:
    """A logarithmic scale of ratios, with the bound marked."""
    found = ratios[np.isfinite(ratios)]
    least, most = (float(found.min()), float(found.max())) if len(found) else (1.0, 10.0)
    low, high = min(0.95 * least, 0.95), max(1.1 * most, 2.0)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    scale(axes.xaxis, ticks_between(low, high, logarithmic=True), lambda value: f"{value:g}")
    axes.axvline(1, color=INK, linewidth=1.3)
    axes.set_xlabel("mean stopping time / lower bound", size=SMALL, color=DIM)


# ---------------------------------------------------------------------- budgets


def budget_figure(results: Sequence[Results]) -> Figure:
    """Draw error rates against budgets, a panel for each scenario, labelled ``errors g``."""
    canvas, first = Canvas(), results[0]
    problem = first.plan.problem
    colour_of = sampler_colours([result.plan.sampler.name for result in results])
    # By scenario and by what a curve is called: its results, one for each budget.
    found: dict[str, dict[str, list[Results]]] = {}
    for group in comparable(results):
        for label, result in zip(sampler_labels(group), group, strict=True):
            found.setdefault(result.plan.scenario, {}).setdefault(label, []).append(result)
    names = short_names(canvas, (label for own in found.values() for label in own))
    panels = [
        curves(
            canvas,
            f"errors {g}",
            f"Wrong answers by the number of samples, {scenario}",
            "bars: 95% intervals; open: none of the runs was wrong",
            partial(_errors, found=own, names=names, colour_of=colour_of),
        )
        for g, (scenario, own) in enumerate(found.items())
    ]

    bound = first.bound
    best = bound.answer or f"the best mix, {policy_in_words(bound.policy, problem.arms)}"
    title = f"How often the answer is not {best}"
    seeds = ", ".join(map(str, sorted({result.seed for result in results})))
    headline = f"{problem_in_words(problem)}, {runs_in_words(results)}, seed {seeds}"
    remarks = [guarantee(results[-1]), *shortened(names)]
    return compose(canvas, title, headline, stacked(*panels), remarks)


def _errors(
    axes: Axes,
    found: Mapping[str, list[Results]],
    names: Mapping[str, str],
    colour_of: Mapping[str, str],
) -> None:
    """Error rates of one scenario, a curve for each sampler."""
    budgets = sorted({_budget(result) for own in found.values() for result in own})
    axes.set(xscale="log", yscale="log", xlim=(budgets[0] / 1.1, budgets[-1] * 1.1))
    scale(axes.xaxis, budgets, number)
    for label, own in found.items():
        _curve(axes, own, names[label], colour_of[own[0].plan.sampler.name])
    axes.set_ylim(top=1.0)
    ticks = ticks_between(*axes.get_ylim(), logarithmic=True)
    scale(axes.yaxis, ticks, lambda y: f"{100 * y:g}%")


def _budget(result: Results) -> int:
    return result.plan.problem.budget or 1


def _curve(axes: Axes, results: Sequence[Results], name: str, colour: str) -> None:
    """Error rates with their intervals, by the budget."""
    curve = sorted(results, key=_budget)
    x = [_budget(result) for result in curve]
    right = [result.summary()["correct"] for result in curve]
    low, high, rate = (
        np.array([1 - one[end] for one in right]) for end in ("high", "low", "fraction")
    )
    seen = rate > 0
    shown = np.where(seen, rate, high)  # no more than that, with so many runs
    floor = np.where(seen, np.maximum(low, shown / 30), shown / 3)
    ends = shown - floor, high - shown
    axes.errorbar(x, shown, ends, color=colour, linewidth=1.2, elinewidth=1, label=name)
    for own, face in ((seen, colour), (~seen, "white")):
        axes.plot(np.array(x)[own], shown[own], "o", color=colour, mfc=face, markersize=4)
