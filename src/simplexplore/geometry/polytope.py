"""The set of feasible policies: its vertices, its constraints, and points deep inside."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.problem import EXPLORATION, SCENARIOS, Problem
from simplexplore.problem.rational import rational

from .conflict import conflict_of, irreducible_conflict
from .edges import Edges, edges_at
from .exact import ROUNDING_ULPS
from .linear_program import best_vertex
from .rays import Effort
from .simplex import Tableau
from .standard_form import ZERO_TOLERANCE, StandardForm
from .vertex import Vertex

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Rows that fall faster than this are met where floats say, to within ZERO_TOLERANCE over it.
STEEP = 1e-4

# What an arm would need in order to count as sampled, when asking which limits keep it at zero.
LEAST_SHARE = 1e-6

# A largest distance from all ends below this may be none at all: floats do not tell.
FLAT = 1e-8

# Linear programs that one tableau solves before it is set up anew: pivots add up rounding.
REFRESH = 100

# Optimal policies listed when several tie; more would not be read.
MAX_TIES = 20


class LinearSet(NamedTuple):
    """{x : A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper}, as scipy.optimize.linprog has it.

    Rows are scaled to largest entry 1; `upper` is inf where an arm has no limit of its own.
    """

    A_ub: Array
    b_ub: Array
    A_eq: Array
    b_eq: Array
    lower: Array
    upper: Array


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
    edge_width : int
        Arms that an edge changes, at most.
    known_arm : int or None
        An arm whose mean is known, so that it gets no samples.

    Raises
    ------
    InfeasibleError
        If no policy is feasible; names constraints that conflict, none of which can be spared.

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

    known_arm: int | None = None

    def __init__(self, problem: Problem, table: str = "constraints") -> None:
        self.problem = problem
        self.size = problem.size
        self.form = StandardForm(problem)
        if self.form.start is None:
            raise conflict_of(problem, table)
        self._effort = Effort()
        self._latest: tuple[object, Edges | None] = (None, None)
        self._eliminate_constant_variables()
        self.dimension = len(self.form.columns) - len(self.form.rows)
        self.edge_width = min(self.size, len(self.form.rows) + 1)

    @classmethod
    def of_exploration(cls, problem: Problem) -> Polytope:
        """The allocations that the limits on exploration allow, as policies of their own."""
        limits = problem.exploration
        own = problem.replace(constraints=limits, exploration=(), scenario=SCENARIOS[0])
        return cls(own, EXPLORATION)

    def _eliminate_constant_variables(self) -> None:
        """Find variables that are zero all over F, by maximising the sum of suspects.

        What remains can each be positive somewhere, so every nonbasic variable of a
        nondegenerate basis is a genuine edge.
        """
        form = self.form
        assert form.start is not None
        if len(form.columns) == len(form.rows) or self._depth()[0] <= FLAT:
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
                vertex = best_vertex(form, self.sum_of(suspects), vertex, proven=proven)
            if suspects.any():
                form.eliminate(suspects)
        constant = ~form.live & np.append(np.ones(self.size, dtype=bool), form.has_slack)
        self.forced_arms = tuple(np.flatnonzero(constant[: self.size]).tolist())
        owners = [form.owner[i] for i in np.flatnonzero(constant[self.size :])]
        self.implied_equalities = tuple(dict.fromkeys(self.problem.names[k] for k in owners))

    def sum_of(self, wanted: Mask) -> Array:
        """The cost whose value is the sum of the wanted variables, up to a constant."""
        form, cost = self.form, wanted.astype(float)
        for a, ends in form.limits.items():
            for i in itertools.chain.from_iterable(ends.values()):
                cost[a] += cost[self.size + i] * (-1 if form.is_cap[i] else 1)
                cost[self.size + i] = 0.0
        return cost

    # ------------------------------------------------------------------ vertices and edges

    def optimal_vertex(self, means: npt.ArrayLike, start: Vertex | None = None) -> Vertex:
        """A vertex that maximises means @ policy, exactly."""
        cost = np.zeros(self.size + self.form.count)
        cost[: self.size] = means
        return best_vertex(self.form, cost, start)

    def edges(self, vertex: Vertex) -> Edges:
        """All edge directions at a vertex; the last one's are kept."""
        known, edges = self._latest
        key = (vertex.basis, vertex.at_upper)
        if edges is None or known != key:
            edges = edges_at(self.form, vertex, self._effort)
            self._latest = key, edges
        return edges

    def is_degenerate(self, vertex: Vertex) -> bool:
        """Whether more constraints are active than the dimension of F needs."""
        return len(vertex.zero) > self.dimension

    def canonical(self, vertex: Vertex) -> Vertex:
        """The same vertex with a basis, and so an order of edges, that depends on it alone."""
        slacks = [c for c in self.form.columns.tolist() if c >= self.size and c not in vertex.zero]
        return self.vertex_at(vertex.shares, vertex.zero, slacks)

    def adjacent_vertex(self, vertex: Vertex, edges: Edges, e: int) -> Vertex:
        """The vertex that edge `e` leads to, exactly and canonically."""
        return self.vertex_at(*self.end_of_edge(vertex, edges, e))

    def vertex_at(
        self, shares: dict[int, Fraction], zero: frozenset[int], slacks: list[int]
    ) -> Vertex:
        """The vertex with these shares, canonically."""
        return self.form.canonical(shares, zero, slacks)

    def end_of_edge(
        self, vertex: Vertex, edges: Edges, e: int
    ) -> tuple[dict[int, Fraction], frozenset[int], list[int]]:
        """Of the adjacent vertex the shares, what is zero, and the positive slacks of rows."""
        form, direction = self.form, edges.exact(e)
        arms = {a: vertex.shares.get(a, Fraction(0)) for a in direction}
        step = min((form.lower[a] - arms[a]) / x for a, x in direction.items() if x < 0)
        for a, x in direction.items():
            upper = form.upper[a]
            if x > 0 and upper is not None:
                step = min(step, (upper - arms[a]) / x)
        rows = form.rows[form.live[self.size + form.rows]]
        slacks = {}
        for i in rows[self._may_bind(vertex, direction, rows, step)].tolist():
            change = form.used(i, direction)
            room = Fraction(0)
            if self.size + i not in vertex.zero:
                room = form.exact_bound[i] - form.used(i, vertex.shares)
            slacks[i] = (room, change)
            if change > 0:
                step = min(step, room / change)
        shares = vertex.shares | {a: x + step * direction[a] for a, x in arms.items()}
        binding = {i for i, (room, change) in slacks.items() if room == step * change}
        positive = [self.size + i for i in rows.tolist() if i not in binding]
        sides = [i for a in direction for end in form.limits.get(a, {}).values() for i in end]
        moved = {*direction, *(self.size + i for i in (*sides, *form.general.tolist()))}
        zero = vertex.zero - moved | form.zero_at(shares, binding, direction)
        return shares, zero, positive

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
        longest = min(float(step * scale), first + 10 * ZERO_TOLERANCE / STEEP * (1 + first))
        return np.asarray(slack - longest * change <= ZERO_TOLERANCE)

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
                other = self.adjacent_vertex(here, edges, e)
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
                other = self.adjacent_vertex(here, edges, int(e))
                if other.zero not in found:
                    found[other.zero] = other
                    queue.append(other)
        return [other for other in found.values() if other.zero != vertex.zero]

    # ------------------------------------------------------------------ constraints

    def active(self, vertex: Vertex) -> tuple[str, ...]:
        """Names of what holds with equality: constraints, `arm >= 0`, `total`."""
        form, problem = self.form, self.problem
        binding = {
            form.owner[i]
            for i in range(1, form.count)
            if not form.live[self.size + i] or self.size + i in vertex.zero
        }
        names = [problem.names[k] for k in sorted(binding)]
        names += [f"{arm} >= 0" for a, arm in enumerate(problem.arms) if a not in vertex.shares]
        return (*names, "total")

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Constraints that could be dropped, one after the other, without changing F."""
        problem, needed = self.problem, _needed(self)
        kept = list(problem.constraints)
        dropped = []
        for k in reversed(range(len(kept))):
            if k in needed:
                continue
            constraint = kept[k]
            rest = StandardForm(problem.replace(constraints=kept[:k] + kept[k + 1 :]))
            if _implies(rest, constraint.coefficients, constraint.lower, constraint.upper):
                del kept[k]
                dropped.append(constraint.name)
        return tuple(reversed(dropped))

    def constraints_forcing_zero(self, arm: int) -> tuple[str, ...]:
        """Constraints, none of which can be spared, that leave a forced arm no share."""
        problem = self.problem
        for row in problem.constraints:  # one that adds up shares to nothing needs no search
            for sign, bound in ((1.0, row.upper), (-1.0, -row.lower)):
                shares = sign * row.coefficients
                if bound <= 0 and shares[arm] > 0 and shares.min() >= 0:
                    return (row.name,)
        free = next(name for name in map(str, itertools.count()) if name not in problem.names)
        wanted = Constraint(free, np.eye(self.size)[arm], lower=LEAST_SHARE)
        asked = problem.replace(constraints=[*problem.constraints, wanted])
        return tuple(asked.names[k] for k in irreducible_conflict(asked) if asked.names[k] != free)

    @cached_property
    def linear_set(self) -> LinearSet:
        """F by independent rows, equalities where they always bind; limits on single arms apart."""
        form, origin = self.form, np.zeros(self.size)
        varies = form.live[self.size + form.rows]
        rows = form.rows[varies], form.rows[~varies]
        above, equal = ((form.matrix(i, np.arange(self.size)), form.slack(i, origin)) for i in rows)
        return LinearSet(*above, *equal, form.low, form.high)

    @property
    def is_limited(self) -> bool:
        """Whether an arm that varies has a floor or a cap of its own."""
        form = self.form
        return bool(((form.low > 0) | np.isfinite(form.high))[~form.fixed].any())

    # ------------------------------------------------------------------ interior points

    def max_slack_policy(self, *, slacks: bool = True) -> Array:
        """A feasible policy whose least share is largest.

        With `slacks`, distances to the inequalities (in scaled rows) count as well, so the
        policy lies strictly inside F. Arms that never change and inequalities that always
        bind are left out.
        """
        _, policy = self._depth(slacks=slacks)
        return policy

    @cached_property
    def interior_allocation(self) -> Array:
        """A feasible policy that gives each arm a fair part of what it could get.

        An arm may claim an equal share, or the largest one that some feasible policy gives it,
        whichever is less. All get the same part of their claims, as large as can be: no less
        than one part in as many as there are arms (docs/theory/tracking.md).
        """
        arms = self.form.columns[self.form.columns < self.size]
        most = self.max_slack_policy(slacks=False)
        if not len(arms):
            return most
        equal = 1.0 / len(arms)
        _, policy = self._depth(slacks=False, claims=self._claims(arms, most, equal))
        return policy

    def _claims(self, arms: Indices, most: Array, equal: float) -> Array:
        """For each arm the largest share that any policy gives it, or an equal one if that is less.

        `most` are shares that some policies give. Floats do: a claim needs no proof.
        """
        form, columns, enough = self.form, self.form.columns, equal * (1 - 1e-9)
        assert form.start is not None
        most = np.maximum(most, form.start.policy)
        short = np.isin(np.arange(self.size), arms) & (most < enough)

        def ask(tableau: Tableau, wanted: Mask) -> None:
            nonlocal short
            cost = np.append(wanted, np.zeros(form.count))[columns]
            tableau.maximise(cost, np.ones(len(cost), dtype=bool))
            shares = form.low[arms] + tableau.point()[columns < self.size]
            most[arms] = np.maximum(most[arms], shares)
            short = short & (most < enough)

        # All together, none for so much that little is left for the others, as long as that helps.
        left = 2 * self.size
        while 1 < short.sum() <= 0.9 * left:
            left = int(short.sum())
            tableau = form.tableau(form.start)
            limited = np.append(short, np.zeros(form.count, dtype=bool))[columns]
            tableau.width[limited] = np.minimum(tableau.width[limited], 4 * equal)
            ask(tableau, short)
        for n, a in enumerate(np.flatnonzero(short)):
            if n % REFRESH == 0:
                tableau = form.tableau(form.start)
            if short[a]:
                ask(tableau, np.arange(self.size) == a)
        return np.where(most < enough, most, equal)

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
        # One more variable, the depth, that lifts all the others.
        body = np.column_stack([tableau.body, tableau.body @ moves])
        cost = np.arange(body.shape[1]) == len(columns)
        ends, at_upper = np.full(len(cost), np.inf), np.zeros(len(cost), dtype=bool)
        tableau = Tableau(body, tableau.values, tableau.basis, ends, at_upper)
        tableau.maximise(cost, np.ones(len(cost), dtype=bool))
        values = tableau.point()
        policy = np.zeros(self.size)
        policy[columns[arms]] = values[:-1][arms] + values[-1] * moves[arms]
        return float(values[-1]), np.asarray(policy / policy.sum())

    def _depth_within_limits(self, moves: Array, *, slacks: bool) -> tuple[float, Array]:
        """The same where arms have ends of their own; `slacks` are the distances to these, too."""
        from scipy import sparse
        from scipy.optimize import linprog

        form = self.form
        columns = form.columns
        arms = np.flatnonzero(columns < self.size)
        low, high = np.zeros(len(columns)), np.full(len(columns), np.inf)
        low[arms], high[arms] = form.low[columns[arms]], form.high[columns[arms]]
        held = np.where(form.fixed, form.low, 0.0)
        # x = least + depth * moves + y with y >= 0: limits on y are of few entries, unlike those
        # of each x on its distance from two ends.
        least = low if slacks else np.zeros(len(columns))
        capped = np.flatnonzero(np.isfinite(high))
        floored = np.flatnonzero(low > least)
        own = sparse.eye_array(len(columns), format="csr")
        with_y: Any = sparse.vstack([own[capped], -own[floored]])
        with_depth = np.append(moves[capped] + slacks, -moves[floored])
        body = form.matrix(form.rows, columns)
        found = linprog(
            np.append(np.zeros(len(columns)), -1.0),
            A_ub=sparse.hstack([with_y, sparse.csr_array(with_depth[:, None])], format="csr"),
            b_ub=np.append(high[capped] - least[capped], least[floored] - low[floored]),
            A_eq=np.column_stack([body, body @ moves]),
            b_eq=form.slack(form.rows, held) - body @ least,
            bounds=[(0, None)] * len(columns) + [(0, 1)],
        )
        if found.x is None:
            raise NotConvergedError(
                "no point inside the constraints was found; their coefficients may differ by too "
                "many orders of magnitude: rescale them."
            )
        policy, depth = held.copy(), float(found.x[-1])
        policy[columns[arms]] = (least + depth * moves + found.x[:-1])[arms]
        return depth, np.asarray(policy / policy.sum())


def _needed(polytope: Polytope) -> set[int]:
    """Constraints that bind at a vertex that is not degenerate, so that all there are needed.

    Vertices at which many bind that are not known to be needed, then at which single ones do.
    Floats do: who is not found here is looked at exactly.
    """
    form, ends = polytope.form, {a: at for a, *at in polytope.form.ends}
    columns, everything = form.columns.tolist(), np.ones(len(form.columns), dtype=bool)
    needed: set[int] = set()
    assert form.start is not None
    tableau = form.tableau(form.start)

    def bind(sides: list[int]) -> bool:
        slacks = np.isin(np.arange(form.size + form.count), np.array(sides) + form.size)
        tableau.maximise(-polytope.sum_of(slacks)[form.columns], everything)
        room = np.minimum(tableau.values, tableau.width[tableau.basis] - tableau.values)
        if room.min(initial=1.0) <= ZERO_TOLERANCE:
            return False
        before = len(needed)
        for n in np.setdiff1d(np.arange(len(columns)), tableau.basis).tolist():
            low_and_high = ends.get(columns[n], [columns[n]])
            zero = low_and_high[int(tableau.at_upper[n])]
            if zero >= form.size:
                needed.add(form.owner[zero - form.size])
        return len(needed) > before

    sides = [i for i in range(1, form.count) if form.live[form.size + i]]
    with suppress(NotConvergedError):
        while bind(sides):
            sides = [i for i in sides if form.owner[i] not in needed]
        for n, i in enumerate(sides):
            if n % REFRESH == 0:
                tableau = form.tableau(form.start)
            if form.owner[i] not in needed:
                bind([i])
    return needed


def _implies(form: StandardForm, row: Array, lower: float, upper: float) -> bool:
    """Whether a constraint holds all over a set that it is no part of."""
    for sign, limit in ((1.0, upper), (-1.0, -lower)):
        if not np.isfinite(limit):
            continue
        cost = np.zeros(form.size + form.count)
        cost[: form.size] = sign * row
        best = best_vertex(form, cost)
        reached = sum(
            rational(float(sign * row[a]), ROUNDING_ULPS) * x for a, x in best.shares.items()
        )
        if reached > rational(limit, ROUNDING_ULPS):
            return False
    return True
