"""Supports of policies on faces of a few dimensions, and of what tells two of them apart.

Where m limits are measured, an optimal policy lies on a face of at most m dimensions of the known
polytope, whatever the limits' coefficients are (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from .faces import faces
from .polytope import Polytope

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Signed supports that are counted one by one; beyond, those that several answers share count twice.
_COUNTED = 100_000


@dataclass(frozen=True)
class Simplices:
    """The faces of the greatest dimension up to m, in simplices.

    Attributes
    ----------
    vertices : (V, K) array
        Of the polytope.
    cells : (C, m + 1) array
        Numbers of the corners of each simplex; fewer where the polytope has fewer dimensions.
    used : (C, K) array of bool
        Arms that the points of a simplex use.
    """

    vertices: Array
    cells: Indices
    used: npt.NDArray[np.bool_]

    @cached_property
    def supports(self) -> tuple[frozenset[int], frozenset[int]]:
        """Supports of points inside simplices, and of points on their sides, as sets of bits."""
        of_vertex = [_bits(policy > 0) for policy in self.vertices]
        outside = set()
        for cell in self.cells.tolist():
            for count in range(1, len(cell)):
                for corners in combinations(cell, count):
                    outside.add(_union(of_vertex[v] for v in corners))
        return frozenset(_bits(row) for row in self.used), frozenset(outside)

    @cached_property
    def patterns(self) -> Array:
        """For each simplex at least as many as there are signs of answer - x, x a point of it.

        Signs are those of the arms that x or the answer uses; one that both use has either. Shares
        sum to one, so that some arm gains and some arm loses.
        """
        inside, outside = self.supports
        answers = sorted(inside | outside)
        count = {own: sum(2.0 ** (own & other).bit_count() for other in answers) for own in inside}
        if sum(count.values()) <= _COUNTED:
            for own in inside:
                count[own] = len(set().union(*(_signs(own, other) for other in answers)))
        return np.array([max(count[_bits(row)], 1.0) for row in self.used], dtype=float)


def _bits(used: npt.NDArray[np.bool_]) -> int:
    return sum(1 << int(a) for a in np.flatnonzero(used))


def _union(parts: Iterable[int]) -> int:
    whole = 0
    for part in parts:
        whole |= part
    return whole


def _signs(own: int, answer: int) -> set[tuple[int, int]]:
    """Arms that gain and arms that lose from x to an answer, given the supports of both."""
    both = own & answer
    common = [1 << a for a in range(both.bit_length()) if both >> a & 1]
    found = set()
    for gains in product((False, True), repeat=len(common)):
        up = answer & ~own | sum(bit for bit, gain in zip(common, gains, strict=True) if gain)
        down = (own | answer) & ~up
        if up and down:
            found.add((up, down))
    return found


def simplices(polytope: Polytope, dimensions: int) -> Simplices:
    """Faces of so many dimensions, or the polytope itself where it has fewer.

    Raises
    ------
    TooLargeError
        If there are too many of them.
    """
    edges, triangles = faces(polytope, dimensions)
    corners = triangles if len(triangles) else edges
    if not len(corners):
        corners = polytope.optimal_vertex(np.zeros(polytope.size)).policy[None, None]
    vertices, numbers = np.unique(corners.reshape(-1, polytope.size), axis=0, return_inverse=True)
    cells = np.sort(numbers.reshape(corners.shape[:2]), axis=1)
    cells = np.unique(cells, axis=0).astype(np.int64)
    return Simplices(vertices, cells, np.asarray((vertices[cells] > 0).any(axis=1)))
