"""Figures 1 and 2: three dishes, without constraints, for person A and for person B."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from simplexplore.bound.bound import lower_bound
from simplexplore.problem.catalog import instance
from simplexplore.problem.problem import SCENARIOS
from simplexplore.problem.spelling import policy_in_words
from simplexplore.report import ternary as triangle
from simplexplore.report.numbers import number
from simplexplore.report.page import BLUE, DIM, HEADING, INK, RED, SMALL, TEXT, TRACK, Page

from .part import NOT_REPRODUCED, REPRODUCED, Drawing, Evidence, Finding, Part, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Name, what the pictures call it, and how its line is drawn.
PEOPLE = {
    "meal": ("no constraints", INK, "-"),
    "meal-a": ("person A", RED, (0, (6, 2))),
    "meal-b": ("person B", BLUE, (0, (1, 1.2))),
}

# Where mu_2 goes, past the means at which person A's best mix changes.
SECOND_MEANS = [round(0.02 * i - 0.5, 2) for i in range(75)]

NOTE = (
    "The paper states neither the means nor the constraints of this example. Ours: taste has "
    "means 1 (pizza), 0.3 (salmon) and 0 (lentils) and standard deviation 1. Person A wants at "
    "most 235 kcal per 100 g (pizza 270, salmon 200, lentils 130), person B at least 4 g of fibre "
    "(pizza 3, salmon 0, lentils 8)."
)

MARGIN = 0.3
CURVE_WIDTH, CURVE_HEIGHT = 7.2, 3.6
GREATEST = 2e5

# Where on its line a name stands clear of the others.
LABELLED = {"meal": 0.26, "meal-a": 0.26, "meal-b": 0.94}


def _at(name: str, second: float | None = None) -> dict[str, Any]:
    """Bounds of an instance, perhaps with another mean of the second dish."""
    found = instance(name)
    means = found.means.copy()
    if second is not None:
        means[1] = second
    bound = lower_bound(found.problem, means)
    return {
        "policy": bound.policy.tolist(),
        "characteristic_time": {n: s.characteristic_time for n, s in bound.scenarios.items()},
        "lower_bound": {n: s.lower_bound for n, s in bound.scenarios.items()},
    }


# ---------------------------------------------------------------------- Figure 1


def _draw_people() -> Figure:
    page = Page()
    width = len(PEOPLE) * (triangle.WIDTH + MARGIN) + MARGIN
    page.resize(width, triangle.HEIGHT + 2 * MARGIN + 0.45)
    for i, (name, (title, _, _)) in enumerate(PEOPLE.items()):
        bound = lower_bound(instance(name).problem)
        left = MARGIN + i * (triangle.WIDTH + MARGIN)
        page.write(left, MARGIN, title[0].upper() + title[1:], size=13, weight="bold")
        least = number(bound.samples)
        page.write(left, MARGIN + 0.23, f"at least {least} samples (δ = {bound.delta:g})")
        triangle.draw_triangle(page, bound, left, MARGIN + 0.6)
    return page.figure


def _people_table(evidence: Evidence) -> list[Table]:
    arms, both = instance("meal").problem.arms, SCENARIOS
    rows: list[list[object]] = []
    shown = []
    for name, (title, _, _) in PEOPLE.items():
        found = evidence.numbers[name]
        time, least = found["characteristic_time"], found["lower_bound"]
        rows.append([name, *found["policy"], *(time[s] for s in both), *(least[s] for s in both)])
        best = policy_in_words(np.array(found["policy"]), arms)
        shown.append(
            [title, best, *(number(time[s]) for s in both), *(number(least[s]) for s in both)]
        )
    return [
        Table(
            "fig1",
            ("instance", *arms, *(f"{what} {s}" for what in ("time", "bound") for s in both)),
            rows,
            ("", "best mix", *(f"{what}, {s}" for what in ("T", "samples") for s in both)),
            shown,
        )
    ]


def _judge_people(evidence: Evidence) -> list[Finding]:
    bounds = {name: evidence.numbers[name]["lower_bound"]["end-of-time"] for name in PEOPLE}
    ordered = bounds["meal-b"] < bounds["meal"] < bounds["meal-a"]
    return [
        Finding(
            "Constraints can make the problem harder (person A) or easier (person B) than the "
            "unconstrained one, and the best meal plan may be a mix.",
            REPRODUCED if ordered else NOT_REPRODUCED,
            f"With constraints of ours, since the paper's are not stated: at least "
            f"{number(bounds['meal-a'])} samples for A, {number(bounds['meal'])} without "
            f"constraints, {number(bounds['meal-b'])} for B (δ = 0.1, end-of-time); both A and B "
            "must mix pizza and lentils.",
        )
    ]


# ---------------------------------------------------------------------- Figure 2


def _compute_curve(_: int) -> dict[str, Any]:
    """Lower bounds as mu_2 moves; null where policies tie, which no number of samples settles."""

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    curves = {}
    for name in PEOPLE:
        found = [_at(name, second)["lower_bound"] for second in SECOND_MEANS]
        curves[name] = {s: [finite(x[s]) for x in found] for s in SCENARIOS}
    return {"mu2": SECOND_MEANS, "curves": curves}


def _ties(evidence: Evidence, name: str) -> list[float]:
    values = evidence.numbers["curves"][name]["end-of-time"]
    return [x for x, y in zip(evidence.numbers["mu2"], values, strict=True) if y is None]


def _draw_curve(evidence: Evidence) -> Figure:
    page = Page()
    left, top = MARGIN + 0.7, MARGIN + HEADING
    page.resize(left + CURVE_WIDTH + MARGIN, top + CURVE_HEIGHT + 0.75)
    page.heading(
        MARGIN, MARGIN,
        "Lower bound as the mean of salmon, μ₂, approaches the boundaries of the normal cones",
        "end-of-time, δ = 0.1, standard deviation 1; dotted upright: μ is on a boundary, where two "
        "mixes tie", CURVE_WIDTH + 0.7,
    )  # fmt: skip
    axes = page.axes(left, top, CURVE_WIDTH, CURVE_HEIGHT, "curve")
    frame(axes)
    axes.set_yscale("log")
    x = np.array(evidence.numbers["mu2"])
    axes.set_xlim(x[0], x[-1] + 0.04)
    axes.set_ylim(10, GREATEST)
    axes.set_xlabel("μ₂, mean taste of salmon (μ₁ = 1, μ₃ = 0)", size=TEXT)
    axes.set_ylabel("samples needed, at least (logarithmic)", size=TEXT)
    for name, (title, colour, style) in PEOPLE.items():
        curve = evidence.numbers["curves"][name]["end-of-time"]
        y = np.array([math.nan if value is None else value for value in curve])
        axes.plot(x, y, color=colour, linestyle=style, linewidth=2)
        at = SECOND_MEANS.index(LABELLED[name])
        axes.annotate(
            title, (x[at], y[at]), xytext=(-7, 6), textcoords="offset points", ha="right",
            size=TEXT, color=colour, weight="bold",
        )  # fmt: skip
    for place, words in ((0.5, "person A: tie"), (1.0, "no constraints, A: tie")):
        axes.axvline(place, color=DIM, linestyle=":", linewidth=1)
        axes.text(place - 0.012, GREATEST / 1.2, words, ha="right", va="top", size=SMALL, color=DIM)
    axes.axvline(0.3, color=TRACK, linewidth=1, zorder=0)
    axes.text(0.29, 11.5, "as in Fig. 1", ha="right", va="bottom", size=SMALL, color=DIM)
    return page.figure


def frame(axes: Axes) -> None:
    """Show axes that a page made, with thin lines and small numbers."""
    axes.set_axis_on()
    axes.tick_params(labelsize=SMALL, color=DIM, labelcolor=INK)
    for name, spine in axes.spines.items():
        spine.set_color(DIM)
        spine.set_visible(name in ("left", "bottom"))


def _curve_table(evidence: Evidence) -> list[Table]:
    rows: list[list[object]] = [
        [name, x, curves["end-of-time"][i], curves["anytime"][i]]
        for name, curves in evidence.numbers["curves"].items()
        for i, x in enumerate(evidence.numbers["mu2"])
    ]
    return [Table("fig2", ("instance", "mu2", "bound end-of-time", "bound anytime"), rows)]


def _judge_curve(evidence: Evidence) -> list[Finding]:
    x = evidence.numbers["mu2"]

    def rises(name: str, until: float) -> bool:
        curve = evidence.numbers["curves"][name]["end-of-time"]
        values = [y for at, y in zip(x, curve, strict=True) if at < until]
        return all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))

    # Where mu leaves each normal cone: 1 - mu2, 1/2 - mu2 and 1 - 5/8 mu2 are zero there.
    rising = rises("meal", 1.0) and rises("meal-a", 0.5) and rises("meal-b", 1.6)
    free = evidence.numbers["curves"]["meal"]["end-of-time"]
    ends = f"{number(free[0])} at μ₂ = {x[0]:g} to {number(free[-1])} at {x[-1]:g}"
    return [
        Finding(
            "The lower bound grows as μ moves closer to a boundary of its normal cone.",
            REPRODUCED if rising and _ties(evidence, "meal-a") == [0.5] else NOT_REPRODUCED,
            f"Without constraints it grows from {ends}; person A's is infinite at μ₂ = 0.5, where "
            "two mixes tie, long before the other two.",
        )
    ]


def people() -> Part:
    """Figure 1, and the cones of Figure 2A."""

    def figures(_: Evidence) -> list[Drawing]:
        return [Drawing("fig1", "Feasible mixes and normal cones of three problems", _draw_people)]

    return Part(
        name="fig1",
        title="Feasible mixes and normal cones of a meal plan",
        source="Figures 1 and 2A",
        note=NOTE,
        compute=lambda _: {name: _at(name) for name in PEOPLE},
        settings={name: instance(name).problem.to_text() for name in PEOPLE},
        figures=figures,
        tables=_people_table,
        findings=_judge_people,
    )


def curve() -> Part:
    """Figure 2B."""

    def figures(evidence: Evidence) -> list[Drawing]:
        words = "Lower bounds of three problems as the second mean grows"
        return [Drawing("fig2", words, lambda: _draw_curve(evidence))]

    return Part(
        name="fig2",
        title="Lower bound as the mean of one dish moves",
        source="Figure 2B",
        note=NOTE,
        compute=_compute_curve,
        settings={name: instance(name).problem.to_text() for name in PEOPLE} | {"at": SECOND_MEANS},
        figures=figures,
        tables=_curve_table,
        findings=_judge_curve,
    )
