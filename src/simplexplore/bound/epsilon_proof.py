"""Times that no answer within epsilon beats.

Gaussian rewards: among answers that lose the same, time is convex in the answer and the allocation
together (docs/theory/epsilon.md). All that is not convex is one number, the loss: branch and bound
over it. Each bound is a linear program, as z^2 / w >= 2 r z - r^2 w for all r.

Other rewards: a relaxation. Let G(x) be what x loses against the best vertex. If delta . (x - y) >=
2 epsilon + G(x) + G(y) for two vertices x and y, then for every answer pi, mu + delta makes x or
mu - delta makes y more than epsilon better than pi: the two conditions add up to that. So no
answer's information exceeds the larger of the two shifts' divergences, whatever the allocation.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.edges import Edges
from simplexplore.geometry.epsilon_answers import Answers
from simplexplore.problem.families import Gaussian

from .allocation import optimal_allocation
from .allocation_set import AllocationSet
from .epsilon_search import all_sampled
from .information import Information

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

# Branch and bound ends when no answer can be this much faster than the best one known, ...
TOLERANCE = 0.009

# ... or when its programs have had this many tangents in all, which takes seconds.
MAX_TANGENTS = 100_000

# Rivals that a program adds at a time, the hardest ones.
MAX_ADDED = 20

# Pairs of vertices in the relaxation: the hardest ones alone. Fewer only loosen it.
MAX_PAIRS = 400


class LossSearch:
    """Branch and bound over what an answer loses, in units of epsilon.

    Its programs have as unknowns an answer, an allocation, z^2 / w for each arm and each share
    that a vertex gives it, and the time in units of the first answer's. Tangents of z^2 / w hold
    whatever the loss, so that programs share them; rivals that are left out only lower a bound.

    Attributes
    ----------
    least : float
        No answer takes less time.
    policy : (K,) array
        The best answer that was met.
    """

    def __init__(
        self, answers: Answers, mu: Array, allowed: AllocationSet, policy: Array, w: Array
    ) -> None:
        corners = answers.policies[: len(answers.vertices)]
        self.corners, self.policy, self.allowed = corners, policy, allowed
        self.feasible = AllocationSet.feasible(answers.polytope).as_rows()
        self.loss = ((corners @ mu).max() - mu) / answers.epsilon
        self.losses = corners @ self.loss
        self.interior_allocation = 0.9 * w + 0.1 * allowed.max_slack
        sigma = answers.polytope.problem.rewards.sigmas(len(mu))
        self.price = 2 * sigma**2 * allowed.costs / answers.epsilon**2
        unit = float(self.times(policy, w, policy @ self.loss).max())
        self.price, self.time = self.price / unit, 1.0
        # Each arm and each share of it is a place; vertices are rows of places.
        size = len(mu)
        shares = np.column_stack([np.tile(np.arange(size), len(corners)), corners.ravel()])
        places, self.place = np.unique(shares, axis=0, return_inverse=True)
        self.place = self.place.reshape(corners.shape)
        self.arm, self.share = places[:, 0].astype(int), places[:, 1]
        self.rivals = np.zeros(len(corners), dtype=bool)
        self.at, self.slope = np.zeros(0, dtype=int), np.zeros(0)
        self.learn(policy, w, np.zeros(len(places)), policy @ self.loss, 0.5)
        self.least = unit * self._search()

    def _search(self) -> float:
        waiting, spent = [(0.0, 0.0, min(1.0, float(self.losses.max())))], 0
        while True:
            bound, low, high = waiting[0]
            if bound * (1 + TOLERANCE) >= self.time or spent > MAX_TANGENTS:
                return min(bound, self.time)
            spent += 100 + len(self.at)
            found, point = self.solve(low, high)
            bound = max(bound, found)
            size = len(self.loss)
            if point is not None and self.learn(
                point[:size], point[size : 2 * size], point[2 * size : -1], low, bound
            ):
                heapq.heapreplace(waiting, (bound, low, high))
            else:
                middle = (low + high) / 2
                heapq.heapreplace(waiting, (bound, low, middle))
                heapq.heappush(waiting, (bound, middle, high))

    def times(self, policy: Array, w: Array, loss: float) -> Array:
        """Of each comparison, as if the answer had this loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(policy == self.corners, 0.0, (policy - self.corners) ** 2 / w)
            gaps = 1 - loss + self.losses
            return np.where(gaps > 0, parts @ self.price / gaps**2, math.inf)

    def learn(self, policy: Array, w: Array, known: Array, loss: float, bound: float) -> bool:
        """Add what shows that a program's point takes longer than its bound; False for nothing."""
        for lean in (0.01, 0.001):  # at zero tangents would be vertical
            leaning = (1 - lean) * w + lean * self.interior_allocation
            time = float(self.times(policy, leaning, policy @ self.loss).max())
            if time < self.time:
                self.time, self.policy = time, policy
                self.interior_allocation = 0.9 * leaning + 0.1 * self.allowed.max_slack
            times = self.times(policy, leaning, loss)
            hard = np.flatnonzero(times > bound + TOLERANCE / 8)
            new = hard[~self.rivals[hard]]
            self.rivals[new[np.argsort(-times[new], kind="stable")][:MAX_ADDED]] = True
            hard = hard[self.rivals[hard]]
            places = self.place[hard]
            z = policy[self.arm] - self.share
            slope = np.divide(z, leaning[self.arm], out=np.zeros(len(z)), where=z != 0)
            missed = self.price[self.arm] * (slope * (2 * z - slope * w[self.arm]) - known)
            worst = missed[places] / (1 - loss + self.losses[hard, None]) ** 2
            chosen = np.unique(places[worst > TOLERANCE / (16 * len(policy))])
            self.at = np.concatenate([self.at, chosen])
            self.slope = np.concatenate([self.slope, slope[chosen]])
            if len(chosen) or len(new):
                return True
        return False

    def solve(self, low: float, high: float) -> tuple[float, Array | None]:
        """A time that no answer with a loss in this range beats, and where it was computed.

        Times above twice the first answer's count as that: so each unknown has a box.
        """
        from scipy.sparse import block_diag, csr_array, hstack, vstack

        def one_each(columns: Indices, width: int, values: Array) -> Any:
            return csr_array((values, (np.arange(len(columns)), columns)), (len(columns), width))

        size, count, arm, r = len(self.loss), len(self.arm), self.arm[self.at], self.slope
        rivals, others = np.flatnonzero(self.rivals), csr_array((0, count + 1))
        places, ends = self.place[rivals], np.arange(len(rivals) + 1) * size
        price = self.price / (1 - low + self.losses[rivals, None]) ** 2
        tangents = [
            one_each(arm, size, 2 * r),
            one_each(arm, size, -(r**2)),
            one_each(self.at, count, -np.ones(len(r))),
            csr_array((len(r), 1)),
        ]
        times = [
            csr_array((len(rivals), 2 * size)),
            csr_array((price.ravel(), places.ravel(), ends), (len(rivals), count)),
            csr_array(-np.ones((len(rivals), 1))),
        ]
        own, allowed = self.feasible, self.allowed
        within = np.vstack([own.A_ub, self.loss, -self.loss])
        A_ub = vstack([hstack(tangents), hstack(times), block_diag((within, allowed.A_ub, others))])
        b_ub = [
            2 * r * self.share[self.at],
            np.zeros(len(rivals)),
            own.b_ub,
            [high, -low],
            allowed.b_ub,
        ]
        A_eq = block_diag((own.A_eq, allowed.A_eq, others))
        box = np.zeros(count)
        np.maximum.at(box, places, 2 / price)
        box = np.concatenate([own.arms, allowed.arms, box, [2.0]])
        cost = (np.arange(len(box)) == len(box) - 1).astype(float)
        limits, totals = np.concatenate(b_ub), np.concatenate([own.b_eq, allowed.b_eq])
        return least_of(cost, A_ub.tocsr(), limits, A_eq.tocsr(), totals, box)


