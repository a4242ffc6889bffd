"""Which limits samples keep, and by how many pulls they can miss them at most.

Known limits (docs/theory/tracking.md): by no more than a fixed number of pulls. Measured limits in
the scenario "anytime" (docs/theory/measured_stopping.md): at the upper ends of what is plausible,
so with probability 1 - delta as they are.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import SettingError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.messages import listed
from simplexplore.problem.problem import Problem

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Moves, or coefficients of a limit, that are rounding.
_ROUNDING = 1e-9

# Equalities beyond which not all of their signs are looked at.
_MAX_EQUALITIES = 8

_ELSE = "In the scenario 'end-of-time' the answer keeps the limits, and samples need not."


def excess_bound(allowed: AllocationSet, allowed_excess: float = 0.0) -> float | None:
    """No prefix of the pulls exceeds a limit by more, in pulls of the arm that uses it most.

    0 where only inequalities limit samples and some arm alone satisfies all of them. None where
    nothing limits samples.
    """
    if allowed.is_simplex:
        return None
    played = np.flatnonzero(allowed.interior_allocation > 0)
    own = allowed.with_fixed()
    above = (own.A_ub - own.b_ub[:, None])[:, played]
    equal = (own.A_eq - own.b_eq[:, None])[:, played]
    equal = equal[np.abs(equal).max(axis=1, initial=0.0) > _ROUNDING]  # not the total
    alone = (above <= _ROUNDING).all(axis=0) & _keeps_single_limits(own)[played]
    if not len(equal) and alone.any():
        return allowed_excess
    if len(equal) > _MAX_EQUALITIES:
        return math.inf
    squares = (above**2).sum(axis=0) + (equal**2).sum(axis=0) + _squares(own)[played]
    longest = float(np.sqrt(squares.max()))
    step = float(np.abs(equal).max(initial=0.0))
    # Where there is one equality and nothing else, the other side is never more than a step away.
    if not len(own.limits) and len(equal) == 1:
        return step
    depth = min(
        _depth(np.vstack([above, np.array(signs)[:, None] * equal]), own, played)
        for signs in itertools.product((-1.0, 1.0), repeat=len(equal))
    )
    return max(allowed_excess, step) + longest + longest**2 / (2 * depth) if depth > 0 else math.inf


def limits_in_words(most: float) -> str:
    """What is guaranteed about limits on samples, with this problem's bound."""
    if most == 0:
        return "The pulls keep the limits: no prefix of them ever exceeds one."
    if math.isinf(most):
        return "The pulls exceed a limit by no more than some fixed number of pulls, at any time."
    return f"The pulls exceed a limit by at most {most:.2g} pulls, at any time."


def _keeps_single_limits(allowed: AllocationSet) -> npt.NDArray[np.bool_]:
    """Arms that alone keep all limits on single arms: those of other arms are not from below."""
    broken = allowed.lower > _ROUNDING
    own = (allowed.upper >= 1.0 - _ROUNDING) & (np.count_nonzero(broken) <= broken)
    return np.asarray(own)


def _squares(allowed: AllocationSet) -> Array:
    """By arm, the squares of what a pull of it uses of limits on single arms, less its part."""
    squares = np.zeros(len(allowed.lower))
    for limits in (allowed.upper, allowed.lower):
        given = np.isfinite(limits) & (limits > 0)
        squares += limits[given] @ limits[given]
        squares[given] += 1.0 - 2.0 * limits[given]
    return squares


def _depth(moves: Array, allowed: AllocationSet, played: Indices) -> float:
    """How far below 0 all moves can be at once, on average over the arms of a mix."""
    from scipy import sparse
    from scipy.optimize import linprog

    size = len(played)
    upper, lower = allowed.upper[played], allowed.lower[played]
    capped, floored = np.flatnonzero(np.isfinite(upper)), np.flatnonzero(lower > 0)
    unit = sparse.eye_array(size, format="csr")
    rows: Any = sparse.vstack([sparse.csr_array(moves), unit[capped], -unit[floored]])
    above: Any = sparse.hstack([rows, sparse.csr_array(np.ones((rows.shape[0], 1)))], format="csr")
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=above,
        b_ub=np.concatenate([np.zeros(len(moves)), upper[capped], -lower[floored]]),
        A_eq=np.append(np.ones(size), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * size + [(None, None)],
    )
    # By less than the solver's tolerances.
    return -float(found.fun or 0.0) - 1e-6 if found.success else 0.0


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
    if problem.initial_excess:
        raise SettingError(f"initial_excess does not go with measured limits; remove it. {_ELSE}")
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
    moves = rows.A_ub - rows.b_ub[:, None]
    equal = rows.A_eq - rows.b_eq[:, None]
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
    """What is promised of samples in the scenario "anytime", what is not, and how they begin."""
    known = safety(problem)
    bounds = np.array([row.bound for row in problem.measured])
    keeps = known.alone & (known.upper <= bounds[:, None]).all(axis=0)
    first = [arm for arm, is_safe in zip(problem.arms, keeps, strict=True) if is_safe]
    limits = " and ".join(row.in_words for row in problem.measured)
    return (
        f"The pulls keep {limits} in expectation: with probability {1 - delta:g}, at every moment "
        "the true mean over all pulls handed out keeps the limit. Single pulls, and measurements "
        f"as they come out, may exceed it. So they begin with {listed(first)}, known to keep the "
        "limits: any other arm is tried as soon as the pulls so far can afford the worst that it "
        "can be."
    )
