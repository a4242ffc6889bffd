"""The simplex method on a small dense tableau, in floats or in fractions.

Our linear programs have few rows and many columns and are solved thousands of times
from a known basis, and their answer is a *basis*, not a point: that is what edges and
exact checks start from. The same code runs on float64 arrays, with tolerances, and on
object arrays of ``Fraction``, without any; the second is the referee of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError

# Rows are scaled to a largest coefficient of 1, so one number serves everywhere: far
# above rounding after a hundred pivots (1e-13), far below any difference meant by a user.
TOLERANCE = 1e-9

# Dantzig's rule is fast but may cycle on degenerate vertices; Bland's never does. After
# this many pivots without progress we switch for good.
STALL_LIMIT = 50

# Floats or Fractions; numpy's types cannot say "one of the two, consistently".
Table = npt.NDArray[Any]


@dataclass
class Tableau:
    """A basis of {x >= 0 : M x = b} with everything expressed in it.

    Attributes
    ----------
    body : (rows, columns) array
        inverse(M[:, basis]) @ M.
    values : (rows,) array
        inverse(M[:, basis]) @ b, the values of the basic variables.
    basis : list of int
        The basic variable of each row.
    """

    body: Table
    values: Table
    basis: list[int]

    @property
    def tolerance(self) -> float:
        return 0 if self.body.dtype == object else TOLERANCE

    @property
    def slip(self) -> float:
        """Ratios this close are ties: wide enough for rounding, too narrow to matter."""
        return 0 if self.body.dtype == object else TOLERANCE / 1000

    def pivot(self, row: int, column: int) -> None:
        """Make `column` basic in `row`."""
        head = self.body[row] / self.body[row, column]
        value = self.values[row] / self.body[row, column]
        factors = self.body[:, column].copy()
        factors[row] = 0
        self.body -= np.outer(factors, head)
        self.values -= factors * value
        self.body[row] = head
        self.values[row] = value
        self.body[:, column] = 0
        self.body[row, column] = 1
        self.basis[row] = column

    def leaving_row(self, column: int, *, careful: bool) -> int | None:
        """Row that hits zero first when `column` grows; None if none does."""
        entries = self.body[:, column]
        rows = np.flatnonzero(entries > self.tolerance)
        if rows.size == 0:
            return None
        ratios = np.maximum(self.values[rows], 0) / entries[rows]
        least = ratios.min()
        ties = rows[ratios <= least + self.slip]
        if careful:
            return int(min(ties, key=lambda r: self.basis[r]))
        return int(ties[np.argmax(entries[ties])])

    def maximise(self, cost: Table, allowed: npt.NDArray[np.bool_]) -> None:
        """Walk to a basis that maximises cost @ x over the allowed columns.

        Never reports unboundedness: every caller's feasible set is bounded.
        """
        cost = cost.astype(self.body.dtype)
        careful = self.tolerance == 0
        stalled = 0
        for _ in range(1000 + 100 * self.body.shape[1]):
            reduced = cost - cost[self.basis] @ self.body
            candidates = np.flatnonzero((reduced > self.tolerance) & allowed)
            if candidates.size == 0:
                return
            column = int(candidates[0] if careful else candidates[np.argmax(reduced[candidates])])
            row = self.leaving_row(column, careful=careful)
            if row is None:
                break
            stalled = stalled + 1 if self.values[row] <= self.tolerance else 0
            careful = careful or stalled > STALL_LIMIT
            self.pivot(row, column)
        raise NotConvergedError(
            "a linear program over the constraints did not finish; their coefficients may differ "
            "by too many orders of magnitude: rescale them."
        )

    def expel(self, banned: npt.NDArray[np.bool_]) -> None:
        """Drop banned columns, whose variables are all zero, and rows they leave empty."""
        for row in reversed(range(len(self.basis))):
            if not banned[self.basis[row]]:
                continue
            entries = np.where(banned, 0, np.abs(self.body[row]))
            column = int(np.argmax(entries))
            if entries[column] > self.tolerance:
                self.pivot(row, column)
            else:
                self.body = np.delete(self.body, row, axis=0)
                self.values = np.delete(self.values, row)
                del self.basis[row]
        keep = np.flatnonzero(~banned)
        renumbered = {int(old): new for new, old in enumerate(keep)}
        self.body = np.ascontiguousarray(self.body[:, keep])
        self.basis = [renumbered[column] for column in self.basis]


def first_tableau(matrix: Table, bound: Table, slack: npt.NDArray[np.int64]) -> Tableau | None:
    """A feasible tableau of {x >= 0 : matrix x = bound}, or None if there is none.

    Parameters
    ----------
    slack : (rows,) array of int
        The column that is this row's own slack (coefficient 1, nowhere else), or -1.

    Notes
    -----
    Phase one with artificial variables where a slack cannot start. Rows that repeat
    others disappear. In floats, "feasible" means up to the tolerance.
    """
    rows, columns = matrix.shape
    zero: Any = Fraction(0) if matrix.dtype == object else 0.0
    one: Any = Fraction(1) if matrix.dtype == object else 1.0
    body = np.full((rows, columns + rows), zero, dtype=matrix.dtype)
    body[:, :columns] = matrix
    values = bound.copy()
    basis = []
    for row in range(rows):
        if slack[row] >= 0 and values[row] >= 0:
            basis.append(int(slack[row]))
            continue
        if values[row] < 0:
            body[row, :columns] = -body[row, :columns]
            values[row] = -values[row]
        body[row, columns + row] = one
        basis.append(columns + row)
    tableau = Tableau(body, values, basis)
    artificial = np.arange(columns + rows) >= columns
    if any(column >= columns for column in basis):
        cost = np.where(artificial, -one, zero)
        tableau.maximise(cost, ~artificial)
        left = sum(tableau.values[r] for r, c in enumerate(tableau.basis) if c >= columns)
        if left > tableau.tolerance:
            return None
    tableau.expel(artificial)
    return tableau
