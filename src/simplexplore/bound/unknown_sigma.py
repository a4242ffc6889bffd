"""Information where each arm has an unknown standard deviation of its own.

Every comparison becomes several: one in which all alternatives are within a standard deviation,
and for each of its arms one in which that arm's is farther away (student.py). Each is the least of
linear functions of the allocation, hence concave, and has one minimum where the comparison itself
may have two; so the solver, its certificate and the choice among optimal allocations need not know
that the divergence is not convex.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.geometry.edges import Edges
from simplexplore.problem.families import Gaussian
from simplexplore.problem.family import Family

from .information import Closest, Information
from .student import Branch, Convex, phi

Array = npt.NDArray[np.float64]

# Rows whose value is so many times that of a sibling are not looked at more closely. Just above 1
# a solver could take the corner between what is known of them and what is true for an optimum.
FAR = 1.5

# Values that are this many times the least are certified no further.
ENOUGH = 1.01


def information_about(
    edges: Edges, gaps: Array, means: Array, rewards: Family, *rest: Any, **options: Any
) -> Information:
    """`Information`, or `UnknownSigma` where each arm has an unknown one of its own.

    One unknown sigma for all arms is told by `time_with` alone.
    """
    if not rewards.knows_sigma and isinstance(rewards, Gaussian) and not rewards.equal_sigma:
        return UnknownSigma(edges, gaps, means, rewards, *rest, **options)
    return Information(edges, gaps, means, rewards.as_if_known(), *rest, **options)


def time_with(rewards: Family, time: float) -> float:
    """The time where `information_about` says 1 / time.

    With one unknown sigma for all arms the least divergence over it is log(1 + 2 D) / 2 if D is the
    information with the true one: larger where D is, so that allocations stay the same.
    """
    if not (isinstance(rewards, Gaussian) and rewards.equal_sigma) or not 0 < time < math.inf:
        return time
    return 2.0 / math.log1p(2.0 / time)


class UnknownSigma(Information):
    """The same interface with several rows for each edge; `edge` says whose they are."""

    by_edge: ClassVar[tuple[str, ...]] = (*Information.by_edge, "big")

    def __init__(
        self, edges: Edges, gaps: Array, means: Array, rewards: Family, *rest: Any, **options: Any
    ) -> None:
        super().__init__(edges, gaps, means, rewards, *rest, **options)
        self._known = Information(edges, gaps, means, rewards.as_if_known(), *rest, **options)
        self._near: Array | None = None
        self._last: tuple[Array, Closest] | None = None
        count, width = self.v.shape
        self.big = np.full(count, -1)
        # Every row is the comparison as it is, and once for each arm; those without points go.
        copies = np.repeat(np.arange(count), width + 1)
        for name in self.by_edge:
            setattr(self, name, getattr(self, name)[copies])
        self.big = np.tile(np.arange(-1, width), count)
        chosen = np.flatnonzero(self._is_possible())
        for name in self.by_edge:
            setattr(self, name, getattr(self, name)[chosen])

    @property
    def rough(self) -> Information:
        """With the guess of sigma known; all rows of an edge but one look much easier."""
        known = self._known.only(self.edge)
        again = np.ones(len(self.edge), dtype=bool)
        again[np.unique(self.edge, return_index=True)[1]] = False
        known.gaps = np.where(again, 4 * known.gaps, known.gaps)
        return known

    @cached_property
    def _c(self) -> Array:
        return np.asarray(np.abs(self.v) * self.sigma)

    def only(self, chosen: npt.NDArray[np.int64] | slice) -> Information:
        some = super().only(chosen)
        for name in ("_c", "_ends"):
            vars(some).pop(name, None)
        vars(some)["_near"] = vars(some)["_last"] = None
        return some

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The least and the most that the arm beyond 1 can be away; of other rows 1 and 1."""
        row, b = np.flatnonzero(self.big >= 0), self.big[self.big >= 0]
        low, high = np.ones(len(self.big)), np.ones(len(self.big))
        c, gaps = self._c[row, b], self.gaps[row]
        rest = gaps - (self._c[row].sum(axis=1) - c)
        low[row] = np.maximum(1.0, np.divide(rest, c, out=np.ones(len(c)), where=c > 0))
        high[row] = np.divide(gaps, c, out=np.zeros(len(c)), where=c > 0)
        return low, high

    def _is_possible(self) -> npt.NDArray[np.bool_]:
        low, high = self._ends
        reached = self._c.sum(axis=1) >= self.gaps
        for name in ("_c", "_ends"):  # rows are about to be chosen
            del vars(self)[name]
        return np.where(self.big < 0, reached, low < high * (1 - 1e-12))

    def values(self, w: Array, edges: npt.NDArray[np.int64], most: float = 0.0) -> Array:
        return self.closest(w).value[edges]

    def closest(self, w: Array) -> Closest:
        if self._last is None or not np.array_equal(self._last[0], w):
            self._last = w.copy(), super().closest(w)  # asked for again and again
        return self._last[1]

    def certified(self, w: Array) -> Closest:
        """`closest`, its values no more than what branching and bounding proves.

        That much is proven of those that could be the least; of others that they are not.
        """
        found = self.closest(w)
        weight = np.where(self.used, w[self.index], 1.0) / self.costs
        rows = self._doubtful(weight)[1]
        if not len(rows):
            return found
        value = found.value.copy()
        enough = np.minimum(value[rows], ENOUGH * value.min())
        value[rows] = self._branch(weight, rows).no_less_than(enough)
        return replace(found, value=value)

    def _convex(self, weight: Array) -> Convex:
        return Convex(weight, self._c)

    def _doubtful(self, weight: Array) -> tuple[Array, npt.NDArray[np.int64]]:
        """Multipliers with all arms within 1, and rows where one beyond 1 may be closer.

        An arm beyond 1 alone costs w phi(low) or more. If that is far above the convex value, the
        row does not matter.
        """
        convex = self._convex(weight)
        can = convex.c.sum(axis=1) >= self.gaps
        found = convex.multiplier(np.where(can, self.gaps, 0.0), self._near)
        self._near = found  # allocations asked for one after the other are often close
        gamma = np.where(can, found, np.inf)
        value = np.where(can, convex.dual(np.where(can, gamma, 0.0), self.gaps), np.inf)
        row, b = np.flatnonzero(self.big >= 0), self.big[self.big >= 0]
        alone = weight[row, b] * phi(self._ends[0][row])
        return gamma, row[alone < FAR * value[row]]

    def _branch(self, weight: Array, rows: npt.NDArray[np.int64]) -> Branch:
        convex, b = self._convex(weight).only(rows), self.big[rows]
        one = np.arange(len(rows)), b
        others = convex.c.copy()
        others[one] = 0.0
        return Branch(
            Convex(convex.w, others),
            convex.w[one],
            convex.c[one],
            self.gaps[rows],
            self._ends[0][rows],
            self._ends[1][rows],
        )

    def _closest(self, weight: Array) -> Closest:
        weight = weight / self.costs
        gamma, rows = self._doubtful(weight)
        convex, big = self._convex(weight), np.flatnonzero(self.big >= 0)
        small = self.big < 0
        y = convex.at(np.where(small, gamma, 0.0))
        # Rows that do not matter: what the arm beyond 1 costs alone, as if it were all.
        y[big, self.big[big]] = self._ends[0][big]
        across = y.copy()
        across[big, self.big[big]] = self._ends[1][big]
        held = ~small[:, None] | (y >= 1)
        gamma = np.where(small, gamma, 0.0)
        if len(rows):
            branch = self._branch(weight, rows)
            at, gamma[rows] = branch.locally()
            y[rows] = branch.others.at(gamma[rows])
            held[rows] = y[rows] >= 1
            y[rows, self.big[rows]] = at
            held[rows, self.big[rows]] = (at <= branch.low) | (at >= branch.high)
            across[rows] = y[rows]
        gradient = np.where(self.used, phi(y), 0.0)
        short = self.gaps - (self._c * y).sum(axis=1)
        value = (weight * gradient).sum(axis=1) + gamma * short
        if not (np.isfinite(value).all() and (value > 0).all()):
            raise NotConvergedError(
                "the closest alternative could not be computed: means, sigmas or allocation differ "
                "by too many orders of magnitude."
            )
        error = self.rounding_of_gaps()
        square = y * y
        one = 1 + square
        bend = (1 - y) * (1 + y)
        bend = np.where(np.abs(bend) > 1e-9, bend, np.copysign(1e-9, bend))
        moving = self.used & ~held
        slope = -np.sign(self.v) * y / (one * self.sigma)
        return Closest(
            value=value,
            error=error,
            alternative=self.mu - np.sign(self.v) * self.sigma * y,
            gradient=gradient / self.costs,
            ceiling=self._across(across, error) / self.costs,
            slope=np.where(moving, slope / self.costs, 0.0),
            compliance=np.where(moving, self.sigma**2 * one * one / (bend * weight), 0.0),
        )

    def _across(self, y: Array, error: Array) -> Array:
        """Divergences of alternatives that certainly lie across their edges.

        Where one may fall short, all arms go farther in proportion.
        """
        covered = (self._c * y).sum(axis=1)
        farther = np.maximum(self.gaps - covered, 0.0) + error * self.gaps
        far = y * (1 + farther / covered)[:, None]
        return np.where(self.used, phi(far) * (1 + error)[:, None], 0.0)

    def edge_times(self, longest: bool = False) -> Array:
        """By edge the longest of its rows': each is a lower bound.

        Arms within 1 that cost the same share as if sigma were known. Of other rows those are
        improved that could come to more than what is known.
        """
        closest = self._closest(self._own_weight())
        times = np.zeros(int(self.edge.max()) + 1)
        np.maximum.at(times, self.edge, 1.0 / closest.ceiling.max(axis=1))
        known = times.max() if longest else times[self.edge]
        rough = (self.big >= 0) | (self.costs != self.costs[:, :1]).any(axis=1)
        rows = np.flatnonzero(rough & (closest.value * known < 1.0 + 1e-9))
        if len(rows):
            np.maximum.at(times, self.edge[rows], Information.edge_times(self.only(rows)))
        return times
