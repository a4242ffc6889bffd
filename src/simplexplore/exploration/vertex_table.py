"""The vertices a run has met, in the form that compiled code reads.

A vertex is added when a walk first needs it. Its edges and their order depend on the vertex
alone, never on how it was reached, so runs are the same whatever was met before.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.epsilon_answers import Answers
from simplexplore.geometry.faces import Simplices
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.question_polytope import QuestionPolytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.kernels.packed_record import zeros
from simplexplore.kernels.records import ANSWER, INFEASIBLE, NONE, EdgeTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Polytopes with more vertices than this, divided by arms, are counted by a formula: finding
# a vertex takes milliseconds and grows with the arms. Degenerate vertices have more edges.
MAX_COUNTED = 20_000
MAX_EDGES = 2 * MAX_COUNTED

# Edges that are followed, times the numbers in the exact system of each: some five seconds.
MAX_STEPS = 500_000

# With limits on single arms vertices are many, and a formula that does not look at them is
# close: they are listed if they have fewer edges than this, or so many if the formula is large.
FEW_EDGES = 1_000
MORE_EDGES = 5_000

# Bytes of a table.
MAX_BYTES = 2**31


class GrowingTable:
    """Vertices and their edges, in arrays that grow fourfold: adding a vertex costs that vertex.

    Attributes
    ----------
    arrays : EdgeTable
        For compiled code; the same arrays until they have to grow.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._vertices = self._edges = self._entries = 0
        self.arrays = zeros(EdgeTable, first_edge=1, first_entry=1, first_column=(1, size + 1))

    def append(self, arm_rows: Indices, v_rows: Array, offset: Array | float = 0.0) -> None:
        """Add a vertex or an answer: its edges by edge, and the same by arm."""
        used = v_rows != 0
        counts = used.sum(axis=1)
        arms, v = (rows.ravel() if used.all() else rows[used] for rows in (arm_rows, v_rows))
        number, first, start = self._vertices, self._edges, self._entries
        edges, entries = slice(first, first + len(arm_rows)), slice(start, start + len(arms))
        self._reserve(number + 1, edges.stop, entries.stop)
        self._vertices, self._edges, self._entries = number + 1, edges.stop, entries.stop
        table = self.arrays
        table.first_edge[number + 1 :] = edges.stop  # the last one is always their number
        table.following[edges] = -1  # nowhere yet
        if np.any(offset):
            table.offset[edges] = offset
        table.first_entry[first + 1 : edges.stop + 1] = start + np.cumsum(counts)
        table.arm[entries], table.v[entries] = arms, v
        local = np.repeat(np.arange(len(arm_rows)), counts)
        # By arm, then by edge; a stable sort of short numbers takes linear time.
        order = np.argsort(arms.astype(np.uint16) if self.size < 2**16 else arms, kind="stable")
        by_arm = np.cumsum(np.bincount(arms, minlength=self.size))
        table.first_column[number] = np.append(start, start + by_arm)
        table.column_edge[entries], table.column_v[entries] = local[order], v[order]

    def _reserve(self, vertices: int, edges: int, entries: int) -> None:
        """Make room; old contents stay."""
        _check_memory(self.size, vertices, edges, entries)
        lengths = {
            "first_edge": vertices + 1,
            "first_column": vertices,
            "first_entry": edges + 1,
            **dict.fromkeys(("following", "offset"), edges),
            **dict.fromkeys(("arm", "v", "column_edge", "column_v"), entries),
        }
        grown: dict[str, Any] = {}
        for name, length in lengths.items():
            array = getattr(self.arrays, name)
            if len(array) < length:
                shape = (max(length, 4 * len(array)), *array.shape[1:])
                grown[name] = np.zeros(shape, array.dtype)
                grown[name][: len(array)] = array
        if grown:
            self.arrays = self.arrays._replace(**grown)


def _check_memory(size: int, vertices: int, edges: int, entries: int) -> None:
    """Refuse a table before memory is asked for."""
    needed = 8 * (vertices * (size + 2) + 3 * edges + 4 * entries)
    if needed > MAX_BYTES:
        raise TooLargeError(
            f"exploring {size:,} arms in this way needs a table of {needed / 2**30:.1f} GiB; at "
            f"most {MAX_BYTES / 2**30:g} GiB are possible. Use fewer arms, or another sampler."
        )


