"""Exact linear algebra: square systems of fractions, solved by FLINT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from flint import fmpq, fmpq_mat

from simplexplore.problem.rational import rational

# Units in the last place that a coefficient, bound or mean may be off where it came out of a sum or
# a quotient of the user's: 0.1 + 0.2 means 0.3.
ROUNDING_ULPS = 4

Rows = Sequence[Sequence[Fraction]]


class ExactInverse:
    """The inverse of a square matrix, by rows; it is never formed: each right side is solved.

    Raises
    ------
    ZeroDivisionError
        If there is none.

    Examples
    --------
    >>> ExactInverse([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(1)]]).times([1, 0])
    [Fraction(1, 1), Fraction(-1, 1)]
    """

    def __init__(self, rows: Rows) -> None:
        # In whole numbers by rows: a column of fractions may have no small denominator in common.
        self._scale = [math.lcm(*(x.denominator for x in row)) for row in rows]
        self._matrix = _matrix(self._scaled(rows))
        if rows and self._matrix.det() == 0:
            raise ZeroDivisionError("the matrix is singular")

    def times(self, right: Sequence[Fraction]) -> list[Fraction]:
        """The solution x of matrix x = right."""
        return _solution(self._matrix, self._scaled([[x] for x in right]))

    def transposed_times(self, right: Sequence[Fraction]) -> list[Fraction]:
        """The solution y of y matrix = right."""
        found = _solution(self._matrix.transpose(), [[x] for x in right])
        return [x * scale for x, scale in zip(found, self._scale, strict=True)]

    def times_matrix(self, rows: Rows) -> tuple[list[list[int]], int]:
        """Whole numbers X by rows, and a positive d, with matrix X = d rows."""
        if not rows:
            return [], 1
        numerators, denominator = self._matrix.solve(_matrix(self._scaled(rows))).numer_denom()
        return [[int(x) for x in row] for row in numerators.tolist()], int(denominator)

    def _scaled(self, rows: Rows) -> Rows:
        return [[x * n for x in row] for row, n in zip(rows, self._scale, strict=True)]


def independent_columns(rows: Rows) -> list[int]:
    """The columns, from the first on, that do not depend on the ones before.

    Examples
    --------
    >>> independent_columns([[Fraction(1), Fraction(2), Fraction(0)]])
    [0]
    """
    reduced, rank = _matrix(rows).rref()
    entries = reduced.tolist()[: int(rank)]
    return [next(n for n, x in enumerate(row) if x != 0) for row in entries]


def integer_row(values: Iterable[float | Fraction]) -> list[int]:
    """The row times the least positive number that makes it whole.

    Examples
    --------
    >>> integer_row([0.5, 1 / 3, -1.0])
    [3, 2, -6]
    """
    fractions = [rational(value) for value in values]
    scale = math.lcm(*(f.denominator for f in fractions))
    return [f.numerator * (scale // f.denominator) for f in fractions]


def _matrix(rows: Rows) -> fmpq_mat:
    if not rows:
        return fmpq_mat(0, 0)
    return fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in rows])


def _solution(matrix: fmpq_mat, right: Rows) -> list[Fraction]:
    if not right:
        return []
    found = matrix.solve(_matrix(right)).entries()
    return [Fraction(int(x.p), int(x.q)) for x in found]
