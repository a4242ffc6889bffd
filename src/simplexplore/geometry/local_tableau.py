"""What the constraints look like from one vertex."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.problem.rational import rational

from .exact_inverse import ExactInverse
from .integers import integer_row
from .standard_form import StandardForm
from .vertex import Vertex

Array = npt.NDArray[np.float64]


class LocalTableau:
    """The simplex tableau at a vertex, in floats, with exact entries on demand.

    Attributes
    ----------
    nonbasic : array of int
        Columns outside the basis, in the order of what is tight there.
    away : array of int
        Whether each can only grow (1) or only fall (-1) from where it is.
    at_end : list of (int, int)
        Basic variables that are at an end all the same, and the same of them.
    """

    def __init__(self, form: StandardForm, vertex: Vertex) -> None:
        self.form = form
        self.vertex = vertex
        self.arms, self.tight, self.loose = form.split(vertex.basis)
        capped = np.zeros(form.size + form.count, dtype=np.int64)
        capped[list(vertex.capped)] = 1
        outside = np.ones(len(form.columns), dtype=bool)
        outside[np.searchsorted(form.columns, vertex.basis)] = False
        nonbasic = form.columns[outside]
        order = np.lexsort((nonbasic, form.faces[capped[nonbasic], nonbasic]))
        self.nonbasic = nonbasic[order]
        self.away = 1 - 2 * capped[self.nonbasic]
        inverse = np.linalg.inv(form.matrix(self.tight, self.arms))
        self.magnitude = max(1.0, float(np.abs(inverse).max(initial=0.0)))
        self.body_arms = inverse @ form.matrix(self.tight, self.nonbasic)
        self.body_loose = (
            form.matrix(self.loose, self.nonbasic)
            - form.matrix(self.loose, self.arms) @ self.body_arms
        )
        self.at_end = []
        for c in vertex.basis:
            share = vertex.shares.get(c, Fraction(0))
            if c >= form.size:
                if c in vertex.zero:
                    self.at_end.append((c, 1))
            elif share == form.floor[c]:
                self.at_end.append((c, 1))
            elif share == form.cap[c]:
                self.at_end.append((c, -1))
        self._exact: dict[int, dict[int, Fraction]] = {}

    @cached_property
    def _inverse(self) -> ExactInverse:
        return self.form.inverse(self.arms, self.tight)

    def exact_arms(self, column: int) -> dict[int, Fraction]:
        """Tableau entries of the basic arms in one column."""
        kind = int(self.form.alike[column])
        if kind not in self._exact:
            right = [self.form.entry(i, column) for i in self.tight]
            self._exact[kind] = self._inverse.times(right)
        return self._exact[kind]

    def exact_prices(self, cost: Array) -> tuple[list[int], list[Fraction]]:
        """Rows with a price at a cost: it less their priced entries is what a column adds."""
        size = self.form.size
        prices = {i: rational(float(cost[size + i])) for i in self.loose if cost[size + i]}
        own = []
        for a in self.arms:
            slacks = (price * self.form.entry(i, a) for i, price in prices.items())
            own.append(rational(float(cost[a])) - sum(slacks, Fraction(0)))
        prices.update(zip(self.tight, self._inverse.prices(own), strict=True))
        prices = {i: price for i, price in prices.items() if price}
        return list(prices), list(prices.values())

    def exact_loose(self, i: int, column: int) -> Fraction:
        """Tableau entry of the basic slack of row i in one column."""
        return self.form.entry(i, column) - self.form.used(i, self.exact_arms(column))

    def exact_rows_at_end(self) -> list[list[int]]:
        """Way of each basic variable at an end from it, by nonbasic one, as integers."""
        # Columns with the same coefficients that leave the same end have the same entries.
        ends = 2 * self.form.alike[self.nonbasic] + (self.away > 0)
        _, first, kind = np.unique(ends, return_index=True, return_inverse=True)
        few = list(zip(self.nonbasic[first].tolist(), self.away[first].tolist(), strict=True))
        rows = []
        for c, away in self.at_end:
            row = integer_row(-away * way * self._exact_entry(c, n) for n, way in few)
            rows.append([row[k] for k in kind.tolist()])
        return rows

    def _exact_entry(self, basic: int, column: int) -> Fraction:
        """Tableau entry of a basic variable in one column."""
        size = self.form.size
        return (
            self.exact_arms(column)[basic]
            if basic < size
            else self.exact_loose(basic - size, column)
        )
