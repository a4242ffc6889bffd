"""The vertices a run has met, in the form that compiled code reads.

A vertex is added when a walk first needs it. Its edges and their order depend on the vertex
alone, never on how it was reached, so runs are the same whatever was met before.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .geometry import Edges, Polytope
from .kernels.records import Table
from .standard_form import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Polytopes with more vertices than this are counted by a formula.
MAX_COUNTED = 2000


class VertexTable:
    """A growing set of vertices of one polytope.

    Attributes
    ----------
    vertices : list of Vertex
        By number; number 0 is where every run starts.
    """

    def __init__(self, polytope: Polytope, start: Vertex) -> None:
        self.polytope = polytope
        self.vertices: list[Vertex] = []
        self._number: dict[frozenset[int], int] = {}
        self._edges: list[Edges] = []
        self._first_edge = [0]
        self._following: list[int] = []
        self.add(polytope.canonical(start))

    def add(self, vertex: Vertex) -> int:
        """The number of a vertex, new or known."""
        known = self._number.get(vertex.zero)
        if known is not None:
            return known
        number = len(self.vertices)
        self._number[vertex.zero] = number
        self.vertices.append(vertex)
        edges = self.polytope.edges(vertex)
        self._edges.append(edges)
        self._first_edge.append(self._first_edge[-1] + len(edges))
        self._following += [-1] * len(edges)
        return number

    def follow(self, edge: int) -> int:
        """The vertex that an edge (of the whole table) leads to, added if it is new."""
        if self._following[edge] < 0:
            number = int(np.searchsorted(self._first_edge, edge, side="right")) - 1
            local = edge - self._first_edge[number]
            adjacent = self.polytope.adjacent(self.vertices[number], self._edges[number], local)
            self._following[edge] = self.add(adjacent)
        return self._following[edge]

    def explore(self, limit: int = MAX_COUNTED) -> bool:
        """Add all vertices; False if there are more than the limit."""
        edge = 0
        while edge < len(self._following):
            if len(self.vertices) > limit:
                return False
            self.follow(edge)
            edge += 1
        return True

    def union_size(self) -> tuple[float, bool]:
        """log M for the union bound over supports, and whether it was counted (THEORY 1.4).

        M = min(number of supports of edges, number of vertices - 1). Where vertices are too
        many to count, each has at most j + 1 positive arms when j rows are tight.
        """
        if self.explore():
            supports = {
                frozenset(int(a) for a in edges.index[e][edges.value[e] != 0])
                for edges in self._edges
                for e in range(len(edges))
            }
            return math.log(max(1, min(len(supports), len(self.vertices) - 1))), True
        rows = len(self.polytope.form.rows)
        arms = self.polytope.size - len(self.polytope.forced_arms)
        terms = [
            _log_binomial(rows, j) + _log_binomial(arms, j + 1) for j in range(min(rows, arms) + 1)
        ]
        return float(np.logaddexp.reduce(terms)), False

    def arrays(self) -> Table:
        """The table for compiled code."""
        return _table(
            [edges.index for edges in self._edges],
            [-edges.value for edges in self._edges],
            np.array(self._following, dtype=np.int64),
            self.polytope.size,
        )


def best_arm_table(size: int) -> Table:
    """The simplex: vertex a is arm a alone, its edges lead to the other arms."""
    index, v = [], []
    for a in range(size):
        others = np.array([b for b in range(size) if b != a], dtype=np.int64)
        index.append(np.column_stack([np.full(size - 1, a), others]))
        v.append(np.tile([1.0, -1.0], (size - 1, 1)))
    return _table(index, v, np.full(size * (size - 1), -1, dtype=np.int64), size)


def empty_table() -> Table:
    """No vertices; for runs that have no use for a second table."""
    return _table([], [], np.zeros(0, dtype=np.int64), 1)


def _log_binomial(n: int, k: int) -> float:
    if k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _table(index: list[Indices], v: list[Array], following: Indices, size: int) -> Table:
    """Edges by edge and by arm, from padded arrays per vertex."""
    first_edge, first_entry = [0], [0]
    arms: list[Indices] = []
    values: list[Array] = []
    columns = np.zeros((max(1, len(index)), size + 1), dtype=np.int64)
    column_edge: list[Indices] = []
    column_v: list[Array] = []
    filled = 0
    for number, (arm_rows, v_rows) in enumerate(zip(index, v, strict=True)):
        used = v_rows != 0
        counts = used.sum(axis=1)
        first_edge.append(first_edge[-1] + len(arm_rows))
        first_entry += (first_entry[-1] + np.cumsum(counts)).tolist()
        flat_arms, flat_v = arm_rows[used], v_rows[used]
        arms.append(flat_arms)
        values.append(flat_v)
        edges = np.repeat(np.arange(len(arm_rows)), counts)
        order = np.lexsort((edges, flat_arms))
        column_edge.append(edges[order])
        column_v.append(flat_v[order])
        places = np.searchsorted(flat_arms[order], np.arange(size + 1))
        columns[number] = filled + places
        filled += len(flat_arms)

    def joined(parts: list[npt.NDArray[np.generic]], dtype: type) -> npt.NDArray[np.generic]:
        return np.ascontiguousarray(np.concatenate(parts) if parts else np.zeros(0), dtype=dtype)

    return Table(
        first_edge=np.array(first_edge, dtype=np.int64),
        first_entry=np.array(first_entry, dtype=np.int64),
        arm=joined(arms, np.int64),  # type: ignore[arg-type]
        v=joined(values, np.float64),  # type: ignore[arg-type]
        following=following,
        first_column=columns,
        column_edge=joined(column_edge, np.int64),  # type: ignore[arg-type]
        column_v=joined(column_v, np.float64),  # type: ignore[arg-type]
        root=np.zeros(first_edge[-1]),
    )