def least_of(
    cost: Array, A_ub: Any, b_ub: Array, A_eq: Any, b_eq: Array, box: npt.NDArray[Any]
) -> tuple[float, Array | None]:
    """What cost . x is at least, for A_ub x <= b_ub, A_eq x = b_eq, 0 <= x <= box; and such an x.

    It comes from the program's multipliers: any are proof. Without a solution there are none.
    """
    from scipy.optimize import linprog

    bounds: Any = np.column_stack([np.zeros(len(box)), np.where(box > 0, np.inf, 0.0)])
    found: Any = linprog(cost, A_ub=A_ub, b_ub=b_ub, A_eq=A_eq, b_eq=b_eq, bounds=bounds)
    if found.status != 0:
        return -math.inf, None
    above, equal = np.maximum(-found.ineqlin.marginals, 0.0), -found.eqlin.marginals
    reduced = cost + A_ub.T @ above + A_eq.T @ equal
    least = np.minimum(reduced * box, 0.0).sum() - above @ b_ub - equal @ b_eq
    return float(least), np.maximum(found.x, 0.0)


def relaxation(answers: Answers, mu: Array, allowed: AllocationSet) -> float:
    """A time that no answer beats, whatever the rewards."""
    if not all_sampled(answers, allowed):
        return 0.0
    rewards = answers.polytope.problem.rewards
    corners = answers.policies[: len(answers.vertices)]
    values = corners @ mu
    pairs = np.array(list(itertools.combinations(range(len(corners)), 2)))
    scale = 1.0 / rewards.width
    loss = values.max() - values
    gaps = scale * (2 * answers.epsilon + loss[pairs[:, 0]] + loss[pairs[:, 1]])
    center = rewards.to_unit(mu)
    sigma = rewards.sigmas(len(mu))
    spread = np.sqrt(rewards.variance(center, sigma))
    if not (spread > 0).all():
        return 0.0

    # Shifts that would be best for Gaussian rewards of the same variances. Any others would do:
    # what they prove is computed with the true divergences.
    def surrogate(chosen: npt.NDArray[np.intp]) -> Information:
        change = corners[pairs[chosen, 0]] - corners[pairs[chosen, 1]]
        change = np.where(np.abs(change) > 1e-12, change, 0.0)
        arms = np.tile(np.arange(len(mu)), (len(chosen), 1))
        edges = Edges(arms, change, lambda _: {})
        family = Gaussian(tuple(spread.tolist()))
        return Information(edges, gaps[chosen], center, family, costs=allowed.costs)

    hardest = np.argsort(-surrogate(np.arange(len(pairs))).edge_times(), kind="stable")
    information = surrogate(hardest[:MAX_PAIRS])
    found = optimal_allocation(information, allowed)
    closest = information.closest(found.w)
    shift = np.where(information.used, closest.alternative - information.mu, 0.0)
    low, high = rewards.to_unit(np.array(rewards.domain or rewards.range_of_means()))
    # Pairs that would need means which do not exist prove nothing.
    exist = (np.abs(shift) < np.minimum(center - low, high - center)).all(axis=1)
    if not exist.any():
        return 0.0
    shift = shift[exist]
    gain = np.maximum(
        *(
            rewards.divergence(np.broadcast_to(center, shift.shape), center + s * shift, sigma)
            for s in (1.0, -1.0)
        )
    )
    gain /= allowed.costs
    # The most that every pair gains at some allocation, in units of the largest gain.
    unit = gain.max()
    pairs_ub = np.column_stack([-gain / unit, np.ones(len(gain))])
    A_ub = np.vstack([pairs_ub, np.column_stack([allowed.A_ub, np.zeros(len(allowed.b_ub))])])
    A_eq = np.column_stack([allowed.A_eq, np.zeros(len(allowed.b_eq))])
    limits = np.concatenate([np.zeros(len(gain)), allowed.b_ub])
    box = np.append(allowed.arms, 1.0)
    cost = -(np.arange(len(box)) == len(box) - 1).astype(float)
    most, _ = least_of(cost, A_ub, limits, A_eq, allowed.b_eq, box)
    return float((1 - 1e-9) / (-most * unit))
