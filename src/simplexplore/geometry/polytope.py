"""The set of feasible policies: its vertices, its constraints, and points deep inside."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.problem.constraint import Constraint
from simplexplore.problem.problem import EXPLORATION, SCENARIOS, Problem
from simplexplore.problem.rational import rational

from .cones import Effort
from .conflict import conflict_of, smallest_conflict
from .edges import Edges, edges_at
from .exact_rows import SLIPS
from .linear_program import best_vertex, needs_limit
from .standard_form import DOUBT, StandardForm
from .tableau import Tableau, phase_one
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Rows that fall faster than this are met where floats say, to within DOUBT over it.
STEEP = 1e-4

# What an arm would need in order to count as sampled, when asking which limits keep it at zero.
LEAST_SHARE = 1e-6

# Programs in search of the deepest policy; a handful is enough.
MAX_DEPTHS = 200

# Optimal policies listed when several tie; more would not be read.
MAX_TIES = 20


class Polytope:
    """The feasible policies of a problem.

    Parameters
    ----------
    problem : Problem
    table : {"constraints", "exploration"}
        What an error calls the constraints: see `of_exploration`.

    Attributes
    ----------
    dimension : int
        Dimension of F: 0 if a single policy is feasible.
    forced_arms : tuple of int
        Arms whose share is zero in every feasible policy.
    implied_equalities : tuple of str
        Inequalities that hold with equality in every feasible policy.

    Raises
    ------
    InfeasibleError
        If no policy is feasible; names a smallest set of constraints that conflict.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> polytope = Polytope(Problem(["a", "b", "c"], ["a <= 1/2"]))
    >>> vertex = polytope.optimal_vertex([3.0, 2.0, 1.0])
    >>> vertex.policy.tolist(), polytope.active(vertex)
    ([0.5, 0.5, 0.0], ('c1', 'c >= 0', 'total'))
    >>> polytope.edges(vertex).dense(3).tolist()
    [[0.0, -1.0, 1.0], [-1.0, 1.0, 0.0]]
    """

    def __init__(self, problem: Problem, table: str = "constraints") -> None:
        self.problem = problem
        self.size = problem.size
        self.form = StandardForm(problem)
        if self.form.start is None:
            raise conflict_of(problem, table)
        self._effort = Effort()
        self._latest: tuple[object, Edges | None] = (None, None)
        self._fair: Array | None = None
        self._forget_constant_variables()
        self.dimension = len(self.form.columns) - len(self.form.rows)

    @classmethod
    def of_exploration(cls, problem: Problem) -> Polytope:
        """The allocations that the limits on exploration allow, as policies of their own."""
        limits = problem.exploration
        own = problem.replace(constraints=limits, exploration=(), scenario=SCENARIOS[0])
        return cls(own, EXPLORATION)

    def _forget_constant_variables(self) -> None:
        """Find variables that are zero all over F, by maximising the sum of suspects.

        What remains can each be positive somewhere, so every nonbasic variable of a
        nondegenerate basis is a genuine edge.
        """
        form = self.form
        assert form.start is not None
        if len(form.columns) == len(form.rows) or self._depth()[0] <= DOUBT:
            suspects = form.live.copy()
            vertex = form.start
            proven = False
            while True:
                at_zero = np.zeros_like(suspects)
                at_zero[list(vertex.zero)] = True
                if proven and not (suspects & ~at_zero).any():
                    break
                # Only the last of these programs, which frees nobody, needs a proof.
                proven = not (suspects & ~at_zero).any()
                suspects &= at_zero
                if not suspects.any():
                    break
                vertex = best_vertex(form, form.cost_of(suspects), vertex, proven=proven)
            if suspects.any():
                form.forget(suspects)
        constant = ~form.live & np.append(np.ones(self.size, dtype=bool), form.has_slack)
        self.forced_arms = tuple(np.flatnonzero(constant[: self.size]).tolist())
        owners = [form.owner[i] for i in np.flatnonzero(constant[self.size :])]
        self.implied_equalities = tuple(dict.fromkeys(self.problem.names[k] for k in owners))

    # ------------------------------------------------------------------ vertices and edges

    def optimal_vertex(self, means: npt.ArrayLike, start: Vertex | None = None) -> Vertex:
        """A vertex that maximises means @ policy, exactly."""
        cost = np.zeros(self.size + self.form.count)
        cost[: self.size] = means
        return best_vertex(self.form, cost, start)

    def edges(self, vertex: Vertex) -> Edges:
        """All edge directions at a vertex; the last one's are kept."""
        known, edges = self._latest
        key = (vertex.basis, vertex.capped)
        if edges is None or known != key:
            edges = edges_at(self.form, vertex, self._effort)
            self._latest = key, edges
        return edges

    def is_degenerate(self, vertex: Vertex) -> bool:
        """Whether more constraints are active than the dimension of F needs."""
        return len(vertex.zero) > self.dimension

    def neighbour(self, vertex: Vertex, edges: Edges, e: int) -> Array:
        """The adjacent vertex that edge `e` leads to."""
        form = self.form
        used = edges.value[e] != 0
        index, value = edges.index[e, used], edges.value[e, used]
        falling, rising = value < 0, value > 0
        room = (form.high - vertex.policy)[index[rising]] / value[rising]
        change = form.matrix(form.general, index) @ value
        tightening = form.has_slack[form.general] & (change > DOUBT)
        tightening &= [self.size + i not in vertex.zero for i in form.general.tolist()]
        slack = form.slack(form.general, vertex.policy)
        step = min(
            ((vertex.policy - form.low)[index[falling]] / -value[falling]).min(),
            room.min(initial=np.inf),
            (slack[tightening] / change[tightening]).min(initial=np.inf),
        )
        policy = vertex.policy.copy()
        policy[index] += step * value
        # A share that should vanish keeps a rounding error of the step.
        policy[np.abs(policy) < 1e-12] = 0.0
        return policy

    def canonical(self, vertex: Vertex) -> Vertex:
        """The same vertex with a basis, and so an order of edges, that depends on it alone."""
        slacks = [c for c in self.form.columns.tolist() if c >= self.size and c not in vertex.zero]
        return self.form.next_to(vertex, {}, vertex.zero, slacks)

    def adjacent(self, vertex: Vertex, edges: Edges, e: int) -> Vertex:
        """The adjacent vertex that edge `e` leads to, exactly and canonically."""
        return self.form.next_to(vertex, *self.across(vertex, edges, e))

    def across(
        self, vertex: Vertex, edges: Edges, e: int
    ) -> tuple[dict[int, Fraction], frozenset[int], list[int]]:
        """Of the adjacent vertex the shares that changed, what is zero, and positive slacks."""
        form, direction = self.form, edges.exact(e)
        arms = {a: vertex.shares.get(a, Fraction(0)) for a in direction}
        step = min((form.floor[a] - arms[a]) / x for a, x in direction.items() if x < 0)
        for a, x in direction.items():
            cap = form.cap[a]
            if x > 0 and cap is not None:
                step = min(step, (cap - arms[a]) / x)
        rows = form.rows[form.live[self.size + form.rows]]
        slacks = {}
        for i in rows[self._may_bind(vertex, direction, rows, step)].tolist():
            change = form.used(i, direction)
            room = Fraction(0)
            if self.size + i not in vertex.zero:
                room = form.exact_bound(i) - form.used(i, vertex.shares)
            slacks[i] = (room, change)
            if change > 0:
                step = min(step, slacks[i][0] / change)
        moved = {a: x + step * direction[a] for a, x in arms.items()}
        tight = {i for i, (room, change) in slacks.items() if room == step * change}
        positive = [self.size + i for i in rows.tolist() if i not in tight]
        return moved, form.zero_after(vertex, moved, tight), positive

    def _may_bind(
        self, vertex: Vertex, direction: dict[int, Fraction], rows: Indices, step: Fraction
    ) -> Mask:
        """Rows that floats cannot rule out as those that end an edge, no longer than the step.

        A row with room at both ends of a longer step has room at the end of this one.
        """
        scale = max(abs(x) for x in direction.values())
        arms = list(direction)
        moved = np.array([float(x / scale) for x in direction.values()])
        slack = self.form.slack(rows, vertex.policy)
        change = self.form.matrix(rows, arms) @ moved
        steep = change > STEEP
        first = (slack[steep] / change[steep]).min(initial=np.inf)
        longest = min(float(step * scale), first + 10 * DOUBT / STEEP * (1 + first))
        return np.asarray(slack - longest * change <= DOUBT)

    def ranked_vertices(self, means: npt.ArrayLike) -> Iterator[tuple[Vertex, int]]:
        """All vertices, the most rewarding first, each with how many have been met by then.

        From every vertex edges that gain lead to the optimum, so each is met, going back along
        them, after all that lie above it.
        """
        mu = np.asarray(means, dtype=float)
        start = self.canonical(self.optimal_vertex(mu))
        met = {start.zero}
        waiting = [(-float(mu @ start.policy), 0, start)]
        while waiting:
            _, _, here = heapq.heappop(waiting)
            edges = self.edges(here)
            for e in range(len(edges)):
                other = self.adjacent(here, edges, e)
                if other.zero not in met:
                    heapq.heappush(waiting, (-float(mu @ other.policy), len(met), other))
                    met.add(other.zero)
            yield here, len(met)

    def tied_vertices(self, vertex: Vertex, means: Array) -> list[Vertex]:
        """Other optimal vertices, reached along edges that lose nothing (the first few)."""
        found: dict[frozenset[int], Vertex] = {vertex.zero: vertex}
        queue = [vertex]
        while queue and len(found) <= MAX_TIES:
            here = queue.pop(0)
            edges = self.edges(here)
            for e in np.flatnonzero(edges.gaps(means) == 0.0):
                other = self.adjacent(here, edges, int(e))
                if other.zero not in found:
                    found[other.zero] = other
                    queue.append(other)
        return [other for other in found.values() if other.zero != vertex.zero]

    # ------------------------------------------------------------------ constraints

    def active(self, vertex: Vertex) -> tuple[str, ...]:
        """Names of what holds with equality: constraints, `arm >= 0`, `total`."""
        form, problem = self.form, self.problem
        tight = {
            form.owner[i]
            for i in range(1, form.count)
            if not form.live[self.size + i] or self.size + i in vertex.zero
        }
        names = [problem.names[k] for k in sorted(tight)]
        names += [f"{arm} >= 0" for a, arm in enumerate(problem.arms) if a not in vertex.shares]
        return (*names, "total")

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Constraints that could be dropped, one after the other, without changing F."""
        problem = self.problem
        kept = list(problem.constraints)
        dropped = []
        form = StandardForm(problem)
        for k in reversed(range(len(kept))):
            if needs_limit(form, k):
                continue
            constraint = kept[k]
            rest = StandardForm(problem.replace(constraints=kept[:k] + kept[k + 1 :]))
            if _implies(rest, constraint.coefficients, constraint.lower, constraint.upper):
                del kept[k]
                form = rest
                dropped.append(constraint.name)
        return tuple(reversed(dropped))

    def keeping_at_zero(self, arm: int) -> tuple[str, ...]:
        """Constraints, as few as can be found, that leave a forced arm no share."""
        problem = self.problem
        for row in problem.constraints:  # one that adds up shares to nothing needs no search
            for sign, bound in ((1.0, row.upper), (-1.0, -row.lower)):
                shares = sign * row.coefficients
                if bound <= 0 and shares[arm] > 0 and shares.min() >= 0:
                    return (row.name,)
        free = next(name for name in map(str, itertools.count()) if name not in problem.names)
        wanted = Constraint(free, np.eye(self.size)[arm], lower=LEAST_SHARE)
        asked = problem.replace(constraints=[*problem.constraints, wanted])
        return tuple(asked.names[k] for k in smallest_conflict(asked) if asked.names[k] != free)

    def inequalities(self) -> tuple[Array, Array]:
        """(A, b) with A pi <= b: rows that do not always bind, scaled to largest entry 1."""
        return self._rows([i for i in self.form.rows if self.form.live[self.size + i]])

    def equalities(self) -> tuple[Array, Array]:
        """(A, b) with A pi = b all over F: independent rows, scaled to largest entry 1."""
        return self._rows([i for i in self.form.rows if not self.form.live[self.size + i]])

    def _rows(self, rows: Sequence[int]) -> tuple[Array, Array]:
        return self.form.matrix(rows, np.arange(self.size)), self.form.bound(rows)

    @property
    def is_limited(self) -> bool:
        """Whether an arm that varies has a floor or a cap of its own."""
        form = self.form
        return bool(((form.low > 0) | np.isfinite(form.high))[~form.fixed].any())

    def limits(self) -> tuple[Array, Array]:
        """(floor, cap) with floor <= pi <= cap; a cap of inf where there is none."""
        return self.form.low, self.form.high

    # ------------------------------------------------------------------ interior points

    def deepest_policy(self, *, slacks: bool = True) -> Array:
        """A feasible policy whose least share is largest.

        With `slacks`, distances to the inequalities (in scaled rows) count as well, so the
        policy lies strictly inside F. Arms that never change and inequalities that always
        bind are left out.
        """
        _, policy = self._depth(slacks=slacks)
        return policy

    def fair_policy(self) -> Array:
        """A feasible policy that gives each arm a fair part of what it could get.

        An arm may claim an equal share, or the largest one that some feasible policy gives it,
        whichever is less. All get the same part of their claims, as large as can be: no less
        than one part in as many as there are arms (docs/theory/tracking.md).
        """
        if self._fair is None:
            self._fair = self._fair_policy()
        return self._fair.copy()

    def _fair_policy(self) -> Array:
        arms = self.form.columns[self.form.columns < self.size]
        most = self.deepest_policy(slacks=False)
        if not len(arms):
            return most
        equal = 1.0 / len(arms)
        in_play = np.isin(np.arange(self.size), arms)
        short = in_play & (most < equal * (1 - 1e-9))
        # Where caps are many one policy gives many arms enough: all are asked for together first.
        left = self.size + 1
        while 1 < short.sum() < left:
            left = int(short.sum())
            most = np.maximum(most, self.optimal_vertex(short.astype(float)).policy)
            short &= most < equal * (1 - 1e-9)
        for a in np.flatnonzero(short):
            if most[a] < equal * (1 - 1e-9):
                most = np.maximum(most, self.optimal_vertex(np.eye(self.size)[a]).policy)
        _, policy = self._depth(slacks=False, claims=np.minimum(most, equal))
        return policy

    def _depth(self, *, slacks: bool = True, claims: Array | None = None) -> tuple[float, Array]:
        """Largest least value of the variables in play, and a policy that has it.

        With `claims` of all arms it is the largest part of them instead.
        """
        form = self.form
        assert form.start is not None
        columns = form.columns
        arms = columns < self.size
        moves = (arms | slacks).astype(float)
        if claims is not None:
            moves[arms] = claims[columns[arms]]
        if form.low.any() or np.isfinite(form.high).any():
            return self._depth_within_limits(moves, slacks=slacks)
        tableau = form.tableau(form.start)
        body = np.asarray(tableau.body, dtype=float)
        # One more variable, the depth, that lifts all the others.
        lift = body @ moves
        tableau = Tableau(np.column_stack([body, lift]), tableau.values, tableau.basis)
        cost = np.zeros(len(columns) + 1)
        cost[-1] = 1.0
        tableau.maximise(cost, np.ones(len(cost), dtype=bool))
        values = np.zeros(len(cost))
        values[tableau.basis] = np.maximum(tableau.values, 0.0)
        policy = np.zeros(self.size)
        policy[columns[arms]] = values[:-1][arms] + values[-1] * moves[arms]
        return float(values[-1]), np.asarray(policy / policy.sum())

    def _depth_within_limits(self, moves: Array, *, slacks: bool) -> tuple[float, Array]:
        """The same where arms have floors or caps, which move with the depth.

        A depth is possible if a point misses no row between the moved ends. By how much rows
        are missed at least is convex in the depth, so Newton's method from above ends after
        finitely many programs that are as small as the rows.
        """
        form = self.form
        columns = form.columns
        arms = columns < self.size
        low, high = np.zeros(len(columns)), np.full(len(columns), np.inf)
        low[arms], high[arms] = form.low[columns[arms]], form.high[columns[arms]]
        matrix = form.matrix(form.rows, columns)
        held = np.where(form.fixed, form.low, 0.0)
        bound = form.bound(form.rows) - form.matrix(form.rows, np.arange(self.size)) @ held
        rise: Array | float
        lifted = moves > 0
        most = (high - low) / 2 if slacks else high
        depth = float((np.minimum(most, 1.0)[lifted] / moves[lifted]).min(initial=np.inf))
        depth = depth if np.isfinite(depth) else 1.0
        none = np.full(len(form.rows), -1)
        for _ in range(MAX_DEPTHS):
            if slacks:
                lower, upper, rise, fall = low + depth, high - depth, np.ones(len(arms)), -1.0
            else:
                lower, upper = np.where(arms, np.maximum(low, depth * moves), 0.0), high
                rise, fall = np.where(arms & (low <= depth * moves), moves, 0.0), 0.0
            tableau, missing = phase_one(matrix, bound - matrix @ lower, none, upper - lower)
            turned = tableau.turned[: len(columns)]
            if missing < 1e-15:
                break
            short = [r for r, c in enumerate(tableau.basis) if c >= len(columns)]
            pace = np.where(turned, -fall, rise) @ -tableau.body[short, : len(columns)].sum(axis=0)
            if not pace > 0 or depth - missing / pace >= depth:
                break
            depth -= missing / pace
        values = np.zeros(tableau.body.shape[1])
        values[tableau.basis] = np.maximum(tableau.values, 0.0)
        value = np.where(turned, upper - values[: len(columns)], lower + values[: len(columns)])
        policy = held.copy()
        policy[columns[arms]] = value[arms]
        return depth, np.asarray(policy / policy.sum())


def _implies(form: StandardForm, row: Array, lower: float, upper: float) -> bool:
    """Whether a constraint holds all over a set that it is no part of."""
    for sign, limit in ((1.0, upper), (-1.0, -lower)):
        if not np.isfinite(limit):
            continue
        cost = np.zeros(form.size + form.count)
        cost[: form.size] = sign * row
        best = best_vertex(form, cost)
        reached = sum(rational(float(sign * row[a]), SLIPS) * x for a, x in best.shares.items())
        if reached > rational(limit, SLIPS):
            return False
    return True
