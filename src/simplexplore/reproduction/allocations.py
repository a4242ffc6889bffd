"""The appendix on ptns: printed allocations of the eight-armed instance against exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from simplexplore.bound.bound import lower_bound
from simplexplore.problem.catalog import instance
from simplexplore.problem.problem import Problem
from simplexplore.report.numbers import number
from simplexplore.report.page import DIM, HEADING, INK, SMALL, TRACK, Page
from simplexplore.report.results_group import COLOURS

from .criteria import PRINTED_ALLOCATION
from .part import CORRECTED, REPRODUCED, Drawing, Evidence, Finding, Part, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

# What the appendix prints, in its order.
PRINTED = {
    "end-of-time": [0.09, 0.02, 0.43, 0.36, 0.03, 0.02, 0.02, 0.02],
    "best arm": [0.43, 0.42, 0.05, 0.03, 0.02, 0.02, 0.02, 0.02],
    "anytime": [0.02, 0.01, 0.32, 0.54, 0.03, 0.03, 0.03, 0.03],
    "ptns anytime": [0.03, 0.02, 0.12, 0.18, 0.16, 0.16, 0.16, 0.16],
}
TITLES = {
    "end-of-time": "Optimal, end-of-time",
    "best arm": "Best-arm optimal (ptns, end-of-time)",
    "anytime": "Optimal, anytime",
    "ptns anytime": "Its projection (ptns, anytime)",
}

MARGIN, NAMES, WIDTH, NUMBERS, ROW = 0.3, 0.45, 2.2, 1.1, 0.25


def projected(problem: Problem, target: Array) -> Array:
    """The feasible allocation nearest to another one.

    A least-distance problem, as non-negative least squares (Lawson and Hanson, chapter 23).

    Examples
    --------
    >>> projected(Problem(2, ["a1 <= 0.25"]), np.array([0.5, 0.5])).round(12).tolist()
    [0.25, 0.75]
    """
    size = problem.size
    rows, limits = [np.eye(size), np.ones((1, size)), -np.ones((1, size))], [-target]
    short = 1 - target.sum()
    limits += [np.array([short]), np.array([-short])]
    use = problem.matrix @ target
    for sign, bounds in ((-1.0, problem.upper), (1.0, problem.lower)):
        kept = np.isfinite(bounds)
        rows.append(sign * problem.matrix[kept])
        limits.append(sign * (bounds - use)[kept])
    system = np.vstack([np.vstack(rows).T, np.concatenate(limits)])
    goal = np.append(np.zeros(size), 1.0)
    multipliers, _ = nnls(system, goal)
    residual = system @ multipliers - goal
    return np.asarray(target - residual[:-1] / residual[-1])


def _compute(_: int) -> dict[str, Any]:
    problem = instance("eight-arms").problem
    bound = lower_bound(problem)
    best_arm = bound.unconstrained.allocation
    exact = {
        "end-of-time": bound.scenarios["end-of-time"].allocation,
        "best arm": best_arm,
        "anytime": bound.scenarios["anytime"].allocation,
        "ptns anytime": projected(problem, best_arm),
    }
    found: dict[str, Any] = {"uniform": bound.time_of(np.ones(problem.size))}
    for name, w in exact.items():
        printed = np.array(PRINTED[name])
        found[name] = {
            "exact": w.tolist(),
            "time": bound.time_of(w),
            "time of printed": bound.time_of(printed),
            "sum of printed": float(printed.sum()),
            "use of printed": float((problem.matrix @ printed)[0] / printed.sum()),
        }
    return found


def _draw(evidence: Evidence) -> Figure:
    arms = instance("eight-arms").problem.arms
    page = Page()
    panel = NAMES + WIDTH + NUMBERS
    height = HEADING + 0.2 + ROW * len(arms)
    page.resize(2 * (panel + MARGIN) + MARGIN, 2 * (height + MARGIN) + MARGIN)
    for k, (name, title) in enumerate(TITLES.items()):
        left = MARGIN + (k % 2) * (panel + MARGIN)
        top = MARGIN + (k // 2) * (height + MARGIN)
        found = evidence.numbers[name]
        page.heading(
            left, top, title,
            f"bar: exact, T = {number(found['time'])}; diamond: printed, "
            f"T = {number(found['time of printed'])}", panel,
        )  # fmt: skip
        body = top + HEADING + 0.2
        for text, place in (("exact", panel - 0.55), ("printed", panel)):
            page.write(left + place, body - 0.2, text, size=SMALL, color=DIM, ha="right")
        axes = page.axes(left + NAMES, body, WIDTH, ROW * len(arms), name)
        axes.set_xlim(0, 0.65)
        axes.set_ylim(len(arms), 0)
        axes.plot([0, 0], [0, len(arms)], color=TRACK, linewidth=1, clip_on=False)
        places = np.arange(len(arms)) + 0.5
        colour = COLOURS["ptns" if "ptns" in title else "oracle"]
        axes.barh(places, found["exact"], height=0.6, color=colour)
        axes.plot(PRINTED[name], places, "D", markersize=5, color="white", markeredgecolor=INK)
        for i, arm in enumerate(arms):
            row = body + ROW * (i + 0.5)
            style: dict[str, Any] = {"va": "center_baseline", "ha": "right"}
            page.write(left + NAMES - 0.12, row, arm, **style)
            page.write(left + panel - 0.55, row, f"{found['exact'][i]:.4f}", size=SMALL, **style)
            page.write(left + panel, row, f"{PRINTED[name][i]:.2f}", size=SMALL, **style)
    return page.figure


def _figures(evidence: Evidence) -> list[Drawing]:
    words = "Exact and printed allocations of eight arms"
    return [Drawing("allocations", words, lambda: _draw(evidence))]


def _tables(evidence: Evidence) -> list[Table]:
    arms = instance("eight-arms").problem.arms
    rows: list[list[object]] = []
    shown = []
    for name, title in TITLES.items():
        found = evidence.numbers[name]
        rows.append([name, "exact", found["time"], *found["exact"]])
        rows.append([name, "printed", found["time of printed"], *PRINTED[name]])
        for kind, time, values, form in (
            ("exact", found["time"], found["exact"], ".4f"),
            ("printed", found["time of printed"], PRINTED[name], ".2f"),
        ):
            shown.append([title, kind, number(time), *(format(x, form) for x in values)])
    columns = ("allocation", "kind", "characteristic_time", *arms)
    return [Table("allocations", columns, rows, ("allocation", "", "T", *arms), shown)]


def _findings(evidence: Evidence) -> list[Finding]:
    found = []
    for name, title in TITLES.items():
        numbers = evidence.numbers[name]
        exact, printed = np.array(numbers["exact"]), np.array(PRINTED[name])
        agrees = float(np.abs(exact - printed).max()) <= PRINTED_ALLOCATION
        if name == "ptns anytime":
            times = numbers["time"] / evidence.numbers["anytime"]["time"]
            words = f"Exact: {_written(exact)}. It takes {times:.2f} times the optimal T."
        else:
            remarks = [f"sums to {numbers['sum of printed']:.2f}"]
            if name != "best arm":
                excess = numbers["time of printed"] / numbers["time"] - 1
                remarks.insert(0, f"needs {100 * excess:.1f}% more samples")
            if name == "anytime":
                remarks.append(f"uses {numbers['use of printed']:.3f} of a budget of 0.5")
            words = (
                f"Exact: {_written(exact)}. The printed one {', '.join(remarks)}; shares of 0.02 "
                "or 0.03 where the optimum has almost nothing look like the end of a numerical "
                "search."
            )
        found.append(
            Finding(f"{title}: {_written(printed, 2)}.", REPRODUCED if agrees else CORRECTED, words)
        )
    return found


def _written(values: Array, digits: int = 3) -> str:
    return "[" + " ".join(f"{x:.{digits}f}" for x in values) + "]"


def allocations() -> Part:
    """The printed allocations of the appendix."""
    return Part(
        name="allocations",
        title="Allocations of the eight-armed instance",
        source="Appendix, further discussion on the sub-optimality of PTnS",
        compute=_compute,
        settings={"problem": instance("eight-arms").problem.to_text(), "printed": PRINTED},
        figures=_figures,
        tables=_tables,
        findings=_findings,
    )
