"""Faces of the feasible set of one and two dimensions, cut into triangles."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError

from .polytope import Polytope
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# More vertices, or triangles, than can be gone through again and again.
MOST_VERTICES = 200
MOST_TRIANGLES = 20_000


def faces(polytope: Polytope, dimension: int) -> tuple[Array, Array]:
    """All edges, and with dimension 2 all two-dimensional faces, cut into triangles.

    Returns
    -------
    edges : (E, 2, K) array
        Both ends of each.
    triangles : (N, 3, K) array
        The corners of each; none for dimension 1.

    Raises
    ------
    TooLargeError
        If there are too many.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> edges, triangles = faces(Polytope(Problem(3, ["a1 <= 1/2"])), 2)
    >>> len(edges), len(triangles)
    (4, 2)
    """
    vertices = []
    for vertex, met in polytope.ranked_vertices(np.zeros(polytope.size)):
        if met > MOST_VERTICES:
            raise _too_large(f"more than {MOST_VERTICES} vertices")
        vertices.append(vertex)
    corners = np.array([vertex.policy for vertex in vertices])
    edges = _edges(vertices)
    triangles = _triangles(vertices, edges) if dimension == 2 else []
    shape = (-1, 3, polytope.size)
    return corners[np.array(edges, dtype=int).reshape(-1, 2)], (
        corners[np.array(triangles, dtype=int).reshape(-1, 3)].reshape(shape)
    )


def _edges(vertices: list[Vertex]) -> list[tuple[int, int]]:
    """Pairs of vertices that no third one shares all common zeros of."""
    tight = _tight(vertices)
    found = []
    for i, j in itertools.combinations(range(len(vertices)), 2):
        shared = tight[i] & tight[j]
        if (tight[:, shared].all(axis=1)).sum() == 2:
            found.append((i, j))
    return found


def _triangles(vertices: list[Vertex], edges: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Two-dimensional faces, each cut from one of its corners.

    The smallest face around two edges at a vertex has the vertices that share what is zero on
    both. It is a polygon if it has as many edges as vertices, one more dimension having more.
    """
    tight = _tight(vertices)
    at: list[set[int]] = [set() for _ in vertices]
    for i, j in edges:
        at[i].add(j)
        at[j].add(i)
    seen: set[frozenset[int]] = set()
    triangles: list[tuple[int, ...]] = []
    for v, around in enumerate(at):
        for a, b in itertools.combinations(sorted(around), 2):
            shared = tight[v] & tight[a] & tight[b]
            members = frozenset(np.flatnonzero(tight[:, shared].all(axis=1)).tolist())
            if members in seen or any(len(at[i] & members) != 2 for i in members):
                continue
            seen.add(members)
            first = min(members)
            triangles += [
                (first, i, j)
                for i, j in itertools.combinations(sorted(members - {first}), 2)
                if j in at[i]
            ]
            if len(triangles) > MOST_TRIANGLES:
                raise _too_large(f"more than {MOST_TRIANGLES:,} triangles in its faces")
    return triangles


def _tight(vertices: list[Vertex]) -> npt.NDArray[np.bool_]:
    """Which variables are zero at which vertex."""
    names = sorted(set().union(*(vertex.zero for vertex in vertices)))
    return np.array([[name in vertex.zero for name in names] for vertex in vertices])


def _too_large(what: str) -> TooLargeError:
    return TooLargeError(
        f"the policies that the known constraints allow have {what}; with measured limits an "
        "answer must be told apart from all of them. Merge or drop arms, drop constraints, or "
        "leave out a measured limit."
    )
