"""Which arms keep measured limits for certain, and what samples can then be promised to keep.

The scenario "anytime": samples keep the known constraints, and measured limits at the upper ends of
what is plausible, so with probability 1 - delta as they are (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import SettingError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]

# What rounding may add to a coefficient of a limit.
_ROUNDING = 1e-9

_ELSE = "In the scenario 'end-of-time' the answer keeps the limits, and samples need not."


@dataclass(frozen=True)
class Safety:
    """What is known beforehand of samples within limits.

    Attributes
    ----------
    upper : (rows, K) array
        The most that means of measurements can be, as of limits from above.
    moves : (known rows, K) array
        By how much a pull of each arm exceeds each known constraint.
    alone : (K,) array
        Whether an arm alone keeps all known constraints.
    """

    upper: Array
    moves: Array
    alone: npt.NDArray[np.bool_]


def safety(problem: Problem) -> Safety:
    """What is known beforehand; a `SettingError` says why samples cannot be kept within limits."""
    if problem.room:
        raise SettingError(f"room does not go with measured limits; remove it. {_ELSE}")
    ends = [row.signed(row.range_of_means).max() for row in problem.measured]
    upper = np.outer(ends, np.ones(problem.size))
    for row, most in zip(problem.measured, upper, strict=True):
        if not np.isfinite(most).all():
            raise SettingError(
                f"in the scenario 'anytime' an arm is tried only when samples can afford the worst "
                f"that it can be, and nothing says how much {row.name} that is: add 'domain = [low,"
                f" high]', a range of its means, to [measured.{row.name}]. {_ELSE}"
            )
        for arm in row.safe or ():
            a = problem.arms.index(arm)
            most[a] = min(most[a], row.bound)
    rows = AllocationSet.of(Polytope(problem.replace(measured=())), "anytime").as_rows()
    moves = rows.above - rows.limit[:, None]
    equal = rows.equal - rows.total[:, None]
    if (np.abs(equal) > _ROUNDING).any():
        raise SettingError(
            "in the scenario 'anytime' every sample keeps measured limits and constraints that are "
            f"not equalities; write one as an inequality, or leave it out. {_ELSE}"
        )
    alone = np.asarray((moves <= _ROUNDING).all(axis=0))
    bound = np.array([row.bound for row in problem.measured])
    if not (alone & (upper <= bound[:, None]).all(axis=0)).any():
        tables = " and ".join(f"[measured.{row.name}]" for row in problem.measured)
        raise SettingError(
            "in the scenario 'anytime' samples begin with an arm that is known to keep the "
            "measured limits and alone keeps all constraints, and none is: if there is one, name "
            f"it in {tables}, with 'safe = [arm]'. {_ELSE}"
        )
    return Safety(upper, moves, alone)


def promise(problem: Problem, delta: float) -> str:
    """What is promised of samples in the scenario "anytime", and what is not."""
    limits = " and ".join(row.in_words for row in problem.measured)
    return (
        f"The pulls keep {limits} in expectation: with probability {1 - delta:g}, at every moment "
        "the true mean over all pulls handed out keeps the limit. Single pulls, and measurements "
        "as they come out, may exceed it."
    )
