"""Vertices, names of what binds, and ties against enumeration in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nightly import examples
from optimum import Polytope
from reference_polytope import (
    active_sides,
    dot,
    exact_edges,
    exact_policy,
    floats,
    sides,
    vertices,
)
from simplexplore import Constraint, InfeasibleError, Problem, lower_bound
from strategies import System, exact_means, factors, rows_of, systems

HYPOTHESIS = examples(20)

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)


LIMITED = systems(max_size=5, max_rows=2, limits=True)


@HYPOTHESIS
@given(systems(max_size=5) | LIMITED, st.data())
def test_optimum_is_the_best_vertex_and_ties_are_all_found(system, data):
    means = data.draw(exact_means(system.size))
    points = vertices(system.sides(), system.size)
    best = max(dot(means, point) for point in points)
    optimal = {point for point in points if dot(means, point) == best}
    polytope = Polytope(system.problem())
    vertex = polytope.optimal_vertex(floats(means))
    policy = exact_policy(vertex, system.size)
    assert policy in optimal
    ties = polytope.tied_vertices(vertex, floats(means))
    assert {exact_policy(tie, system.size) for tie in ties} == optimal - {policy}
    edges = polytope.edges(vertex)
    exact = [-dot(means, direction) for direction in exact_edges(edges, system.size)]
    gaps = edges.gaps(floats(means))
    assert [gap == 0.0 for gap in gaps] == [loss == 0 for loss in exact]
    assert gaps == pytest.approx(floats(exact), rel=1e-12)


@HYPOTHESIS
@given(systems(max_size=5) | LIMITED, st.data())
def test_active_names_degeneracy_and_dimension(system, data):
    means = data.draw(exact_means(system.size))
    problem = system.problem()
    polytope = Polytope(problem)
    vertex = polytope.optimal_vertex(floats(means))
    point = exact_policy(vertex, system.size)
    expected = [
        name
        for name, (row, lower, upper) in zip(problem.names, system.rows, strict=True)
        if dot(row, point) in (lower, upper)
    ]
    expected += [f"{arm} >= 0" for arm, x in zip(problem.arms, point, strict=True) if x == 0]
    assert polytope.active(vertex) == (*expected, "total")
    points = vertices(system.sides(), system.size)
    differences = [[x - y for x, y in zip(p, points[0], strict=True)] for p in points[1:]]
    dimension = np.linalg.matrix_rank(floats_matrix(differences, system.size), tol=1e-9)
    assert polytope.dimension == dimension
    assert polytope.forced_arms == tuple(
        a for a in range(system.size) if all(p[a] == 0 for p in points)
    )
    # Inequalities that bind everywhere; equalities as written are not among them.
    assert polytope.implied_equalities == tuple(
        name
        for name, (row, lower, upper) in zip(problem.names, system.rows, strict=True)
        if lower != upper
        and any(
            bound is not None and all(dot(row, p) == bound for p in points)
            for bound in (lower, upper)
        )
    )
    # Degenerate: more distinct sides that do not always bind meet here than the dimension.
    movable = [
        side
        for side in active_sides(system.sides(), point)
        if any(dot(side.coefficients, p) != side.bound for p in points)
    ]
    assert polytope.is_degenerate(vertex) == (len(movable) > dimension)


def floats_matrix(rows, size):
    return np.reshape([[float(x) for x in row] for row in rows], (-1, size))


@HYPOTHESIS
@given(systems(max_size=5, max_rows=3) | LIMITED, st.data())
def test_redundant_rows_can_be_dropped_and_no_more(system, data):
    extra = data.draw(rows_of(system.size))
    points = vertices(system.sides(), system.size)
    top = max(dot(extra, p) for p in points)
    room = data.draw(st.sampled_from([Fraction(0), THIRD]))
    grown = System(system.size, (*system.rows, (extra, None, top + room)))
    names = Polytope(grown.problem()).redundant
    assert names
    kept = [
        row
        for row, name in zip(grown.rows, grown.problem().names, strict=True)
        if name not in names
    ]
    assert set(vertices(sides(system.size, kept), system.size)) == set(points)
    for i in range(len(kept)):
        fewer = kept[:i] + kept[i + 1 :]
        assert set(vertices(sides(system.size, fewer), system.size)) != set(points)


@HYPOTHESIS
@given(systems(max_size=5) | LIMITED)
def test_max_slack_policy_is_inside(system):
    polytope = Polytope(system.problem())
    policy = polytope.max_slack_policy()
    assert policy.sum() == pytest.approx(1, abs=1e-12)
    points = vertices(system.sides(), system.size)
    for side in system.sides():
        slack = float(side.bound) - floats(side.coefficients) @ policy
        if side.equality or all(dot(side.coefficients, p) == side.bound for p in points):
            assert abs(slack) < 1e-9
        else:
            assert slack > 1e-6


# ------------------------------------------------------------ exactness


def test_thirds_and_tenths_meet_exactly():
    feasible = Polytope(Problem(["a", "b", "c"], ["a <= 0.3", "b <= 0.3", "c <= 0.4"]))
    assert feasible.dimension == 0
    vertex = feasible.optimal_vertex([1.0, 2.0, 3.0])
    assert exact_policy(vertex, 3) == (Fraction(3, 10), Fraction(3, 10), Fraction(2, 5))
    assert vertex.policy.tolist() == [0.3, 0.3, 0.4]
    third = 1 / 3
    assert 3 * third == 1.0
    thirds = Polytope(Problem(3, (np.eye(3), [third, third, third])))
    assert thirds.optimal_vertex([1.0, 2.0, 3.0]).policy.tolist() == [third, third, third]
    sevenths = Polytope(Problem(7, (np.eye(7), [1 / 7] * 7)))
    assert exact_policy(sevenths.optimal_vertex(np.arange(7.0)), 7) == (Fraction(1, 7),) * 7


@pytest.mark.parametrize("digits", [9, 12, 15])
def test_infeasible_by_the_last_digit(digits):
    short = Fraction(4, 10) - Fraction(1, 10**digits)
    rows = [
        Constraint(name, row, upper=bound)
        for name, row, bound in zip("abc", np.eye(3), (0.3, 0.3, float(short)), strict=True)
    ]
    with pytest.raises(InfeasibleError, match="these 3 cannot hold together") as error:
        Polytope(Problem(3, rows))
    assert error.value.conflict == ("a", "b", "c")
    # As much room as was missing makes a triangle of that size.
    rows[2] = Constraint("c", [0, 0, 1], upper=float(Fraction(4, 10) + Fraction(1, 10**digits)))
    polytope = Polytope(Problem(3, rows))
    assert polytope.dimension == 2
    vertex = polytope.optimal_vertex([0.0, 1.0, 2.0])
    assert exact_policy(vertex, 3)[0] == Fraction(3, 10) - Fraction(1, 10**digits)
    assert len(polytope.edges(vertex)) == 2


def test_vertices_that_floats_cannot_tell_apart():
    tiny = 1e-12
    rows = ["a <= 1/2", "b <= 1/2", f"a + b <= {0.75 + tiny!r}", "a + b <= 0.75"]
    polytope = Polytope(Problem(["a", "b", "c"], rows))
    vertex = polytope.optimal_vertex([1.0, 0.9, 0.0])
    assert exact_policy(vertex, 3) == (HALF, Fraction(1, 4), Fraction(1, 4))
    assert polytope.active(vertex) == ("c1", "c4", "total")
    assert polytope.redundant == ("c3",)


@pytest.mark.parametrize(("more", "tie"), [(1e-15, True), (1e-13, False)])
def test_means_that_differ_in_their_last_digits_tie(more, tie):
    polytope = Polytope(Problem(2))
    means = np.array([0.5, 0.5 + more])
    vertex = polytope.optimal_vertex(means)
    assert vertex.policy.tolist() == [0.0, 1.0]
    assert polytope.edges(vertex).gaps(means)[0] == pytest.approx(0 if tie else more, rel=0.01)
    assert len(polytope.tied_vertices(vertex, means)) == tie


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("row", [(), ("a1 + a2 + a3 <= 0.3",)])
def test_the_best_of_many_that_differ_in_the_last_digit(row, seed):
    """Floats end anywhere among them, and fractions go on from there."""
    rng = np.random.default_rng(seed)
    steps = rng.permutation(12)
    means = 0.5 + steps * 2.0**-53
    polytope = Polytope(Problem(12, ["each <= 0.125", *row]))
    found = polytope.optimal_vertex(means)
    left, first = Fraction(1), Fraction("0.3") if row else Fraction(1)
    shares = {}
    for a in np.argsort(-steps):  # the best first, as much of each as there may be
        share = min(Fraction(1, 8), left, first if a < 3 else left)
        left -= share
        first -= share if a < 3 else 0
        if share:
            shares[int(a)] = share
    assert left == 0
    assert found.shares == shares


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_means_that_a_sum_has_moved_tie(size):
    means = size * np.array([0.3, 0.1 + 0.2, 100.3 - 100.0, 0.2])
    assert len(set(means.tolist())) == 4
    bound = lower_bound(Problem(4, ["a1 + a2 <= 0.75"]), means)
    for found in bound.scenarios.values():
        assert found.characteristic_time == np.inf
    assert len(bound.ties) == 2
    # A unit in the tenth digit is a difference.
    apart = lower_bound(Problem(3), size * np.array([0.3, 0.3 * (1 + 1e-10), 0.2]))
    assert apart.ties == ()
    assert apart.policy.tolist() == [0.0, 1.0, 0.0]


def test_bounds_of_many_rows_are_certified():
    rng = np.random.default_rng(400)
    inside = rng.dirichlet(np.ones(100))
    rows = rng.normal(size=(300, 100)).round(2)
    limit = (rows @ inside + 0.3 * rng.random(300)).round(4)
    bound = lower_bound(Problem(100, (rows, limit)), rng.normal(size=100))
    assert all(found.relative_gap < 1e-8 for found in bound.scenarios.values())


def test_ties_that_floats_would_break():
    # 0.1 + 0.2 > 0.3 in floats.
    polytope = Polytope(Problem(3, ["a1 - a2 == 0"]))
    means = np.array([0.1, 0.2, 0.15])
    vertex = polytope.optimal_vertex(means)
    assert polytope.edges(vertex).gaps(means).tolist() == [0.0]
    assert len(polytope.tied_vertices(vertex, means)) == 1


@HYPOTHESIS
@given(systems(max_size=5) | LIMITED, st.data())
def test_scaling_rows_by_awkward_numbers_changes_nothing(system, data):
    means = floats(data.draw(exact_means(system.size)))
    scaled = system.scaled(data.draw(factors(len(system.rows))))
    one, other = Polytope(system.problem()), Polytope(scaled.problem())
    here, there = one.optimal_vertex(means), other.optimal_vertex(means)
    assert here.zero == there.zero
    assert here.shares == there.shares
    assert set(exact_edges(one.edges(here), system.size)) == set(
        exact_edges(other.edges(there), system.size)
    )


# ------------------------------------------------------------ special shapes


def test_one_arm():
    polytope = Polytope(Problem(["only"], ["only <= 1", "only >= 1/2"]))
    vertex = polytope.optimal_vertex([3.0])
    assert polytope.dimension == 0
    assert vertex.policy.tolist() == [1.0]
    assert len(polytope.edges(vertex)) == 0
    assert polytope.tied_vertices(vertex, np.array([3.0])) == []
    assert polytope.implied_equalities == ("c1",)


def test_single_point():
    polytope = Polytope(Problem(["a", "b", "c"], ["a == 1/3", "b == 1/3"]))
    vertex = polytope.optimal_vertex([1.0, 0.0, 2.0])
    assert polytope.dimension == 0
    assert exact_policy(vertex, 3) == (THIRD, THIRD, THIRD)
    assert len(polytope.edges(vertex)) == 0
    assert polytope.forced_arms == ()


def test_forced_arms_and_implied_equalities():
    rows = {"none": "a <= 0", "fill": "b + c >= 1", "half": "b <= 1/2"}
    polytope = Polytope(Problem(["a", "b", "c", "d"], rows))
    assert polytope.forced_arms == (0, 3)
    assert polytope.implied_equalities == ("none", "fill")
    assert polytope.dimension == 1
    vertex = polytope.optimal_vertex([9.0, 1.0, 0.0, 9.0])
    assert vertex.policy.tolist() == [0.0, 0.5, 0.5, 0.0]
    assert polytope.active(vertex) == ("none", "fill", "half", "a >= 0", "d >= 0", "total")
    assert not polytope.is_degenerate(vertex)


def test_equality_written_as_two_inequalities():
    once = Polytope(Problem(["a", "b", "c"], ["a - b == 0"]))
    twice = Polytope(Problem(["a", "b", "c"], ["a - b <= 0", "a - b >= 0"]))
    assert once.dimension == twice.dimension == 1
    assert once.implied_equalities == ()
    assert twice.implied_equalities == ("c1", "c2")
    means = [1.0, 0.5, 0.1]
    here, there = once.optimal_vertex(means), twice.optimal_vertex(means)
    assert here.policy.tolist() == there.policy.tolist() == [0.5, 0.5, 0.0]
    assert once.edges(here).dense(3).tolist() == twice.edges(there).dense(3).tolist()


def test_contradicting_and_repeated_equalities():
    Polytope(Problem(["a", "b"], ["a == 1/4", "2*a == 1/2", "b == 3/4"]))
    with pytest.raises(InfeasibleError) as error:
        Polytope(Problem(["a", "b"], ["a == 1/4", "b == 1/4"]))
    assert error.value.conflict == ("c1", "c2")


def test_only_the_simplex():
    polytope = Polytope(Problem(4))
    means = np.array([0.3, 0.1, 0.4, 0.2])
    vertex = polytope.optimal_vertex(means)
    assert vertex.policy.tolist() == [0.0, 0.0, 1.0, 0.0]
    directions = polytope.edges(vertex).dense(4)
    assert {tuple(row) for row in directions} == {
        (1.0, 0.0, -1.0, 0.0),
        (0.0, 1.0, -1.0, 0.0),
        (0.0, 0.0, -1.0, 1.0),
    }
    assert polytope.active(vertex) == ("a1 >= 0", "a2 >= 0", "a4 >= 0", "total")
    assert polytope.redundant == ()


def test_all_policies_tie():
    polytope = Polytope(Problem(4))
    means = np.full(4, 0.25)
    vertex = polytope.optimal_vertex(means)
    ties = polytope.tied_vertices(vertex, means)
    assert len(ties) == 3
    assert sum(tie.policy for tie in ties) + vertex.policy == pytest.approx(np.ones(4))


def test_number_of_ties_listed_is_limited():
    polytope = Polytope(Problem(50))
    means = np.zeros(50)
    vertex = polytope.optimal_vertex(means)
    ties = polytope.tied_vertices(vertex, means)
    assert 10 <= len(ties) <= 49


def test_a_walk_that_starts_elsewhere_ends_at_the_same_vertex():
    rng = np.random.default_rng(11)
    rows = rng.integers(0, 2, size=(6, 20)).astype(float)
    polytope = Polytope(Problem(20, (rows, np.full(6, 0.4))))
    start = None
    for _ in range(30):
        means = rng.normal(size=20)
        fresh = polytope.optimal_vertex(means)
        assert polytope.optimal_vertex(means, start) == fresh
        start = fresh


def test_larger_problems_against_highs():
    rng = np.random.default_rng(5)
    for _ in range(10):
        size, count = int(rng.integers(30, 60)), 8
        rows = rng.integers(-2, 4, size=(count, size)).astype(float)
        limit = np.ceil(10 * rows @ rng.dirichlet(np.ones(size))) / 10
        means = rng.normal(size=size)
        polytope = Polytope(Problem(size, (rows, limit)))
        vertex = polytope.optimal_vertex(means)
        best = linprog(-means, A_ub=rows, b_ub=limit, A_eq=np.ones((1, size)), b_eq=[1.0])
        assert means @ vertex.policy == pytest.approx(-best.fun, rel=1e-9)
        edges = polytope.edges(vertex)
        directions = edges.dense(size)
        assert len(edges) >= polytope.dimension
        assert np.abs(directions.sum(axis=1)).max() < 1e-12
        assert (edges.gaps(means) > 0).all()
        # Each edge ends at a feasible policy where at least as many sides are active.
        for e in range(len(edges)):
            other = polytope.adjacent_vertex(vertex, edges, e).policy
            slack = np.concatenate([other, limit - rows @ other])
            assert slack.min() > -1e-9
            assert (slack < 1e-9).sum() >= polytope.dimension
            assert means @ other < means @ vertex.policy


def test_rows_that_floats_take_for_parallel():
    """The row is the total but for a part in 1e9: its basis is chosen in whole numbers."""
    problem = Problem(2, ["1000000001*a1 + 1000000000*a2 <= 1000000000.5"])
    polytope = Polytope(problem)
    found = [vertex.shares for vertex, _ in polytope.ranked_vertices(np.zeros(2))]
    assert sorted(found, key=len) == [{1: 1}, {0: HALF, 1: HALF}]


# Linear programs on which a careless simplex method goes in a circle, in shares of 2 and of 8.


def test_example_of_beale_ends():
    rows = [
        "0.25*a1 - 60*a2 - 0.04*a3 + 9*a4 <= 0",
        "0.5*a1 - 90*a2 - 0.02*a3 + 3*a4 <= 0",
        "a3 <= 0.5",
    ]
    vertex = Polytope(Problem(5, rows)).optimal_vertex([0.75, -150.0, 0.02, -6.0, 0.0])
    assert vertex.shares == {0: Fraction(1, 50), 2: HALF, 4: Fraction(12, 25)}


def test_example_of_kuhn_ends():
    rows = [
        "-2*a1 - 9*a2 + a3 + 9*a4 <= 0",
        "1/3*a1 + a2 - 1/3*a3 - 2*a4 <= 0",
        "2*a1 + 3*a2 - a3 - 12*a4 <= 1/4",
    ]
    means = [2, 3, -1, -12, 0]
    vertex = Polytope(Problem(5, rows)).optimal_vertex(means)
    assert sum(means[a] * share for a, share in vertex.shares.items()) == Fraction(1, 4)
