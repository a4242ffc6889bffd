"""Faces of a few dimensions, cut into simplices, and the supports of points on them.

Where m limits are measured, an optimal policy lies on a face of at most m dimensions of the known
polytope, whatever the limits' coefficients are (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError

from .polytope import Polytope

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Faces are found among all vertices, and searched one by one at every look.
MAX_VERTICES = 400
MAX_CELLS = 5_000

# Pairs of supports up to which signed ones are counted one by one; a bound is enough beyond.
_COUNTED = 50_000


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
        count: dict[int, float] = {}
        for own in {_bits(row) for row in self.used}:
            if len(answers) * len(inside) <= _COUNTED:
                count[own] = len(set().union(*(_signs(own, other) for other in answers)))
            else:
                count[own] = sum(2.0 ** (own & other).bit_count() for other in answers)
        return np.array([max(count[_bits(row)], 1) for row in self.used], dtype=float)


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
    vertices, zeros = [], []
    for vertex, met in polytope.ranked_vertices(np.zeros(polytope.size)):
        if met > MAX_VERTICES:
            raise TooLargeError(
                f"the known constraints leave more than {MAX_VERTICES} vertices, and where limits "
                "are measured every one is looked at. Merge or drop arms, or drop constraints."
            )
        vertices.append(vertex.policy)
        zeros.append(_union(1 << z for z in vertex.zero))
    faces = _Faces(zeros)
    dimensions = min(dimensions, polytope.dimension, 2)
    found: list[tuple[int, ...]]
    if dimensions == 0:
        found = [(0,)]
    elif dimensions == 1:
        found = faces.edges
    else:
        found = [triangle for polygon in faces.polygons() for triangle in _fan(polygon)]
    if len(found) > MAX_CELLS:
        raise TooLargeError(
            f"the known constraints leave {len(found)} faces on which policies can be best, and "
            f"where limits are measured every one is searched; at most {MAX_CELLS} are possible. "
            "Merge or drop arms, or drop constraints."
        )
    cells = np.array(sorted(found), dtype=np.int64)
    table = np.array(vertices)
    return Simplices(table, cells, np.asarray((table[cells] > 0).any(axis=1)))


def _fan(polygon: list[int]) -> list[tuple[int, ...]]:
    """Triangles of a convex polygon whose corners are in order."""
    first = polygon[0]
    return [(first, *pair) for pair in pairwise(polygon[1:])]


class _Faces:
    """Faces as sets of vertices: those that have all the zeros which some vertices share."""

    def __init__(self, zeros: list[int]) -> None:
        self._zeros = zeros

    def _smallest(self, *corners: int) -> list[int]:
        """The smallest face that holds some vertices."""
        shared = ~0
        for corner in corners:
            shared &= self._zeros[corner]
        return [v for v, zero in enumerate(self._zeros) if zero & shared == shared]

    @cached_property
    def edges(self) -> list[tuple[int, ...]]:
        """Pairs of vertices that are a face: no third one has all their common zeros."""
        width = max(zero.bit_length() for zero in self._zeros)
        bits = [[zero >> z & 1 for z in range(width)] for zero in self._zeros]
        has = np.array(bits, dtype=np.float32)
        found: list[tuple[int, ...]] = []
        for one in range(len(has)):
            lacking = (has[one] * has) @ (1 - has).T  # by other vertex and third one
            pairs = np.flatnonzero((lacking == 0).sum(axis=1) == 2)
            found += [(one, int(other)) for other in pairs if other > one]
        return found

    def polygons(self) -> list[list[int]]:
        """Faces of two dimensions: each vertex has two neighbours there, and they form a cycle."""
        neighbours: dict[int, list[int]] = {}
        for one, other in self.edges:
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
        found: dict[frozenset[int], list[int]] = {}
        for corner, near in neighbours.items():
            for one, other in combinations(near, 2):
                face = frozenset(self._smallest(corner, one, other))
                if face in found:
                    continue
                inside = {v: [u for u in neighbours[v] if u in face] for v in face}
                if all(len(two) == 2 for two in inside.values()):
                    found[face] = _walk(inside)
        return list(found.values())


def _walk(neighbours: dict[int, list[int]]) -> list[int]:
    """The vertices of a polygon in order."""
    first = min(neighbours)
    walk, at = [first], min(neighbours[first])
    while at != first:
        before = walk[-1]
        walk.append(at)
        one, other = neighbours[at]
        at = one if other == before else other
    return walk
