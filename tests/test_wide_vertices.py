"""Caps that meet exactly leave a vertex an edge for every pair of arms.

Walks leap over such vertices and tables of them are emptied. Here few edges are called many, so
that small problems, which need neither, tell what must come out.
"""

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.exploration import evidence as of_run
from simplexplore.exploration import vertex_table
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.moment import moment_of
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.seeding import streams
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.records import TOLD

MEANS = np.array([0.4, 1.0, 0.1, 0.8, 0.6, 0.0])
CAPPED = sx.Problem(6, ["each <= 1/3"], means=MEANS)


def runs(numbers, threshold="tilt"):
    """Pulls, whether right, and counts of some runs, all of one engine."""
    engine = Engine(prepare(CAPPED, "top-two", threshold=threshold, delta=0.2))
    seeds = streams(1, range(20))[list(numbers)]
    pulls, vertices, counts = engine.simulate(MEANS, np.ones(6), seeds, 3_000)
    right = np.isin(vertices, list(engine.right_answers(MEANS)))
    return pulls.tolist(), right.tolist(), counts.tolist()


def few(monkeypatch, size):
    """Call two edges many, and a table of so many bytes large; a list grows with what is done."""
    monkeypatch.setattr(vertex_table, "WIDE", 2)
    monkeypatch.setattr(vertex_table, "MOST_WIDE_BYTES", size)
    done = []
    for name in ("_enter", "_empty"):
        method = getattr(Engine, name)

        def noted(engine, *vertex, name=name, method=method):
            done.append(name)
            return method(engine, *vertex)

        monkeypatch.setattr(Engine, name, noted)
    return done


def test_edges_are_the_pairs_of_a_full_arm_and_an_empty_one():
    polytope = Polytope(sx.Problem(10, ["0.05 <= each <= 0.15"]))
    vertex = polytope.canonical(polytope.optimal_vertex(np.arange(10.0)))
    edges = polytope.edges(vertex)
    found = [edges.exact(e) for e in range(len(edges))]
    pairs = {(min(x, key=x.get), max(x, key=x.get)) for x in found}
    assert len(found) == 25
    assert pairs == {(a, b) for a in range(5, 10) for b in range(5)}
    assert all(sorted(x.values()) == [-1, 1] for x in found)
    assert edges.dense(10).tolist() == [[float(x.get(a, 0)) for a in range(10)] for x in found]


def test_rows_that_do_not_bind_leave_these_edges_as_they_are():
    means = np.array([0.3, 2.0, 0.1, 1.0, 0.0, 3.0, 1.5, 0.2])
    alone, beside = (
        Polytope(sx.Problem(8, ["0.05 <= each <= 0.2", *rows]))
        for rows in ([], ["a1 + 2*a2 + 3*a6 <= 1.06"])
    )
    expected, found = (x.edges(x.canonical(x.optimal_vertex(means))) for x in (alone, beside))
    assert len(found) == 16
    assert found.index.tolist() == expected.index.tolist()
    assert found.value.tolist() == expected.value.tolist()
    # With one that binds there, too, no edge is among them that goes on along it.
    binding = Polytope(sx.Problem(8, ["0.05 <= each <= 0.2", "a1 + 2*a2 + 3*a6 <= 1.05"]))
    vertex = binding.canonical(binding.optimal_vertex(means))
    assert vertex.policy.tolist() == alone.optimal_vertex(means).policy.tolist()
    rate = binding.edges(vertex).dense(8) @ [1, 2, 0, 0, 0, 3, 0, 0]
    assert (rate <= 1e-12).all()


def test_pairs_are_laid_out_as_any_other_edges_are():
    polytope = Polytope(sx.Problem(9, ["0.02 <= each <= 0.225"]))
    tables = []
    for in_general in (False, True):
        table = vertex_table.VertexTable(polytope, polytope.optimal_vertex(np.arange(9.0)))
        for means in (np.arange(9.0)[::-1], np.arange(9.0) % 4):
            vertex = polytope.canonical(polytope.optimal_vertex(means))
            edges = polytope.edges(vertex)
            assert edges.pairs is not None
            table.add(vertex, edges.only(np.ones(len(edges), bool)) if in_general else edges)
        tables.append(table.arrays())
    for one, other in zip(*tables, strict=True):
        assert np.array_equal(one, other)


def test_leaps_end_where_walks_do(monkeypatch):
    expected = runs(range(20))
    assert sum(expected[1]) >= 15
    done = few(monkeypatch, 2**40)
    assert runs(range(20)) == expected
    assert set(done) == {"_enter"}


def test_runs_with_emptied_tables_are_the_same(monkeypatch):
    expected = runs(range(20), "gk16")
    done = few(monkeypatch, 1)
    # Of edges nothing is kept but what `tilt` found: with another threshold nothing changes.
    assert runs(range(20), "gk16") == expected
    assert done.count("_empty") > 20


def test_runs_with_emptied_tables_do_not_depend_on_others(monkeypatch):
    done = few(monkeypatch, 2_000)
    together = runs(range(8))
    assert done.count("_empty") > 8
    for number in (0, 3, 7):
        alone = runs([number])
        assert [x[number] for x in together] == [x[0] for x in alone]


@pytest.mark.parametrize("size", [1, 2_000, 2**40])
def test_a_state_is_restored_after_leaps_and_in_an_emptied_table(monkeypatch, size):
    few(monkeypatch, size)
    plan = prepare(CAPPED, "top-two", threshold="tilt", delta=1e-6)
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 6, 120)
    rewards = MEANS[arms] + rng.normal(size=120)

    def told(engine, part):
        engine.fold(np.full(len(arms[part]), TOLD), arms[part].copy(), rewards[part])
        return {name: array.tobytes() for name, array in engine.state().items()}

    def fresh():
        engine = Engine(plan)
        engine.forget(streams(0, range(1))[0])
        engine.pending[:] = 1e6  # pulls that will be answered
        return engine

    engine, other = fresh(), Engine(plan)
    told(engine, slice(70))
    assert len(engine.state()["followed"]) > 2
    other.restore(engine.state())
    assert other.policy.tolist() == engine.policy.tolist()
    assert told(other, slice(70, None)) == told(engine, slice(70, None))


def test_of_very_many_edges_the_weakest_are_listed(monkeypatch):
    engine = Engine(prepare(CAPPED, "top-two", threshold="tilt", delta=1e-6))
    arm = engine.begin(streams(0, range(1))[0])
    for _ in range(30):
        arm = engine.play(arm, float(MEANS[arm]), 1.0)
    evidence, needed = engine.evidence()
    directions, weakest = engine.directions(), np.sort(np.argsort(engine.run.value[:9])[:2])
    assert len(evidence) == 9
    assert moment_of(engine).regret_bound < np.inf
    monkeypatch.setattr(of_run, "MOST_NUMBERS", 53)  # nine edges of six arms have one more
    monkeypatch.setattr(of_run, "MOST_LISTED", 2)
    listed = engine.evidence()
    assert listed[0].tolist() == evidence[weakest].tolist()
    assert listed[1].tolist() == needed[weakest].tolist()
    assert engine.directions().tolist() == directions[weakest].tolist()
    assert moment_of(engine).confidence == 0
    assert moment_of(engine).regret_bound == np.inf
