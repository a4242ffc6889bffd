"""Results that a picture shows side by side: their names, colours and the room they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .bound_text import prominent_arms
from .numbers import number
from .page import BLUE, GREEN, GREY, GUTTER, HEADING, INK, ORANGE, PINK, RED, SKY
from .results_text import circumstances, mean_of, sampler_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexplore.simulation.results import Results

Array = npt.NDArray[np.float64]

# One colour per sampler in all pictures; names stand beside them, so none has to be guessed.
COLOURS = {
    "ctns": BLUE,
    "cge": ORANGE,
    "ptns": GREEN,
    "uniform": GREY,
    "oracle": INK,
    "top-two": RED,
}
# For samplers of the user's own, in the order they come.
OWN_COLOURS = (PINK, SKY, "#6A51A3", "#8C564B")

# Arms beyond this are counted in words; so many columns of allocations fit side by side.
MAX_ARMS, MAX_COLUMNS = 16, 8

# Inches.
ROW, AXIS, COLUMN_HEAD, ARM_ROW = 0.48, 0.3, 0.25, 0.23

# Times are drawn on a logarithmic scale when a long run of one sampler (its 95% quantile) is
# so many times the mean of another.
LOGARITHMIC = 6.0


@dataclass
class Group:
    """Results that are drawn side by side."""

    results: list[Results]

    def __post_init__(self) -> None:
        self.labels = sampler_labels(self.results)
        self.asides = [_aside(result) for result in self.results]
        self.colours: list[str] = []
        self.arms = prominent_arms(self.results[0].bound, MAX_ARMS)
        self.circumstances = circumstances(self.results)
        self.has_costs = self.results[0].plan.problem.has_costs
        summaries = [result.summary() for result in self.results]
        times = [x["cost" if self.has_costs else "stopping_time"] for x in summaries]
        self.means = [mean_of(result) for result in self.results]
        self.samples = [number(x["stopping_time"]["mean"]) for x in summaries]
        longest, least = max(x["q95"] for x in times), min(x["mean"] for x in times)
        self.logarithmic: bool = longest > LOGARITHMIC * least

    @property
    def what(self) -> str:
        """What the picture shows of each run."""
        return "Cost" if self.has_costs else "Samples"

    def amounts(self, result: Results) -> Array:
        """The same in numbers."""
        return result.costs if self.has_costs else result.stopping_times.astype(float)

    @property
    def least(self) -> float:
        """The lower bound, or nan where there is none to draw."""
        bound = self.results[0].lower_bound
        return bound if 0 < bound < math.inf else math.nan

    @property
    def runs_height(self) -> float:
        """Of the panels with one row per result."""
        return HEADING + COLUMN_HEAD + ROW * len(self.results) + AXIS

    @property
    def strips(self) -> int:
        """Rows of columns that the allocations need."""
        return -(-len(self.results) // MAX_COLUMNS)

    @property
    def strip_height(self) -> float:
        """Of one row of columns of allocations."""
        return COLUMN_HEAD + ARM_ROW * len(self.arms) + 0.1

    @property
    def height(self) -> float:
        """Of all panels."""
        return self.runs_height + GUTTER + HEADING + self.strips * self.strip_height

    @property
    def names(self) -> list[str]:
        """Names that are shown: of results and of arms."""
        return [*self.labels, *(self.results[0].plan.problem.arms[a] for a in self.arms)]


def _aside(result: Results) -> str:
    """The runs that are missing or were capped."""
    asides = []
    if capped := int(result.capped.sum()):
        asides.append(f"{number(capped)} capped")
    if result.runs < result.runs_asked:
        asides.append(f"{number(result.runs)} of {number(result.runs_asked)} runs")
    return ", ".join(asides)


def colour(groups: list[Group]) -> None:
    """Give each sampler the same colour everywhere."""
    names = [result.plan.sampler.name for group in groups for result in group.results]
    colours = sampler_colours(names)
    for group in groups:
        group.colours += [colours[result.plan.sampler.name] for result in group.results]


def sampler_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each sampler: ours have their own, others get one in the order they come."""
    others = [name for name in dict.fromkeys(names) if name not in COLOURS]
    own = {name: OWN_COLOURS[i % len(OWN_COLOURS)] for i, name in enumerate(others)}
    return {name: COLOURS.get(name) or own[name] for name in names}
