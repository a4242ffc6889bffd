"""How much better than the recommended policy another can be, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]

# The solver's tolerances, relative.
_SLACK = 1e-6

# Looks at a bound that is too large: the first and last share of more samples, and what is added
# when nothing is known.
_LEAST_WAIT, _LONGEST_WAIT, _BLIND_WAIT = 0.005, 1.0, 0.25


@dataclass(frozen=True)
class Regret:
    """The bound, and how it comes about.

    Attributes
    ----------
    bound : float
        No policy earns more by more than this; infinite if nothing is known.
    lost : float
        What the policy with that bound earns less, by the empirical means: the rest of the bound
        is doubt, and shrinks as samples come in.
    """

    bound: float
    lost: float = 0.0

    def more(self, limit: float) -> float:
        """The share of more samples after which the bound may be down to a limit.

        Doubt falls like one over the root of the samples. Other policies may have the largest
        bound by then, so that this is rather too early than too late.
        """
        return ((self.bound + self.lost) / (self.lost + limit)) ** 2 - 1.0

    def wait(self, limit: float) -> float:
        """The share of more samples after which to look again."""
        if math.isinf(self.bound):
            return _BLIND_WAIT
        return min(max(self.more(limit), _LEAST_WAIT), _LONGEST_WAIT)


def largest_regret(
    problem: Problem, policy: Array, directions: Array, gains: Array, gaps: Array
) -> Regret:
    """The most that a policy can earn more, given what each edge can gain at most.

    Every policy is the recommended one plus nonnegative multiples of the edges' directions; the
    worst is a linear program in these multiples. `gaps` are the edges' losses per unit by the
    empirical means.
    """
    from scipy.optimize import linprog

    if (gains <= 0).all():
        return Regret(0.0)
    if np.isinf(gains).any():
        return Regret(math.inf)
    rows = np.vstack([problem.matrix, -problem.matrix, -np.eye(problem.size)])
    limits = np.concatenate([problem.upper, -problem.lower, np.zeros(problem.size)])
    given = np.isfinite(limits)
    rows, room = rows[given], limits[given] - rows[given] @ policy
    found = linprog(-gains, A_ub=rows @ directions.T, b_ub=np.maximum(room, 0.0))
    if not found.success:
        return Regret(math.inf)
    lost = float(found.x @ np.maximum(gaps, 0.0))
    return Regret(max(0.0, -float(found.fun or 0.0)) * (1.0 + _SLACK), lost)
