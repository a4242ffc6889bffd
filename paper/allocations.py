"""The appendix on ptns: printed allocations of the eight-armed instance against exact ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from scipy.optimize import nnls

import simplexplore as sx

from .criteria import PRINTED_ALLOCATION
from .drawing import INK, SAMPLERS, plain, save
from .part import Drawing, Finding, Part, Table
from .verdicts import CORRECTED, REPRODUCED
from .words import number
from .work import Work

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


def projected(problem: sx.Problem, target: Array) -> Array:
    """The feasible allocation nearest to another one.

    A least-distance problem, as non-negative least squares (Lawson and Hanson, chapter 23).

    Examples
    --------
    >>> projected(sx.Problem(2, ["a1 <= 0.25"]), np.array([0.5, 0.5])).round(12).tolist()
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


@dataclass(frozen=True)
class Allocations(Part):
    """The printed allocations of the appendix."""

    name = "allocations"
    title = "Allocations of the eight-armed instance"
    source = "Appendix, further discussion on the sub-optimality of PTnS"

    def compute(self, work: Work) -> dict[str, Any]:
        problem = sx.catalog.instance("eight-arms").problem
        bound = sx.lower_bound(problem)
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

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        findings = []
        for name, title in TITLES.items():
            numbers = found[name]
            exact, printed = np.array(numbers["exact"]), np.array(PRINTED[name])
            agrees = float(np.abs(exact - printed).max()) <= PRINTED_ALLOCATION
            if name == "ptns anytime":
                times = numbers["time"] / found["anytime"]["time"]
                words = f"Exact: {_written(exact)}. It takes {times:.2f} times the optimal T."
            else:
                remarks = [f"sums to {numbers['sum of printed']:.2f}"]
                if name != "best arm":
                    excess = numbers["time of printed"] / numbers["time"] - 1
                    remarks.insert(0, f"needs {100 * excess:.1f}% more samples")
                if name == "anytime":
                    remarks.append(f"uses {numbers['use of printed']:.3f} of a budget of 0.5")
                words = (
                    f"Exact: {_written(exact)}. The printed one {', '.join(remarks)}; shares of "
                    "0.02 or 0.03 where the optimum has almost nothing look like the end of a "
                    "numerical search."
                )
            verdict = REPRODUCED if agrees else CORRECTED
            findings.append(Finding(f"{title}: {_written(printed, 2)}.", verdict, words))
        return findings

    def tables(self, found: dict[str, Any]) -> list[Table]:
        arms = sx.catalog.instance("eight-arms").problem.arms
        rows: list[list[object]] = []
        for name in TITLES:
            of = found[name]
            rows.append([name, "exact", of["time"], *of["exact"]])
            rows.append([name, "printed", of["time of printed"], *PRINTED[name]])
        return [Table("allocations", ("allocation", "kind", "T", *arms), rows)]

    def figures(self, found: dict[str, Any]) -> list[Drawing]:
        words = "Exact and printed allocations of eight arms"
        return [Drawing("allocations", words, lambda path: save(self.figure(found), path))]

    def figure(self, found: dict[str, Any]) -> Figure:
        """A bar for each exact share, a diamond for the printed one."""
        arms = sx.catalog.instance("eight-arms").problem.arms
        figure = Figure((9, 5.8), layout="constrained")
        for axes, (name, title) in zip(figure.subplots(2, 2).flat, TITLES.items(), strict=True):
            plain(axes, title)
            colour, _ = SAMPLERS["ptns" if "ptns" in title else "oracle"]
            places = np.arange(len(arms))
            axes.barh(places, found[name]["exact"], height=0.6, color=colour)
            axes.plot(PRINTED[name], places, "D", color="white", markeredgecolor=INK)
            axes.set_yticks(places, arms)
            axes.set_xlim(0, 0.65)
            axes.invert_yaxis()
            exact, printed = (number(found[name][key]) for key in ("time", "time of printed"))
            axes.set_xlabel(f"bar: exact, T = {exact}; diamond: printed, T = {printed}")
        return figure


def _written(values: Array, digits: int = 3) -> str:
    return "[" + " ".join(f"{x:.{digits}f}" for x in values) + "]"
