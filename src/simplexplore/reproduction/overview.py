"""All simulations in one picture: how many times the lower bound each sampler takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, NullFormatter

from simplexplore.report.numbers import number
from simplexplore.report.page import DIM, HEADING, INK, PALE, SMALL, TEXT, Page
from simplexplore.report.results_group import COLOURS
from simplexplore.simulation.results import Results

from .meal import frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Shapes tell samplers apart where colours do not.
MARKERS = {"ctns": "o", "cge": "s", "ptns": "X", "uniform": "v", "oracle": "D", "top-two": "*"}

MARGIN, NAMES, BOUNDS, WIDTH, ROW = 0.3, 2.3, 0.9, 6.2, 0.36


def overview_figure(parts: Mapping[str, Sequence[Sequence[Results]]]) -> Figure:
    """Draw one row for each part and scenario, a mark for each sampler."""
    rows = [(name, group) for name, groups in parts.items() for group in groups]
    used = [s for s in MARKERS if any(s == r.plan.sampler.name for _, g in rows for r in g)]
    page = Page()
    left, top = MARGIN + NAMES + BOUNDS, MARGIN + HEADING + 0.3
    page.resize(left + WIDTH + MARGIN, top + ROW * len(rows) + 0.65)
    page.heading(
        MARGIN, MARGIN, "Mean stopping time as a multiple of the lower bound",
        "each mark is the mean of one sampler's runs; logarithmic scale; 1 is the lower bound",
        left + WIDTH,
    )  # fmt: skip
    page.write(left - 0.15, top - 0.22, "lower bound", size=SMALL, color=DIM, ha="right")
    axes = page.axes(left, top, WIDTH, ROW * len(rows), "overview")
    frame(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False, labelleft=False)
    axes.set_xscale("log")
    axes.set_ylim(len(rows), 0)
    greatest = 1.0
    for i, (name, group) in enumerate(rows):
        y = i + 0.5
        axes.axhspan(i, i + 1, color=PALE if i % 2 else "white", linewidth=0, zorder=0)
        row = top + ROW * y
        first = group[0]
        page.write(MARGIN, row, f"{name}, {first.plan.scenario}", va="center_baseline")
        page.write(
            left - 0.15, row, number(first.lower_bound), va="center_baseline", ha="right",
            color=DIM,
        )  # fmt: skip
        for result in group:
            sampler = result.plan.sampler.name
            # A little above each other, so that none hides another.
            above = 0.68 * (used.index(sampler) / max(len(used) - 1, 1) - 0.5)
            times = float(result.stopping_times.mean()) / result.lower_bound
            greatest = max(greatest, times)
            axes.plot(
                times, y + above, MARKERS[sampler], color=COLOURS[sampler], markeredgecolor="white",
                markeredgewidth=0.6, markersize=9 if sampler == "top-two" else 6.5,
            )  # fmt: skip
    axes.set_xlim(0.95, greatest * 1.15)
    axes.axvline(1, color=INK, linewidth=1.3)
    ticks = [t for t in (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100) if t <= greatest * 1.15]
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("mean stopping time / lower bound", size=TEXT)
    key = page.axes(left, top - 0.3, WIDTH, 0.22, "key")
    key.set_xlim(0, WIDTH)
    key.set_ylim(0, 1)
    place = 0.1
    for sampler in used:
        key.plot(place, 0.5, MARKERS[sampler], color=COLOURS[sampler], markersize=7)
        key.text(place + 0.12, 0.5, sampler, size=SMALL, va="center_baseline", color=INK)
        place += 0.12 + page.width_of(sampler, SMALL) + 0.3
    return page.figure
