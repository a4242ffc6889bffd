"""Edges against enumeration in fractions, and against closed forms where they are many."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples, nightly
from optimum import Polytope
from reference_polytope import (
    active_sides,
    cone_rays,
    dot,
    edge_directions,
    exact_edges,
    exact_policy,
    floats,
    step_length,
    vertices,
)
from simplexplore import Constraint, Problem, TooLargeError
from simplexplore.geometry.faces import simplices
from strategies import exact_means, systems


def as_written(x):
    """The decimal number that a float was written as."""
    return Fraction(repr(float(x)))


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
            assert polytope.adjacent_vertex(vertex, edges, e).policy == pytest.approx(
                floats(other), abs=1e-12
            )
            adjacent = polytope.adjacent_vertex(vertex, edges, e)
            assert exact_policy(adjacent, system.size) == other


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
    ratios = []
    for e in range(len(edges)):
        direction = edges.exact(e)
        ratios.append(abs(direction.get(0, Fraction(0)) / direction.get(2, Fraction(1))))
    assert abs(as_written(tiny)) in ratios
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
            exact = -sum(as_written(x) * d for x, d in zip(means, direction, strict=True))
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


def test_edges_where_a_basic_arm_is_at_its_cap():
    # Caps are named before floors, so that the first arm at its cap completes the basis.
    polytope = Polytope(Problem(4, ["each <= 0.4", *(f"a{a} >= 0.1" for a in range(1, 5))]))
    vertex = polytope.canonical(polytope.optimal_vertex([4.0, 3.0, 2.0, 1.0]))
    assert vertex.policy.tolist() == [0.4, 0.4, 0.1, 0.1]
    assert vertex.basis == (0,)
    expected = {(-1.0, 0, 1, 0), (-1, 0, 0, 1), (0, -1, 1, 0), (0, -1, 0, 1)}
    assert {tuple(row) for row in polytope.edges(vertex).dense(4).tolist()} == expected


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
        used = [dot(tuple(as_written(x) for x in row), direction) for row in rows]
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


# ------------------------------------------------------------ cones at degenerate vertices


def cone_at_one_arm(rows):
    """The vertex at the first arm, where y >= 0 and rows y >= 0 of the other arms bind."""
    rows = np.asarray(rows, dtype=float)
    size = rows.shape[1] + 1
    below = np.column_stack([np.zeros(len(rows)), -rows])
    polytope = Polytope(Problem(size, (below, np.zeros(len(rows)))))
    vertex = polytope.optimal_vertex([1.0] + [0.0] * (size - 1))
    assert vertex.shares == {0: 1}
    return polytope.edges(vertex)


def rays_at_one_arm(rows):
    """Directions of the other arms, the first positive entry scaled to 1."""
    edges = cone_at_one_arm(rows)
    found = []
    for e in range(len(edges)):
        ray = edges.exact(e)
        entries = [ray.get(c, Fraction(0)) for c in range(1, len(rows[0]) + 1)]
        assert ray[0] == -sum(entries)
        found.append(tuple(x / next(filter(None, entries)) for x in entries))
    assert len(set(found)) == len(found)
    return set(found)


@st.composite
def small_cones(draw):
    """Rows that leave the vertex an optimum, now and then repeated, of small or long numbers."""
    size = draw(st.integers(2, 5))
    largest = draw(st.sampled_from([2, 2, 10**9]))
    row = st.lists(st.integers(-largest, largest), min_size=size, max_size=size).filter(any)
    rows = draw(st.lists(row, min_size=1, max_size=4))
    if draw(st.booleans()):
        rows.append(draw(st.sampled_from(rows)))
    return rows


@examples(60)
@given(small_cones())
def test_edges_of_a_cone_are_those_of_all_subsets(rows):
    assert rays_at_one_arm(rows) == cone_rays(len(rows[0]), rows)


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (2, 0), (2, 1), (3, 2)])
def test_edges_of_arms_that_are_copies(count, seed):
    """Eleven arms of each kind: an edge of kinds is one of every choice of their copies."""
    kinds, copies = 5, 11
    rows = np.random.default_rng(seed).integers(-4, 5, (count, kinds))
    edges = cone_at_one_arm(np.repeat(rows, copies, axis=1))
    found = Counter()
    for e in range(len(edges)):
        ray = {(c - 1) // copies: x for c, x in edges.exact(e).items() if c}
        assert len(ray) == len(edges.exact(e)) - 1  # no two copies of one kind
        first = ray[min(ray)]
        found[tuple(ray.get(kind, 0) / first for kind in range(kinds))] += 1
    expected = cone_rays(kinds, rows.tolist())
    assert found == {ray: copies ** sum(x > 0 for x in ray) for ray in expected}


def test_edges_where_25_rows_meet():
    # {(y, z) >= 0 : y_i >= z_j}: each y_i alone, and all of y with any nonempty part of z.
    n = 5
    rows = [
        [int(c == i) - int(c == n + j) for c in range(2 * n)] for i in range(n) for j in range(n)
    ]
    alone = {tuple(int(c == i) for c in range(2 * n)) for i in range(n)}
    together = {(1,) * n + part for part in itertools.product((0, 1), repeat=n) if any(part)}
    found = rays_at_one_arm(rows)
    assert len(found) == n + 2**n - 1
    assert found == alone | together


def test_too_many_edges_are_refused_before_memory_is_asked_for():
    words = r"2002 constraints bind there, where 2001 would do, and it has more than [\d,]+ edges"
    with pytest.raises(TooLargeError, match=words):
        cone_at_one_arm([[1] * 1001 + [-1] * 1000])


@nightly
def test_edges_that_take_too_many_steps_are_refused():
    rows = np.random.default_rng(0).integers(-3, 4, (6, 30))
    with pytest.raises(TooLargeError, match=r"36 constraints bind there, where 30 would do.*steps"):
        cone_at_one_arm(rows)


# ------------------------------------------------------------ faces


@pytest.mark.parametrize(
    ("size", "rows", "counts"),
    [
        (4, ["each <= 0.5"], [(12, 2), (8, 3)]),  # an octahedron
        (5, [], [(10, 2), (10, 3)]),
        (5, ["a1 + a2 == 0.5", "a3 + a4 + a5 == 0.5"], [(9, 2), (2 + 3 * 2, 3)]),  # a prism
        (2, [], [(1, 2), (1, 2)]),
        (2, ["a1 == 0.5"], [(1, 1), (1, 1)]),
    ],
)
def test_faces_of_known_bodies(size, rows, counts):
    polytope = Polytope(Problem(size, rows))
    assert [simplices(polytope, n).cells.shape for n in (1, 2)] == counts
