"""One of many optimal allocations: the leximin one.

The least informative edge comes first, then the second least given that, and so on. It does not
depend on how constraints are written. Each level is a program of its own, so with many arms any
optimal allocation has to do. Characteristic time and certificate are the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .allocation_set import independent
from .certificate import Program
from .interior_point import TARGET_GAP, Point, solve

Array = npt.NDArray[np.float64]

# With more arms than this the first optimal allocation that is found is taken.
MAX_ARMS = 50


def leximin(program: Program, point: Point) -> tuple[Array, bool]:
    """The leximin allocation from any optimal one, and whether there is no other."""
    first, longest, unique = program, program.time(point.w), True
    while True:
        following = _rest(program, point)
        free = len(following.allowed.free)
        if free == len(program.allowed.free) or free <= len(following.allowed.A_eq):
            return point.w, unique
        unique = False
        if following.count == 0 or len(first.allowed.free) > MAX_ARMS:
            return point.w, unique
        program, better = following, solve(following)
        # A badly conditioned level must not cost samples.
        if not first.time(better.w) <= longest * (1 + TARGET_GAP):
            return point.w, unique
        point = better


def _rest(program: Program, point: Point) -> Program:
    """The program that is left when what this one determines is held fast.

    Edges with a positive multiplier have the same value, hence the same weights on their
    arms, in every optimal allocation (D_e is strictly concave across rays); rows with a
    positive multiplier bind in all of them, and so does w >= 0. At the solution each
    product of slack and multiplier is tiny, so the larger factor tells which is positive.
    """
    information, allowed = program.information, program.allowed
    binding, rows, arms = point.binding
    pinned = information.index[binding][information.used[binding]]
    unused = allowed.free[arms]
    if information.closed_form:  # an edge's time grows beyond all bounds without its arms
        unused = unused[~information.covered()[unused]]
    moving = allowed.arms.copy()
    moving[pinned] = moving[unused] = False
    tight, alone = np.split(rows, [len(allowed.b_ub)])
    moving[allowed.rows.arm[alone]] = False
    kept = independent(np.vstack([allowed.A_eq, allowed.A_ub[tight]]), moving)
    face = replace(
        allowed,
        A_ub=allowed.A_ub[~tight],
        b_ub=allowed.b_ub[~tight],
        A_eq=kept,
        b_eq=kept @ point.w,
        arms=moving,
        max_slack=point.w,
    )
    touched = (moving[information.index] & information.used).any(axis=1)
    return Program(information.only(np.flatnonzero(touched)), face)
