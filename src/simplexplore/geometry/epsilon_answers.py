"""Policies that may be returned when one within epsilon of the best is good enough.

An answer need not be a vertex: a mix of tied policies can be told to be good enough with a
quarter of the samples that either of them needs. Samplers choose among finitely many answers,
all vertices and mixes of them in equal steps; whether one is good enough is decided exactly.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.problem.rational import rational

from .edges import Edges
from .polytope import Polytope
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[np.object_]

# An answer is compared with every vertex, so all must be known.
MAX_VERTICES = 400

# Where there are more, a bound looks at this many of the most rewarding ones.
RANKED = 120

# Mixes are made in steps of 1 / FINEST, or coarser ones that keep comparisons below a limit:
# each look at the answers goes through all of them.
FINEST = 8
MAX_COMPARISONS = 10_000


@dataclass(frozen=True)
class Comparisons:
    """An answer against every vertex that could be more than epsilon better.

    Attributes
    ----------
    edges : Edges
        Directions vertex - answer, not scaled: their length matters.
    rivals : tuple of int
        The vertex of each.
    """

    edges: Edges
    rivals: tuple[int, ...]


class Answers:
    """All vertices of a polytope, then mixes of them, in a fixed order.

    Parameters
    ----------
    polytope : Polytope
    epsilon : float
        Positive, in the unit of rewards.
    vertices : tuple of Vertex, optional
        The only ones to mix and compare with; default: all.

    Attributes
    ----------
    vertices : tuple of Vertex
        The first answers.
    policies : (A, K) array
        All answers.
    corners : (V, K) array of whole numbers
        The vertices, times `denominator`.
    steps : int
        Shares of vertices in a mix are multiples of 1 / steps.

    Raises
    ------
    TooLargeError
        If there are more than MAX_VERTICES vertices.
    """

    def __init__(
        self, polytope: Polytope, epsilon: float, vertices: tuple[Vertex, ...] | None = None
    ) -> None:
        self.polytope = polytope
        self.epsilon = epsilon
        self.vertices = all_vertices(polytope) if vertices is None else vertices
        count = len(self.vertices)
        self.steps = max(
            (
                m
                for m in range(1, FINEST + 1)
                if math.comb(count + m - 1, m) * (count - 1) <= MAX_COMPARISONS
            ),
            default=1,
        )
        # Whole numbers over one denominator: all that is decided here is exact.
        scale = math.lcm(
            *(x.denominator for vertex in self.vertices for x in vertex.shares.values())
        )
        corners = np.zeros((count, polytope.size), dtype=object)
        for i, vertex in enumerate(self.vertices):
            for a, share in vertex.shares.items():
                corners[i, a] = int(share * scale)
        self.denominator = scale * self.steps
        self.corners = corners * self.steps
        mixes = {tuple(row): None for row in self.corners}
        for chosen in itertools.combinations_with_replacement(range(count), self.steps):
            mixes.setdefault(tuple(corners[list(chosen)].sum(axis=0)))
        self._whole: Whole = np.array(list(mixes), dtype=object).reshape(-1, polytope.size)
        self.policies: Array = (self._whole / self.denominator).astype(float)

    def __len__(self) -> int:
        return len(self.policies)

    def comparisons(self, number: int) -> Comparisons:
        """What must be ruled out before an answer is returned.

        Vertices that the family's range of means keeps within epsilon are left out.
        """
        change = self.corners - self._whole[number]
        return comparisons(self.polytope, self.epsilon, change, self.denominator)

    def good(self, means: Array) -> list[int]:
        """The answers that lose at most epsilon at these means, exactly."""
        mu = np.array([rational(float(x)) for x in means], dtype=object)
        values = self._whole @ mu
        best = (self.corners @ mu).max()
        allowed = rational(self.epsilon) * self.denominator
        return [int(i) for i in np.flatnonzero(values >= best - allowed)]

    @cached_property
    def union(self) -> int:
        """M of the union bound: the most different supports of comparisons with one vertex.

        If an answer is not good enough then its comparison with a best vertex at the true
        means says so, whatever the answer; that vertex is fixed, though unknown, so only
        comparisons with one vertex have to hold together (docs/theory/epsilon.md).
        """
        return self._union(signed=False)

    @cached_property
    def signed_union(self) -> int:
        """The same for evidence that depends on which arms win and which lose."""
        return self._union(signed=True)

    def _union(self, signed: bool) -> int:
        most = 1
        for corner in self.corners:
            used = (self._whole > corner).astype(np.int8)
            fewer = (self._whole < corner).astype(np.int8)
            used = used - fewer if signed else used | fewer
            most = max(most, len(np.unique(used[used.any(axis=1)], axis=0)))
        return most


def all_vertices(polytope: Polytope) -> tuple[Vertex, ...]:
    """Every vertex, in an order that depends on the polytope alone."""
    found = []
    for vertex, met in polytope.ranked_vertices(np.zeros(polytope.size)):
        if met > MAX_VERTICES:
            raise TooLargeError(
                f"the feasible policies have more than {MAX_VERTICES} vertices, and with epsilon > "
                "0 an answer must be compared with each. Give stop_when = {regret = ...} instead, "
                "which lists none of them; or merge or drop arms, or drop constraints."
            )
        found.append(vertex)
    return tuple(found)


def best_vertices(polytope: Polytope, means: Array) -> tuple[tuple[Vertex, ...], bool]:
    """All vertices, or the most rewarding ones if there are too many; and whether it is all."""
    found = []
    for vertex, met in polytope.ranked_vertices(means):
        found.append(vertex)
        if met > MAX_VERTICES and len(found) >= RANKED:
            return tuple(found), False
    return tuple(found), True


def comparisons(polytope: Polytope, epsilon: float, change: Whole, denominator: int) -> Comparisons:
    """Comparisons from whole-number differences vertex - answer."""
    rewards = polytope.problem.rewards
    low, high = rewards.domain or rewards.range_of_means()
    gains = np.where(change > 0, change, 0).sum(axis=1)
    moves = gains > 0
    if math.isfinite(low) and math.isfinite(high):
        # Differences sum to zero, so means in the range lose at most this much.
        reach = rational(float(high)) - rational(float(low))
        moves &= gains * reach > rational(epsilon) * denominator
    rows = np.flatnonzero(moves)
    value = (change[rows] / denominator).astype(float)
    width = int((value != 0).sum(axis=1).max(initial=1))
    index = np.argsort(value == 0, axis=1, kind="stable")[:, :width]
    packed = np.take_along_axis(value, index, axis=1)
    index = np.where(packed != 0, index, index[:, :1])

    def exact(e: int) -> dict[int, Fraction]:
        row = change[rows[e]]
        return {int(a): Fraction(row[a], denominator) for a in np.flatnonzero(row)}

    edges = Edges(np.ascontiguousarray(index), np.ascontiguousarray(packed), exact)
    return Comparisons(edges, tuple(int(i) for i in rows))
