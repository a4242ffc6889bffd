"""One picture of many instances: how often each sampler is how near to the lower bound."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simplexplore.errors import SettingError
from simplexplore.problem.spelling import count

from .numbers import number, percent
from .page import DIM, GUTTER, HEADING, INK, LINE, RED, SMALL, TEXT, TRACK, Page, save_picture
from .results_group import sampler_colours
from .results_text import standing
from .table import legend, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simplexplore.simulation.compare import Comparison

Array = npt.NDArray[np.float64]

# Inches.
MARGIN, HEADER = 0.3, 0.8
PROFILE_WIDTH, PROFILE_HEIGHT, DOTS_WIDTH, ROW, AXIS = 4.3, 3.0, 3.3, 0.42, 0.5
VALUES = (("median", 0.75), ("worst", 0.75), ("correct", 0.75))

LONGEST_LABEL = 20


def plot_comparison(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw a comparison: performance profile, and ratios to the lower bound by sampler.

    Parameters
    ----------
    comparison : Comparison
        From `compare`.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF, SVG or PGF. It is replaced if it exists.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: comparison_figure(comparison), path)


def comparison_figure(comparison: Comparison) -> Figure:
    """Draw a comparison as a matplotlib figure, for use in a notebook or a report.

    Its size does not depend on the number of instances. Axes carry labels: ``profile``, ``ratios``.
    """
    ratios = comparison.ratios()
    if np.isnan(ratios).all():
        raise SettingError("there is nothing to draw: no run has finished.")
    labels = short_names(comparison.samplers, LONGEST_LABEL)
    page = Page()
    names_width = max(page.width_of(label, TEXT, "bold") for label in labels.values()) + 0.15
    rows = len(comparison.samplers)
    left = MARGIN + 0.45
    second = left + PROFILE_WIDTH + GUTTER + names_width
    body_width = second - MARGIN + DOTS_WIDTH + sum(width for _, width in VALUES)
    height = max(PROFILE_HEIGHT, ROW * rows)
    remarks = [
        line
        for remark in _remarks(comparison, labels)
        for line in page.wrap(remark, SMALL, body_width)
    ]
    top = MARGIN + HEADER + HEADING
    bottom = top + height + AXIS
    page.resize(body_width + 2 * MARGIN, bottom + LINE * len(remarks) + MARGIN)

    title = f"Samples needed on {count(len(comparison.names), 'instance')}"
    page.write(MARGIN, MARGIN, title, size=14, weight="bold")
    page.write(MARGIN, MARGIN + 0.33, _circumstances(comparison), size=10.5)
    _draw_profile(page, comparison, ratios, (left, top), height)
    _draw_ratios(page, comparison, ratios, (second, top), names_width)
    for i, line in enumerate(remarks):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _draw_profile(
    page: Page, comparison: Comparison, ratios: Array, corner: tuple[float, float], height: float
) -> None:
    """The share of instances on which each sampler comes that close to the bound."""
    (left, top), (low, high) = corner, _range(ratios)
    colours = sampler_colours(comparison.samplers)
    page.heading(
        MARGIN,
        top - HEADING,
        "Performance profile",
        "share of instances on which the mean is at most so many times the bound",
        PROFILE_WIDTH + 0.45,
    )
    profile = page.axes(left, top, PROFILE_WIDTH, height, "profile")
    _axis(profile, low, high)
    profile.set_ylim(0, 1.02)
    for share in (0, 0.25, 0.5, 0.75, 1):
        profile.plot([low, high], [share, share], color=TRACK, linewidth=0.7, zorder=0)
        page.write(
            left - 0.08,
            top + height * (1 - share / 1.02),
            f"{100 * share:g}%",
            size=SMALL,
            color=DIM,
            ha="right",
            va="center_baseline",
        )
    for s, sampler in enumerate(comparison.samplers):
        reached = np.sort(ratios[:, s][np.isfinite(ratios[:, s])])
        x = np.concatenate([[low], reached, [high]])
        y = np.concatenate([[0], np.arange(1, len(reached) + 1), [len(reached)]]) / len(ratios)
        profile.plot(
            x, y, drawstyle="steps-post", color=colours[sampler], linewidth=2, label=sampler
        )


def _draw_ratios(
    page: Page,
    comparison: Comparison,
    ratios: Array,
    corner: tuple[float, float],
    names_width: float,
) -> None:
    """A row for each sampler: its ratios, and what they come to."""
    (second, top), (low, high) = corner, _range(ratios)
    labels = short_names(comparison.samplers, LONGEST_LABEL)
    colours, rows = sampler_colours(comparison.samplers), len(comparison.samplers)
    page.heading(
        second - names_width,
        top - HEADING,
        "Multiples of the lower bound",
        "dot: mean on one instance; bar: median",
        names_width + DOTS_WIDTH,
    )
    dots = page.axes(second, top, DOTS_WIDTH, ROW * rows, "ratios")
    _axis(dots, low, high)
    dots.set_ylim(rows, 0)
    end = second + DOTS_WIDTH
    for words, width in VALUES:
        end += width
        page.write(end, top - 0.18, words, size=SMALL, color=DIM, ha="right")
    for s, (sampler, row) in enumerate(zip(comparison.samplers, comparison.summary(), strict=True)):
        found = ratios[:, s][np.isfinite(ratios[:, s])]
        # Beside each other, in the order of the instances, so that none hides another.
        beside = s + 0.5 + 0.5 * (np.arange(len(found)) / max(len(found) - 1, 1) - 0.5)
        dots.plot(found, beside, "o", markersize=3, color=colours[sampler], alpha=0.7)
        if (middle := row["x bound: median"]) is not None:
            dots.plot([middle, middle], [s + 0.15, s + 0.85], color=INK, linewidth=2)
        _values(page, labels[sampler], row, second, top + ROW * (s + 0.55))


def _values(page: Page, label: str, row: Any, second: float, place: float) -> None:
    """A sampler's name, and the numbers at the end of its row."""
    capped = row["capped on"]
    page.write(
        second - 0.15,
        place - (LINE / 2 if capped else 0),
        label,
        weight="bold",
        ha="right",
        va="center_baseline",
    )
    if capped:
        page.write(
            second - 0.15,
            place + LINE / 2,
            f"{capped} capped",
            size=SMALL,
            color=RED,
            ha="right",
            va="center_baseline",
        )
    end = second + DOTS_WIDTH
    texts = [_times(row["x bound: median"]), _times(row["worst"]), percent(row["correct"])]
    for (_, width), text in zip(VALUES, texts, strict=True):
        end += width
        page.write(end, place, text, ha="right", va="center_baseline")


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g}" if ratio < 1000 else number(ratio)


