"""All simulations in one picture: how many times the lower bound each sampler takes."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from .drawing import INK, PALE, SAMPLERS, plain
from .simulations import Groups
from .words import number

TICKS = (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)


def overview_figure(parts: Mapping[str, Groups]) -> Figure:
    """Draw one row for each part and scenario, a mark for each sampler."""
    rows = {
        f"{name}, {scenario}": group
        for name, groups in parts.items()
        for scenario, group in groups.items()
    }
    used = [name for name in SAMPLERS if any(name in group for group in rows.values())]
    figure = Figure((10, 1.5 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    greatest = 1.0
    names = []
    for i, (name, group) in enumerate(rows.items()):
        axes.axhspan(i - 0.5, i + 0.5, color=PALE if i % 2 else "white", linewidth=0, zorder=0)
        names.append(f"{name} ({number(next(iter(group.values())).lower_bound)})")
        for sampler, result in group.items():
            colour, marker = SAMPLERS[sampler]
            # A little above each other, so that none hides another.
            above = 0.68 * (used.index(sampler) / max(len(used) - 1, 1) - 0.5)
            times = float(result.stopping_times.mean()) / result.lower_bound
            greatest = max(greatest, times)
            axes.plot(
                times, i + above, marker, color=colour, markeredgecolor="white",
                markersize=9 if marker == "*" else 6.5,
            )  # fmt: skip
    for sampler in used:
        colour, marker = SAMPLERS[sampler]
        axes.plot([], [], marker, color=colour, label=sampler)
    axes.axvline(1, color=INK, linewidth=1.3)
    axes.set_xlim(0.95, greatest * 1.15)
    axes.set_xticks([t for t in TICKS if t <= greatest * 1.15])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("mean stopping time as a multiple of the lower bound (logarithmic)")
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    plain(axes, "Mean stopping times; in brackets the lower bounds")
    figure.legend(loc="outside lower center", ncols=len(used), frameon=False)
    return figure
