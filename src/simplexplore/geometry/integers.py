"""Linear algebra in whole numbers, for the signs that floats leave in doubt.

Floats find the vertex; these few functions say what is exactly zero there. All
elimination is fraction-free (Bareiss), so there is no greatest common divisor in any
inner loop, and results come as integers over one common denominator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from simplexplore.problem.rational import rational


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


def adjugate(matrix: Sequence[Sequence[int]]) -> tuple[list[list[int]], int]:
    """Integers (adj, det) with ``matrix @ adj = det * identity`` and det != 0.

    Raises
    ------
    ZeroDivisionError
        If the matrix is singular.

    Examples
    --------
    >>> adjugate([[2, 1], [1, 1]])
    ([[1, -1], [-1, 2]], 1)
    """
    n = len(matrix)
    rows = [list(row) + [int(i == j) for j in range(n)] for i, row in enumerate(matrix)]
    previous = 1
    for k in range(n):
        pivot_row = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot_row is None:
            raise ZeroDivisionError("the matrix is singular")
        rows[k], rows[pivot_row] = rows[pivot_row], rows[k]
        head = rows[k]
        pivot = head[k]
        for i in range(n):
            if i == k:
                continue
            row = rows[i]
            factor = row[k]
            # Bareiss: this division is exact, and keeps the numbers as small as minors.
            rows[i] = [(pivot * x - factor * y) // previous for x, y in zip(row, head, strict=True)]
        previous = pivot
    # All diagonal entries now equal the determinant of the row-permuted matrix, and the
    # right half is its adjugate times that permutation: signs cancel in the quotient.
    return [row[n:] for row in rows], previous


def dot(left: Sequence[int], right: Sequence[int]) -> int:
    """Exact inner product."""
    return sum(x * y for x, y in zip(left, right, strict=True) if x and y)
