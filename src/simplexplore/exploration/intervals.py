"""Confidence intervals for means that hold at every moment, however samples were chosen."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from simplexplore.kernels.exponential import PRIOR_SAMPLES, regret_of_mixture
from simplexplore.kernels.roots import RESOLUTION
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]


def mean_intervals(
    problem: Problem, counts: Array, means: Array, delta: float
) -> tuple[Array, Array]:
    """Lower and upper ends (K,), in the user's coordinates; infinite without samples.

    With probability at least 1 - delta every arm's mean lies in its interval at every moment:
    for each arm the mixture martingale (docs/theory/stopping.md) at its true mean stays below
    K / delta.
    """
    rewards = problem.rewards
    seen = counts > 0
    n = np.where(seen, counts, 1.0)
    unit = np.where(seen, rewards.to_unit(means), 0.5)
    level = (
        math.log(problem.size)
        - math.log(delta)
        + np.array([regret_of_mixture(rewards.code, *pair) for pair in zip(n, unit, strict=True)])
    )
    weight = n * n / (n + PRIOR_SAMPLES) if isinstance(rewards, Gaussian) else n
    low, high = rewards.unit_domain() or tuple(rewards.to_unit(rewards.range_of_means()))
    sigma = rewards.sigmas(problem.size)

    def is_inside(lam: Array) -> npt.NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = rewards.divergence(unit, lam, sigma)
        return np.asarray(weight * distance <= level)

    def end(limit: float) -> Array:
        """Bisection between the mean and the end of the range, or far enough out.

        It ends where floats do, on the outer side: an interval is never too short.
        """
        inside, outside = unit.copy(), np.full(problem.size, limit)
        if math.isinf(limit):
            step = np.ones(problem.size)
            outside = unit + math.copysign(1.0, limit) * step
            while is_inside(outside).any():
                step *= 2
                outside = unit + math.copysign(1.0, limit) * step
        at_end = is_inside(outside)  # of the range
        while True:
            middle = (inside + outside) / 2
            apart = np.abs(outside - inside) > RESOLUTION * np.abs(outside)
            between = apart & (middle != inside) & (middle != outside) & ~at_end
            if not between.any():
                return outside
            good = is_inside(middle)
            inside = np.where(between & good, middle, inside)
            outside = np.where(between & ~good, middle, outside)

    lower, upper = rewards.from_unit(end(float(low))), rewards.from_unit(end(float(high)))
    range_low, range_high = problem.rewards.domain or rewards.range_of_means()
    return (
        np.asarray(np.where(seen, np.clip(lower, range_low, range_high), range_low)),
        np.asarray(np.where(seen, np.clip(upper, range_low, range_high), range_high)),
    )
