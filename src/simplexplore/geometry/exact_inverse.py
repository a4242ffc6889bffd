"""Small linear systems over basic arms, solved without rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from .integers import adjugate, dot, integer_row


class ExactInverse:
    """Inverse of the tight rows over the basic arms, in whole numbers."""

    def __init__(self, arms: Sequence[int], rows: Sequence[Sequence[Fraction]]) -> None:
        self.arms = arms
        self.scales = [math.lcm(*(x.denominator for x in row)) for row in rows]
        self.adjugate, self.determinant = adjugate([integer_row(row) for row in rows])

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

    def prices(self, cost: Sequence[Fraction]) -> list[Fraction]:
        """The solution of y (tight rows) = cost, by tight row."""
        common = math.lcm(*(x.denominator for x in cost))
        whole = [x.numerator * (common // x.denominator) for x in cost]
        below = common * self.determinant
        columns = zip(*self.adjugate, strict=True)
        return [
            Fraction(dot(c, whole) * x, below) for c, x in zip(columns, self.scales, strict=True)
        ]
