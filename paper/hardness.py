"""Figure 3a,b: the characteristic time over the means of two arms, without and with constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

import simplexplore as sx

from .drawing import plain, save
from .part import Drawing, Finding, Part, Table
from .verdicts import holds
from .words import number
from .work import Work

GREATEST = 1e6

PANELS = {
    "unconstrained": "Without constraints: the best arm",
    "anytime": "With a + b ≤ 0.5 and c + d ≤ 0.5, anytime",
}
MARKS = {"triangle": "^", "star": "*"}


@dataclass(frozen=True)
class Hardness(Part):
    """Figure 3a,b; both marked instances are points of the grid."""

    means: Sequence[float] = tuple(round(0.025 * i, 3) for i in range(49))

    name = "fig3ab"
    title = "How hard five arms are, without and with constraints"
    source = "Figure 3a,b and Observation 1"
    note = (
        "μ = (1, 0.5, 0.4, μ₄, μ₅). The paper does not state the range; ours is 0 to 1.2 in steps "
        "of 0.025."
    )

    def compute(self, work: Work) -> dict[str, Any]:
        """Times by mu_4 and mu_5, clipped."""
        problem = sx.catalog.instance("star").problem
        free, within = [], []
        for fourth in self.means:
            bounds = [sx.lower_bound(problem, [1.0, 0.5, 0.4, fourth, x]) for x in self.means]
            free.append([min(b.unconstrained.characteristic_time, GREATEST) for b in bounds])
            within.append([min(b.characteristic_time, GREATEST) for b in bounds])
        return {"means": list(self.means), "unconstrained": free, "anytime": within}

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        times = {}
        for name in MARKS:
            i, j = (found["means"].index(x) for x in sx.catalog.instance(name).means[3:].tolist())
            times[name] = [found[panel][i][j] for panel in PANELS]
        triangle, star = times["triangle"], times["star"]
        free, within = (np.array(found[panel]) for panel in PANELS)
        reverse = triangle[0] < star[0] and triangle[1] > star[1]
        return [
            Finding(
                "Constraints alter the hardness: the triangle is easy without and hard with "
                "constraints, the star the reverse (Observation 1).",
                holds(reverse),
                f"T without and with constraints (anytime): triangle {number(triangle[0])} and "
                f"{number(triangle[1])}, star {number(star[0])} and {number(star[1])}; certified. "
                f"On the whole grid constraints make {100 * float((within > free).mean()):.0f}% of "
                f"the instances harder and {100 * float((within < free).mean()):.0f}% easier.",
            )
        ]

    def tables(self, found: dict[str, Any]) -> list[Table]:
        rows: list[list[object]] = [
            [x, y, *(found[panel][i][j] for panel in PANELS)]
            for i, x in enumerate(found["means"])
            for j, y in enumerate(found["means"])
        ]
        return [Table("fig3ab", ("mu4", "mu5", *PANELS), rows, ())]

    def figures(self, found: dict[str, Any]) -> list[Drawing]:
        words = "Heat maps of the characteristic time over the means of arms d and e"
        return [Drawing("fig3ab", words, lambda path: save(self.figure(found), path))]

    def figure(self, found: dict[str, Any]) -> Figure:
        """Two heat maps with one scale."""
        figure = Figure((9.6, 4.6), layout="constrained")
        both = figure.subplots(1, 2, sharey=True)
        edges = np.array(found["means"]) - 0.0125
        edges = np.append(edges, edges[-1] + 0.025)
        norm = LogNorm(10, GREATEST)
        for axes, (panel, title) in zip(both, PANELS.items(), strict=True):
            plain(axes, title)
            # Rows of the grid are mu_4, which goes to the right.
            values = np.array(found[panel]).T
            mesh = axes.pcolormesh(edges, edges, values, norm=norm, cmap="cividis", rasterized=True)
            axes.set_xlabel("μ₄ (arm d); triangle: Fig. 3c, star: Fig. 3d")
            for name, marker in MARKS.items():
                x, y = sx.catalog.instance(name).means[3:].tolist()
                axes.plot(x, y, marker, markersize=12, color="black", markeredgecolor="white")
        both[0].set_ylabel("μ₅ (arm e)")
        figure.colorbar(mesh, ax=both, label="T (samples per unit of information), clipped at 10⁶")
        return figure
