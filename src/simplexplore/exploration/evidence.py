"""What a run knows: the evidence of edges, the confidence and the regret that it leaves."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.circuits import count_directions
from simplexplore.kernels import events
from simplexplore.kernels.records import POLICIES, VERTEX
from simplexplore.kernels.search import BEST, LOOKS, gain_bound, level_of_policy, surplus
from simplexplore.kernels.tilt import evidence_of_edges

from .regret import Regret, largest_regret
from .vertex_table import AnswerTable
from .workspace import Workspace

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Numbers in the directions of a vertex's edges, if each of them is looked at, and edges that are
# listed where there are more.
MOST_NUMBERS = 50_000_000
MOST_LISTED = 256

# Edges that are looked at in one call; then it is decided anew whether machine code pays.
AT_ONCE = 64


def most_lacking(found: Array, needed: Array) -> tuple[float, float]:
    """Evidence found and needed where the first falls most short of the second."""
    lacking = int((found - needed).argmin())
    return float(found[lacking]), float(needed[lacking])


class Evidence(Workspace):
    """What can be said of a run without leaving a trace in it."""

    @property
    def knows_edges(self) -> bool:
        """Whether the recommended vertex has few enough edges to look at each of them."""
        vertex, first = int(self.run.integers[VERTEX]), self._arrays[0].first_edge
        return int(first[vertex + 1] - first[vertex]) * self._setting.size <= MOST_NUMBERS

    @property
    def _edges(self) -> list[int]:
        """Edges of the recommended vertex, in the table; of very many the weakest."""
        table, run, _ = self._arrays
        vertex = int(run.integers[VERTEX])
        first, last = (int(x) for x in table.first_edge[vertex : vertex + 2])
        if self.knows_edges:
            return list(range(first, last))
        weakest = np.argsort(run.value[: last - first], kind="stable")[:MOST_LISTED]
        return [first + int(e) for e in np.sort(weakest)]

    def directions(self) -> Array:
        """Directions of the edges of the recommended vertex (E, K), as `evidence` lists them."""
        table, edges = self._arrays[0], self._edges
        found = np.zeros((len(edges), self._setting.size))
        for e, edge in enumerate(edges):
            entries = slice(table.first_entry[edge], table.first_entry[edge + 1])
            found[e, table.arm[entries]] = -table.v[entries]
        return found

    def evidence(self) -> tuple[Array, Array]:
        """Of each edge of the recommended vertex how much there is, and how much is needed.

        Statistics and their thresholds, or for `tilt` logarithms of e-values and their levels.
        Of very many edges those with the least statistics are listed (`knows_edges`).
        """
        table, run, _ = self._arrays
        edges = self._edges
        local = np.array(edges, dtype=np.int64) - table.first_edge[run.integers[VERTEX]]
        if not self.has_moments:
            levels = [self._called("level", events.level_of_edge, edge) for edge in edges]
            return run.value[local], np.array(levels)
        return self._e_values(local), np.full(len(edges), self._needed)

    def weakest(self) -> tuple[float, float]:
        """How much evidence there is of the edge that lacks most, and how much is needed."""
        if self.has_moments and self._has_none:
            return 0.0, self._needed
        return most_lacking(*self.evidence())

    @property
    def _has_none(self) -> bool:
        """Whether there is no evidence of `tilt` against the edge with the least statistic."""
        table, run, _ = self._arrays
        first, last = table.first_edge[run.integers[VERTEX] :][:2]
        weakest = np.argsort(run.value[: last - first])[:1]
        return bool((self._e_values(weakest) == 0.0).any())

    @property
    def _needed(self) -> float:
        """The level that evidence of `tilt` against an edge must reach."""
        if self._setting.rule != POLICIES:
            return self._setting.log_union
        table, run, _ = self._arrays
        return float(level_of_policy(self._setting, table, int(run.integers[VERTEX]), 0.0))

    def _e_values(self, local: Indices) -> Array:
        """Logarithms of e-values of edges, counted from the vertex's first."""
        table, run, memory = self._arrays
        statistics = run.value[local]
        found = memory.looks[BEST, table.first_edge[run.integers[VERTEX]] + local]
        with self._untouched():
            for i in range(0, len(local), AT_ONCE):
                some = local[i : i + AT_ONCE]
                run.time[: len(some)] = some
                self._called("evidence", evidence_of_edges, len(some))
                # What was there once counts.
                found[i : i + AT_ONCE] = np.maximum(run.time[: len(some)], found[i : i + AT_ONCE])
        found = np.maximum(found, 0.0)
        # Means out of reach leave nothing to doubt.
        return np.where(np.isfinite(found), found, np.maximum(statistics, self._needed))

    @property
    def has_moments(self) -> bool:
        """Whether `surplus` and `regret_bound` can be told: by e-values."""
        return self.plan.threshold.function == "tilt"

    def surplus(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough.

        Where the recommended policy has too many edges to look at, nothing is known.
        """
        if not self.knows_edges:
            return -math.inf
        least = self._setting.log_policy + math.log(self.plan.delta_of_rule)
        if self._has_none:  # which no other edge can make up for
            return least - self._setting.log_policy
        with self._untouched():
            looks = self._arrays[2].looks[:, : self.known_edges]  # there is room for more
            best = looks[BEST::LOOKS].copy()
            looks[...] = 0.0  # every edge may be asked again
            looks[BEST::LOOKS] = best
            return float(self._called("surplus", surplus, least))

    def gain_bounds(self) -> Array:
        """For each edge of the recommended vertex no less than its gain, in the user's unit.

        With probability 1 - delta they hold at every moment (docs/theory/stopping.md).
        """
        level = math.log(self._gain_union) - math.log(self.plan.delta_of_rule)
        with self._untouched():
            found = [self._called("gain", gain_bound, edge, level) for edge in self._edges]
        return np.array(found) * self.plan.problem.rewards.width

    def regret(self) -> Regret:
        """How much more than the recommended policy another can earn, in the user's unit.

        With probability 1 - delta no bound is ever too small (docs/theory/stopping.md).
        """
        if not self.knows_edges:
            return Regret(math.inf)
        gains, problem = self.gain_bounds(), self.plan.problem
        if isinstance(self.table, AnswerTable):
            # Comparisons are with whole policies; those left out are within epsilon anyway.
            return Regret(max(float(gains.max(initial=0.0)), problem.epsilon))
        directions, means = self.directions(), problem.rewards.from_unit(self.run.clipped)
        return largest_regret(problem, self.policy, directions, gains, -directions @ means)

    @cached_property
    def _gain_union(self) -> int:
        """Signed supports of edges in both orientations, or of comparisons with one vertex."""
        if isinstance(self.table, AnswerTable):
            return self.table.answers.signed_union
        return 2 * count_directions(self.polytope.form)
