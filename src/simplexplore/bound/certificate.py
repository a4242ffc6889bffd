"""Two numbers between which a characteristic time lies, and what proves them.

The characteristic time is the optimal value of a convex program (paper, Eq. 5):

    minimise t   subject to   1 / D_e(w) <= t for every edge e,
                              A w <= b,   E w = f,   lower <= w <= upper.

*Upper.* Any allocation w that is allowed attains the largest of its own times 1 / D_e(w).

*Lower.* Take any weights p >= 0 on edges that sum to one, and any alternative lam^e across each
edge. As D_e(w) <= sum_a w_a d(mu_a, lam^e_a), for every allowed w

    1 / t <= min over e of D_e(w) <= sum_a w_a G_a,   G_a = sum_e p_e d(mu_a, lam^e_a),

and for any prices l >= 0 and n of rows, and q of a share of any arm, as w sums to one,

    sum_a w_a G_a <= b.l + f.n + q + sum_a max over lower <= w_a <= upper of w_a (N_a - q)

with N = G - A'l - E'n, where q is at least N_a if arm a has no upper limit.

No line relies on how w, p, l, n and q were found. The rounding of every sum is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.question_polytope import polytope_of
from simplexplore.problem.problem import Problem

from .allocation_set import AllocationSet
from .information import EPS, Closest, Information

Array = npt.NDArray[np.float64]

# Rounding may make an allocation miss a limit by this much, no more.
MAX_MISS = 1e-9


@dataclass(frozen=True)
class Program:
    """The program above: what samples tell about each edge, and where they may go."""

    information: Information
    allowed: AllocationSet

    @classmethod
    def of(cls, problem: Problem, means: Array, scenario: str) -> Program:
        """That of a problem with a unique optimum."""
        polytope = polytope_of(problem)
        edges = polytope.edges(polytope.optimal_vertex(means))
        allowed = AllocationSet.of(polytope, scenario).in_spend()
        gaps, rewards = edges.gaps(means), problem.rewards.with_known_variance()
        told = Information(edges, gaps, means, rewards, sampled=allowed.arms, costs=allowed.costs)
        return cls(told, allowed)

    def time(self, w: Array) -> float:
        """The largest time of an allocation."""
        return 1.0 / float(self.information.closest(w).value.min())

    @property
    def has_one(self) -> bool:
        """Whether equalities leave one allocation."""
        return len(self.allowed.A_eq) >= len(self.allowed.free)

    @property
    def count(self) -> int:
        """The number of edges, or of comparisons."""
        return len(self.information.gaps)


@dataclass(frozen=True)
class Certificate:
    """Proof that a characteristic time lies between `lower` and `upper`.

    Attributes
    ----------
    allocation : (K,) array
        Shares of what is spent, which attain `upper`.
    weights : (E,) array
        Of the edges' closest alternatives; they sum to one.
    prices, equality_prices : arrays
        Of the rows A_ub and A_eq of the set of allocations.
    lower, upper : float
    """

    allocation: Array
    weights: Array
    prices: Array
    equality_prices: Array
    lower: float
    upper: float

    @classmethod
    def of(
        cls, program: Program, w: Array, weights: Array, prices: Array, equality_prices: Array
    ) -> Certificate:
        """What any allocation, weights and prices prove."""
        closest = program.information.closest(w)
        lower = lower_limit(program, w, weights, prices, equality_prices, closest)
        reached, error = time_and_error(program, w)
        return cls(w, weights, prices, equality_prices, lower, reached * (1.0 + error))

    @property
    def gap(self) -> float:
        """How far apart the two are, relatively."""
        return max(self.upper / self.lower - 1.0, 0.0) if self.lower > 0 else np.inf

    def verify(self, problem: Problem, means: npt.ArrayLike, scenario: str | None = None) -> bool:
        """Whether the proof holds for a problem: both numbers are computed anew from it.

        `scenario` is the problem's own unless given. The optimum at these means must be unique,
        and the problem's epsilon 0.
        """
        program = Program.of(problem, np.asarray(means, float), scenario or problem.scenario)
        parts = self.allocation, self.weights, self.prices, self.equality_prices
        allowed = program.allowed
        sizes = problem.size, program.count, len(allowed.b_ub), len(allowed.b_eq)
        if tuple(map(len, parts)) != sizes or not allowed.miss(self.allocation) <= MAX_MISS:
            return False
        found = Certificate.of(program, *parts)
        return found.lower >= self.lower and found.upper <= self.upper


def lower_limit(
    program: Program,
    w: Array,
    weights: Array,
    prices: Array,
    equality_prices: Array,
    closest: Closest,
) -> float:
    """The lower one, from `closest` alternatives, which are those to w.

    Any weights and prices will do, whatever their scale and signs. Arms that the set holds fast add
    what they add, and the free ones share the mass that is left. One allocation needs no prices.
    """
    information, allowed, free = program.information, program.allowed, program.allowed.free
    # An edge without a proven alternative gets no weight.
    used = (weights > 0) & np.isfinite(closest.ceiling).all(axis=1)
    scale = float(weights[used].sum())
    if not 0 < scale < np.inf:
        return 0.0
    gain = np.bincount(
        information.index[used].ravel(),
        ((weights[used] / scale)[:, None] * closest.ceiling[used]).ravel(),
        minlength=information.size,
    )
    if program.has_one:
        best = float(gain @ allowed.max_slack)
        return 1.0 / (best * (1 + (8 + len(gain)) * EPS)) if 0 < best < np.inf else 0.0
    above, equal = np.maximum(prices, 0.0) / scale, equality_prices / scale
    net = gain - (allowed.A_ub.T @ above + allowed.A_eq.T @ equal)
    # The same sums with all signs alike, and how many terms they have: what rounding adds at most.
    size = gain + np.abs(allowed.A_ub).T @ above + np.abs(allowed.A_eq).T @ np.abs(equal)
    terms = np.bincount(information.index[used].ravel(), minlength=information.size)
    net += (10 + terms + len(above) + len(equal)) * EPS * size
    fixed = w.copy()
    fixed[free] = 0.0
    rest = np.concatenate([net * fixed, allowed.b_ub * above, allowed.b_eq * equal])
    mass, lower, upper = math.fsum(w[free]), allowed.lower[free], allowed.upper[free]

    def most(q: float) -> float:
        more = net[free] - q
        parts = np.concatenate([[mass * q], more * np.where(more > 0, upper, lower), rest])
        return math.fsum(parts) + 4 * EPS * math.fsum(np.abs(parts))

    least = net[free][np.isinf(upper)].max(initial=-np.inf)
    best = min(most(q) for q in (least, max(least, 0.0)) if np.isfinite(q))
    return 1.0 / best if 0 < best < np.inf else 0.0


def time_and_error(program: Program, w: Array) -> tuple[float, float]:
    """The largest time of an allocation, and the relative error of rounding in it."""
    closest = program.information.closest(w)
    reached = 1.0 / float(closest.value.min())
    # Edges that rounding could make the hardest count, too.
    least = float((closest.value * (1.0 - closest.error)).min())
    return reached, 1.0 / (reached * least) - 1.0 if least > 0 else np.inf
