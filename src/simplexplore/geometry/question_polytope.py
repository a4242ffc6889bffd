"""Answers to a question besides the best mix, in place of the vertices of the simplex.

An answer has edges as a vertex has: each is a half-space of means in which the answer is wrong,
here with an offset, and leads to the answer to look at next. Of three kinds of questions an answer
is a set of arms; of one's own it is the number of one in their list.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice

import numpy as np
import numpy.typing as npt

from simplexplore.problem.problem import Problem
from simplexplore.problem.question import Question
from simplexplore.problem.rational import rational

from .edges import Edges
from .polytope import Polytope
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Chosen = frozenset[int]

# What would be wrong with an answer: that means @ direction exceeds the offset; and where it leads.
Overturn = tuple[dict[int, float], float, Chosen]


def polytope_of(problem: Problem) -> Polytope:
    """The feasible mixes, or what stands in their place where something else is asked."""
    return QuestionPolytope(problem, problem.question) if problem.question else Polytope(problem)


class QuestionPolytope(Polytope):
    """The answers to a question.

    Attributes
    ----------
    union : int
        Half-spaces such that at any means every wrong answer is wrong by one of so many
        (docs/theory/other_questions.md).
    moves : int
        Half-spaces of all answers that can be true together.
    """

    def __init__(self, problem: Problem, question: Question) -> None:
        super().__init__(problem)
        self.question = question
        count = self.size
        if question.arm is not None:
            self.known_arm = problem.arms.index(question.arm)
            self.forced_arms = (self.known_arm,)
        self.edge_width = min(2, count)
        self.union, self.moves = count - 1, count * (count - 1) // 2
        if question.kind == "threshold":
            self.union = self.moves = count
        if question.kind == "own":
            self._sides = question.conditions(problem.arms, problem.groups)
            count = len(self._sides)
            rows = [(row, sign) for sides in self._sides for row, sign, _ in sides]
            self.edge_width = max(len(row.arms) for row, _ in rows)
            supports = {(*row.arms.tolist(), *(sign * row.values > 0)) for row, sign in rows}
            self.moves = len(supports)
            self.union = min(len(supports), count - 1)
        self._every = frozenset(range(count))
        self.dimension = max(1, self.dimension)  # of one arm there is something to ask, too

    # ------------------------------------------------------------------ one answer

    def in_words(self, vertex: Vertex) -> str:
        """An answer in the question's own words."""
        return self.question.in_words(vertex.zero, self.problem.arms)

    def _vertex_of(self, chosen: Chosen) -> Vertex:
        policy = np.zeros(self.size)
        if self.question.kind != "own" and chosen:
            policy[list(chosen)] = 1.0 / len(chosen)
        return Vertex(chosen, policy, {}, (), frozenset())  # which tells it from others

    def _overturned(self, chosen: Chosen) -> Iterator[Overturn]:
        """What would make an answer wrong, in an order that depends on it alone."""
        question, others = self.question, sorted(self._every - chosen)
        if question.at is not None:
            for a in sorted(self._every):
                sign = -1.0 if a in chosen else 1.0
                yield {a: sign}, sign * question.at, chosen ^ {a}
        elif question.kind == "own":
            (number,) = chosen
            for row, sign, offset in self._sides[number]:
                values = zip(row.arms.tolist(), (-sign * row.values).tolist(), strict=True)
                yield dict(values), offset, frozenset({(number + 1) % len(self._every)})
        else:
            for a in sorted(chosen):
                for b in others:
                    change = {a: -1.0, b: 1.0}
                    rate = 0.0 if self.known_arm is None else change.pop(self.known_arm, 0.0)
                    yield change, -rate * (question.mean or 0.0), chosen - {a} | {b}

    # ------------------------------------------------------------------ in place of a polytope's

    def edges(self, vertex: Vertex) -> Edges:
        """What would make an answer wrong."""
        every = list(self._overturned(vertex.zero))
        index = np.zeros((len(every), self.edge_width), dtype=np.int64)
        value = np.zeros((len(every), self.edge_width))
        for e, (change, _, _) in enumerate(every):
            index[e] = next(iter(change))
            index[e, : len(change)], value[e, : len(change)] = list(change), list(change.values())

        def exact(e: int) -> dict[int, Fraction]:
            return {a: rational(x) for a, x in every[e][0].items()}

        return Edges(index, value, exact, np.array([offset for _, offset, _ in every]))

    def optimal_vertex(self, means: npt.ArrayLike, start: Vertex | None = None) -> Vertex:
        """The answer at these means; where several are right, the first."""
        return self.right_vertices(np.asarray(means, dtype=float))[0]

    def right_vertices(self, means: Array) -> list[Vertex]:
        """The answer at these means, or of one's own all that are right.

        If rounding leaves none of these, the one that is least wrong.
        """
        mu, question = means.copy(), self.question
        if question.kind == "own":
            every = [self._vertex_of(frozenset({i})) for i in sorted(self._every)]
            margins = np.array([self.edges(vertex).gaps(mu).min() for vertex in every])
            return [every[i] for i in np.flatnonzero(margins >= min(0.0, margins.max()))]
        if question.at is not None:
            return [self._vertex_of(frozenset(np.flatnonzero(mu > question.at).tolist()))]
        if self.known_arm is not None:
            mu[self.known_arm] = question.mean
        best = np.argsort(-mu, kind="stable")[: question.m or 1]
        return [self._vertex_of(frozenset(best.tolist()))]

    def tied_vertices(self, vertex: Vertex, means: Array) -> list[Vertex]:
        """Other answers that are right as well (the first few)."""
        if self.question.kind != "own":
            return super().tied_vertices(vertex, means)
        return [one for one in self.right_vertices(means) if one != vertex]

    def end_of_edge(
        self, vertex: Vertex, edges: Edges, e: int
    ) -> tuple[dict[int, Fraction], Chosen, list[int]]:
        """The answer that is next where this one is wrong."""
        return {}, next(islice(self._overturned(vertex.zero), e, None))[2], []

    def vertex_at(self, shares: dict[int, Fraction], zero: Chosen, slacks: list[int]) -> Vertex:
        """An answer by its arms, or its number."""
        return self._vertex_of(zero)

    def canonical(self, vertex: Vertex) -> Vertex:
        """The same answer."""
        return vertex

    def is_degenerate(self, vertex: Vertex) -> bool:
        """Never: no constraints meet in an answer."""
        return False

    def active(self, vertex: Vertex) -> tuple[str, ...]:
        """No constraints."""
        return ()
