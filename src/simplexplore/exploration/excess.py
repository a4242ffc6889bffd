"""By how many pulls limits on samples can be exceeded at most: docs/theory/tracking.md."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet

Array = npt.NDArray[np.float64]

# Moves that are rounding.
_ROUNDING = 1e-9

# Equalities beyond which not all of their signs are looked at.
_MOST_EQUALITIES = 8


def excess_bound(allowed: AllocationSet, room: float = 0.0) -> float:
    """No prefix of the pulls exceeds a limit by more, in pulls of the arm that uses it most.

    0 where only inequalities limit samples and some arm alone satisfies all of them.
    """
    played = np.flatnonzero(allowed.inside > 0)
    as_rows = allowed.as_rows()
    above = (as_rows.above - as_rows.limit[:, None])[:, played]
    equal = (as_rows.equal - as_rows.total[:, None])[:, played]
    equal = equal[np.abs(equal).max(axis=1, initial=0.0) > _ROUNDING]  # not the total
    if not len(equal) and (above <= _ROUNDING).all(axis=0).any():
        return room
    if len(equal) > _MOST_EQUALITIES:
        return math.inf
    longest = float(np.sqrt((above**2).sum(axis=0) + (equal**2).sum(axis=0)).max())
    step = float(np.abs(equal).max(initial=0.0))
    # Where there is one equality and nothing else, the other side is never more than a step away.
    if not len(above) and len(equal) == 1:
        return step
    depth = min(
        _depth(np.vstack([above, np.array(signs)[:, None] * equal]))
        for signs in itertools.product((-1.0, 1.0), repeat=len(equal))
    )
    return max(room, step) + longest + longest**2 / (2 * depth) if depth > 0 else math.inf


def limits_in_words(most: float) -> str:
    """What is guaranteed about limits on samples, with this problem's bound."""
    if most == 0:
        return "The pulls keep the limits: no prefix of them ever exceeds one."
    if math.isinf(most):
        return "The pulls exceed a limit by no more than some fixed number of pulls, at any time."
    return f"The pulls exceed a limit by at most {most:.2g} pulls, at any time."


def _depth(moves: Array) -> float:
    """How far below 0 all moves can be at once, on average over the arms of a mix."""
    from scipy.optimize import linprog

    size = moves.shape[1]
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.column_stack([moves, np.ones(len(moves))]),
        b_ub=np.zeros(len(moves)),
        A_eq=np.append(np.ones(size), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * size + [(None, None)],
    )
    # By less than the solver's tolerances.
    return -float(found.fun or 0.0) - 1e-6 if found.success else 0.0
