"""Small symmetric systems, in place."""

from __future__ import annotations

import math

from .kernel import kernel
from .records import Matrix, Vector


@kernel
def factorize(matrix: Matrix, size: int) -> None:
    """Cholesky's factor of a positive matrix in its place, with the inverse of its diagonal.

    Pivots that vanish to rounding are lifted, which drops the direction they stand for.
    """
    largest = 0.0
    for i in range(size):
        largest = max(largest, matrix[i, i])
    for j in range(size):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 1e-14 * largest:
            pivot = 1e-14 * largest + 1e-300
        inverse = 1.0 / math.sqrt(pivot)
        matrix[j, j] = inverse
        for i in range(j + 1, size):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = entry * inverse


@kernel
def solve_factored(factor: Matrix, size: int, x: Vector) -> None:
    """Solve factor @ factor.T @ solution = x in place."""
    for i in range(size):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] *= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            x[i] -= factor[k, i] * x[k]
        x[i] *= factor[i, i]


@kernel
def solve_positive(matrix: Matrix, size: int, x: Vector) -> None:
    """Solve matrix @ solution = x in place; the matrix is overwritten."""
    factorize(matrix, size)
    solve_factored(matrix, size, x)
