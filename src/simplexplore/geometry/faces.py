"""Faces of the feasible set of one and two dimensions, cut into simplices, and their supports.

Where m limits are measured, an optimal policy lies on a face of at most m dimensions of the known
polytope, whatever the limits' coefficients are (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError

from .polytope import Polytope
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# More vertices, or triangles, than can be gone through again and again.
MAX_VERTICES = 200
MAX_TRIANGLES = 20_000

# Signed supports that are counted one by one; beyond, those that several answers share count twice.
MAX_COUNTED = 100_000


def _edges(vertices: list[Vertex]) -> list[tuple[int, ...]]:
    """Pairs of vertices that no third one shares all common zeros of."""
    active = _active(vertices)
    found: list[tuple[int, ...]] = []
    for i, j in itertools.combinations(range(len(vertices)), 2):
        shared = active[i] & active[j]
        if (active[:, shared].all(axis=1)).sum() == 2:
            found.append((i, j))
    return found


def _triangles(vertices: list[Vertex], edges: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Two-dimensional faces, each cut from one of its corners.

    The smallest face around two edges at a vertex has the vertices that share what is zero on
    both. It is a polygon if it has as many edges as vertices, one more dimension having more.
    """
    active = _active(vertices)
    at: list[set[int]] = [set() for _ in vertices]
    for i, j in edges:
        at[i].add(j)
        at[j].add(i)
    seen: set[frozenset[int]] = set()
    triangles: list[tuple[int, ...]] = []
    for v, around in enumerate(at):
        for a, b in itertools.combinations(sorted(around), 2):
            shared = active[v] & active[a] & active[b]
            members = frozenset(np.flatnonzero(active[:, shared].all(axis=1)).tolist())
            if members in seen or any(len(at[i] & members) != 2 for i in members):
                continue
            seen.add(members)
            first = min(members)
            triangles += [
                (first, i, j)
                for i, j in itertools.combinations(sorted(members - {first}), 2)
                if j in at[i]
            ]
            if len(triangles) > MAX_TRIANGLES:
                raise _too_large(f"more than {MAX_TRIANGLES:,} triangles in its faces")
    return triangles


def _active(vertices: list[Vertex]) -> npt.NDArray[np.bool_]:
    """Which variables are zero at which vertex."""
    names = sorted(set().union(*(vertex.zero for vertex in vertices)))
    return np.array([[name in vertex.zero for name in names] for vertex in vertices])


def _too_large(what: str) -> TooLargeError:
    return TooLargeError(
        f"the policies that the known constraints allow have {what}; with measured limits an "
        "answer must be told apart from all of them. Merge or drop arms, drop constraints, or "
        "leave out a measured limit."
    )


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
                for corners in itertools.combinations(cell, count):
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
        if sum(count.values()) <= MAX_COUNTED:
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
    for gains in itertools.product((False, True), repeat=len(common)):
        up = answer & ~own | sum(bit for bit, gain in zip(common, gains, strict=True) if gain)
        down = (own | answer) & ~up
        if up and down:
            found.add((up, down))
    return found


def simplices(polytope: Polytope, dimensions: int) -> Simplices:
    """Faces of so many dimensions, one or two, or the polytope itself where it has fewer.

    Raises
    ------
    TooLargeError
        If there are too many of them.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> polytope = Polytope(Problem(3, ["a1 <= 1/2"]))
    >>> len(simplices(polytope, 1).cells), len(simplices(polytope, 2).cells)
    (4, 2)
    """
    found = []
    for vertex, met in polytope.ranked_vertices(np.zeros(polytope.size)):
        if met > MAX_VERTICES:
            raise _too_large(f"more than {MAX_VERTICES} vertices")
        found.append(vertex)
    edges = _edges(found)
    faces = (_triangles(found, edges) if dimensions == 2 else []) or edges or [(0,)]
    policies = np.array([vertex.policy for vertex in found])
    vertices, numbers = np.unique(policies, axis=0, return_inverse=True)
    cells = np.unique(np.sort(numbers.ravel()[np.array(faces)], axis=1), axis=0).astype(np.int64)
    return Simplices(vertices, cells, np.asarray((vertices[cells] > 0).any(axis=1)))
