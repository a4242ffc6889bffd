"""Looking for a mix that is a better answer than every vertex.

Among all policies the least characteristic time is not a convex problem. SLSQP moves the mix and
the allocation together; what it finds counts only with the certified time of the exact mix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.geometry.edges import EXACT_BELOW, Edges
from simplexplore.geometry.epsilon_answers import Answers, Comparisons, comparisons
from simplexplore.problem.rational import rational

from .allocation import Allocation, optimal_allocation
from .allocation_set import AllocationSet
from .information import Information

Array = npt.NDArray[np.float64]

# Shares of a mix are rounded to this step, so that it is an exact policy.
ROUNDING = 10**6

# The search mixes vertices that lose least; each of its steps looks at every comparison.
MAX_MIXED = 40
MAX_SEARCHED = 150

# Comparisons with vertices this close to the mix are left out: they never decide.
MIN_MOVED = 0.02


@dataclass(frozen=True)
class Solved:
    """An answer, its comparisons with vertices, and its optimal allocation.

    Without comparisons the answer is always good enough, and takes no samples.
    """

    policy: Array
    kind: str
    compared: Comparisons
    information: Information | None
    allocation: Allocation | None

    @property
    def time(self) -> float:
        """Characteristic time of the answer."""
        return self.allocation.characteristic_time if self.allocation else 0.0


def information_of(
    answers: Answers, compared: Comparisons, mu: Array, allowed: AllocationSet
) -> Information | None:
    """Information of an answer's comparisons; None where no samples can settle one of them."""
    edges, epsilon = compared.edges, answers.epsilon
    terms = edges.value * mu[edges.index]
    gaps = epsilon - terms.sum(axis=1)
    for e in np.flatnonzero(gaps < EXACT_BELOW * (epsilon + np.abs(terms).sum(axis=1))):
        exact = [rational(float(mu[a])) * x for a, x in edges.exact(int(e)).items()]
        gaps[e] = float(rational(epsilon) - sum(exact, Fraction(0)))
    if not (gaps > 0).all():
        return None
    rewards = answers.polytope.problem.rewards
    found = Information(edges, gaps, mu, rewards, epsilon, allowed.arms, allowed.costs)
    return None if found.lost.any() else found


def all_sampled(answers: Answers, allowed: AllocationSet) -> bool:
    """Whether every arm in which vertices differ may get samples."""
    shares = answers.policies[: len(answers.vertices), ~allowed.arms]
    return bool((shares == shares[0]).all())


