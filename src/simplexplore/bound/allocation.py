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

from .allocation_set import AllocationSet, independent
from .information import Information
from .newton import Point, Program, time
from .solver import PROMISED_GAP, TARGET_GAP, lower_certificate, solve, time_and_error

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# With more free arms than this it pays to look for levels that caps decide.
MANY_ARMS = 50

# Free arms, and a part of the edges, of all levels together. What is left after so many keeps
# the allocation that the last level found: optimal, if not leximin.
MAX_WORK = 100_000


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
    if len(allowed.equal) >= len(allowed.free):
        return _only(information, program)
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


def _only(information: Information, program: Program) -> Allocation:
    """The only allocation that there is."""
    w = program.allowed.deep
    reached, off = time_and_error(information, program, w)
    values = information.closest(w).value
    return Allocation(
        characteristic_time=reached,
        relative_gap=off,
        w=w,
        multipliers=(np.arange(len(values)) == values.argmin()).astype(float),
        unique=True,
    )


def _leximin(information: Information, program: Program, point: Point) -> tuple[Array, bool]:
    """The canonical optimal allocation, and whether there is no other."""
    unique = True
    first, worst = program, time(information, program, point.w)
    work = 0
    while True:
        following = _rest(information, program, point)
        free = len(following.allowed.free)
        if free == len(program.allowed.free) or free <= len(following.allowed.equal):
            return point.w, unique
        unique = False
        work += free + len(following.edges) // 20
        if len(following.edges) == 0 or work > MAX_WORK:
            return point.w, unique
        program, better = following, solve(information, following)
        if free > MANY_ARMS:
            program, better = _skip(information, following, better)
        # A badly conditioned level must not cost samples.
        if not time(information, first, better.w) <= worst * (1 + TARGET_GAP):
            return point.w, unique
        point = better


def _skip(information: Information, program: Program, point: Point) -> tuple[Program, Point]:
    """Go on to the last of the levels that caps alone decide.

    No time is shorter than with all arms at their caps. If the longest of these is reached, its
    arms have their caps in every optimum; if one allocation reaches the j longest and takes no
    longer on any other edge, it is the leximin one as far as that. The largest j is found by
    bisection (docs/theory/characteristic_time.md).
    """
    caps = program.allowed.caps
    edges = program.edges
    least = 1.0 / information.closest(np.minimum(caps, 1.0)).value[edges]
    order = np.argsort(-least, kind="stable")
    if not time(information, program, point.w) <= least[order[0]] * (1 + PROMISED_GAP):
        return program, point
    # By arm, in this order, the edge that needs it first.
    arms, use = information.index[edges[order]], information.used[edges[order]]
    needed = np.full(information.size, len(order))
    np.minimum.at(needed, arms[use], np.nonzero(use)[0])
    needed[~program.allowed.arms] = len(order)
    ends = np.unique(needed[needed < len(order)])
    uncapped = needed[program.allowed.arms & (caps == np.inf)].min(initial=len(order))
    ends = ends[ends < uncapped]
    longest = least[order[ends]]
    low, high, best = 1, len(ends), (program, point)
    middle = (low + high) // 2
    while low <= high:
        rest = _at_caps(information, program, needed <= ends[middle - 1])
        reached, enough = np.inf, 0
        if rest is not None:
            better = solve(information, rest)
            reached = time(information, rest, better.w)
        if rest is not None and reached <= longest[middle - 1] * (1 + TARGET_GAP):
            best, low = (rest, better), middle + 1
        else:
            high = middle - 1
            # Too long for so many levels, it is short enough for those that take longer.
            if information.has_many:
                enough = int(np.count_nonzero(longest >= reached))
        middle = enough if enough >= low else (low + high) // 2
    return best


def _at_caps(information: Information, program: Program, full: Mask) -> Program | None:
    """The program that is left when some arms have their caps; None if no room is seen for it.

    The others keep their proportions above their floors, as far as the equalities let them.
    """
    allowed = program.allowed
    moving = allowed.arms & ~full
    above = allowed.above[:, moving].any(axis=1)
    equal = independent(allowed.equal, moving)
    floor = allowed.floors
    w = np.where(full, np.minimum(allowed.caps, 1.0), allowed.deep)
    left = np.where(moving, w - floor, 0.0)
    if not len(equal) < np.count_nonzero(moving):
        return None
    off = equal @ (allowed.deep - w)
    w[moving] += (left * (equal.T @ np.linalg.solve((equal * left) @ equal.T, off)))[moving]
    face = replace(
        allowed,
        above=allowed.above[above],
        limit=allowed.limit[above],
        equal=equal,
        total=equal @ w,
        arms=moving,
        inside=w,
        deep=w,
    )
    edges = _touched(information, program.edges, moving)
    return Program(edges, face) if len(edges) and face.holds_strictly(w) else None


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
    tight = point.l > point.r
    kept = independent(np.vstack([allowed.equal, allowed.above[tight]]), moving)
    face = replace(
        allowed,
        above=allowed.above[~tight],
        limit=allowed.limit[~tight],
        equal=kept,
        total=kept @ point.w,
        arms=moving,
        inside=point.w,
        deep=point.w,
    )
    return Program(_touched(information, program.edges, moving), face)


def _touched(information: Information, edges: Indices, moving: Mask) -> Indices:
    """Edges with an arm that moves."""
    touched = (moving[information.index[edges]] & information.used[edges]).any(axis=1)
    return np.asarray(edges[touched])
