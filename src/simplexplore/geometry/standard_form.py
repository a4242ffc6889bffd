"""Linear programs over the feasible policies, with exact answers.

F = {pi >= 0 : sum pi = 1, lower <= A pi <= upper} in standard form: one slack variable per
inequality, so that a vertex is a set of zero variables and a basis describes it. Floats
propose a basis; whole-number arithmetic confirms it where floats are in doubt, and a
simplex method in fractions takes over in the rare case that they were wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational

from .integers import adjugate, dot
from .integers import integer_row as whole_row
from .tableau import Tableau, first_tableau

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Coefficients and bounds may come out of a sum or a quotient of the user's.
SLIPS = 4

# A float this small may be an exact zero spoilt by rounding, or the reverse: look closer.
# Rows are scaled to a largest coefficient of 1; tests multiply it by the inverse's size.
DOUBT = 1e-9


@dataclass(frozen=True)
class Vertex:
    """An extreme point of F, exactly.

    Attributes
    ----------
    zero : frozenset of int
        Variables that are zero here: arm a is a, the slack of row i is K + i. Two
        vertices are the same if and only if these sets are.
    policy : (K,) array
        The shares, each the float nearest to the exact value.
    shares : dict from arm to Fraction
        The exact positive shares.
    basis : tuple of int
        A set of basic variables that describes the vertex.
    """

    zero: frozenset[int]
    policy: Array = field(compare=False)
    shares: dict[int, Fraction] = field(compare=False, repr=False)
    basis: tuple[int, ...] = field(compare=False, repr=False)


class FloatsMisledError(Exception):
    """Whole-number arithmetic contradicts a basis that floats proposed. Never leaves the file."""


class StandardForm:
    """Rows, columns and exact numbers of {x >= 0 : M x = b}, x = (shares, slacks).

    Variable a < K is the share of arm a, variable K + i the slack of row i; row 0 is the
    total. `live` marks the variables still in play and `rows` the rows that are
    independent; `forget` shrinks both.

    Attributes
    ----------
    owner : list of int
        The constraint that each row came from; -1 for the total.
    start : tuple of int or None
        A feasible basis; None if nothing is feasible.
    """

    def __init__(self, problem: Problem) -> None:
        self.size = problem.size
        self.owner, signs, bounds, has_slack = _standard_rows(problem)
        self.count = len(self.owner)
        self._user_rows = np.ones((self.count, self.size))
        for i in range(1, self.count):
            self._user_rows[i] = signs[i] * problem.matrix[self.owner[i]]
        scale = np.abs(self._user_rows).max(axis=1)
        scale[scale == 0] = 1.0
        self.has_slack = np.array(has_slack)
        self.matrix = np.hstack(
            [self._user_rows / scale[:, None], np.diag(self.has_slack.astype(float))]
        )
        self.bound = np.array(bounds) / scale
        self.rows = np.arange(self.count)
        self.live = np.concatenate([np.ones(self.size, dtype=bool), self.has_slack])
        self._exact_scale = [rational(float(x), SLIPS) for x in scale]
        self.exact_bound = [
            rational(x, SLIPS) / y for x, y in zip(bounds, self._exact_scale, strict=True)
        ]
        self._entries: dict[int, Fraction] = {}
        self._referee: Tableau | None = None
        self.start = self._feasible_basis()

    @property
    def columns(self) -> Indices:
        """The variables in play."""
        return np.flatnonzero(self.live)

    def _feasible_basis(self) -> tuple[int, ...] | None:
        tableau = first_tableau(self.matrix[:, self.columns], self.bound, self._slack_columns())
        if tableau is not None:
            basis = tuple(int(self.columns[c]) for c in tableau.basis)
            try:
                self._keep_independent_rows(basis)
                self.vertex(basis)
            except FloatsMisledError:
                self.rows = np.arange(self.count)
            else:
                return basis
        exact = self._phase_one_in_fractions()
        if exact is None:
            return None
        basis = tuple(int(self.columns[c]) for c in exact.basis)
        self._keep_independent_rows(basis)
        return basis

    def _slack_columns(self) -> Indices:
        """Position among the live columns of each row's slack, or -1."""
        place = np.searchsorted(self.columns, self.size + np.arange(self.count))
        return np.where(self.has_slack, place, -1)

    def _phase_one_in_fractions(self) -> Tableau | None:
        """Slow, and final. Only for the form as it was before anything was forgotten."""
        matrix = np.array(
            [[self.entry(i, c) for c in range(self.size + self.count)] for i in range(self.count)],
            dtype=object,
        )
        bound = np.array(self.exact_bound, dtype=object)
        every = np.concatenate([np.ones(self.size, dtype=bool), self.has_slack])
        place = np.searchsorted(np.flatnonzero(every), self.size + np.arange(self.count))
        return first_tableau(matrix[:, every], bound, np.where(self.has_slack, place, -1))

    def _keep_independent_rows(self, basis: Sequence[int]) -> None:
        """Keep as many rows as there are basic variables, independent on them."""
        if len(basis) == len(self.rows):
            return
        work = self.matrix[self.rows][:, list(basis)]
        kept = []
        for _ in basis:
            row, column = np.unravel_index(np.argmax(np.abs(work)), work.shape)
            kept.append(int(row))
            work = work - np.outer(work[:, column] / work[row, column], work[row])
            work[row] = 0.0
        self.rows = self.rows[np.sort(kept)]

    def forget(self, banned: Mask) -> None:
        """Drop variables that are zero all over F, and rows that then repeat others."""
        assert self.start is not None
        tableau = self.tableau(self.start)
        tableau.expel(banned[self.columns])
        self.live &= ~banned
        self.start = tuple(int(self.columns[c]) for c in tableau.basis)
        self._keep_independent_rows(self.start)
        self._referee = None

    def entry(self, i: int, column: int) -> Fraction:
        """Coefficient of a variable in row i, exactly, in the scaled row's units."""
        if column >= self.size:
            return Fraction(int(column == self.size + i))
        key = i * self.size + column
        found = self._entries.get(key)
        if found is None:
            found = rational(float(self._user_rows[i, column]), SLIPS) / self._exact_scale[i]
            self._entries[key] = found
        return found

    def split(self, basis: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Basic arms, rows that are tight through the basis, rows with a basic slack."""
        arms = [c for c in basis if c < self.size]
        loose = {c - self.size for c in basis if c >= self.size}
        tight = [int(i) for i in self.rows if i not in loose]
        return arms, tight, [int(i) for i in self.rows if i in loose]

    def vertex(self, basis: Sequence[int]) -> Vertex:
        """The vertex of a basis; raises `FloatsMisledError` if it is not feasible."""
        arms, tight, loose = self.split(basis)
        try:
            inverse = ExactInverse(self, arms, tight)
        except ZeroDivisionError:
            raise FloatsMisledError from None
        shares = inverse.times([self.exact_bound[i] for i in tight])
        if any(x < 0 for x in shares.values()):
            raise FloatsMisledError
        policy = np.zeros(self.size)
        for a, x in shares.items():
            policy[a] = float(x)
        zero = {int(c) for c in self.columns} - {a for a, x in shares.items() if x}
        slack = self.bound - self.matrix[:, : self.size] @ policy
        for i in range(self.count):
            if i in loose and slack[i] > DOUBT:
                zero.discard(self.size + i)
                continue
            exact = self.exact_bound[i] - sum(self.entry(i, a) * x for a, x in shares.items())
            if exact < 0 or (exact > 0 and not self.has_slack[i]):
                raise FloatsMisledError
            if exact > 0:
                zero.discard(self.size + i)
        return Vertex(
            frozenset(zero), policy, {a: x for a, x in shares.items() if x}, tuple(sorted(basis))
        )

    def basis_of(self, positive: Sequence[int]) -> tuple[int, ...]:
        """The basis of a vertex with these positive variables, completed in a fixed order.

        At a degenerate vertex several bases would do; this one depends on nothing else.
        """
        first = sorted(int(c) for c in positive)
        chosen = self._independent(first)
        if len(chosen) < len(self.rows):
            taken = set(first)
            chosen = self._independent(
                first + [int(c) for c in self.columns if int(c) not in taken]
            )
        return tuple(sorted(chosen))

    def _independent(self, columns: Sequence[int]) -> list[int]:
        """Those columns, from the first on, that do not depend on the ones before."""
        work = self.matrix[self.rows][:, list(columns)]
        chosen: list[int] = []
        used = np.zeros(len(self.rows), dtype=bool)
        for place, column in enumerate(columns):
            entries = np.where(used, 0.0, np.abs(work[:, place]))
            row = int(np.argmax(entries))
            if entries[row] <= DOUBT:
                continue
            used[row] = True
            chosen.append(column)
            if len(chosen) == len(self.rows):
                break
            factors = work[:, place] / work[row, place]
            factors[row] = 0.0
            work -= np.outer(factors, work[row])
        return chosen

    def tableau(self, basis: Sequence[int]) -> Tableau:
        """The float tableau of a basis over the live columns."""
        matrix = self.matrix[self.rows]
        inverse = np.linalg.inv(matrix[:, list(basis)])
        place = {int(c): n for n, c in enumerate(self.columns)}
        return Tableau(
            inverse @ matrix[:, self.columns],
            inverse @ self.bound[self.rows],
            [place[c] for c in basis],
        )

    def best_vertex(
        self, cost: Array, start: Vertex | None = None, *, proven: bool = True
    ) -> Vertex:
        """A vertex that maximises a cost over all variables.

        The walk begins at `start`, which saves most of it when the cost has moved little.
        The vertex is exact in any case; `proven` adds that no other is better, exactly.
        """
        basis = start.basis if start else self.start
        assert basis is not None
        columns = self.columns
        everything = np.ones(len(columns), dtype=bool)
        try:
            tableau = self.tableau(basis)
            tableau.maximise(cost[columns] / (np.abs(cost).max() or 1.0), everything)
            vertex = self.vertex([int(columns[c]) for c in tableau.basis])
            if not proven or self._is_optimal(vertex, cost):
                return vertex
        except (FloatsMisledError, NotConvergedError):
            pass  # the referee below decides
        if self._referee is None:
            self._referee = self._phase_one_in_fractions()
            assert self._referee is not None
            every = np.concatenate([np.ones(self.size, dtype=bool), self.has_slack])
            self._referee.expel(~self.live[every])
        referee = self._referee
        exact = Tableau(referee.body.copy(), referee.values.copy(), list(referee.basis))
        exact.maximise(np.array([rational(float(x)) for x in cost[columns]]), everything)
        return self.vertex([int(columns[c]) for c in exact.basis])

    def _is_optimal(self, vertex: Vertex, cost: Array) -> bool:
        """Whether no nonbasic variable improves the cost, exactly."""
        local = LocalTableau(self, vertex)
        reduced = cost[local.nonbasic] - cost[local.arms] @ local.body_arms
        reduced -= cost[[self.size + i for i in local.loose]] @ local.body_loose
        size = np.abs(cost).max() or 1.0
        for n in np.flatnonzero(reduced > -DOUBT * size * local.magnitude):
            column = int(local.nonbasic[n])
            exact = rational(float(cost[column]))
            for a, x in local.exact_arms(column).items():
                exact -= rational(float(cost[a])) * x
            for i in local.loose:
                if cost[self.size + i]:
                    exact -= rational(float(cost[self.size + i])) * local.exact_loose(i, column)
            if exact > 0:
                return False
        return True


class ExactInverse:
    """Inverse of the tight rows over the basic arms, in whole numbers."""

    def __init__(self, form: StandardForm, arms: Sequence[int], tight: Sequence[int]) -> None:
        self.arms = arms
        rows = [[form.entry(i, a) for a in arms] for i in tight]
        self.scales = [math.lcm(*(x.denominator for x in row)) for row in rows]
        self.adjugate, self.determinant = adjugate([whole_row(row) for row in rows])

    def times(self, right: Sequence[Fraction]) -> dict[int, Fraction]:
        """The solution of (tight rows) x = right, by basic arm."""
        scaled = [x * scale for x, scale in zip(right, self.scales, strict=True)]
        common = math.lcm(*(x.denominator for x in scaled))
        whole = [x.numerator * (common // x.denominator) for x in scaled]
        below = common * self.determinant
        return {
            arm: Fraction(dot(row, whole), below)
            for arm, row in zip(self.arms, self.adjugate, strict=True)
        }


class LocalTableau:
    """The simplex tableau at a vertex, in floats, with exact entries on demand."""

    def __init__(self, form: StandardForm, vertex: Vertex) -> None:
        self.form = form
        self.vertex = vertex
        self.arms, self.tight, self.loose = form.split(vertex.basis)
        basic = set(vertex.basis)
        self.nonbasic = np.array([c for c in form.columns if int(c) not in basic], dtype=np.int64)
        matrix = form.matrix
        inverse = np.linalg.inv(matrix[self.tight][:, self.arms])
        self.magnitude = max(1.0, float(np.abs(inverse).max(initial=0.0)))
        self.body_arms = inverse @ matrix[self.tight][:, self.nonbasic]
        self.body_loose = (
            matrix[self.loose][:, self.nonbasic] - matrix[self.loose][:, self.arms] @ self.body_arms
        )
        self.at_zero = [c for c in vertex.basis if c in vertex.zero]
        self._exact: dict[int, dict[int, Fraction]] = {}

    @cached_property
    def _inverse(self) -> ExactInverse:
        return ExactInverse(self.form, self.arms, self.tight)

    def exact_arms(self, column: int) -> dict[int, Fraction]:
        """Tableau entries of the basic arms in one column."""
        if column not in self._exact:
            right = [self.form.entry(i, column) for i in self.tight]
            self._exact[column] = self._inverse.times(right)
        return self._exact[column]

    def exact_loose(self, i: int, column: int) -> Fraction:
        """Tableau entry of the basic slack of row i in one column."""
        entry = self.form.entry
        arms = self.exact_arms(column).items()
        return entry(i, column) - sum((entry(i, a) * x for a, x in arms), Fraction(0))

    def exact_rows_at_zero(self) -> list[list[int]]:
        """Growth of each basic variable at zero per unit of each nonbasic one, as integers."""
        size = self.form.size
        rows = []
        for c in self.at_zero:
            if c < size:
                row = [-self.exact_arms(int(n))[c] for n in self.nonbasic]
            else:
                row = [-self.exact_loose(c - size, int(n)) for n in self.nonbasic]
            rows.append(whole_row(row))
        return rows


def _standard_rows(
    problem: Problem,
) -> tuple[list[int], list[float], list[float], list[bool]]:
    """Rows of the standard form: owner constraint (-1: total), sign, bound, has a slack."""
    owner, signs, bounds, has_slack = [-1], [1.0], [1.0], [False]
    for k in range(len(problem.constraints)):
        lower, upper = float(problem.lower[k]), float(problem.upper[k])
        if lower == upper:
            sides = [(1.0, upper, False)]
        else:
            sides = [(1.0, upper, True), (-1.0, -lower, True)]
        for sign, bound, slack in sides:
            if np.isfinite(bound):
                owner.append(k)
                signs.append(sign)
                bounds.append(bound)
                has_slack.append(slack)
    return owner, signs, bounds, has_slack