def _range(ratios: Array) -> tuple[float, float]:
    found = ratios[np.isfinite(ratios)]
    least, most = (float(found.min()), float(found.max())) if len(found) else (1.0, 10.0)
    low, high = min(0.95 * least, 0.95), max(1.1 * most, 2.0)
    return low, high


def _axis(axes: Axes, low: float, high: float) -> None:
    """A logarithmic scale of ratios, with the bound marked."""
    axes.set_axis_on()
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(TRACK)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.tick_params(which="minor", bottom=False)
    axes.tick_params(left=False, labelleft=False, colors=DIM, labelsize=SMALL)
    subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high < 12 * low else (1.0, 2.0, 5.0)
    ticks = LogLocator(subs=subs if high < 200 * low else (1.0,)).tick_values(low, high)
    axes.set_xticks([t for t in ticks if low <= t <= high])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color=INK, linewidth=1.3)
    axes.set_xlabel("mean stopping time / lower bound", size=SMALL, color=DIM)


def _circumstances(comparison: Comparison) -> str:
    every = [result for group in comparison.results for result in group]
    plans = [result.plan for result in every]

    def alike(values: list[str], many: str) -> str:
        return values[0] if len(set(values)) == 1 else many

    runs = sorted({result.runs for result in every})
    return ", ".join(
        [
            alike([plan.scenario for plan in plans], "several scenarios"),
            alike([f"delta {plan.delta:g}" for plan in plans], "several deltas"),
            alike([f"threshold {plan.threshold.name}" for plan in plans], "several thresholds"),
            f"{number(runs[0])}{f' to {number(runs[-1])}' if len(runs) > 1 else ''} runs each",
        ]
    )


def _remarks(comparison: Comparison, labels: dict[str, str]) -> list[str]:
    every = [result for group in comparison.results for result in group]
    remarks = list(dict.fromkeys(standing(result) for result in every))
    if any(result.capped.any() for result in every):
        remarks.append(
            "Capped: on these instances some runs were ended by max_steps before they had an "
            "answer. Their mean is not known, so they count as farther from the bound than all "
            "others: they have no dot, and a curve ends below 100%."
        )
    return [*remarks, *legend(labels)]
