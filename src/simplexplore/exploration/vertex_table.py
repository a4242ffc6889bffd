"""The vertices a run has met, in the form that compiled code reads.

A vertex is added when a walk first needs it. Its edges and their order depend on the vertex
alone, never on how it was reached, so runs are the same whatever was met before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.answers import Answers
from simplexplore.geometry.edges import Edges, Pairs
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.kernels.records import Table

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
MOST_BYTES = 2**31

# A vertex with more edges is wide: caps that meet exactly leave every pair of two arms an edge.
# Walks leap over such vertices, and tables of them are emptied at so many bytes.
WIDE = 20_000
MOST_WIDE_BYTES = 2**27

# A vertex with more edges makes room for so many at once: others like it will follow.
LARGE = 5_000
AT_ONCE = 4_000_000


class VertexTable:
    """A growing set of vertices of one polytope.

    Attributes
    ----------
    vertices : list of Vertex
        By number; number 0 is where every run starts.
    """

    def __init__(self, polytope: Polytope, start: Vertex) -> None:
        self._clear(polytope)
        self.add(polytope.canonical(start))

    def _clear(self, polytope: Polytope) -> None:
        self.polytope = polytope
        self.vertices: list[Vertex] = []
        self._number: dict[frozenset[int], int] = {}
        self._edges: list[Edges] = []
        self._buffers = _Buffers(polytope.size, at_once=AT_ONCE)

    def add(self, vertex: Vertex, edges: Edges | None = None) -> int:
        """The number of a vertex, new or known; its edges need not be known."""
        known = self._number.get(vertex.zero)
        if known is not None:
            return known
        number = len(self.vertices)
        self._number[vertex.zero] = number
        self.vertices.append(vertex)
        edges = self.polytope.edges(vertex) if edges is None else edges
        self._edges.append(edges)
        if edges.pairs is None:
            self._buffers.append(edges.index, -edges.value)
        else:
            self._buffers.append_pairs(edges.index, -edges.value[0], edges.pairs)
        return number

    def follow(self, edge: int) -> int:
        """The vertex that an edge (of the whole table) leads to, added if it is new."""
        following = int(self._buffers.following[edge])
        if following < 0:
            first = self._buffers.first_edge[: len(self.vertices) + 1]
            number = int(np.searchsorted(first, edge, side="right")) - 1
            local = edge - int(first[number])
            there, edges = self.vertices[number], self._edges[number]
            moved, zero, slacks = self.polytope.across(there, edges, local)
            known = self._number.get(zero)
            if known is None:
                known = self.add(self.polytope.form.next_to(there, moved, zero, slacks))
            following = known
            self._buffers.following[edge] = following
        return following

    def fresh(self) -> VertexTable:
        """Another table with the same start: for another thread."""
        other = object.__new__(VertexTable)
        other._clear(self.polytope)
        other.add(self.vertices[0], self._edges[0])
        return other

    def emptied(self) -> VertexTable:
        """Another table with the same start, in the room of this one, whose arrays are lost."""
        other = object.__new__(VertexTable)
        other.polytope, other._buffers = self.polytope, self._buffers
        other.vertices, other._edges = self.vertices[:1], self._edges[:1]
        other._number = {self.vertices[0].zero: 0}
        other._buffers.cut()
        return other

    def is_wide(self, number: int) -> bool:
        """Whether a vertex has so many edges that few such vertices can be kept."""
        return len(self._edges[number]) > WIDE

    @property
    def is_crowded(self) -> bool:
        """Whether wide vertices take too much room."""
        buffers = self._buffers
        used = _bytes(self.polytope.size, buffers.vertices, buffers.edges, buffers.entries)
        return used > MOST_WIDE_BYTES and any(map(self.is_wide, range(len(self.vertices))))

    def policy(self, number: int) -> Array:
        """A vertex's policy."""
        return self.vertices[number].policy

    def edges(self, number: int) -> Edges:
        """A vertex's edges."""
        return self._edges[number]

    def right_answers(self, means: Array, former: Sequence[Vertex] = ()) -> set[int]:
        """Numbers of the optimal vertices met so far; every tied one is right.

        Those of former ones, which are not in the table any more, are -2, -3, ...
        """
        best = self.polytope.optimal_vertex(means)
        right = {v.zero for v in (best, *self.polytope.tied_vertices(best, means))}
        numbers = {self._number[zero] for zero in right if zero in self._number}
        return numbers | {-2 - i for i, vertex in enumerate(former) if vertex.zero in right}

    def good_answers(self, means: Array, regret: float, former: Sequence[Vertex] = ()) -> set[int]:
        """Numbers of the vertices met so far that earn so much less than the best, at most."""
        best = self.polytope.optimal_vertex(means)
        rounding = 1e-12 * np.abs(means).max()
        met = dict(enumerate(self.vertices)) | {-2 - i: x for i, x in enumerate(former)}
        lost = (best.policy - [vertex.policy for vertex in met.values()]) @ means
        return set(np.array(list(met))[lost <= regret + rounding].tolist())

    def explore(self, limit: int | None = None, edges: int = MAX_EDGES) -> bool:
        """Add all vertices; False if they, their edges or the work are more than the limits."""
        limit = MAX_COUNTED // self.polytope.size if limit is None else limit
        if self.polytope.dimension >= limit:  # there are more vertices than dimensions
            return False
        rows = len(self.polytope.form.rows)
        steps = rows * min(rows + 1, self.polytope.size)
        edge = 0
        while edge < self._buffers.edges:
            if len(self.vertices) > limit or self._buffers.edges > edges:
                return False
            if edge * steps > MAX_STEPS:
                return False
            self.follow(edge)
            edge += 1
        return True

    def union_size(self) -> tuple[float, bool]:
        """log M for the union bound (docs/theory/stopping.md), and whether it was counted.

        M = min(number of supports of edges, number of vertices - 1). Where vertices are too
        many to count, each has at most j + 1 positive arms when j rows are tight. Where single
        arms have limits, the supports are counted instead: the arms of an edge are at most one
        more than the rows.
        """
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
                for edges in self._edges
                for e in range(len(edges))
            }
            return math.log(max(1, min(len(supports), len(self.vertices) - 1))), True
        return float(np.logaddexp.reduce(terms)), False

    def arrays(self) -> Table:
        """The table for compiled code: the same arrays until they had to grow."""
        return self._buffers.table()


