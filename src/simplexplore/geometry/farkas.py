"""Proofs that constraints cannot hold together, by Farkas' lemma.

If a weighted sum of constraints ``row . x <= bound``, with weights that are not negative, has a
bound below its least coefficient, then no x >= 0 with sum 1 satisfies all of them. Floats propose
the weights; the sum is taken in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational

from .exact import ROUNDING_ULPS

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Constraints hold with certainty if a float solver finds so much room in all of them, in rows
# that are scaled to a largest coefficient of 1.
MARGIN = 1e-6

# Weights are rounded to fractions with denominators up to here.
MAX_DENOMINATOR = 10**9


class ConstraintSides:
    """The finite sides of all constraints, as row . x <= bound."""

    def __init__(self, problem: Problem) -> None:
        from scipy import sparse

        self._constraints = rows = problem.constraints
        upper = np.flatnonzero(problem.upper < math.inf)
        lower = np.flatnonzero(problem.lower > -math.inf)
        self._sign = np.repeat([1, -1], [len(upper), len(lower)])
        self._owner = np.append(upper, lower)
        self._bound = np.append(problem.upper[upper], problem.lower[lower])
        self._scale = np.array([np.abs(row.values).max() for row in rows])[self._owner]
        self._matrix = sparse.csr_array(
            (
                np.concatenate([row.values for row in rows]),
                np.concatenate([row.arms for row in rows]),
                np.cumsum([0, *(len(row.arms) for row in rows)]),
            ),
            shape=(len(rows), problem.size),
        )
        self._whole: dict[int, tuple[Indices, npt.NDArray[np.object_], int]] = {}

    def proof(self, chosen: Collection[int]) -> list[int] | None:
        """Constraints, of those chosen, whose weighted sum shows that they conflict.

        The one that adds least to the sum comes first. Empty if all chosen ones can hold; None if
        floats cannot tell.
        """
        sides = np.flatnonzero(np.isin(self._owner, list(chosen)))
        if not len(sides):
            return []
        room, weights = self._most_room(sides)
        if room > MARGIN:
            return []
        used = weights > 0
        sides, weights = sides[used], weights[used]
        if not self._is_proof(sides, weights):
            return None
        order = np.argsort(weights * np.abs(self._bound / self._scale)[sides], kind="stable")
        return list(dict.fromkeys(self._owner[sides[order]].tolist()))

    def _most_room(self, sides: Indices) -> tuple[float, Array]:
        """The most room that shares leave in all sides, and its multipliers."""
        from scipy import sparse
        from scipy.optimize import linprog

        size, factor = self._matrix.shape[1], self._sign[sides] / self._scale[sides]
        rows = sparse.diags_array(factor) @ self._matrix[self._owner[sides]]
        last = sparse.csr_array(np.ones((len(sides), 1)))
        above: Any = sparse.hstack([rows, last], format="csr")  # the last variable is the room
        ends: Any = np.append(np.tile([0.0, np.inf], (size, 1)), [[-np.inf, np.inf]], axis=0)
        found = linprog(
            np.append(np.zeros(size), -1.0),
            A_ub=above,
            b_ub=self._bound[sides] * factor,
            A_eq=np.append(np.ones(size), 0.0)[None],
            b_eq=np.ones(1),
            bounds=ends,
        )
        if found.status != 0 or found.x is None or found.fun is None:
            return 0.0, np.zeros(len(sides))
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        return -float(found.fun), np.where(weights > 1e-12, weights, 0.0)

    def _is_proof(self, sides: Indices, weights: Array) -> bool:
        """Whether no shares satisfy the sum of sides times weights, exactly."""
        parts, bound = [], Fraction(0)
        for i, weight in zip(sides.tolist(), weights.tolist(), strict=True):
            exact = Fraction(weight).limit_denominator(MAX_DENOMINATOR)
            exact *= int(self._sign[i]) / rational(float(self._scale[i]))
            bound += exact * rational(float(self._bound[i]), ROUNDING_ULPS)
            arms, row, denominator = self._row(int(self._owner[i]))
            parts.append((exact / denominator, arms, row))
        common = math.lcm(*(part.denominator for part, *_ in parts))
        total = np.zeros(self._matrix.shape[1], dtype=object)
        for part, arms, row in parts:
            total[arms] += int(part * common) * row
        return bool(parts and total.min() > bound * common)

    def _row(self, k: int) -> tuple[Indices, npt.NDArray[np.object_], int]:
        """The coefficients of a constraint in whole numbers over a denominator, and their arms."""
        if k not in self._whole:
            given = self._constraints[k]
            row = [rational(x, ROUNDING_ULPS) for x in given.values.tolist()]
            denominator = math.lcm(*(x.denominator for x in row))
            whole = [x.numerator * (denominator // x.denominator) for x in row]
            self._whole[k] = given.arms, np.array(whole, dtype=object), denominator
        return self._whole[k]