class VertexTable(GrowingTable):
    """A growing set of vertices of one polytope.

    Parameters
    ----------
    polytope : Polytope
    start : Vertex
        Where every run starts: number 0.
    edges : Edges, optional
        Its edges, where they are known.

    Attributes
    ----------
    vertices : list of Vertex
        By number.
    edges : list of Edges
        Of each vertex.
    """

    def __init__(self, polytope: Polytope, start: Vertex, edges: Edges | None = None) -> None:
        super().__init__(polytope.size)
        self.polytope = polytope
        self.vertices: list[Vertex] = []
        self._number: dict[frozenset[int], int] = {}
        self.edges: list[Edges] = []
        self.add(polytope.canonical(start), edges)

    def add(self, vertex: Vertex, edges: Edges | None = None) -> int:
        """The number of a vertex, new or known; its edges need not be known."""
        known = self._number.get(vertex.zero)
        if known is not None:
            return known
        number = len(self.vertices)
        self._number[vertex.zero] = number
        self.vertices.append(vertex)
        edges = self.polytope.edges(vertex) if edges is None else edges
        self.edges.append(edges)
        self.append(edges.index, -edges.value, edges.unit_offset(self.polytope.problem.rewards))
        return number

    def follow(self, edge: int) -> int:
        """The vertex that an edge (of the whole table) leads to, added if it is new."""
        following = int(self.arrays.following[edge])
        if following < 0:
            first = self.arrays.first_edge[: len(self.vertices) + 1]
            number = int(np.searchsorted(first, edge, side="right")) - 1
            local = edge - int(first[number])
            there, edges = self.vertices[number], self.edges[number]
            shares, zero, slacks = self.polytope.end_of_edge(there, edges, local)
            known = self._number.get(zero)
            if known is None:
                known = self.add(self.polytope.vertex_at(shares, zero, slacks))
            self.arrays.following[edge] = following = known
        return following

    def fresh(self) -> VertexTable:
        """Another table with the same start: for another thread."""
        return VertexTable(self.polytope, self.vertices[0], self.edges[0])

    def policy(self, number: int) -> Array:
        """A vertex's policy."""
        return self.vertices[number].policy

    def right_answers(self, means: Array, regret: float | None = None) -> set[int]:
        """Numbers of the optimal vertices met so far, or of all that earn so much less at most.

        Every tied one is right.
        """
        if regret:
            best = self.polytope.optimal_vertex(means)
            rounding = 1e-12 * np.abs(means).max()
            lost = (best.policy - [vertex.policy for vertex in self.vertices]) @ means
            return set(np.flatnonzero(lost <= regret + rounding).tolist())
        known = enumerate(self.edges)
        return {number for number, edges in known if (edges.gaps(means) >= 0).all()}

    def explore(self, limit: int | None = None, edges: int = MAX_EDGES) -> bool:
        """Add all vertices; False if they, their edges or the work are more than the limits."""
        limit = MAX_COUNTED // self.polytope.size if limit is None else limit
        if self.polytope.dimension >= limit:  # there are more vertices than dimensions
            return False
        rows = len(self.polytope.form.rows)
        steps = rows * min(rows + 1, self.polytope.size)
        edge = 0
        while edge < self._edges:
            if len(self.vertices) > limit or self._edges > edges:
                return False
            if edge * steps > MAX_STEPS:
                return False
            self.follow(edge)
            edge += 1
        return True

    def log_union(self) -> float:
        """log M for the union bound (docs/theory/stopping.md).

        M = min(number of supports of edges, number of vertices - 1). Where vertices are too
        many to count, each has at most j + 1 positive arms when j rows are tight. Where single
        arms have limits, the supports are counted instead: the arms of an edge are at most one
        more than the rows.
        """
        if isinstance(self.polytope, QuestionPolytope):
            return math.log(self.polytope.union)
        rows = len(self.polytope.form.rows)
        arms = int((self.polytope.form.columns < self.polytope.size).sum())
        limited = self.polytope.is_limited
        if limited:
            terms = [_log_binomial(arms, j) for j in range(2, rows + 2)]
            large = np.logaddexp.reduce(terms) > math.log(MAX_COUNTED)
            edges = MORE_EDGES if large else FEW_EDGES
        else:
            terms = [  # the total is always tight
                _log_binomial(rows - 1, j) + _log_binomial(arms, j + 1)
                for j in range(min(rows - 1, arms) + 1)
            ]
            edges = MAX_EDGES
        if self.explore(edges=edges):
            supports = {
                frozenset(int(a) for a in edges.index[e][edges.value[e] != 0])
                for edges in self.edges
                for e in range(len(edges))
            }
            return math.log(max(1, min(len(supports), len(self.vertices) - 1)))
        return float(np.logaddexp.reduce(terms))


class AnswerTable(GrowingTable):
    """All answers to a problem with epsilon > 0, in the same form; no more are added."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers.polytope.size)
        self.answers = answers
        rewards = answers.polytope.problem.rewards
        unit = answers.epsilon / rewards.width
        for number in range(len(answers)):
            edges = answers.comparisons(number).edges
            self.append(edges.index, -edges.value, unit)

    def policy(self, number: int) -> Array:
        """An answer."""
        return np.asarray(self.answers.policies[number])

    def right_answers(self, means: Array, _regret: float | None = None) -> set[int]:
        """Numbers of the answers that are good enough, exactly."""
        return set(self.answers.good(means))

    @cached_property
    def signs(self) -> int:
        """Different signed supports of all comparisons of all answers."""
        table = self.arrays
        entries = zip(table.first_entry[:-1], table.first_entry[1:], strict=True)
        return len(
            {
                frozenset(zip(table.arm[i:j].tolist(), (table.v[i:j] > 0).tolist(), strict=True))
                for i, j in entries
            }
        )

    def log_union(self) -> float:
        """log M for the union bound."""
        return math.log(self.answers.union)


class TargetTable(GrowingTable):
    """In place of vertices where limits are measured: what a run may work for; no edges."""

    def __init__(self, size: int, faces: Simplices) -> None:
        super().__init__(size)
        self.faces = faces
        for _ in (NONE, ANSWER, INFEASIBLE):
            self.append(np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2)))


def best_arm_table(size: int, arms: Indices) -> EdgeTable:
    """The simplex of some arms: vertex a is arm a alone, its edges lead to the others."""
    _check_memory(size, size, len(arms) * (len(arms) - 1), 2 * len(arms) * (len(arms) - 1))
    table = GrowingTable(size)
    for a in range(size):
        others = arms[arms != a] if a in arms else arms[:0]
        pairs = np.column_stack([np.full(len(others), a), others])
        table.append(pairs, np.tile([1.0, -1.0], (len(others), 1)))
    return table.arrays


def one_edge(size: int) -> EdgeTable:
    """A table for an edge of up to so many arms, to be written by kernels."""
    table = GrowingTable(1)
    table.append(np.zeros((1, size), dtype=np.int64), np.ones((1, size)))
    return table.arrays


def _log_binomial(n: int, k: int) -> float:
    if k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