class AnswerTable:
    """All answers to a problem with epsilon > 0, in the same form; it never grows."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        buffers = _Buffers(answers.polytope.size)
        rewards = answers.polytope.problem.rewards
        unit = answers.epsilon / rewards.width
        for number in range(len(answers)):
            edges = answers.comparisons(number).edges
            buffers.append(edges.index, -edges.value, unit)
        self._table = buffers.table()

    def fresh(self) -> AnswerTable:
        """The same for another thread: nothing that changes is shared."""
        other = object.__new__(AnswerTable)
        other.answers = self.answers
        other._table = self._table
        return other

    def policy(self, number: int) -> Array:
        """An answer."""
        return np.asarray(self.answers.policies[number])

    def right_answers(self, means: Array) -> set[int]:
        """Numbers of the answers that are good enough, exactly."""
        return set(self.answers.good(means))

    def follow(self, edge: int) -> int:
        """All answers are known; comparisons lead nowhere."""
        raise AssertionError("an answer's comparison was followed")

    def union_size(self) -> tuple[float, bool]:
        """log M for the union bound, and whether it was counted: always."""
        return math.log(self.answers.union), True

    def arrays(self) -> Table:
        """The table for compiled code."""
        return self._table


def best_arm_table(size: int, arms: Indices) -> Table:
    """The simplex of some arms: vertex a is arm a alone, its edges lead to the others."""
    _check_room(size, size, len(arms) * (len(arms) - 1), 2 * len(arms) * (len(arms) - 1))
    buffers = _Buffers(size)
    for a in range(size):
        others = arms[arms != a] if a in arms else arms[:0]
        pairs = np.column_stack([np.full(len(others), a), others])
        buffers.append(pairs, np.tile([1.0, -1.0], (len(others), 1)))
    return buffers.table()


def empty_table() -> Table:
    """No vertices; for runs that have no use for a second table."""
    return _Buffers(1).table()


def one_edge(size: int) -> Table:
    """A table for an edge of up to so many arms, to be written by kernels."""
    buffers = _Buffers(1)
    buffers.append(np.zeros((1, size), dtype=np.int64), np.ones((1, size)))
    return buffers.table()


def _log_binomial(n: int, k: int) -> float:
    if k > n:
        return -math.inf
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _bytes(size: int, vertices: int, edges: int, entries: int) -> int:
    return 8 * (vertices * (size + 2) + 3 * edges + 4 * entries)


def _check_room(size: int, vertices: int, edges: int, entries: int) -> None:
    """Refuse a table before memory is asked for."""
    needed = _bytes(size, vertices, edges, entries)
    if needed > MOST_BYTES:
        raise TooLargeError(
            f"exploring {size:,} arms in this way needs a table of {needed / 2**30:.1f} GiB; at "
            f"most {MOST_BYTES / 2**30:g} GiB are possible. Use fewer arms, or another sampler."
        )


class _Buffers:
    """Arrays of a table that grow fourfold, so that adding a vertex costs that vertex.

    A vertex of very many edges makes room for `at_once` edges.
    """

    def __init__(self, size: int, at_once: int = 0) -> None:
        self.size, self._at_once = size, at_once
        self.vertices = self.edges = self.entries = 0
        self.first_edge = np.zeros(1, dtype=np.int64)
        self.first_entry = np.zeros(1, dtype=np.int64)
        self.arm = np.zeros(0, dtype=np.int64)
        self.v = np.zeros(0)
        self.offset = np.zeros(0)
        self.following = np.zeros(0, dtype=np.int64)
        self.first_column = np.zeros((1, size + 1), dtype=np.int64)
        self.column_edge = np.zeros(0, dtype=np.int64)
        self.column_v = np.zeros(0)
        self._table: Table | None = None

    def _reserve(self, vertices: int, edges: int, entries: int) -> None:
        """Make room; old contents stay."""
        _check_room(self.size, vertices, edges, entries)
        # Zeros cost nothing until they are used, and copies of large tables do.
        room = self._at_once if edges - self.edges > LARGE else 0

        def grown(array: npt.NDArray[Any], needed: int, room: int = 0) -> npt.NDArray[Any]:
            if len(array) >= needed:
                return array
            self._table = None
            larger = np.zeros((max(needed, room, 4 * len(array)), *array.shape[1:]), array.dtype)
            larger[: len(array)] = array
            return larger

        self.first_edge = grown(self.first_edge, vertices + 1)
        self.first_column = grown(self.first_column, vertices)
        self.first_entry = grown(self.first_entry, edges + 1, room)
        self.following = grown(self.following, edges, room)
        self.offset = grown(self.offset, edges, room)
        self.arm, self.v = grown(self.arm, entries, 2 * room), grown(self.v, entries, 2 * room)
        self.column_edge = grown(self.column_edge, entries, 2 * room)
        self.column_v = grown(self.column_v, entries, 2 * room)

    def append(self, arm_rows: Indices, v_rows: Array, offset: float = 0.0) -> None:
        """Add a vertex or an answer: its edges by edge, and the same by arm."""
        used = v_rows != 0
        counts = used.sum(axis=1)
        arms, v = (rows.ravel() if used.all() else rows[used] for rows in (arm_rows, v_rows))
        entries = self._claimed(len(arm_rows), np.bincount(arms, minlength=self.size), offset)
        ends = entries.start + np.cumsum(counts)
        self.first_entry[self.edges - len(ends) + 1 : self.edges + 1] = ends
        self.arm[entries], self.v[entries] = arms, v
        local = np.repeat(np.arange(len(arm_rows)), counts)
        # By arm, then by edge; a stable sort of short numbers takes linear time.
        order = np.argsort(arms.astype(np.uint16) if self.size < 2**16 else arms, kind="stable")
        self.column_edge[entries], self.column_v[entries] = local[order], v[order]

    def append_pairs(self, arm_rows: Indices, v: Array, pairs: Pairs) -> None:
        """The same for very many edges that are pairs of arms: in place, and nothing is sorted."""
        first, second, number = pairs
        count = np.zeros(self.size, dtype=np.int64)
        count[first], count[second] = len(second), len(first)
        entries = self._claimed(len(arm_rows), count)
        ends = self.first_entry[self.edges - len(arm_rows) : self.edges + 1]
        ends[:] = np.arange(entries.start, entries.stop + 1, 2)
        self.arm[entries].reshape(arm_rows.shape)[:] = arm_rows
        self.v[entries].reshape(arm_rows.shape)[:] = v
        column = self.first_column[self.vertices - 1]
        self.column_edge[column[first][:, None] + np.arange(len(second))] = number
        self.column_edge[column[second][:, None] + np.arange(len(first))] = number.T
        of_arm = np.zeros(self.size)
        of_arm[first], of_arm[second] = v
        self.column_v[entries] = np.repeat(of_arm, count)

    def _claimed(self, edges: int, by_arm: Indices, offset: float = 0.0) -> slice:
        """Room for the entries of one more vertex, by the number of entries of each arm."""
        start, stop = self.entries, self.entries + int(by_arm.sum())
        last = self.edges + edges
        self._reserve(self.vertices + 1, last, stop)
        self.first_edge[self.vertices + 1 :] = last  # the last one is always their number
        self.following[self.edges : last] = -1  # nowhere yet
        if offset:
            self.offset[self.edges : last] = offset
        self.first_column[self.vertices, 0] = start
        self.first_column[self.vertices, 1:] = start + np.cumsum(by_arm)
        self.vertices, self.edges, self.entries = self.vertices + 1, last, stop
        return slice(start, stop)

    def cut(self) -> None:
        """Forget all vertices but the first, and where its edges lead."""
        self.vertices, self.edges = 1, int(self.first_edge[1])
        self.following[: self.edges] = -1
        self.entries = int(self.first_entry[self.edges])
        self.first_edge[1:] = self.edges

    def table(self) -> Table:
        if self._table is None:
            self._table = Table(
                first_edge=self.first_edge,
                first_entry=self.first_entry,
                arm=self.arm,
                v=self.v,
                offset=self.offset,
                following=self.following,
                first_column=self.first_column,
                column_edge=self.column_edge,
                column_v=self.column_v,
                first_root=0,
            )
        return self._table
