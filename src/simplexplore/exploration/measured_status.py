"""What is known of measured limits, in numbers that hold at every moment."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem

from .engines import ExplorationEngine
from .intervals import mean_intervals
from .measured_engine import MeasuredEngine

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasuredStatus:
    """A measured limit at one moment.

    Attributes
    ----------
    name, limit : str
        Of the row.
    tolerance : float
    means : (K,) array
        Empirical means; NaN for arms without pulls.
    low, high : (K,) arrays
        With probability 1 - delta the true means of all arms and rows lie between them at every
        moment.
    value : float or None
        Empirical mean over the recommended policy.
    value_low, value_high : float or None
        Where the true one lies, likewise.
    p_value : float or None
        That the recommended policy misses the limit by more than its tolerance: for every alpha,
        the probability that one which does is ever recommended with a p-value of at most alpha is
        at most alpha.
    worst : float or None
        With probability 1 - delta the true mean over all pulls handed out was never worse, in the
        scenario "anytime".
    """

    name: str
    limit: str
    tolerance: float
    means: Array
    low: Array
    high: Array
    value: float | None
    value_low: float | None
    value_high: float | None
    p_value: float | None
    worst: float | None


def measured_status(engine: ExplorationEngine) -> tuple[MeasuredStatus, ...]:
    """What is known of each measured limit."""
    if not isinstance(engine, MeasuredEngine):
        return ()
    problem, run = engine.plan.problem, engine.run
    policy = engine.policy if engine.has_answer else None
    evidence = engine.evidence()[0] if engine.has_answer else None
    found = []
    for i, row in enumerate(problem.measured):
        means = row.signed(run.measured[i])
        outcomes = Problem(problem.arms, rewards=row.noise)
        share = engine.plan.delta / len(problem.measured)
        squares = None if row.noise.knows_sigma else run.squares[1 + i, :-1]
        low, high = np.clip(
            mean_intervals(outcomes, run.n, means, share, squares=squares), *row.range_of_means
        )

        def over_mix(numbers: Array, policy: Array | None = policy) -> float | None:
            if policy is None:
                return None
            return float(numbers[policy > 0] @ policy[policy > 0])

        p = None if evidence is None else math.exp(-evidence[i])
        found.append(
            MeasuredStatus(
                name=row.name,
                limit=str(row.limit),
                tolerance=row.tolerance,
                means=np.where(run.n > 0, means, math.nan),
                low=low,
                high=high,
                value=over_mix(means),
                value_low=over_mix(low),
                value_high=over_mix(high),
                p_value=p,
                worst=engine.worst_use(i),
            )
        )
    return tuple(found)
