"""The best way to spread samples, with a certificate.

The characteristic time (paper, Eq. 5) is T = min over w in Pi of max over edges of
1 / D_e(w). An allocation bounds it from above; multipliers bound it from below, whatever
solver they came from. The distance of the two is the certificate.

In the anytime scenario the optimal allocations may form a set. We return the leximin
member: the least informative edge first, then the second least given that, and so on. It
does not depend on how constraints are written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .information import Information
from .newton import Point, Program, time
from .solver import TARGET_GAP, lower_certificate, solve

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Equalities that differ by less than this on the free arms repeat each other.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class AllocationSet:
    """Pi = {w >= 0 : A w <= b, E w = f} with an allocation strictly inside.

    Rows range over all arms; only those in `arms` may be positive.
    """

    above: Array  # A
    limit: Array  # b
    equal: Array  # E
    total: Array  # f
    inside: Array
    arms: Mask

    @property
    def width(self) -> float:
        """How far the allocation inside keeps from every inequality."""
        rows = self.limit - self.above @ self.inside
        return float(min(rows.min(initial=1.0), self.inside[self.arms].min()))

    @classmethod
    def simplex(cls, size: int) -> AllocationSet:
        """All allocations."""
        return cls(
            above=np.zeros((0, size)),
            limit=np.zeros(0),
            equal=np.ones((1, size)),
            total=np.ones(1),
            inside=np.full(size, 1.0 / size),
            arms=np.ones(size, dtype=bool),
        )


@dataclass(frozen=True)
class Allocation:
    """An optimal allocation.

    Attributes
    ----------
    characteristic_time : float
        max over edges of 1 / D_e(w): no less than T.
    relative_gap : float
        T is at least characteristic_time / (1 + relative_gap).
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
    program = Program(
        edges=np.arange(len(information.gaps)),
        free=np.flatnonzero(allowed.arms),
        above=allowed.above,
        limit=allowed.limit,
        equal=allowed.equal,
        total=allowed.total,
    )
    point = solve(information, program, allowed.inside)
    lower = lower_certificate(information, program, point)
    w, unique = _leximin(information, program, point)
    reached = time(information, program, w)
    sound = lower > 0 and bool((w >= 0).all()) and reached > 0
    gap = max(reached / lower - 1.0, 0.0) if sound else np.inf
    return Allocation(
        characteristic_time=reached,
        relative_gap=gap + information.rounding(),
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
        settled = len(following.free) == len(program.free)
        if settled or len(following.free) <= len(following.equal):
            return point.w, unique
        unique = False
        if len(following.edges) == 0:
            return point.w, unique
        better = solve(information, following, point.w)
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
    binding = program.edges[point.y > point.s]
    pinned = information.index[binding][information.used[binding]]
    unused = program.free[point.z > point.w[program.free]]
    if information.closed_form:  # an edge's time grows beyond all bounds without its arms
        unused = unused[~information.covered()[unused]]
    free = np.setdiff1d(program.free, np.concatenate([pinned, unused]))
    moving = np.zeros(information.size, dtype=bool)
    moving[free] = True
    touched = (moving[information.index] & information.used).any(axis=1)
    tight = point.l > point.r
    equal = np.vstack([program.equal, program.above[tight]])
    # An orthonormal basis of the equalities as seen by the free arms.
    left, sizes, _ = np.linalg.svd(equal[:, free], full_matrices=False)
    independent = left[:, sizes > RANK_TOLERANCE].T @ equal
    return Program(
        edges=np.intersect1d(program.edges, np.flatnonzero(touched)),
        free=free,
        above=program.above[~tight],
        limit=program.limit[~tight],
        equal=independent,
        total=independent @ point.w,
    )
