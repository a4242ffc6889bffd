"""The simplex method on a small dense tableau, in floats or in fractions.

Our linear programs have few rows and many columns and are solved thousands of times
from a known basis, and their answer is a *basis*, not a point: that is what edges and
exact checks start from. The same code runs on float64 arrays, with tolerances, and on
object arrays of ``Fraction``, without any; the second is the referee of the first.
"""

from __future__ import annotations

import math
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
    """A basis of {0 <= x <= width : M x = b} with everything expressed in it.

    A nonbasic variable rests at 0. One that rests at its upper end is *flipped*: its column
    stands for width - x, which is 0 there.

    Attributes
    ----------
    body : (rows, columns) array
        inverse(M[:, basis]) @ M, columns of flipped variables with the opposite sign.
    values : (rows,) array
        The values of the basic variables.
    basis : list of int
        The basic variable of each row.
    width : (columns,) array
        Positive; inf where a variable has no upper end.
    at_upper : (columns,) array of bool
        Which are flipped.
    """

    body: Table
    values: Table
    basis: list[int]
    width: Table
    at_upper: npt.NDArray[np.bool_]

    @property
    def tolerance(self) -> float:
        return 0 if self.body.dtype == object else TOLERANCE

    @property
    def tie_tolerance(self) -> float:
        """Ratios this close are ties: wide enough for rounding, too narrow to matter."""
        return 0 if self.body.dtype == object else TOLERANCE / 1000

    def point(self) -> Table:
        """The values of all variables, none below 0."""
        found = np.zeros(self.body.shape[1], dtype=self.body.dtype)
        found[self.basis] = np.maximum(self.values, 0)
        return np.where(self.at_upper, self.width - found, found)

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

    def flip(self, column: int) -> None:
        """Measure a variable from its other end."""
        if column in self.basis:
            row = self.basis.index(column)
            self.body[row] = -self.body[row]
            self.body[row, column] = -self.body[row, column]
            self.values[row] = self.width[column] - self.values[row]
        else:
            self.values -= self.body[:, column] * self.width[column]
            self.body[:, column] = -self.body[:, column]
        self.at_upper[column] = not self.at_upper[column]

    def set_basis(self, basis: list[int], at_upper: npt.NDArray[np.bool_]) -> None:
        """Go to another basis straight: what lies between need not be feasible."""
        for column in np.flatnonzero(self.at_upper != at_upper).tolist():
            self.flip(column)
        for column in sorted(set(basis).difference(self.basis)):
            rows = np.flatnonzero(self.body[:, column]).tolist()
            # One of them is not wanted, or the wanted columns would not be independent.
            self.pivot(next(row for row in rows if self.basis[row] not in basis), column)

    def leaving_row(self, column: int, *, use_bland: bool) -> tuple[int | None, Any]:
        """Row that reaches an end first when `column` grows, and how far away that end is.

        None if `column` reaches its own end before; a distance of inf if nothing ends.
        """
        entries, ends = self.body[:, column], self.width[self.basis]
        to_zero = entries > self.tolerance
        rows = np.flatnonzero(to_zero | ((entries < -self.tolerance) & (ends != math.inf)))
        own = self.width[column]
        if rows.size == 0:
            return None, own
        room = np.maximum(np.where(to_zero, self.values, ends - self.values)[rows], 0)
        pace = np.abs(entries[rows])
        ratios = room / pace
        least = ratios.min()
        if own <= least:
            return None, own
        ties = np.flatnonzero(ratios <= least + self.tie_tolerance)
        if use_bland:
            chosen = min(ties, key=lambda t: self.basis[rows[t]])
        else:
            chosen = ties[np.argmax(pace[ties])]
        return int(rows[chosen]), room[chosen]

    def maximise(self, cost: Table, allowed: npt.NDArray[np.bool_]) -> None:
        """Walk to a basis that maximises cost @ x over the allowed columns.

        Never reports unboundedness: every caller's feasible set is bounded.
        """
        cost = cost.astype(self.body.dtype)
        use_bland = self.tolerance == 0
        stalled = 0
        for _ in range(1000 + 100 * self.body.shape[1]):
            signed = np.where(self.at_upper, -cost, cost)
            reduced = signed - signed[self.basis] @ self.body
            candidates = np.flatnonzero((reduced > self.tolerance) & allowed)
            if candidates.size == 0:
                return
            column = int(candidates[0] if use_bland else candidates[np.argmax(reduced[candidates])])
            row, room = self.leaving_row(column, use_bland=use_bland)
            if room == math.inf:
                break
            stalled = stalled + 1 if room <= self.tolerance else 0
            use_bland = use_bland or stalled > STALL_LIMIT
            if row is None:
                self.flip(column)
                continue
            if self.body[row, column] < 0:  # it leaves at its upper end
                self.flip(self.basis[row])
            self.pivot(row, column)
        raise NotConvergedError(
            "a linear program over the constraints did not finish; their coefficients may differ "
            "by too many orders of magnitude: rescale them."
        )

    def remove_columns(self, removed: npt.NDArray[np.bool_]) -> None:
        """Drop removed columns, whose variables are all zero, and rows they leave empty."""
        for row in reversed(range(len(self.basis))):
            if not removed[self.basis[row]]:
                continue
            entries = np.where(removed, 0, np.abs(self.body[row]))
            column = int(np.argmax(entries))
            if entries[column] > self.tolerance:
                self.pivot(row, column)
            else:
                self.body = np.delete(self.body, row, axis=0)
                self.values = np.delete(self.values, row)
                del self.basis[row]
        keep = np.flatnonzero(~removed)
        renumbered = {int(old): new for new, old in enumerate(keep)}
        self.body = np.ascontiguousarray(self.body[:, keep])
        self.width, self.at_upper = self.width[keep], self.at_upper[keep]
        self.basis = [renumbered[column] for column in self.basis]


def first_tableau(
    matrix: Table, bound: Table, slack: npt.NDArray[np.int64], width: Table
) -> Tableau | None:
    """A feasible tableau of {0 <= x <= width : matrix x = bound}, or None if there is none.

    Phase one, with artificial variables where a slack cannot start. Rows that repeat others
    disappear. In floats, "feasible" means up to the tolerance.

    Parameters
    ----------
    slack : (rows,) array of int
        The column that is this row's own slack (coefficient 1, nowhere else), or -1.
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
    ends = np.append(width, np.full(rows, math.inf, dtype=matrix.dtype))
    artificial = np.arange(columns + rows) >= columns
    tableau = Tableau(body, values, basis, ends, np.zeros(columns + rows, dtype=bool))
    if any(column >= columns for column in basis):
        tableau.maximise(np.where(artificial, -one, zero), ~artificial)
    missing = sum(tableau.values[r] for r, c in enumerate(tableau.basis) if c >= columns)
    if missing > tableau.tolerance:
        return None
    tableau.remove_columns(artificial)
    return tableau