def better_mix(answers: Answers, mu: Array, allowed: AllocationSet, start: Solved) -> Solved | None:
    """A mix and an allocation that are better together than all near them, by SLSQP."""
    from scipy.optimize import minimize, nnls

    if start.allocation is None or len(answers.vertices) > MAX_SEARCHED:
        return None
    if not all_sampled(answers, allowed):  # gaps would depend on the mix
        return None
    rewards = answers.polytope.problem.rewards
    corners = answers.policies[: len(answers.vertices)]
    mixed = np.argsort(-(corners @ mu), kind="stable")[:MAX_MIXED]
    shares, off = nnls(corners[mixed].T, start.policy)
    if off > 1e-9:  # it mixes other vertices
        return None
    size, count = len(mu), len(mixed)
    low, high = rewards.domain or rewards.range_of_means()
    reach = high - low
    arms = np.tile(np.arange(size), (len(corners), 1))

    def at(z: Array) -> tuple[Array, Array]:
        """Information against each vertex, and its derivatives by shares and allocation."""
        pi, w = z[:count] @ corners[mixed], z[count : count + size]
        change = np.where(np.abs(corners - pi) > 1e-9, corners - pi, 0.0)
        gaps = answers.epsilon - change @ mu
        gains = np.maximum(change, 0.0).sum(axis=1)
        rows = np.flatnonzero(gains > max(MIN_MOVED, 1.001 * answers.epsilon / reach))
        value, slope = np.full(len(corners), math.inf), np.zeros((len(corners), len(z)))
        if (gaps[rows] <= 0).any():
            return np.where(gaps <= 0, gaps, math.inf), slope
        edges = Edges(arms[rows], change[rows], lambda _: {})
        information = Information(
            edges, gaps[rows], mu, rewards, answers.epsilon, costs=allowed.costs
        )
        closest = information.closest(w)
        value[rows] = closest.value
        with np.errstate(divide="ignore", invalid="ignore"):
            gamma = np.where(closest.slope != 0, closest.slope * w / change[rows], 0.0).max(axis=1)
        slope[rows, :count] = (gamma[:, None] * closest.alternative) @ corners[mixed].T
        slope[rows, count : count + size] = closest.gradient
        return value, slope

    w = 0.99 * start.allocation.w + 0.01 * allowed.max_slack
    z = np.concatenate([shares / shares.sum(), w, [1.0]])
    unit = float(at(z)[0].min())
    cap = 1e3

    def slack(z: Array) -> Array:
        return np.asarray(np.minimum(at(z)[0] / unit, cap) - z[-1])

    def slack_slope(z: Array) -> Array:
        value, slope = at(z)
        slope = np.where((value / unit < cap)[:, None], slope / unit, 0.0)
        slope[:, -1] = -1.0
        return slope

    upward = np.zeros(len(z))
    upward[-1] = -1.0
    shares_within, w_within = (
        [(0.0, 1.0)] * count,
        [(1e-6 * x, 1.0) for x in allowed.max_slack],
    )
    settings: dict[str, Any] = {
        "fun": lambda z: -z[-1],
        "x0": z,
        "jac": lambda _: upward,
        "bounds": [*shares_within, *w_within, (0.0, None)],
        "constraints": [
            {"type": "ineq", "fun": slack, "jac": slack_slope},
            *_sets_of(allowed, count, len(z)),
        ],
        "options": {"maxiter": 60, "ftol": 1e-9},
    }
    try:
        with np.errstate(all="ignore"):
            found = minimize(method="SLSQP", **settings)
    except NotConvergedError:
        return None  # a step led where nothing can be computed; the start is an answer already
    return _rounded_mix(answers, np.asarray(found.x[:count]), mixed, mu, allowed)


def mix_near(answers: Answers, policy: Array, mu: Array, allowed: AllocationSet) -> Solved | None:
    """The certified time of an exact mix of vertices that is a policy but for rounding."""
    from scipy.optimize import nnls

    every = np.arange(len(answers.vertices))
    shares, _ = nnls(answers.policies[every].T, policy)
    return _rounded_mix(answers, shares, every, mu, allowed)


def _sets_of(allowed: AllocationSet, count: int, length: int) -> list[Any]:
    """That shares of a mix, the first variables, sum to 1, and the next are an allocation."""
    from scipy.optimize import LinearConstraint

    rows = np.zeros((1 + len(allowed.b_eq) + len(allowed.b_ub), length))
    rows[0, :count] = 1.0
    rows[1:, count : count + len(allowed.max_slack)] = np.vstack([allowed.A_eq, allowed.A_ub])
    equal, totals = len(allowed.b_eq) + 1, np.append(1.0, allowed.b_eq)
    found = [LinearConstraint(rows[:equal], totals, totals)]
    if len(allowed.b_ub):
        found.append(LinearConstraint(rows[equal:], -math.inf, allowed.b_ub))
    return found


def _rounded_mix(
    answers: Answers,
    shares: Array,
    mixed: npt.NDArray[np.intp],
    mu: Array,
    allowed: AllocationSet,
) -> Solved | None:
    """The certified time of a mix whose shares are rounded; None if it is not good enough."""
    if not np.isfinite(shares).all() or shares.clip(0).sum() <= 0:
        return None
    steps = np.floor(shares.clip(0) / shares.clip(0).sum() * ROUNDING + 0.5).astype(int)
    steps[np.argmax(steps)] += ROUNDING - steps.sum()
    whole = steps.astype(object) @ answers.corners[mixed]
    denominator = answers.denominator * ROUNDING
    change = answers.corners * ROUNDING - whole
    compared = comparisons(answers.polytope, answers.epsilon, change, denominator)
    policy = (whole / denominator).astype(float)
    kind = "vertex" if np.count_nonzero(steps) == 1 else "mix"
    if len(compared.edges) == 0:
        return Solved(policy, kind, compared, None, None)
    information = information_of(answers, compared, mu, allowed)
    if information is None:
        return None
    return Solved(policy, kind, compared, information, optimal_allocation(information, allowed))
