"""Figures 1 and 2: three dishes, without constraints, for person A and for person B."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import simplexplore as sx

from .drawing import BLUE, DIM, INK, RED, plain, save
from .part import SCENARIOS, Drawing, Finding, Part, Table
from .verdicts import holds
from .words import number
from .work import Work

# Name, what the pictures call it, and how its line is drawn.
PEOPLE: dict[str, tuple[str, str, Any]] = {
    "meal": ("no constraints", INK, "-"),
    "meal-a": ("person A", RED, (0, (6, 2))),
    "meal-b": ("person B", BLUE, (0, (1, 1.2))),
}

# Where on its line a name stands clear of the others.
LABELLED = {"meal": 0.26, "meal-a": 0.26, "meal-b": 0.94}

NOTE = (
    "The paper states neither the means nor the constraints of this example. Ours: taste has "
    "means 1 (pizza), 0.3 (salmon) and 0 (lentils) and standard deviation 1. Person A wants at "
    "most 235 kcal per 100 g (pizza 270, salmon 200, lentils 130), person B at least 4 g of fibre "
    "(pizza 3, salmon 0, lentils 8)."
)

GREATEST = 2e5


def bounds_at(name: str, second: float | None = None) -> dict[str, Any]:
    """Bounds of an instance, perhaps with another mean of the second dish."""
    found = sx.catalog.instance(name)
    means = found.means.copy()
    if second is not None:
        means[1] = second
    bound = sx.lower_bound(found.problem, means)
    return {
        "policy": bound.policy.tolist(),
        "characteristic_time": {n: s.characteristic_time for n, s in bound.scenarios.items()},
        "lower_bound": {n: s.lower_bound for n, s in bound.scenarios.items()},
    }


@dataclass(frozen=True)
class People(Part):
    """Figure 1, and the cones of Figure 2A."""

    name = "fig1"
    title = "Feasible mixes and normal cones of a meal plan"
    source = "Figures 1 and 2A"
    note = NOTE

    def compute(self, work: Work) -> dict[str, Any]:
        return {name: bounds_at(name) for name in PEOPLE}

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        bounds = {name: found[name]["lower_bound"]["end-of-time"] for name in PEOPLE}
        ordered = bounds["meal-b"] < bounds["meal"] < bounds["meal-a"]
        return [
            Finding(
                "Constraints can make the problem harder (person A) or easier (person B) than the "
                "unconstrained one, and the best meal plan may be a mix.",
                holds(ordered),
                f"With constraints of ours, since the paper's are not stated: at least "
                f"{number(bounds['meal-a'])} samples for A, {number(bounds['meal'])} without "
                f"constraints, {number(bounds['meal-b'])} for B (δ = 0.1, end-of-time); both A and "
                "B must mix pizza and lentils.",
            )
        ]

    def tables(self, found: dict[str, Any]) -> list[Table]:
        arms = sx.catalog.instance("meal").problem.arms
        rows: list[list[object]] = []
        for name in PEOPLE:
            times = [found[name][k][s] for k in ("characteristic_time", "lower_bound")
                     for s in SCENARIOS]  # fmt: skip
            rows.append([name, *found[name]["policy"], *times])
        columns = ("instance", *arms, *(f"{k} {s}" for k in ("T", "bound") for s in SCENARIOS))
        return [Table("fig1", columns, rows)]

    def figures(self, found: dict[str, Any]) -> list[Drawing]:
        def write(name: str, path: Path) -> None:
            sx.plot_bound(sx.lower_bound(sx.catalog.instance(name).problem), path)

        return [
            Drawing(
                f"fig1-{name}", f"Feasible mixes and normal cone, {title}", partial(write, name)
            )
            for name, (title, _, _) in PEOPLE.items()
        ]


@dataclass(frozen=True)
class Curve(Part):
    """Figure 2B: where mu_2 goes, past the means at which person A's best mix changes."""

    second_means: Sequence[float] = tuple(round(0.02 * i - 0.5, 2) for i in range(75))

    name = "fig2"
    title = "Lower bound as the mean of one dish moves"
    source = "Figure 2B"
    note = NOTE

    def compute(self, work: Work) -> dict[str, Any]:
        """Lower bounds as mu_2 moves; null where policies tie."""
        curves = {}
        for name in PEOPLE:
            found = [bounds_at(name, second)["lower_bound"] for second in self.second_means]
            curves[name] = {
                s: [x[s] if math.isfinite(x[s]) else None for x in found] for s in SCENARIOS
            }
        return {"mu2": list(self.second_means), "curves": curves}

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        x = found["mu2"]
        curves = {name: found["curves"][name]["end-of-time"] for name in PEOPLE}

        def rises(name: str, until: float) -> bool:
            values = [y for at, y in zip(x, curves[name], strict=True) if at < until]
            return all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))

        # Where mu leaves each normal cone: 1 - mu2, 1/2 - mu2 and 1 - 5/8 mu2 are zero there.
        rising = rises("meal", 1.0) and rises("meal-a", 0.5) and rises("meal-b", 1.6)
        ties = [at for at, y in zip(x, curves["meal-a"], strict=True) if y is None]
        free = curves["meal"]
        ends = f"{number(free[0])} at μ₂ = {x[0]:g} to {number(free[-1])} at {x[-1]:g}"
        return [
            Finding(
                "The lower bound grows as μ moves closer to a boundary of its normal cone.",
                holds(rising and ties == [0.5]),
                f"Without constraints it grows from {ends}; person A's is infinite at μ₂ = 0.5, "
                "where two mixes tie, long before the other two.",
            )
        ]

    def tables(self, found: dict[str, Any]) -> list[Table]:
        rows: list[list[object]] = [
            [name, x, curves["end-of-time"][i], curves["anytime"][i]]
            for name, curves in found["curves"].items()
            for i, x in enumerate(found["mu2"])
        ]
        return [Table("fig2", ("instance", "mu2", "bound end-of-time", "bound anytime"), rows, ())]

    def figures(self, found: dict[str, Any]) -> list[Drawing]:
        words = "Lower bounds of three problems as the second mean grows"
        return [Drawing("fig2", words, lambda path: save(self.figure(found), path))]

    def figure(self, found: dict[str, Any]) -> Figure:
        """Lower bounds against the mean of salmon."""
        figure = Figure((8.2, 4.6), layout="constrained")
        axes = figure.subplots()
        plain(axes, "Lower bound as μ₂ approaches the boundaries of the normal cones")
        x = np.array(found["mu2"])
        axes.set_yscale("log")
        axes.set_xlim(x[0], x[-1] + 0.04)
        axes.set_ylim(10, GREATEST)
        axes.set_xlabel("μ₂, mean taste of salmon (μ₁ = 1, μ₃ = 0)")
        axes.set_ylabel("samples needed, at least (end-of-time, δ = 0.1)")
        for name, (title, colour, style) in PEOPLE.items():
            y = np.array(found["curves"][name]["end-of-time"], dtype=float)
            axes.plot(x, y, color=colour, linestyle=style, linewidth=2)
            at = found["mu2"].index(LABELLED[name])
            axes.annotate(
                title, (x[at], y[at]), xytext=(-7, 6), textcoords="offset points", ha="right",
                color=colour, weight="bold",
            )  # fmt: skip
        for place, words in ((0.5, "person A: tie"), (1.0, "no constraints, A: tie")):
            axes.axvline(place, color=DIM, linestyle=":", linewidth=1)
            axes.text(place - 0.012, GREATEST / 1.2, words, ha="right", va="top", size="small")
        axes.axvline(0.3, color="#d9d9d9", linewidth=1, zorder=0)
        axes.text(0.29, 11.5, "as in Fig. 1", ha="right", va="bottom", size="small", color=DIM)
        return figure
