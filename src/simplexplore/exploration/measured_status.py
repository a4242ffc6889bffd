"""What is known of measured limits, in numbers that hold at every moment."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .engine import Engine
from .intervals import mean_intervals
from .measured_evidence import MeasuredEvidence

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


def measured_status(engine: Engine) -> tuple[MeasuredStatus, ...]:
    """What is known of each measured limit."""
    if not isinstance(engine.evidence, MeasuredEvidence):
        return ()
    problem, run = engine.plan.problem, engine.run
    policy = engine.policy if engine.has_answer else None
    evidence = engine.evidence.values()[0] if engine.has_answer else None
    found = []
    for i, row in enumerate(problem.measured):
        means = row.signed(run.mean[1 + i])
        share = engine.plan.delta / len(problem.measured)
        squares = None if row.noise.knows_sigma else run.squares[1 + i, :-1]
        low, high = np.clip(
            mean_intervals(row.noise, run.n, means, share, squares=squares), *row.range_of_means
        )

        mix: list[float | None] = [None] * 3
        if policy is not None:
            used = policy > 0
            mix = [float(numbers[used] @ policy[used]) for numbers in (means, low, high)]
        found.append(
            MeasuredStatus(
                name=row.name,
                limit=str(row.limit),
                tolerance=row.tolerance,
                means=np.where(run.n > 0, means, math.nan),
                low=low,
                high=high,
                value=mix[0],
                value_low=mix[1],
                value_high=mix[2],
                p_value=None if evidence is None else math.exp(-evidence[i]),
                worst=engine.evidence.worst_use(i),
            )
        )
    return tuple(found)
