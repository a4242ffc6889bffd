"""What a run knows: the evidence of edges, the confidence and the regret that it leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import TooLargeError
from simplexplore.geometry.edge_directions import count_directions
from simplexplore.geometry.question_polytope import QuestionPolytope
from simplexplore.kernels.policy_search import level_of_policy
from simplexplore.kernels.records import PAIRS, POLICIES, VERTEX, EdgeTable
from simplexplore.problem.problem import Problem

from .vertex_table import AnswerTable, VertexTable
from .workspace import Workspace

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Numbers in the directions of a vertex's edges, if each of them is looked at, and edges that are
# listed where there are more.
MAX_NUMBERS = 50_000_000
MAX_LISTED = 256

# Neighbours are looked at where their edges, some as many as the recommended policy's, and the
# arms of all are no more.
MAX_AROUND = 10_000

# The solver's tolerances, relative.
_SLACK = 1e-6

# Looks at a bound that is too large: the first and last share of more samples, and what is added
# when nothing is known.
_LEAST_WAIT, _LONGEST_WAIT, _BLIND_WAIT = 0.005, 1.0, 0.25


@dataclass(frozen=True)
class Regret:
    """The bound, and how it comes about.

    Attributes
    ----------
    bound : float
        No policy earns more by more than this; infinite if nothing is known.
    lost : float
        What the policy with that bound earns less, by the empirical means: the rest of the bound
        is doubt, and shrinks as samples come in.
    """

    bound: float
    lost: float = 0.0

    def more(self, limit: float) -> float:
        """The share of more samples after which the bound may be down to a limit.

        Doubt falls like one over the root of the samples. Other policies may have the largest
        bound by then, so that this is rather too early than too late.
        """
        return ((self.bound + self.lost) / (self.lost + limit)) ** 2 - 1.0

    def wait(self, limit: float) -> float:
        """The share of more samples after which to look again."""
        if math.isinf(self.bound):
            return _BLIND_WAIT
        return min(max(self.more(limit), _LEAST_WAIT), _LONGEST_WAIT)


def most_lacking(found: Array, needed: Array) -> tuple[float, float]:
    """Evidence found and needed where the first falls most short of the second."""
    lacking = int((found - needed).argmin())
    return float(found[lacking]), float(needed[lacking])


class Evidence:
    """What can be said of a run without leaving a trace in it.

    Parameters
    ----------
    workspace : Workspace
        The run's.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: tuple[int, VertexTable | None] | None = None

    @property
    def knows_edges(self) -> bool:
        """Whether the recommended vertex has few enough edges to look at each of them."""
        space = self._workspace
        vertex, first = int(space.run.integers[VERTEX]), space.arrays[0].first_edge
        return int(first[vertex + 1] - first[vertex]) * space.config.size <= MAX_NUMBERS

    @property
    def _edges(self) -> list[int]:
        """Edges of the recommended vertex, in the table; of very many the weakest."""
        table, run, _ = self._workspace.arrays
        vertex = int(run.integers[VERTEX])
        first, last = (int(x) for x in table.first_edge[vertex : vertex + 2])
        if self.knows_edges:
            return list(range(first, last))
        weakest = np.argsort(run.value[: last - first], kind="stable")[:MAX_LISTED]
        return [first + int(e) for e in np.sort(weakest)]

    def directions(self) -> Array:
        """Directions of the edges of the recommended vertex (E, K), as `values` lists them."""
        table, edges = self._workspace.arrays[0], self._edges
        found = np.zeros((len(edges), self._workspace.config.size))
        for e, edge in enumerate(edges):
            entries = slice(table.first_entry[edge], table.first_entry[edge + 1])
            found[e, table.arm[entries]] = -table.v[entries]
        return found

    def values(self) -> tuple[Array, Array]:
        """Of each edge of the recommended vertex how much there is, and how much is needed.

        Statistics and their thresholds, or for `tilt` logarithms of e-values and their levels.
        Of very many edges those with the least statistics are listed (`knows_edges`).
        """
        table, run, _ = self._workspace.arrays
        edges = np.array(self._edges, dtype=np.int64)
        local = edges - table.first_edge[run.integers[VERTEX]]
        if not self._workspace.plan.has_e_values:
            levels = [self._workspace.call("level", int(edge)) for edge in edges]
            return run.value[local], np.array(levels)
        return self._e_values(local), np.full(len(edges), self._needed)

    def neighbours(self) -> Array | None:
        """Policies at the other ends of the edges (E, K); None where they are too many."""
        space = self._workspace
        if isinstance(space.table, AnswerTable):
            return space.table.policy(int(space.run.integers[VERTEX])) + self.directions()
        if isinstance(space.polytope, QuestionPolytope):
            return None
        around = self._around
        if around is None:
            return None
        following = around.arrays.following[: len(self._edges)]
        return np.array([around.policy(int(number)) for number in following])

    def p_values(self, found: Array, p: float) -> tuple[Array, Array]:
        """p-values of "the neighbour is the best policy" and "the move pays", by edge.

        With such evidence against each edge, p being that of "the recommended policy is not the
        best": it covers every neighbour, those that are too many to look at as well.
        """
        space = self._workspace
        if isinstance(space.table, AnswerTable):
            best = space.table.answers.signed_union * np.exp(-found)
            return best, space.table.signs * np.exp(-found)
        if isinstance(space.polytope, QuestionPolytope):
            return np.full(len(found), p), space.polytope.moves * np.exp(-found)
        pays = np.exp(math.log(count_directions(space.polytope.form)) - found)
        around = self._around
        if around is None:
            return np.full(len(found), p), pays
        table = around.arrays
        reverse = table._replace(v=-table.v)
        best = np.full(len(found), p)
        for e, number in enumerate(table.following[: len(found)].tolist()):
            first, last = table.first_edge[number : number + 2].tolist()
            # Where only arms are limited, the rule asks fewer pairs than such a policy has edges.
            if space.config.rule == PAIRS and last - first > space.polytope.dimension:
                continue
            improvements = self._evidence(np.arange(first, last), reverse)
            best[e] = (last - first) * math.exp(-max(found[e], improvements.max()))
        return best, pays

    @property
    def _around(self) -> VertexTable | None:
        """The recommended vertex, number 0, and its neighbours; None where they are too many.

        In a table of their own: the run's must not depend on who looks.
        """
        space = self._workspace
        vertex = int(space.run.integers[VERTEX])
        if self._known is None or self._known[0] != vertex:
            first = space.arrays[0].first_edge
            count = int(first[vertex + 1] - first[vertex])
            few = count * (count + space.config.size) <= MAX_AROUND
            self._known = vertex, self._met_around(vertex, count) if few else None
        return self._known[1]

    def _met_around(self, vertex: int, count: int) -> VertexTable | None:
        space = self._workspace
        assert isinstance(space.table, VertexTable)
        table = VertexTable(space.polytope, space.table.vertices[vertex])
        try:
            for edge in range(count):
                table.follow(edge)
        except TooLargeError:  # of a neighbour in which very many constraints meet
            return None
        return table

    def weakest(self) -> tuple[float, float]:
        """How much evidence there is of the edge that lacks most, and how much is needed."""
        return most_lacking(*self.values())

    @property
    def _needed(self) -> float:
        """The level that evidence of `tilt` against an edge must reach."""
        config, table, run, _ = self._workspace.records
        if config.rule != POLICIES:
            return config.log_union
        return float(level_of_policy(config, table, int(run.integers[VERTEX])))

    def _e_values(self, local: Indices) -> Array:
        """Logarithms of e-values of edges, counted from the vertex's first."""
        table, run, _ = self._workspace.arrays
        found = self._evidence(table.first_edge[run.integers[VERTEX]] + local)
        # Means out of reach leave nothing to doubt.
        return np.where(np.isfinite(found), found, np.maximum(run.value[local], self._needed))

    def _evidence(self, edges: Indices, table: EdgeTable | None = None) -> Array:
        """The evidence against edges of the run's table, or of another one."""
        call = self._workspace.call
        return np.array([call("evidence", int(edge), edges=1, table=table) for edge in edges])

    def confidence_margin(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough.

        Where the recommended policy has too many edges to look at, nothing is
        known.
        """
        if not self.knows_edges:
            return -math.inf
        space = self._workspace
        # When the run looks again must not depend on who looked meanwhile.
        changing = space.run.looks, space.run.integers
        before = [array.copy() for array in changing]
        changing[0][...] = 0.0
        try:
            return float(space.call("confidence_margin", math.log(space.plan.delta_of_rule)))
        finally:
            for array, kept in zip(changing, before, strict=True):
                array[...] = kept

    def gain_bounds(self) -> Array:
        """For each edge of the recommended vertex no less than its gain, in the user's unit.

        With probability 1 - delta they hold at every moment (docs/theory/stopping.md).
        """
        plan = self._workspace.plan
        level = math.log(self._gain_union) - math.log(plan.delta_of_rule)
        found = [self._workspace.call("gain", edge, level) for edge in self._edges]
        return np.array(found) * plan.problem.rewards.width

    def regret(self) -> Regret:
        """How much more than the recommended policy another can earn, in the user's unit.

        With probability 1 - delta no bound is ever too small (docs/theory/stopping.md).
        """
        space = self._workspace
        if not self.knows_edges or isinstance(space.polytope, QuestionPolytope):
            return Regret(math.inf)
        gains, problem, table = self.gain_bounds(), space.plan.problem, space.table
        if not isinstance(table, VertexTable):
            # Comparisons are with whole policies; those left out are within epsilon anyway.
            return Regret(max(float(gains.max(initial=0.0)), problem.epsilon))
        policy = table.policy(int(space.run.integers[VERTEX]))
        directions, means = self.directions(), problem.rewards.from_unit(space.run.clipped_mean)
        return largest_regret(problem, policy, directions, gains, -directions @ means)

    @cached_property
    def _gain_union(self) -> int:
        """Signed supports of edges in both orientations, or of comparisons with one vertex."""
        table = self._workspace.table
        if isinstance(table, AnswerTable):
            return table.answers.signed_union
        return 2 * count_directions(self._workspace.polytope.form)


def largest_regret(
    problem: Problem, policy: Array, directions: Array, gains: Array, gaps: Array
) -> Regret:
    """The most that a policy can earn more, given what each edge can gain at most.

    Every policy is the recommended one plus nonnegative multiples of the edges' directions; the
    worst is a linear program in these multiples. `gaps` are the edges' losses per unit by the
    empirical means.
    """
    from scipy.optimize import linprog

    if (gains <= 0).all():
        return Regret(0.0)
    if np.isinf(gains).any():
        return Regret(math.inf)
    rows = np.vstack([problem.matrix, -problem.matrix, -np.eye(problem.size)])
    limits = np.concatenate([problem.upper, -problem.lower, np.zeros(problem.size)])
    given = np.isfinite(limits)
    rows, room = rows[given], limits[given] - rows[given] @ policy
    found = linprog(-gains, A_ub=rows @ directions.T, b_ub=np.maximum(room, 0.0))
    if not found.success:
        return Regret(math.inf)
    lost = float(found.x @ np.maximum(gaps, 0.0))
    return Regret(max(0.0, -float(found.fun or 0.0)) * (1.0 + _SLACK), lost)
