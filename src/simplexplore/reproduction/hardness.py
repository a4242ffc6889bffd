"""Figure 3a,b: the characteristic time over the means of two arms, without and with constraints."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LogNorm

from simplexplore.bound.bound import lower_bound
from simplexplore.problem.catalog import instance
from simplexplore.report.numbers import number
from simplexplore.report.page import DIM, HEADING, SMALL, TEXT, Page

from .meal import frame
from .part import NOT_REPRODUCED, REPRODUCED, Drawing, Evidence, Finding, Part, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

# Both marked instances are points of the grid.
MEANS = [round(0.025 * i, 3) for i in range(49)]
GREATEST = 1e6

PANELS = {
    "unconstrained": "Without constraints: the best arm",
    "anytime": "With a + b ≤ 0.5 and c + d ≤ 0.5, anytime",
}
MARKS = {"triangle": "^", "star": "*"}

MARGIN, SIDE, GAP, BAR = 0.3, 3.4, 0.75, 0.16


def _row(fourth: float) -> list[tuple[float, float]]:
    """Times for one value of mu_4, clipped: without and with constraints."""
    problem = instance("star").problem
    found = []
    for fifth in MEANS:
        bound = lower_bound(problem, [1.0, 0.5, 0.4, fourth, fifth])
        times = (bound.unconstrained.characteristic_time, bound.characteristic_time)
        found.append((min(times[0], GREATEST), min(times[1], GREATEST)))
    return found


def _begin() -> None:
    """Set up a process that leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def leave() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    Thread(target=leave, daemon=True).start()


def _compute(workers: int) -> dict[str, Any]:
    if workers > 1:
        with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
            rows = list(pool.map(_row, MEANS))
    else:
        rows = [_row(fourth) for fourth in MEANS]
    times = np.array(rows)
    return {
        "means": MEANS,
        **{panel: times[:, :, i].tolist() for i, panel in enumerate(PANELS)},
    }


def _draw(evidence: Evidence) -> Figure:
    page = Page()
    left, top = MARGIN + 0.6, MARGIN + HEADING
    width = left + 2 * SIDE + GAP + 0.25 + BAR + 0.95
    page.resize(width, top + SIDE + 0.75)
    norm = LogNorm(10, GREATEST)
    edges = np.array(MEANS) - 0.0125
    edges = np.append(edges, edges[-1] + 0.025)
    mesh = None
    for i, (panel, title) in enumerate(PANELS.items()):
        start = left + i * (SIDE + GAP)
        page.heading(
            start - 0.3,
            MARGIN,
            title,
            "T, clipped at 10⁶; triangle: Fig. 3c, star: Fig. 3d",
            SIDE + 0.4,
        )
        axes = page.axes(start, top, SIDE, SIDE, panel)
        frame(axes)
        # Rows of the grid are mu_4, which goes to the right.
        values = np.array(evidence.numbers[panel]).T
        mesh = axes.pcolormesh(edges, edges, values, norm=norm, cmap="cividis", rasterized=True)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(edges[0], edges[-1])
        axes.set_xlabel("μ₄ (arm d)", size=TEXT)
        axes.set_ylabel("μ₅ (arm e)", size=TEXT)
        for name, marker in MARKS.items():
            x, y = instance(name).means[3:].tolist()
            axes.plot(x, y, marker, markersize=12, color="black", markeredgecolor="white",
                      markeredgewidth=1.2)  # fmt: skip
    assert mesh is not None
    bar = page.axes(left + 2 * SIDE + GAP + 0.25, top, BAR, SIDE, "scale")
    bar.set_axis_on()
    scale = page.figure.colorbar(mesh, cax=bar)
    scale.set_label("T (samples per unit of information)", size=TEXT)
    bar.tick_params(labelsize=SMALL, color=DIM)
    return page.figure


def _figures(evidence: Evidence) -> list[Drawing]:
    words = "Heat maps of the characteristic time over the means of arms d and e"
    return [Drawing("fig3ab", words, lambda: _draw(evidence))]


def _tables(evidence: Evidence) -> list[Table]:
    free, within = (evidence.numbers[panel] for panel in PANELS)
    rows: list[list[object]] = [
        [x, y, free[i][j], within[i][j]] for i, x in enumerate(MEANS) for j, y in enumerate(MEANS)
    ]
    return [Table("fig3ab", ("mu4", "mu5", "unconstrained", "anytime"), rows)]


def _findings(evidence: Evidence) -> list[Finding]:
    times = {}
    for name in MARKS:
        i, j = (MEANS.index(mean) for mean in instance(name).means[3:].tolist())
        times[name] = [evidence.numbers[panel][i][j] for panel in PANELS]
    triangle, star = times["triangle"], times["star"]
    free, within = (np.array(evidence.numbers[panel]) for panel in PANELS)
    reversed_ = triangle[0] < star[0] and triangle[1] > star[1]
    return [
        Finding(
            "Constraints alter the hardness: the triangle is easy without and hard with "
            "constraints, the star the reverse (Observation 1).",
            REPRODUCED if reversed_ else NOT_REPRODUCED,
            f"T without and with constraints (anytime): triangle {number(triangle[0])} and "
            f"{number(triangle[1])}, star {number(star[0])} and {number(star[1])}; certified. On "
            f"the whole grid constraints make {100 * float((within > free).mean()):.0f}% of the "
            f"instances harder and {100 * float((within < free).mean()):.0f}% easier.",
        )
    ]


def hardness() -> Part:
    """Figure 3a,b."""
    return Part(
        name="fig3ab",
        title="How hard five arms are, without and with constraints",
        source="Figure 3a,b and Observation 1",
        note="μ = (1, 0.5, 0.4, μ₄, μ₅). The paper does not state the range; ours is 0 to 1.2 in "
        "steps of 0.025.",
        compute=_compute,
        settings={"means": MEANS, "problem": instance("star").problem.to_text()},
        figures=_figures,
        tables=_tables,
        findings=_findings,
    )
