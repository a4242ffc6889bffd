"""The feasible policies in standard form, with exact numbers.

F = {lower <= pi <= upper : sum pi = 1, A pi within limits} in standard form. Constraints on a
single arm are its lower and upper ends; every other inequality is a row with a slack variable. A
vertex is a set of active inequalities, and a basis describes it: as many variables as rows, all
others at one of their ends. Floats propose a basis; exact arithmetic confirms it where floats are
in doubt, and a simplex method in fractions takes over in the rare case that they were wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational

from .exact import ROUNDING_ULPS, ExactInverse, independent_columns
from .farkas import ConstraintSides
from .simplex import Tableau, first_tableau
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A float this small may be an exact zero spoilt by rounding, or the reverse: look closer.
# Rows are scaled to a largest coefficient of 1.
ZERO_TOLERANCE = 1e-9

NO_SHARE = Fraction(0)


class InexactBasisError(Exception):
    """Exact arithmetic contradicts a basis that floats proposed. Never leaves the room."""


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


class StandardForm:
    """{lower <= x <= upper : M x = b}, x = (shares, slacks), and its vertices.

    Sides of constraints are numbered in their order, the total is side 0. Variable a < K is the
    share of arm a, variable K + i the slack of side i. `live` marks the variables that are not
    zero all over F (`eliminate` drops those that are), `columns` those that a basis is made of,
    `general` the sides that are rows, and `rows` the independent ones.

    Attributes
    ----------
    start : Vertex or None
        A vertex; None if nothing is feasible.
    owner : list of int
        The constraint that each side came from; -1 for the total.
    is_cap : array of bool
        By side: whether it limits a single arm from above.
    lower, upper : lists of Fraction
        By arm; an upper end that the total implies is None.
    low, high : (K,) arrays
        The same in floats; inf for None.
    limits : dict from arm to a dict from Fraction to a list of int
        Sides that are active where an arm has a share.
    exact_bound : dict from int to Fraction
        Right-hand sides of the general rows, in the scaled rows' units.
    """

    def __init__(self, problem: Problem) -> None:
        self.size = size = problem.size
        sides = _sides(problem)
        self.owner = [side.owner for side in sides]
        self.count = len(sides)
        self.has_slack = np.array([side.has_slack for side in sides])
        self.rows = self.general = np.array([i for i, side in enumerate(sides) if side.arm < 0])
        self._place = np.full(self.count, -1)
        self._place[self.general] = np.arange(len(self.general))
        constraints = problem.constraints
        self._user_rows = np.ones((len(self.general), size))
        for place, i in enumerate(self.general[1:], 1):
            self._user_rows[place] = sides[i].sign * constraints[sides[i].owner].coefficients
        scale = np.abs(self._user_rows).max(axis=1)
        scale[scale == 0] = 1.0
        self._matrix = self._user_rows / scale[:, None]
        self._bound = np.array([sides[i].bound for i in self.general]) / scale
        self._exact_scale = [rational(float(x), ROUNDING_ULPS) for x in scale]
        self.exact_bound = {
            i: rational(float(sides[i].bound), ROUNDING_ULPS) / x
            for i, x in zip(self.general.tolist(), self._exact_scale, strict=True)
        }
        self._entries: dict[int, Fraction] = {}
        self.live = np.concatenate([np.ones(size, dtype=bool), self.has_slack])
        self._set_limits(problem, sides)
        self.start = self._first_vertex(problem)

    def _set_limits(self, problem: Problem, sides: Sequence[Side]) -> None:
        """Ends of arms, and which of their sides are active at which share."""
        self.lower = [Fraction(0)] * self.size
        self.upper: list[Fraction | None] = [None] * self.size
        self.limits: dict[int, dict[Fraction, list[int]]] = {}
        self.is_cap = np.zeros(self.count, dtype=bool)
        for i, side in enumerate(sides):
            a = side.arm
            if a < 0:
                continue
            coefficient = float(side.sign * problem.constraints[side.owner].values[0])
            share = rational(side.bound, ROUNDING_ULPS) / rational(coefficient, ROUNDING_ULPS)
            self.is_cap[i] = coefficient > 0
            upper = self.upper[a]
            if (coefficient > 0 or not side.has_slack) and (upper is None or share < upper):
                self.upper[a] = share
            if (coefficient < 0 or not side.has_slack) and share > self.lower[a]:
                self.lower[a] = share
            if side.has_slack:
                self.limits.setdefault(a, {}).setdefault(share, []).append(i)
        # No share is above 1, so a higher cap is no end; one at 1 may still be active.
        for a, upper in enumerate(self.upper):
            if upper is not None and upper >= 1 and upper > self.lower[a]:
                self.upper[a] = None
        self._update_limits()

    def _update_limits(self) -> None:
        """Floats of the ends, and arms that have no room between them."""
        for name in ("columns", "ends"):
            self.__dict__.pop(name, None)
        self._exact_start: Tableau | None = None
        self.low = np.array([float(x) for x in self.lower])
        self.high = np.array([np.inf if x is None else float(x) for x in self.upper])
        self._width = np.append(self.high - self.low, np.full(self.count, np.inf))
        self.fixed = np.array([x == y for x, y in zip(self.lower, self.upper, strict=True)])
        for a in np.flatnonzero(self.fixed).tolist():
            self.live[a] &= self.lower[a] != 0
            self.live[self.slacks_at(a, self.lower[a])] = False

    # ------------------------------------------------------------------ rows and columns

    @cached_property
    def columns(self) -> Indices:
        """The variables that bases are made of: arms with room, slacks of rows."""
        candidates = self.live.copy()
        candidates[: self.size] &= ~self.fixed
        candidates[self.size :] &= self._place >= 0
        return np.flatnonzero(candidates)

    @cached_property
    def ends(self) -> list[tuple[int, int, int]]:
        """Arms with room, each with variables that are zero at its lower and its upper end."""
        found = []
        for a in self.columns[self.columns < self.size].tolist():
            low, high = self.lower[a], self.upper[a]
            at_low = self.slacks_at(a, low)[0] if low else a
            found.append((a, at_low, -1 if high is None else self.slacks_at(a, high)[0]))
        return found

    def matrix(self, rows: Sequence[int] | Indices, columns: Sequence[int] | Indices) -> Array:
        """Coefficients of variables in rows, each scaled to a largest coefficient of 1."""
        numbers, chosen = np.asarray(rows, dtype=int), np.asarray(columns, dtype=int)
        block: Array = (chosen == self.size + numbers[:, None]).astype(float)
        arms = np.flatnonzero(chosen < self.size)
        block[:, arms] = self._matrix[self._place[numbers]][:, chosen[arms]]
        return np.asarray(block, dtype=float)

    def slack(self, rows: Sequence[int] | Indices, policy: Array) -> Array:
        """Room that shares leave in rows, in the scaled rows' units."""
        place = self._place[np.asarray(rows, dtype=int)]
        return np.asarray(self._bound[place] - self._matrix[place] @ policy)

    def entry(self, i: int, column: int) -> Fraction:
        """Coefficient of a variable in row i, exactly, in the scaled row's units."""
        if column >= self.size:
            return Fraction(int(column == self.size + i))
        place = int(self._place[i])
        key = place * self.size + column
        found = self._entries.get(key)
        if found is None:
            found = rational(float(self._user_rows[place, column]), ROUNDING_ULPS)
            found /= self._exact_scale[place]
            self._entries[key] = found
        return found

    def block(self, rows: Iterable[int], columns: Sequence[int]) -> list[list[Fraction]]:
        """`matrix`, exactly."""
        return [[self.entry(i, c) for c in columns] for i in rows]

    def used(self, i: int, shares: Mapping[int, Fraction]) -> Fraction:
        """Row i at some shares, exactly."""
        above: dict[int, int] = {}  # by denominator: reducing every term would take the time
        for a, x in shares.items():
            entry = self.entry(i, a)
            below = entry.denominator * x.denominator
            above[below] = above.get(below, 0) + entry.numerator * x.numerator
        return sum((Fraction(x, below) for below, x in above.items()), Fraction(0))

    def slacks_at(self, arm: int, share: Fraction) -> list[int]:
        """Slacks of the limits that are active where an arm has this share."""
        ends = self.limits.get(arm, {}).items()  # one or two: comparing is quicker than hashing
        return [self.size + i for end, sides in ends if end is share or end == share for i in sides]

    # ------------------------------------------------------------------ a first vertex

    def _first_vertex(self, problem: Problem) -> Vertex | None:
        if any(x is not None and x < y for x, y in zip(self.upper, self.lower, strict=True)):
            return None
        columns, tableau = self.columns, self._first_tableau(exactly=False)
        if tableau is not None:
            try:
                self._keep_independent_rows([int(columns[c]) for c in tableau.basis])
                return self.vertex_of(tableau)
            except InexactBasisError:
                self.rows = self.general
        elif ConstraintSides(problem).proof(range(len(problem.constraints))):
            return None
        exact = self._first_tableau(exactly=True)
        if exact is None:
            return None
        self._keep_independent_rows([int(columns[c]) for c in exact.basis])
        return self.vertex_of(exact)

    def _first_tableau(self, *, exactly: bool) -> Tableau | None:
        """A feasible tableau; in fractions that is slow, and final."""
        general, columns = self.general.tolist(), self.columns
        place = np.searchsorted(columns, self.size + self.general)
        has_slack = np.append(columns, -1)[place] == self.size + self.general
        slack = np.where(has_slack, place, -1)
        if not exactly:
            left = self.slack(general, self.low)
            return first_tableau(self.matrix(general, columns), left, slack, self._width[columns])
        block = self.block(general, columns.tolist())
        matrix = np.array(block, dtype=object).reshape(len(general), -1)
        at = {a: x for a, x in enumerate(self.lower) if x}
        bound = np.array([self.exact_bound[i] - self.used(i, at) for i in general], dtype=object)
        width = self._width[columns].astype(object)
        for n in np.flatnonzero(width < np.inf).tolist():
            c = int(columns[n])
            width[n] = rational(self.upper[c] or 0) - self.lower[c]
        return first_tableau(matrix, bound, slack, width)

    def _keep_independent_rows(self, basis: Sequence[int]) -> None:
        """Keep as many rows as there are basic variables, independent on them."""
        if len(basis) == len(self.rows):
            return
        work = self.matrix(self.rows, basis)
        kept: list[int] = []
        for _ in basis:
            row, column = np.unravel_index(np.argmax(np.abs(work)), work.shape)
            kept.append(int(row))
            work = work - np.outer(work[:, column] / work[row, column], work[row])
            work[row] = 0.0
        self.rows = self.rows[sorted(kept)]

    def eliminate(self, zero_columns: Mask) -> None:
        """Drop variables that are zero all over F, and rows that then repeat others."""
        assert self.start is not None
        columns, shares = self.columns, self.start.shares
        tableau = self.tableau(self.start)
        for place, a in enumerate(columns[columns < self.size].tolist()):
            share = shares.get(a, Fraction(0))
            if zero_columns[self.slacks_at(a, share)].any() or (zero_columns[a] and share == 0):
                is_basic = place in tableau.basis and not tableau.at_upper[place]
                if is_basic and share == self.upper[a]:
                    tableau.flip(place)  # so that its value is zero
                self.lower[a] = self.upper[a] = share
        self.live &= ~zero_columns
        self._update_limits()
        tableau.remove_columns(~np.isin(columns, self.columns))
        self._keep_independent_rows([int(self.columns[c]) for c in tableau.basis])
        self.start = self.vertex_of(tableau)

    # ------------------------------------------------------------------ vertices

    def split(self, basis: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Basic arms, rows that are active through the basis, rows with a basic slack."""
        arms = [c for c in basis if c < self.size]
        slack_rows = {c - self.size for c in basis if c >= self.size}
        active = [int(i) for i in self.rows if i not in slack_rows]
        return arms, active, [int(i) for i in self.rows if i in slack_rows]

    def inverse(self, basis: Sequence[int]) -> ExactInverse:
        """The inverse of the active rows over the basic arms."""
        arms, active, _ = self.split(basis)
        if len(arms) != len(active):
            raise InexactBasisError
        try:
            return ExactInverse(self.block(active, arms))
        except ZeroDivisionError:
            raise InexactBasisError from None

    def vertex_of(self, tableau: Tableau) -> Vertex:
        """The vertex that a tableau over the columns stands at."""
        basis = [int(self.columns[c]) for c in tableau.basis]
        return self.vertex(basis, set(self.columns[tableau.at_upper].tolist()).difference(basis))

    def vertex(self, basis: Sequence[int], at_upper: Iterable[int]) -> Vertex:
        """The vertex of a basis; raises `InexactBasisError` if it is not feasible."""
        arms, active, slack_rows = self.split(basis)
        shares = {a: x for a, x in enumerate(self.lower) if x}
        shares.update((a, x) for a in at_upper if (x := self.upper[a]) is not None)
        for a in arms:
            shares.pop(a, None)
        left = [self.exact_bound[i] - self.used(i, shares) for i in active]
        shares.update(zip(arms, self.inverse(basis).times(left), strict=True))
        for a in arms:
            upper = self.upper[a]
            if shares[a] < self.lower[a] or (upper is not None and shares[a] > upper):
                raise InexactBasisError
        shares = {a: shares[a] for a in sorted(shares) if shares[a]}
        policy = _floats(shares, self.size)
        binding = set(active)
        slack = self.slack(self.general, policy)
        for i, room in zip(self.general.tolist(), slack, strict=True):
            if i in binding or (i in slack_rows and room > ZERO_TOLERANCE):
                continue
            exact = self.exact_bound[i] - self.used(i, shares)
            if exact < 0 or (exact > 0 and not self.has_slack[i]):
                raise InexactBasisError
            if exact == 0:
                binding.add(i)
        zero = self.zero_at(shares, binding, range(self.size))
        return Vertex(zero, policy, shares, tuple(sorted(basis)), frozenset(at_upper))

    def zero_at(
        self, shares: Mapping[int, Fraction], binding: Iterable[int], arms: Iterable[int]
    ) -> frozenset[int]:
        """Variables that are zero at a vertex, given its shares and the general rows that bind.

        Of arms and limits on single arms those of some `arms`.
        """
        zero = {self.size + i for i in binding}
        for a in arms:
            share = shares.get(a, NO_SHARE)
            if not share:
                zero.add(a)
            if a in self.limits:
                zero.update(self.slacks_at(a, share))
        return frozenset(c for c in zero if self.live[c])

    def canonical(
        self, shares: Mapping[int, Fraction], zero: frozenset[int], slacks: Iterable[int]
    ) -> Vertex:
        """The vertex with these shares, zeros and positive slacks, its basis in a fixed order.

        At a degenerate vertex several bases would do; this one depends on nothing else.
        """
        between, at_upper = list(slacks), set()
        for c, low, high in self.ends:
            if high in zero:
                at_upper.add(c)
            elif low not in zero:
                between.append(c)
        basis = sorted(between)
        if len(basis) < len(self.rows):
            basis = self._completed(basis, at_upper)
        shares = {a: shares[a] for a in sorted(shares) if shares[a]}
        capped = frozenset(at_upper.difference(basis))
        return Vertex(zero, _floats(shares, self.size), shares, tuple(sorted(basis)), capped)

    def _completed(self, between: list[int], at_upper: Collection[int]) -> list[int]:
        """A basis of variables between their ends and of others, in a fixed order."""
        ends = np.setdiff1d(self.columns, between, assume_unique=True).tolist()
        candidates = between + in_order(self, ends, at_upper)
        basis = [candidates[n] for n in _independent(self.matrix(self.rows, candidates))]
        if basis[: len(between)] == between:
            with suppress(InexactBasisError):
                self.inverse(basis)
                return basis
        exact = self.block(self.rows.tolist(), candidates)
        return [candidates[n] for n in independent_columns(exact)]

    # ------------------------------------------------------------------ linear programs

    def tableau(self, vertex: Vertex) -> Tableau:
        """The float tableau of a vertex's basis over the columns."""
        columns = self.columns
        inverse = np.linalg.inv(self.matrix(self.rows, vertex.basis))
        basis, at_upper = self._position(vertex)
        body = inverse @ self.matrix(self.rows, columns)
        body[:, at_upper] = -body[:, at_upper]
        ends = self.low.copy()
        ends[list(vertex.at_upper)] = self.high[list(vertex.at_upper)]
        values = inverse @ self.slack(self.rows, ends)
        return Tableau(body, values, basis, self._width[columns], at_upper)

    def exact_tableau(self, vertex: Vertex) -> Tableau:
        """The same in fractions."""
        if self._exact_start is None:
            self._exact_start = self._first_tableau(exactly=True)
        assert self._exact_start is not None
        exact = deepcopy(self._exact_start)
        exact.set_basis(*self._position(vertex))
        return exact

    def _position(self, vertex: Vertex) -> tuple[list[int], Mask]:
        """Where a vertex's basis is among the columns, and which are at their upper ends."""
        place = {int(c): n for n, c in enumerate(self.columns)}
        return [place[c] for c in vertex.basis], np.isin(self.columns, list(vertex.at_upper))


def in_order(form: StandardForm, columns: Iterable[int], at_upper: Collection[int]) -> list[int]:
    """Nonbasic columns in the order of the inequality that is active at the end of each."""

    def face(column: int) -> int:
        if column >= form.size:
            return column
        share = form.upper[column] if column in at_upper else form.lower[column]
        active = form.slacks_at(column, share) if share else []
        return active[0] if active else column

    return sorted(columns, key=lambda column: (face(column), column))


def _independent(work: Array) -> list[int]:
    """Columns, from the first on, that do not depend on the ones before, in floats."""
    chosen: list[int] = []
    free = np.ones(len(work), dtype=bool)
    for column in range(work.shape[1]):
        if len(chosen) == len(work):
            break
        sizes = np.where(free, np.abs(work[:, column]), 0.0)
        row = int(np.argmax(sizes))
        if sizes[row] <= ZERO_TOLERANCE:
            continue
        free[row] = False
        chosen.append(column)
        factors = work[:, column] / work[row, column]
        factors[row] = 0.0
        work = work - np.outer(factors, work[row])
    return chosen


def _floats(shares: Mapping[int, Fraction], size: int) -> Array:
    policy = np.zeros(size)
    for a, x in shares.items():
        policy[a] = float(x)
    return policy


def _sides(problem: Problem) -> list[Side]:
    """Sides of all constraints, after the total."""
    sides = [Side(-1, 1.0, 1.0, False, -1)]
    for k, constraint in enumerate(problem.constraints):
        lower, upper = constraint.lower, constraint.upper
        arm = int(constraint.arms[0]) if len(constraint.arms) == 1 else -1
        if lower == upper:
            both = [(1.0, upper, False)]
        else:
            both = [(1.0, upper, True), (-1.0, -lower, True)]
        sides += [Side(k, sign, x, slack, arm) for sign, x, slack in both if np.isfinite(x)]
    return sides
