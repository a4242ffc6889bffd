"""Rows, floors and caps of the feasible policies, with exact numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational

from .exact_inverse import ExactInverse

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Coefficients and bounds may come out of a sum or a quotient of the user's.
SLIPS = 4


@dataclass(frozen=True)
class Side:
    """One side of a constraint, ``sign * row <= bound``, or an equality.

    Attributes
    ----------
    owner : int
        The constraint; -1 for the total.
    arm : int
        The arm that it limits, or -1 if it is a row.
    """

    owner: int
    sign: float
    bound: float
    has_slack: bool
    arm: int


class ExactRows:
    """Rows, ends and exact numbers of {floor <= x <= cap : M x = b}, x = (shares, slacks).

    Sides of constraints are numbered in their order, the total is side 0. Variable a < K is the
    share of arm a, variable K + i the slack of side i. `live` marks the variables that are not
    zero all over F, `columns` those that a basis is made of, and `rows` the sides that are
    independent rows.

    Attributes
    ----------
    owner : list of int
        The constraint that each side came from; -1 for the total.
    arm : array of int
        By side: the arm that it limits, or -1 if it is a row.
    is_cap : array of bool
        By side: whether it limits an arm from above.
    floor, cap : lists of Fraction
        By arm; a cap that the total implies is None.
    tight_at : dict from arm to a dict from Fraction to a list of int
        Sides that are tight where an arm has a share.
    """

    def __init__(self, problem: Problem) -> None:
        self.size = size = problem.size
        sides = _sides(problem)
        self.owner = [side.owner for side in sides]
        self.count = len(sides)
        self.arm = np.array([side.arm for side in sides])
        self.has_slack = np.array([side.has_slack for side in sides])
        self.general = np.array([i for i, side in enumerate(sides) if side.arm < 0])
        self._place = np.full(self.count, -1)
        self._place[self.general] = np.arange(len(self.general))
        self._user_rows = np.ones((len(self.general), size))
        for place, i in enumerate(self.general[1:], 1):
            self._user_rows[place] = sides[i].sign * problem.matrix[sides[i].owner]
        scale = np.abs(self._user_rows).max(axis=1)
        scale[scale == 0] = 1.0
        self._matrix = self._user_rows / scale[:, None]
        bounds = np.array([sides[i].bound for i in self.general])
        self._bound = bounds / scale
        self._exact_scale = [rational(float(x), SLIPS) for x in scale]
        self._exact_bound: list[Fraction] = [
            rational(float(x), SLIPS) / y for x, y in zip(bounds, self._exact_scale, strict=True)
        ]
        self._entries: dict[int, Fraction] = {}
        self.rows = self.general
        self.live = np.concatenate([np.ones(size, dtype=bool), self.has_slack])
        self._set_limits(problem, sides)

    def _set_limits(self, problem: Problem, sides: Sequence[Side]) -> None:
        """Floors and caps, and which of their sides are tight at which share of an arm."""
        self.floor = [Fraction(0)] * self.size
        self.cap: list[Fraction | None] = [None] * self.size
        self.tight_at: dict[int, dict[Fraction, list[int]]] = {}
        self.is_cap = np.zeros(self.count, dtype=bool)
        self._floor_owner: dict[int, int] = {}
        self._cap_owner: dict[int, int] = {}
        for i, side in enumerate(sides):
            a = side.arm
            if a < 0:
                continue
            coefficient = float(side.sign * problem.matrix[side.owner, a])
            share = rational(side.bound, SLIPS) / rational(coefficient, SLIPS)
            self.is_cap[i] = coefficient > 0
            cap = self.cap[a]
            if (coefficient > 0 or not side.has_slack) and (cap is None or share < cap):
                self.cap[a], self._cap_owner[a] = share, side.owner
            if (coefficient < 0 or not side.has_slack) and share > self.floor[a]:
                self.floor[a], self._floor_owner[a] = share, side.owner
            if side.has_slack:
                self.tight_at.setdefault(a, {}).setdefault(share, []).append(i)
        # No share is above 1, so a higher cap is no end; one at 1 may still be tight.
        for a, cap in enumerate(self.cap):
            if cap is not None and cap >= 1 and cap > self.floor[a]:
                self.cap[a] = None
        self._fix_arms()

    def _fix_arms(self) -> None:
        """Floats of the ends, and arms that have no room between them."""
        for known in ("faces", "columns"):
            self.__dict__.pop(known, None)
        self.low = np.array([float(x) for x in self.floor])
        self.high = np.array([np.inf if x is None else float(x) for x in self.cap])
        self.fixed = np.array([x == y for x, y in zip(self.floor, self.cap, strict=True)])
        for a in np.flatnonzero(self.fixed).tolist():
            self.live[a] &= self.floor[a] != 0
            self.live[self._tight(a, self.floor[a])] = False
        # What is left of the bounds when every arm is at its floor.
        used = {a: x for a, x in enumerate(self.floor) if x}
        self._exact_left = [
            bound - sum((self.entry(int(i), a) * x for a, x in used.items()), Fraction(0))
            for i, bound in zip(self.general, self._exact_bound, strict=True)
        ]

    # ------------------------------------------------------------------ rows and columns

    @cached_property
    def columns(self) -> Indices:
        """The variables that bases are made of: arms with room, slacks of rows."""
        candidates = self.live.copy()
        candidates[: self.size] &= ~self.fixed
        candidates[self.size :] &= self._place >= 0
        return np.flatnonzero(candidates)

    def matrix(self, rows: Sequence[int] | Indices, columns: Sequence[int] | Indices) -> Array:
        """Coefficients of variables in rows, each scaled to a largest coefficient of 1."""
        numbers, chosen = np.asarray(rows, dtype=int), np.asarray(columns, dtype=int)
        block: Array = (chosen == self.size + numbers[:, None]).astype(float)
        arms = np.flatnonzero(chosen < self.size)
        block[:, arms] = self._matrix[self._place[numbers]][:, chosen[arms]]
        return np.asarray(block, dtype=float)

    def bound(self, rows: Sequence[int] | Indices) -> Array:
        """Right-hand sides of rows, in the scaled row's units."""
        return np.asarray(self._bound[self._place[np.asarray(rows, dtype=int)]], dtype=float)

    def slack(self, rows: Indices, policy: Array) -> Array:
        """Room that shares leave in rows, in the scaled rows' units."""
        place = self._place[rows]
        return np.asarray(self._bound[place] - self._matrix[place] @ policy)

    def exact_bound(self, i: int) -> Fraction:
        """Right-hand side of row i, exactly."""
        return self._exact_bound[int(self._place[i])]

    def entry(self, i: int, column: int) -> Fraction:
        """Coefficient of a variable in row i, exactly, in the scaled row's units."""
        if column >= self.size:
            return Fraction(int(column == self.size + i))
        place = int(self._place[i])
        key = place * self.size + column
        found = self._entries.get(key)
        if found is None:
            found = rational(float(self._user_rows[place, column]), SLIPS)
            found /= self._exact_scale[place]
            self._entries[key] = found
        return found

    def used(self, i: int, shares: Mapping[int, Fraction]) -> Fraction:
        """Row i at some shares, exactly."""
        above: dict[int, int] = {}  # by denominator: reducing every term would take the time
        for a, x in shares.items():
            entry = self.entry(i, a)
            below = entry.denominator * x.denominator
            above[below] = above.get(below, 0) + entry.numerator * x.numerator
        return sum((Fraction(x, below) for below, x in above.items()), Fraction(0))

    def inverse(self, arms: Sequence[int], tight: Sequence[int]) -> ExactInverse:
        """Inverse of rows over as many arms; `ZeroDivisionError` if there is none."""
        return ExactInverse(arms, [[self.entry(i, a) for a in arms] for i in tight])

    def face(self, column: int, capped: bool) -> int:
        """The variable that is zero while a column rests at one of its ends."""
        if column >= self.size:
            return column
        share = self.cap[column] if capped else self.floor[column]
        if share is None:
            return -1
        tight = self._tight(column, share)
        return column if share == 0 or not tight else tight[0]

    @cached_property
    def faces(self) -> Indices:
        """`face` of each variable at its lower and its upper end (-1: it has none)."""
        variables = range(self.size + self.count)
        return np.array([[self.face(c, capped) for c in variables] for capped in (False, True)])

    @cached_property
    def alike(self) -> Indices:
        """A number for each variable, the same for those with the same coefficients in all rows."""
        kinds = np.unique(self._user_rows, axis=1, return_inverse=True)[1].ravel()
        return np.append(kinds, self.size + np.arange(self.count))

    def _tight(self, arm: int, share: Fraction) -> list[int]:
        """Slacks of the limits that are tight where an arm has this share."""
        ends = self.tight_at.get(arm, {}).items()  # one or two: comparing is quicker than hashing
        return [self.size + i for end, sides in ends if end is share or end == share for i in sides]


def _sides(problem: Problem) -> list[Side]:
    """Sides of all constraints, after the total."""
    sides = [Side(-1, 1.0, 1.0, False, -1)]
    used = problem.matrix != 0
    for k in range(len(problem.constraints)):
        lower, upper = float(problem.lower[k]), float(problem.upper[k])
        arm = int(used[k].argmax()) if used[k].sum() == 1 else -1
        if lower == upper:
            both = [(1.0, upper, False)]
        else:
            both = [(1.0, upper, True), (-1.0, -lower, True)]
        sides += [Side(k, sign, x, slack, arm) for sign, x, slack in both if np.isfinite(x)]
    return sides
