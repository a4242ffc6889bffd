"""The best way to spread samples, with a certificate.

The characteristic time (paper, Eq. 5) is T = min over w in Pi of max over edges of
1 / D_e(w). An allocation bounds it from above; multipliers bound it from below, whatever
solver they came from. The distance of the two is the certificate.

In the anytime scenario the optimal allocations may form a set. We return the leximin
member: the least informative edge first, then the second least given that, and so on. It
does not depend on how constraints are written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .allocation_set import AllocationSet
from .information import Information
from .newton import Point, Program, time
from .solver import TARGET_GAP, lower_certificate, solve, time_and_error

Array = npt.NDArray[np.float64]

# Equalities that differ by less than this on the free arms repeat each other.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Allocation:
    """An optimal allocation.

    Attributes
    ----------
    characteristic_time : float
        max over edges of 1 / D_e(w): no less than T.
    relative_gap : float
        T is at least characteristic_time / (1 + relative_gap), and the time at w differs from
        characteristic_time by no more, rounding of every term counted.
    w : (K,) array
    multipliers : (E,) array
        Weights of the edges in the optimum; they sum to one.
    unique : bool
        Whether w is the only optimal allocation.
    """

    characteristic_time: float
    relative_gap: float
    w: Array
    multipliers: Array
    unique: bool


def optimal_allocation(information: Information, allowed: AllocationSet) -> Allocation:
    """Minimise the largest 1 / D_e(w) over the allowed allocations."""
    program = Program(np.arange(len(information.gaps)), allowed)
    point = solve(information, program)
    lower = lower_certificate(information, program, point, information.closest(point.w))
    w, unique = _leximin(information, program, point)
    reached, off = time_and_error(information, program, w)
    sound = lower > 0 and bool((w >= 0).all()) and reached > 0
    return Allocation(
        characteristic_time=reached,
        relative_gap=max(reached / lower - 1.0, 0.0) + off if sound else np.inf,
        w=w,
        multipliers=point.y / point.y.sum(),
        unique=unique,
    )


def _leximin(information: Information, program: Program, point: Point) -> tuple[Array, bool]:
    """The canonical optimal allocation, and whether there is no other."""
    unique = True
    first, worst = program, time(information, program, point.w)
    while True:
        following = _rest(information, program, point)
        free = len(following.allowed.free)
        if free == len(program.allowed.free) or free <= len(following.allowed.equal):
            return point.w, unique
        unique = False
        if len(following.edges) == 0:
            return point.w, unique
        better = solve(information, following)
        # A badly conditioned level must not cost samples.
        if not time(information, first, better.w) <= worst * (1 + TARGET_GAP):
            return point.w, unique
        program, point = following, better


def _rest(information: Information, program: Program, point: Point) -> Program:
    """The program that is left when what this one determines is held fast.

    Edges with a positive multiplier have the same value, hence the same weights on their
    arms, in every optimal allocation (D_e is strictly concave across rays); rows with a
    positive multiplier bind in all of them, and so does w >= 0. At the solution each
    product of slack and multiplier is tiny, so the larger factor tells which is positive.
    """
    allowed = program.allowed
    binding = program.edges[point.y > point.s]
    pinned = information.index[binding][information.used[binding]]
    unused = allowed.free[point.z > point.w[allowed.free]]
    if information.closed_form:  # an edge's time grows beyond all bounds without its arms
        unused = unused[~information.covered()[unused]]
    moving = allowed.arms.copy()
    moving[pinned] = moving[unused] = False
    touched = (moving[information.index] & information.used).any(axis=1)
    tight = point.l > point.r
    equal = np.vstack([allowed.equal, allowed.above[tight]])
    # An orthonormal basis of the equalities as seen by the free arms.
    left, sizes, _ = np.linalg.svd(equal[:, moving], full_matrices=False)
    independent = left[:, sizes > RANK_TOLERANCE].T @ equal
    face = replace(
        allowed,
        above=allowed.above[~tight],
        limit=allowed.limit[~tight],
        equal=independent,
        total=independent @ point.w,
        arms=moving,
        inside=point.w,
        deep=point.w,
    )
    return Program(np.intersect1d(program.edges, np.flatnonzero(touched)), face)
