"""The table of policies that compiled code walks on, against the exact twin."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import reference_polytope
from engines import engine_for
from instances import TRUTH
from nightly import NIGHTLY, examples
from simplexplore import InfeasibleError, Problem, TooLargeError
from simplexplore.exploration.vertex_table import VertexTable, best_arm_table
from simplexplore.geometry.polytope import Polytope
from strategies import systems

HYPOTHESIS = examples(15)


def polytope_of(name):
    truth = TRUTH[name]
    return Polytope(Problem(len(truth["mu"]), (truth["B"], truth["c"])))


def full_table(polytope, means):
    table = VertexTable(polytope, polytope.optimal_vertex(means))
    assert table.explore()
    return table


def described(table):
    """Every vertex with its edges, in their order, and where they lead: free of numbers."""
    arrays = table.arrays
    found = {}
    for number, vertex in enumerate(table.vertices):
        edges = []
        for e in range(arrays.first_edge[number], arrays.first_edge[number + 1]):
            entries = slice(arrays.first_entry[e], arrays.first_entry[e + 1])
            leads = table.vertices[arrays.following[e]].zero
            edges.append((arrays.arm[entries].tolist(), arrays.v[entries].tolist(), leads))
        found[vertex.zero] = (vertex.policy.tolist(), edges)
    return found


@pytest.mark.parametrize("name", ["exp1", "exp2", "ptns8", "gauss_app1", "bern_app1", "bern_app2"])
def test_same_table_from_any_start(name):
    polytope = polytope_of(name)
    first = full_table(polytope, np.zeros(polytope.size))
    expected = described(first)
    assert len(expected) == TRUTH[name]["vertices"]
    for vertex in first.vertices[1 :: 1 if NIGHTLY else 4]:
        table = VertexTable(polytope, vertex)
        assert table.explore()
        assert described(table) == expected


def test_same_table_from_another_polytope():
    # Nothing depends on what a polytope was asked before.
    rng = np.random.default_rng(5)
    expected = described(full_table(polytope_of("gauss_app1"), np.zeros(7)))
    polytope = polytope_of("gauss_app1")
    for _ in range(20):
        polytope.edges(polytope.optimal_vertex(rng.normal(size=7)))
    assert described(full_table(polytope, rng.normal(size=7))) == expected


@HYPOTHESIS
@given(systems(min_size=2, max_size=5, max_rows=3))
def test_vertices_and_edges_are_all_there(system):
    try:
        polytope = Polytope(system.problem())
    except InfeasibleError:
        pytest.fail("the system is feasible")
    if polytope.dimension == 0:
        return
    table = full_table(polytope, np.zeros(system.size))
    all_sides = system.sides()
    exact = reference_polytope.vertices(all_sides, system.size)
    found = {
        tuple(vertex.shares.get(a, Fraction(0)) for a in range(system.size))
        for vertex in table.vertices
    }
    assert found == set(exact)
    arrays = table.arrays
    for number, vertex in enumerate(table.vertices):
        point = tuple(vertex.shares.get(a, Fraction(0)) for a in range(system.size))
        count = arrays.first_edge[number + 1] - arrays.first_edge[number]
        assert count == len(reference_polytope.edge_directions(all_sides, point))


def needed_union(system):
    """Supports of edges, and M of the union: those, or vertices less one; by enumeration."""
    all_sides = system.sides()
    points = reference_polytope.vertices(all_sides, system.size)
    supports = {
        frozenset(a for a, x in enumerate(direction) if x)
        for point in points
        for direction in reference_polytope.edge_directions(all_sides, point)
    }
    return supports, min(len(supports), len(points) - 1)


@HYPOTHESIS
@given(systems(min_size=2, max_size=5, max_rows=3))
def test_union_size(system):
    polytope = Polytope(system.problem())
    if polytope.dimension == 0:
        return
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(system.size)))
    assert np.exp(table.log_union()) == pytest.approx(needed_union(system)[1])


@HYPOTHESIS
@given(systems(min_size=2, max_size=5, max_rows=2, limits=True))
def test_union_size_with_limits_on_arms(system):
    """Counted or not, it is at least what the union bound needs."""
    polytope = Polytope(system.problem())
    if polytope.dimension == 0:
        return
    supports, needed = needed_union(system)
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(system.size)))
    assert np.exp(table.log_union()) == pytest.approx(needed)
    table.explore = lambda *_, **__: False
    log_size = table.log_union()
    assert np.exp(log_size) >= needed - 1e-9
    if polytope.is_limited:  # then it counts supports, of which there are at most so many
        assert np.exp(log_size) >= len(supports) - 1e-9
        assert max(map(len, supports)) <= len(polytope.form.rows) + 1


@pytest.mark.parametrize(("size", "budget", "expected"), [(40, 0, 780), (40, 1, 10_660)])
def test_union_size_of_caps_on_every_arm(size, budget, expected):
    caps = [f"a{i + 1} <= {2 / size}" for i in range(size)]
    costs = " + ".join(f"{1 + i % 3} * a{i + 1}" for i in range(size))
    polytope = Polytope(Problem(size, caps + [f"{costs} <= 1.9"] * budget))
    table = VertexTable(polytope, polytope.optimal_vertex(np.arange(size)))
    assert np.exp(table.log_union()) == pytest.approx(expected)


def test_union_size_beyond_counting():
    polytope = polytope_of("imdb_sigma1.33")
    table = full_table(polytope, np.zeros(12))
    counted = np.log(len(table.vertices) - 1)
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(12)))
    table.explore = lambda *_, **__: False
    log_size = table.log_union()
    assert log_size >= counted
    # sum over j of C(3, j) C(12, j + 1), or with the total counted among the rows.
    assert 1365 - 1e-6 <= np.exp(log_size) <= 4368 + 1e-6


def test_explore_stops_at_its_limit():
    polytope = polytope_of("imdb_sigma1.33")
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(12)))
    assert not table.explore(limit=20)
    assert 20 < len(table.vertices) < 74
    assert table.explore()
    assert len(table.vertices) == 74


def test_explore_has_a_budget():
    # 15 arms and 30 rows took half a minute until there were too many vertices to count.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 15)).round(2)
    polytope = Polytope(Problem(15, (rows, (rows.mean(axis=1) + 0.1).round(2))))
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(15)))
    assert not table.explore()


def across_exactly(polytope, vertex, direction):
    """Shares where an edge ends and rows that bind there, every number a fraction."""
    form, arms = polytope.form, range(polytope.size)
    shares = {a: vertex.shares.get(a, Fraction(0)) for a in arms}
    ends = [(form.lower[a] - shares[a]) / x for a, x in direction.items() if x < 0]
    ends += [
        (form.upper[a] - shares[a]) / x
        for a, x in direction.items()
        if x > 0 and form.upper[a] is not None
    ]
    room = {i: form.exact_bound[i] - form.used(i, shares) for i in form.general.tolist()}
    change = {i: form.used(i, direction) for i in room}
    ends += [room[i] / x for i, x in change.items() if x > 0]
    step = min(ends)
    shares = {a: shares[a] + step * direction.get(a, 0) for a in arms}
    return shares, {i for i in room if room[i] == step * change[i]}


@pytest.mark.parametrize("off", [0.0, 1e-7, 1e-10, 1e-12])
def test_edges_end_where_fractions_say(off):
    # Rows that meet in one point, or miss each other by less than floats can tell.
    rng = np.random.default_rng(14)
    checked = 0
    for _ in range(12):
        size = int(rng.integers(4, 7))
        point = rng.integers(1, 4, size) / 8
        point /= point.sum()
        rows = rng.integers(-2, 4, size=(6, size)).astype(float)
        bounds = rows @ point + rng.choice([0.0, 0.0, 0.1], 6) + off * rng.integers(0, 3, 6)
        polytope = Polytope(Problem(size, (rows, bounds)))
        if polytope.dimension == 0:
            continue
        table = VertexTable(polytope, polytope.optimal_vertex(rng.normal(size=size)))
        for number in range(20):
            if number == len(table.vertices):
                break
            vertex, edges = table.vertices[number], table.edges[number]
            for e in range(len(edges)):
                shares, binding = across_exactly(polytope, vertex, edges.exact(e))
                found, zero, slacks = polytope.end_of_edge(vertex, edges, e)
                assert {a: x for a, x in found.items() if x} == {
                    a: x for a, x in shares.items() if x
                }
                assert zero == polytope.form.zero_at(shares, binding, range(size))
                assert not zero.intersection(slacks)
                checked += 1
            table.follow(int(table.arrays.first_edge[number]))
    assert checked > 100


@pytest.mark.parametrize("seed", range(6))
def test_vertices_at_ends_of_edges_are_those_of_their_basis(seed):
    rng = np.random.default_rng([seed, 15])
    size = int(rng.integers(5, 9))
    # Equal rows, equal limits and round numbers make many vertices degenerate.
    rows = rng.integers(0, 3, size=(2, size)).astype(float)
    polytope = Polytope(
        Problem(
            size,
            [
                *(f"a{a} <= {x}" for a, x in enumerate(rng.choice([0.25, 0.5, 0.3], size), 1)),
                *(f"a{a} >= {x}" for a, x in enumerate(rng.choice([0.0, 0.05], size), 1)),
                *(
                    " + ".join(f"{x}*a{a}" for a, x in enumerate(row, 1)) + " <= 1.25"
                    for row in rows.tolist()
                ),
            ],
        )
    )
    form = polytope.form
    table = VertexTable(polytope, polytope.optimal_vertex(rng.normal(size=size)))
    pivoted = 0
    for number in range(25):
        vertex, edges = table.vertices[number], table.edges[number]
        for e in range(len(edges)):
            near = polytope.adjacent_vertex(vertex, edges, e)
            anew = form.vertex(near.basis, near.at_upper)
            assert near == anew == polytope.canonical(anew)
            assert list(near.shares.items()) == list(anew.shares.items())
            assert near.policy.tolist() == anew.policy.tolist()
            pivoted += len(near.zero) > polytope.dimension
            table.follow(int(table.arrays.first_edge[number]) + e)
    assert pivoted > 20


def test_following_an_edge_twice_adds_nothing():
    polytope = polytope_of("exp1")
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(5)))
    number = table.follow(0)
    size = len(table.vertices)
    assert table.follow(0) == number
    assert table.add(table.vertices[number]) == number
    assert len(table.vertices) == size


def test_edges_by_arm_are_the_same_edges():
    polytope = polytope_of("gauss_app1")
    full = full_table(polytope, np.zeros(7))
    table = full.arrays
    for number in range(len(full.vertices)):
        first, last = table.first_edge[number : number + 2]
        by_edge = {
            (int(table.arm[k]), e - first, float(table.v[k]))
            for e in range(first, last)
            for k in range(table.first_entry[e], table.first_entry[e + 1])
        }
        by_arm = {
            (arm, int(table.column_edge[k]), float(table.column_v[k]))
            for arm in range(7)
            for k in range(table.first_column[number, arm], table.first_column[number, arm + 1])
        }
        assert by_arm == by_edge


def test_losses_point_away_from_the_policy():
    polytope = polytope_of("gauss_app1")
    mu = np.array(TRUTH["gauss_app1"]["mu"])
    table = full_table(polytope, mu).arrays
    for e in range(table.first_edge[1]):
        entries = slice(table.first_entry[e], table.first_entry[e + 1])
        assert table.v[entries] @ mu[table.arm[entries]] > 0
        assert abs(table.v[entries].sum()) < 1e-12


def test_best_arm_table():
    table = best_arm_table(4, np.arange(4))
    assert table.first_edge[:5].tolist() == [0, 3, 6, 9, 12]  # room to grow follows
    for arm in range(4):
        others = []
        for e in range(table.first_edge[arm], table.first_edge[arm + 1]):
            entries = slice(table.first_entry[e], table.first_entry[e + 1])
            pair = dict(zip(table.arm[entries].tolist(), table.v[entries].tolist(), strict=True))
            assert pair.pop(arm) == 1.0
            (other,) = pair
            assert pair[other] == -1.0
            others.append(other)
        assert others == [b for b in range(4) if b != arm]


def test_best_arm_table_is_the_simplex():
    polytope = Polytope(Problem(4))
    simplex = full_table(polytope, np.zeros(4))
    arrays, pairs = simplex.arrays, best_arm_table(4, np.arange(4))
    for number, vertex in enumerate(simplex.vertices):
        arm = int(np.argmax(vertex.policy))

        def edges(table, i):
            return {
                tuple(sorted(zip(table.arm[s].tolist(), table.v[s].tolist(), strict=True)))
                for e in range(table.first_edge[i], table.first_edge[i + 1])
                for s in [slice(table.first_entry[e], table.first_entry[e + 1])]
            }

        assert edges(arrays, number) == edges(pairs, arm)


def test_a_table_without_room_is_refused_before_it_is_made():
    """Every pair of 12,000 arms is an edge of 96 bytes: 13.8 thousand million of them."""
    problem = Problem(12_000)
    tracemalloc.start()
    with pytest.raises(TooLargeError, match=r"12,000 arms .* a table of 12.9 GiB; at most 2 GiB"):
        engine_for(problem, "ptns", threshold="mixture")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**29  # room for four million edges is reserved, though not used


def test_the_last_entry_says_how_many_edges_are_known():
    """A run forgets what the one before knew of so many edges, however much room there is."""
    polytope = polytope_of("imdb_sigma1.33")
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(polytope.size)))
    for edge in range(30):
        table.follow(edge)
        known = sum(len(table.edges[vertex]) for vertex in range(len(table.vertices)))
        assert table.arrays.first_edge[-1] == known
    assert len(table.arrays.first_edge) > len(table.vertices) + 1


def test_a_run_begins_with_no_evidence():
    problem = Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.8"])
    engine = engine_for(problem, "top-two", threshold="tilt")
    engine.workspace.follow(np.arange(engine.workspace.known_edges))
    looks = engine.run.looks
    looks[:, : engine.workspace.known_edges] = 1.0  # what a run before this one has found
    assert looks.any()
    engine.begin(np.arange(8, dtype=np.uint64).reshape(2, 4) + 1)
    assert not looks.any()
