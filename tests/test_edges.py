"""Edges against enumeration in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from reference_polytope import (
    active_sides,
    dot,
    edge_directions,
    exact_edges,
    exact_policy,
    floats,
    step_length,
    vertices,
)
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational
from strategies import exact_means, systems

HYPOTHESIS = examples(20)
LIMITED = systems(max_size=5, max_rows=2, limits=True)


def outward(all_sides, point):
    """Means for which a vertex is the only optimum: the sum of its active rows."""
    return tuple(
        sum((side.coefficients[a] for side in active_sides(all_sides, point)), Fraction(0))
        for a in range(len(point))
    )


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
