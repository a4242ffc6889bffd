"""The feasible policies in standard form, with exact numbers.

F = {floor <= pi <= cap : sum pi = 1, lower <= A pi <= upper} in standard form. Constraints on a
single arm are floors and caps; every other inequality is a row with a slack variable. A vertex
is a set of tight inequalities, and a basis describes it: as many variables as rows, all others
at one of their ends. Floats propose a basis; whole-number arithmetic confirms it where floats
are in doubt, and a simplex method in fractions takes over in the rare case that they were wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem

from .exact_rows import ExactRows
from .tableau import Tableau, first_tableau
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# A float this small may be an exact zero spoilt by rounding, or the reverse: look closer.
# Rows are scaled to a largest coefficient of 1; tests multiply it by the inverse's size.
DOUBT = 1e-9


class FloatsMisledError(Exception):
    """Whole-number arithmetic contradicts a basis that floats proposed. Never leaves the room."""


class StandardForm(ExactRows):
    """Vertices of {floor <= x <= cap : M x = b}; `forget` drops what is zero all over F.

    Attributes
    ----------
    start : Vertex or None
        A vertex; None if nothing is feasible.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.start = self._first_vertex()

    def split(self, basis: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
        """Basic arms, rows that are tight through the basis, rows with a basic slack."""
        arms = [c for c in basis if c < self.size]
        loose = {c - self.size for c in basis if c >= self.size}
        tight = [int(i) for i in self.rows if i not in loose]
        return arms, tight, [int(i) for i in self.rows if i in loose]

    # ------------------------------------------------------------------ a first vertex

    def _first_vertex(self) -> Vertex | None:
        if any(cap is not None and x > cap for x, cap in zip(self.floor, self.cap, strict=True)):
            return None
        columns = self.columns
        matrix, left = self.matrix(self.general, columns), self._left(self.general, ())
        tableau = first_tableau(matrix, left, self._slack_columns(columns), self._width(columns))
        if tableau is not None:
            try:
                self._keep_independent_rows([int(columns[c]) for c in tableau.basis])
                return self.vertex_of(tableau, columns)
            except FloatsMisledError:
                self.rows = self.general
        exact = self._phase_one_in_fractions()
        if exact is None:
            return None
        self._keep_independent_rows([int(columns[c]) for c in exact.basis])
        return self.vertex_of(exact, columns)

    def conflicting_limits(self) -> list[int]:
        """Constraints on single arms that conflict by themselves, the fewest; [] if none do.

        Some arm's floor is above its cap, floors sum to more than 1, or all arms have caps that
        sum to less: otherwise shares between them sum to 1.
        """
        crossed = [
            sorted({cap, self._floor_owner.get(a, cap)})
            for a, cap in self._cap_owner.items()
            if (share := self.cap[a]) is not None and self.floor[a] > share
        ]
        if crossed:
            return min(crossed, key=len)
        total, chosen = Fraction(0), []
        for a in sorted(self._floor_owner, key=lambda a: -self.floor[a]):
            total += self.floor[a]
            chosen.append(self._floor_owner[a])
            if total > 1:
                return sorted(chosen)
        caps = [cap for cap in self.cap if cap is not None]
        if len(caps) == self.size and sum(caps) < 1:
            return sorted(self._cap_owner.values())
        return []

    def _left(self, rows: Sequence[int] | Indices, capped: Iterable[int]) -> Array:
        """Right-hand sides, less what arms at their ends use."""
        at = self.low.copy()
        arms = list(capped)
        at[arms] = self.high[arms]
        return self.slack(np.asarray(rows, dtype=int), at)

    def _width(self, columns: Indices) -> Array:
        """Distance between the ends of each column."""
        width = np.full(len(columns), np.inf)
        arms = columns < self.size
        width[arms] = (self.high - self.low)[columns[arms]]
        return width

    def _slack_columns(self, columns: Indices) -> Indices:
        """Position among the columns of each row's slack, or -1."""
        place = np.searchsorted(columns, self.size + self.general)
        found = np.append(columns, -1)[place] == self.size + self.general
        return np.where(found, place, -1)

    @cached_property
    def _referee(self) -> Tableau:
        """A feasible tableau in fractions, where there is one."""
        found = self._phase_one_in_fractions()
        assert found is not None
        return found

    def _phase_one_in_fractions(self) -> Tableau | None:
        """Slow, and final."""
        columns = self.columns
        matrix = np.empty((len(self.general), len(columns)), dtype=object)
        for place, i in enumerate(self.general):
            matrix[place] = [self.entry(int(i), int(c)) for c in columns]
        width = np.full(len(columns), np.inf, dtype=object)
        for n, c in enumerate(columns):
            if c < self.size and (cap := self.cap[c]) is not None:
                width[n] = cap - self.floor[c]
        left = np.array(self._exact_left, dtype=object)
        return first_tableau(matrix, left, self._slack_columns(columns), width)

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

    def forget(self, banned: Mask) -> None:
        """Drop variables that are zero all over F, and rows that then repeat others."""
        assert self.start is not None
        columns, shares = self.columns, self.start.shares
        tableau = self.tableau(self.start)
        for place, a in enumerate(columns[columns < self.size].tolist()):
            share = shares.get(a, Fraction(0))
            if banned[self._tight(a, share)].any() or (banned[a] and share == 0):
                if share == self.cap[a] and place in tableau.basis and not tableau.turned[place]:
                    tableau.turn(place)  # so that its value is zero
                self.floor[a] = self.cap[a] = share
        self.live &= ~banned
        self._fix_arms()
        tableau.expel(~np.isin(columns, self.columns))
        self.__dict__.pop("_referee", None)
        self._keep_independent_rows([int(self.columns[c]) for c in tableau.basis])
        self.start = self.vertex_of(tableau, self.columns)

    # ------------------------------------------------------------------ vertices

    def vertex_of(self, tableau: Tableau, columns: Indices) -> Vertex:
        """The vertex that a tableau over some columns stands at."""
        basis = [int(columns[c]) for c in tableau.basis]
        return self.vertex(basis, {int(c) for c in columns[tableau.turned]}.difference(basis))

    def vertex(self, basis: Sequence[int], capped: Iterable[int]) -> Vertex:
        """The vertex of a basis; raises `FloatsMisledError` if it is not feasible."""
        arms, tight, loose = self.split(basis)
        try:
            inverse = self.inverse(arms, tight)
        except ZeroDivisionError:
            raise FloatsMisledError from None
        shares = {a: x for a, x in enumerate(self.floor) if x}
        shares.update((a, x) for a in capped if (x := self.cap[a]) is not None)
        for a in arms:
            shares.pop(a, None)
        shares.update(inverse.times([self.exact_bound(i) - self.used(i, shares) for i in tight]))
        shares = {a: shares[a] for a in sorted(shares)}
        for a in arms:
            cap = self.cap[a]
            if shares[a] < self.floor[a] or (cap is not None and shares[a] > cap):
                raise FloatsMisledError
        shares = {a: x for a, x in shares.items() if x}
        policy = np.zeros(self.size)
        for a, x in shares.items():
            policy[a] = float(x)
        slack = self._bound - self._matrix @ policy
        binding = set(tight)
        for i, room in zip(self.general.tolist(), slack, strict=True):
            if i in binding or (i in loose and room > DOUBT):
                continue
            exact = self.exact_bound(i) - self.used(i, shares)
            if exact < 0 or (exact > 0 and not self.has_slack[i]):
                raise FloatsMisledError
            if exact == 0:
                binding.add(i)
        zero = self.zero_at(shares, binding)
        return Vertex(zero, policy, shares, tuple(sorted(basis)), frozenset(capped))

    def zero_at(self, shares: Mapping[int, Fraction], binding: Iterable[int]) -> frozenset[int]:
        """Variables that are zero at a vertex, given its shares and the general rows that bind."""
        zero = {a for a in range(self.size) if not shares.get(a)}
        for a in self.tight_at:
            zero.update(self._tight(a, shares.get(a, Fraction(0))))
        zero.update(self.size + i for i in binding)
        return frozenset(c for c in zero if self.live[c])

    def canonical(self, shares: Mapping[int, Fraction], slacks: Iterable[int]) -> Vertex:
        """The vertex with these shares and positive slacks, its basis chosen in a fixed order.

        At a degenerate vertex several bases would do; this one depends on nothing else.
        """
        between, capped = list(slacks), set()
        for c in self.columns[self.columns < self.size].tolist():
            share = shares.get(c, Fraction(0))
            if share == self.cap[c]:
                capped.add(c)
            elif share != self.floor[c]:
                between.append(c)
        for exactly in (False, True):
            chosen = self._basis(between, capped, exactly)
            with suppress(FloatsMisledError):
                return self.vertex(chosen, capped.difference(chosen))
        raise AssertionError("a vertex has a basis")

    def _basis(self, between: Iterable[int], capped: Collection[int], exactly: bool) -> list[int]:
        """A basis of variables between their ends and, if need be, of others, in a fixed order."""
        first = sorted(between)
        chosen = self._independent(first, exactly)
        if len(chosen) < len(self.rows):
            ends = np.setdiff1d(self.columns, first, assume_unique=True)
            at_cap = np.isin(ends, list(capped)).astype(np.int64)
            ends = ends[np.lexsort((ends, self.faces[at_cap, ends]))]
            chosen = self._independent(first + ends.tolist(), exactly)
        return chosen

    def zero_after(
        self, vertex: Vertex, moved: Mapping[int, Fraction], binding: Iterable[int]
    ) -> frozenset[int]:
        """`zero_at` where some arms of a vertex have moved to other shares."""
        rows = {self.size + int(i) for i in self.general}
        limits = {self.size + i for a in moved for i in chain(*self.tight_at.get(a, {}).values())}
        zero = {a for a, x in moved.items() if not x}
        zero.update(c for a, x in moved.items() for c in self._tight(a, x))
        zero.update(self.size + i for i in binding)
        rest = vertex.zero.difference(rows, limits, moved)
        return rest.union(c for c in zero if self.live[c])

    def next_to(
        self,
        vertex: Vertex,
        moved: Mapping[int, Fraction],
        zero: frozenset[int],
        slacks: Sequence[int],
    ) -> Vertex:
        """`canonical` where some arms of a vertex have moved to those of another, an exact one.

        Shares are known, so that only a basis is to be found: where as many variables as there
        are rows lie between their ends it is these.
        """
        shares = {**vertex.shares, **moved}
        between, capped = list(slacks), set(vertex.capped)
        for a in {c for c in vertex.basis if c < self.size}.union(moved):
            share = shares.get(a, Fraction(0))
            capped.discard(a)
            if share == self.cap[a]:
                capped.add(a)
            elif share != self.floor[a]:
                between.append(a)
        basis = between
        if len(between) != len(self.rows):
            basis = self._basis(between, capped, exactly=False)
            if not self._is_basis(basis):
                return self.canonical(shares, slacks)
        policy = vertex.policy.copy()
        for a, x in moved.items():
            policy[a] = float(x)
        gone = {a for a, x in moved.items() if not x}
        shares = {a: shares[a] for a in sorted(shares.keys() - gone)}
        return Vertex(
            zero, policy, shares, tuple(sorted(basis)), frozenset(capped.difference(basis))
        )

    def _is_basis(self, columns: Sequence[int]) -> bool:
        """Whether columns are independent and as many as the rows, exactly."""
        arms, tight, _ = self.split(columns)
        if len(arms) != len(tight):
            return False
        try:
            self.inverse(arms, tight)
        except ZeroDivisionError:
            return False
        return True

    def _independent(self, columns: Sequence[int], exactly: bool) -> list[int]:
        """Those columns, from the first on, that do not depend on the ones before."""
        work, doubt = self.matrix(self.rows, columns), DOUBT
        if exactly:
            entries = [[self.entry(int(i), c) for c in columns] for i in self.rows]
            work, doubt = np.array(entries, dtype=object), 0.0
        chosen: list[int] = []
        used = np.zeros(len(self.rows), dtype=bool)
        for place, column in enumerate(columns):
            if len(chosen) == len(self.rows):
                break
            sizes = np.where(used, 0.0, np.abs(work[:, place]))
            row = int(np.argmax(sizes))
            if sizes[row] <= doubt:
                continue
            used[row] = True
            chosen.append(column)
            factors = work[:, place] / work[row, place]
            factors[row] = 0.0
            work -= np.outer(factors, work[row])
        return chosen

    # ------------------------------------------------------------------ linear programs

    def tableau(self, vertex: Vertex) -> Tableau:
        """The float tableau of a vertex's basis over the columns."""
        columns = self.columns
        inverse = np.linalg.inv(self.matrix(self.rows, vertex.basis))
        basis, turned = self._places(vertex)
        body = inverse @ self.matrix(self.rows, columns)
        body[:, turned] = -body[:, turned]
        left = self._left(self.rows, vertex.capped)
        return Tableau(body, inverse @ left, basis, self._width(columns), turned)

    def exact_tableau(self, vertex: Vertex) -> Tableau:
        """The same in fractions."""
        exact = deepcopy(self._referee)
        exact.stand_at(*self._places(vertex))
        return exact

    def _places(self, vertex: Vertex) -> tuple[list[int], Mask]:
        """Where a vertex's basis is among the columns, and which of them are at their caps."""
        place = {int(c): n for n, c in enumerate(self.columns)}
        return [place[c] for c in vertex.basis], np.isin(self.columns, list(vertex.capped))

    def cost_of(self, wanted: Mask) -> Array:
        """The cost whose value is the sum of the wanted variables, up to a constant."""
        cost = wanted.astype(float)
        for a, ends in self.tight_at.items():
            for i in chain.from_iterable(ends.values()):
                cost[a] += cost[self.size + i] * (-1 if self.is_cap[i] else 1)
                cost[self.size + i] = 0.0
        return cost
