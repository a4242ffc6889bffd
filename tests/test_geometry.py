"""Vertices, edges, conflicts and ties against enumeration in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nightly import examples
from reference_polytope import (
    active_sides,
    dot,
    edge_directions,
    sides,
    smallest_conflict,
    step_length,
    vertices,
)
from simplexplore.errors import InfeasibleError
from simplexplore.geometry import polytope as geometry
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational
from strategies import System, exact_means, factors, rows_of, systems

HYPOTHESIS = examples(20)

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)


def exact_policy(vertex, size):
    return tuple(vertex.shares.get(a, Fraction(0)) for a in range(size))


def exact_edges(edges, size):
    """Directions in fractions, positive parts scaled to sum 1."""
    found = []
    for e in range(len(edges)):
        direction = edges.exact(e)
        length = sum(x for x in direction.values() if x > 0)
        found.append(tuple(direction.get(a, Fraction(0)) / length for a in range(size)))
    return found


def outward(all_sides, point):
    """Means for which a vertex is the only optimum: the sum of its active rows."""
    return tuple(
        sum((side.coefficients[a] for side in active_sides(all_sides, point)), Fraction(0))
        for a in range(len(point))
    )


def floats(row):
    return np.array([float(x) for x in row])


# ------------------------------------------------------------ vertices and edges


LIMITED = systems(max_size=5, max_rows=2, limits=True)


@HYPOTHESIS
@given(LIMITED)
def test_edges_between_floors_and_caps_are_those_of_enumeration(system):
    check_edges(system)


@HYPOTHESIS
@given(systems(max_size=5))
def test_edges_of_every_vertex_are_those_of_enumeration(system):
    check_edges(system)


def check_edges(system):
    polytope = Polytope(system.problem())
    all_sides = system.sides()
    points = vertices(all_sides, system.size)
    assert points
    for point in points[:12]:
        vertex = polytope.optimal_vertex(floats(outward(all_sides, point)))
        assert exact_policy(vertex, system.size) == point
        assert vertex.policy.tolist() == [float(x) for x in point]
        edges = polytope.edges(vertex)
        found = exact_edges(edges, system.size)
        assert len(set(found)) == len(found)
        expected = edge_directions(all_sides, point)
        assert set(found) == expected
        # The floats beside them are these numbers, in the same order.
        dense = edges.dense(system.size)
        assert dense == pytest.approx(
            np.reshape([floats(row) for row in found], dense.shape), abs=1e-14
        )
        # What is exactly zero is stored as zero.
        assert [set(np.flatnonzero(row)) for row in dense] == [
            {a for a, x in enumerate(row) if x} for row in found
        ]
        # Each edge leads to a vertex, and back.
        for e, direction in enumerate(found):
            step = step_length(all_sides, point, direction)
            other = tuple(x + step * d for x, d in zip(point, direction, strict=True))
            assert other in points
            assert polytope.neighbour(vertex, edges, e) == pytest.approx(floats(other), abs=1e-12)
            adjacent = polytope.adjacent(vertex, edges, e)
            assert exact_policy(adjacent, system.size) == other
            # However a vertex was reached, its canonical form is the same.
            direct = polytope.optimal_vertex(floats(outward(all_sides, other)))
            assert polytope.canonical(direct).basis == polytope.canonical(adjacent).basis


@pytest.mark.parametrize("tiny", [1e-10, -1e-12, 1e-15])
@pytest.mark.parametrize("capped", [False, True])
def test_entries_as_small_as_rounding_keep_sign_and_digits(tiny, capped):
    # a1 + tiny a3 <= 1/2; with a cap on a2, the third arm falls from where the others are.
    rows, limits = [[1.0, 0.0, tiny]], [0.5]
    means = np.array([3.0, 2.0, 1.0])
    if capped:
        rows.append([0.0, 0.0, 1.0])
        limits.append(0.25)
        means[2] = 2.5
    polytope = Polytope(Problem(3, (np.array(rows), np.array(limits))))
    vertex = polytope.optimal_vertex(means)
    edges = polytope.edges(vertex)
    found = [edges.exact(e).get(0, Fraction(0)) for e in range(len(edges))]
    assert sorted(abs(x) for x in found)[0] == abs(rational(tiny))
    for e, row in enumerate(edges.dense(3)):
        assert row == pytest.approx(floats(exact_edges(edges, 3)[e]), rel=1e-12, abs=0)


def test_gaps_that_cancel_keep_sign_and_digits():
    rng = np.random.default_rng(8)
    for _ in range(50):
        base, gap = 10.0 ** rng.uniform(-3, 6), 10.0 ** rng.uniform(-12, -5)
        means = base * np.array([1.0, 1.0 - gap, 1.0 - 3 * gap, 0.5])
        polytope = Polytope(Problem(4, ["a1 + a4 <= 0.75"]))
        vertex = polytope.optimal_vertex(means)
        edges = polytope.edges(vertex)
        for found, direction in zip(edges.gaps(means), exact_edges(edges, 4), strict=True):
            exact = -sum(rational(float(x)) * d for x, d in zip(means, direction, strict=True))
            assert exact >= 0  # it is the best vertex
            assert found == pytest.approx(float(exact), rel=1e-12, abs=0)


@HYPOTHESIS
@given(systems(min_size=6, max_size=6, max_rows=5), st.data())
def test_edges_of_the_optimum_with_six_arms(system, data):
    means = data.draw(exact_means(6))
    polytope = Polytope(system.problem())
    vertex = polytope.optimal_vertex(floats(means))
    point = exact_policy(vertex, 6)
    all_sides = system.sides()
    assert all(
        dot(s.coefficients, point) == s.bound
        if s.equality
        else dot(s.coefficients, point) <= s.bound
        for s in all_sides
    )
    expected = edge_directions(all_sides, point)
    assert set(exact_edges(polytope.edges(vertex), 6)) == expected
    # No edge improves, so the vertex is optimal.
    assert all(dot(means, direction) <= 0 for direction in expected)


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
    ties = polytope.tied_policies(vertex, floats(means))
    assert {tuple(tie.tolist()) for tie in ties} == {
        tuple(float(x) for x in point) for point in optimal if point != policy
    }
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
def test_deepest_policy_is_inside(system):
    polytope = Polytope(system.problem())
    policy = polytope.deepest_policy()
    assert policy.sum() == pytest.approx(1, abs=1e-12)
    points = vertices(system.sides(), system.size)
    for side in system.sides():
        slack = float(side.bound) - floats(side.coefficients) @ policy
        if side.equality or all(dot(side.coefficients, p) == side.bound for p in points):
            assert abs(slack) < 1e-9
        else:
            assert slack > 1e-6


# ------------------------------------------------------------ conflicts


@HYPOTHESIS
@given(
    systems(max_size=4, max_rows=5, feasible=False)
    | systems(max_size=4, max_rows=1, feasible=False, limits=True)
)
def test_infeasible_sets_are_found_and_the_conflict_is_smallest(system):
    problem = system.problem()
    feasible = bool(vertices(system.sides(), system.size))
    assert feasible == (highs_status(problem) == 0)
    if feasible:
        Polytope(problem)
        return
    with pytest.raises(InfeasibleError, match="no policy satisfies all constraints") as error:
        Polytope(problem)
    conflict = [
        row
        for row, name in zip(system.rows, problem.names, strict=True)
        if name in error.value.conflict
    ]
    assert len(conflict) == len(error.value.conflict)
    assert not vertices(sides(system.size, conflict), system.size)
    for i in range(len(conflict)):
        assert vertices(sides(system.size, conflict[:i] + conflict[i + 1 :]), system.size)
    assert len(conflict) == smallest_conflict(system.size, system.rows)
    for name in error.value.conflict:
        assert f"  {name}: " in str(error.value)


def highs_status(problem):
    """0: feasible, 2: not."""
    above, limit, equal, total = [], [], [np.ones(problem.size)], [1.0]
    for row, lower, upper in zip(problem.matrix, problem.lower, problem.upper, strict=True):
        if lower == upper:
            equal.append(row)
            total.append(upper)
            continue
        if math.isfinite(upper):
            above.append(row)
            limit.append(upper)
        if math.isfinite(lower):
            above.append(-row)
            limit.append(-lower)
    return linprog(
        np.zeros(problem.size),
        A_ub=np.array(above) if above else None,
        b_ub=np.array(limit) if limit else None,
        A_eq=np.array(equal),
        b_eq=np.array(total),
        method="highs",
    ).status


def test_conflict_of_many_rows_is_irreducible():
    # The only conflict takes all: each arm at most 0.9/12.
    arms = [f"x{a}" for a in range(12)]
    rows = [f"{arm} <= 0.075" for arm in arms] + ["x0 + x1 <= 0.9", "x2 >= 0"]
    with pytest.raises(InfeasibleError, match="these 12 cannot hold together") as error:
        Polytope(Problem(arms, rows))
    assert error.value.conflict == tuple(f"c{i}" for i in range(1, 13))


def test_larger_conflict_first_still_names_the_smallest():
    # Dropping c1 first leaves a conflict of three, although one of two exists.
    rows = ["a >= 0.4", "a <= 0.3", "b <= 0.3", "c <= 0.3"]
    with pytest.raises(InfeasibleError, match="these 2 cannot hold together") as error:
        Polytope(Problem(["a", "b", "c"], rows))
    assert error.value.conflict == ("c1", "c2")


def test_one_row_alone_can_conflict():
    with pytest.raises(InfeasibleError, match=r"this one cannot hold:\n  c2: .*\nRelax it\.") as e:
        Polytope(Problem(["a", "b"], ["a <= 0.5", "a + b <= 0.9"]))
    assert e.value.conflict == ("c2",)


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
    assert rational(float(short)) == short
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


def test_means_that_differ_in_the_last_digit_do_not_tie():
    polytope = Polytope(Problem(2))
    means = np.array([0.5, 0.5 + 1e-15])
    assert means[0] < means[1]
    vertex = polytope.optimal_vertex(means)
    assert vertex.policy.tolist() == [0.0, 1.0]
    assert polytope.edges(vertex).gaps(means)[0] == pytest.approx(1e-15, rel=0.2)
    assert polytope.tied_policies(vertex, means) == []


def test_ties_that_floats_would_break():
    # 0.1 + 0.2 > 0.3 in floats.
    polytope = Polytope(Problem(3, ["a1 - a2 == 0"]))
    means = np.array([0.1, 0.2, 0.15])
    vertex = polytope.optimal_vertex(means)
    assert polytope.edges(vertex).gaps(means).tolist() == [0.0]
    assert len(polytope.tied_policies(vertex, means)) == 1


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
    assert polytope.tied_policies(vertex, np.array([3.0])) == []
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
    ties = polytope.tied_policies(vertex, means)
    assert len(ties) == 3
    assert sum(ties) + vertex.policy == pytest.approx(np.ones(4))


def test_number_of_ties_listed_is_limited():
    polytope = Polytope(Problem(50))
    means = np.zeros(50)
    vertex = polytope.optimal_vertex(means)
    ties = polytope.tied_policies(vertex, means)
    assert geometry.MAX_TIES <= len(ties) <= 49


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
            other = polytope.neighbour(vertex, edges, e)
            slack = np.concatenate([other, limit - rows @ other])
            assert slack.min() > -1e-9
            assert (slack < 1e-9).sum() >= polytope.dimension
            assert means @ other < means @ vertex.policy


# ------------------------------------------------------------ limits on many arms


def test_floors_on_many_arms_that_conflict():
    share = {a: 2 + a % 3 for a in range(80)}
    problem = Problem(80, [f"a{a + 1} >= {x}/100" for a, x in share.items()])
    with pytest.raises(InfeasibleError, match="these 26 cannot hold together") as error:
        Polytope(problem)
    named = [share[int(name[1:]) - 1] for name in error.value.conflict]
    least = sorted(share.values(), reverse=True)
    count = next(n for n in range(80) if sum(least[:n]) > 100)
    assert sum(named) > 100
    assert len(named) == count


def test_caps_on_many_arms_that_conflict():
    caps = [f"a{a + 1} <= 1/61" for a in range(60)]
    with pytest.raises(InfeasibleError) as error:
        Polytope(Problem(60, caps))
    assert len(error.value.conflict) == 60
    with pytest.raises(InfeasibleError, match="these 2 cannot hold together") as error:
        Polytope(Problem(60, [*(f"a{a + 1} <= 1/50" for a in range(60)), "a7 >= 1/40"]))
    assert error.value.conflict == ("c7", "c61")


def test_a_row_among_many_caps_that_conflicts():
    rows = [*(f"a{a + 1} <= 1/50" for a in range(60)), "a4 + a9 >= 1/20"]
    with pytest.raises(InfeasibleError, match="these 3 cannot hold together") as error:
        Polytope(Problem(60, rows))
    assert error.value.conflict == ("c4", "c9", "c61")


@pytest.mark.parametrize("size", [4, 6, 30])
def test_edges_where_no_arm_is_between_its_ends_are_pairs(size):
    polytope = Polytope(Problem(size, [f"a{a + 1} <= 2/{size}" for a in range(size)]))
    vertex = polytope.optimal_vertex(np.arange(size, 0.0, -1.0))
    edges = polytope.edges(vertex)
    expected = {
        tuple(float(c == rising) - float(c == falling) for c in range(size))
        for falling in range(size // 2)
        for rising in range(size // 2, size)
    }
    assert {tuple(row) for row in edges.dense(size).tolist()} == expected
    assert len(edges) == len(expected)


@pytest.mark.parametrize("digits", [1, 7, 15])
def test_edges_of_degenerate_vertices_are_their_exact_directions(digits):
    # Rows through the first arm alone; with many digits the whole numbers leave 64 bits.
    rng = np.random.default_rng(digits)
    rows = [np.round(rng.uniform(-1, 1, 6), digits) for _ in range(7)]
    rows = [row if row.mean() < row[0] else -row for row in rows]  # so there is room
    constraints = [Constraint(f"r{i}", row, -np.inf, row[0]) for i, row in enumerate(rows)]
    polytope = Polytope(Problem(6, constraints))
    vertex = polytope.optimal_vertex([100.0, *rng.normal(size=5)])
    edges = polytope.edges(vertex)
    assert vertex.shares == {0: 1}
    assert polytope.is_degenerate(vertex)
    assert len(edges) > 5
    expected = np.array([floats(row) for row in exact_edges(edges, 6)])
    assert edges.dense(6) == pytest.approx(expected, rel=1e-14, abs=0)
    for direction in exact_edges(edges, 6):
        assert sum(direction) == 0
        assert min(direction[1:]) >= 0
        used = [dot(tuple(rational(float(x)) for x in row), direction) for row in rows]
        assert max(used) <= 0
        # Four independent ones bind along an edge.
        assert sum(x == 0 for x in (*used, *direction[1:])) >= 4


def test_a_tiny_change_of_an_arm_keeps_its_sign():
    # Far below what floats are trusted with, so it is computed exactly.
    tiny = Constraint("c1", np.array([0.0, 1.0, 1e-11]), -np.inf, 0.5)
    polytope = Polytope(Problem(3, [tiny]))
    vertex = polytope.optimal_vertex([2.0, 3.0, 1.0])
    edges = polytope.edges(vertex)
    assert not polytope.is_degenerate(vertex)
    rows = {tuple(np.sign(row)): row for row in edges.dense(3).tolist()}
    assert rows[-1.0, -1.0, 1.0] == pytest.approx([-(1 - 1e-11), -1e-11, 1.0], rel=1e-12)
