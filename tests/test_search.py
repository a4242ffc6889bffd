"""Which policies `tilt` must rule out: against the definition, all vertices known."""

import functools
import itertools
import math

import numpy as np
import pytest

import simplexplore as sx
from nightly import crossed
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.seeding import streams
from simplexplore.exploration.vertex_table import VertexTable
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels import search
from simplexplore.kernels.episode import weakest_edge
from simplexplore.kernels.information import refresh
from simplexplore.kernels.records import (
    EDGES,
    GO_ON,
    PAIRS,
    POLICIES,
    PULLS,
    STOPPED,
    UNKNOWN_VERTEX,
    VERTEX,
    WARM,
)
from simplexplore.kernels.tilt import tilt_evidence
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.problem.problem import Problem

pytestmark = pytest.mark.usefixtures("bounds_once")

SHAPES = {
    "two rows": (5, ["a1 + a2 <= 0.5", "a3 + a4 <= 0.5"]),
    "a budget": (4, ["3*a1 + 2*a2 + a3 <= 1.5"]),
    "budget and caps": (4, ["3*a1 + 2*a2 + a3 <= 1.5", *(f"a{i} <= 0.6" for i in range(1, 5))]),
    "an equality": (5, ["a1 + a2 == 0.4", "a3 + 2*a4 <= 0.9"]),
}


def informed(problem, n, means, threshold="tilt"):
    """An engine that was told the sums of past data, at the vertex it would recommend."""
    engine = Engine(prepare(problem, "uniform", threshold))
    engine.begin(streams(0, range(1))[0])
    run, setting = engine.run, engine._setting
    run.n[:], run.mean[:] = n, means
    run.clipped[:] = np.clip(means, setting.lowest, setting.highest)
    run.integers[WARM], run.integers[PULLS] = 1, int(np.sum(n))
    refresh(setting, engine._arrays[0], run)
    while setting.slots.recommend(setting, *engine._arrays) == UNKNOWN_VERTEX:
        engine._is_answered(UNKNOWN_VERTEX)
    return engine


def decision(engine):
    """What the rule says."""
    with np.errstate(all="ignore"):
        while True:
            table, run, memory = engine._arrays
            weakest = weakest_edge(table, run)
            status = search.tilt(engine._setting, table, run, memory, weakest)
            if status != UNKNOWN_VERTEX:
                return status
            engine._is_answered(UNKNOWN_VERTEX)


def evidence(engine, v):
    """Of a direction, by the kernel that test_tilt.py checks."""
    setting, (_, run, memory) = engine._setting, engine._arrays
    used = np.flatnonzero(v)
    aside = memory.edge
    aside.arm[: len(used)], aside.v[: len(used)] = used, v[used]
    aside.first_entry[1], aside.offset[0] = len(used), 0.0
    with np.errstate(all="ignore"):
        statistic = search.statistic_aside(setting, run, memory)
        if statistic <= 0:
            return -math.inf
        return tilt_evidence(setting, aside, run, memory, 0, statistic, -math.inf, math.inf)


@functools.cache
def all_of(problem):
    """Every vertex: (policy, [(direction out of it, number of the neighbour)])."""
    polytope = Polytope(problem)
    table = VertexTable(polytope, polytope.optimal_vertex(np.zeros(polytope.size)))
    assert table.explore()
    arrays = table.arrays()
    found = []
    for number in range(len(table.vertices)):
        ways = []
        for edge in range(arrays.first_edge[number], arrays.first_edge[number + 1]):
            part = slice(arrays.first_entry[edge], arrays.first_entry[edge + 1])
            v = np.zeros(polytope.size)
            v[arrays.arm[part]] = arrays.v[part]
            ways.append((v, table.follow(edge)))
        found.append((table.policy(number), ways))
    return found


def by_the_definition(engine):
    """Whether to stop (searching), and whether every other policy is beaten."""
    setting, vertices = engine._setting, all_of(engine.plan.problem)
    beaten = []
    for _, ways in vertices:
        low = setting.log_policy + math.log(len(ways))
        beaten.append(any(evidence(engine, -v) >= low for v, _ in ways))
    here = next(i for i, (policy, _) in enumerate(vertices) if np.allclose(policy, engine.policy))
    met, waiting = {here}, [here]
    while waiting:
        for v, neighbour in vertices[waiting.pop()][1]:
            if neighbour not in met and evidence(engine, v) < setting.log_union:
                met.add(neighbour)
                waiting.append(neighbour)
    others = [i for i in range(len(vertices)) if i != here]
    return all(beaten[i] for i in met if i != here), all(beaten[i] for i in others)


@pytest.mark.parametrize(
    ("shape", "rewards"), crossed(SHAPES, [Gaussian(1.0), Bernoulli()]), ids=str
)
def test_stops_only_where_the_definition_does(shape, rewards):
    size, rows = SHAPES[shape]
    rng = np.random.default_rng(40)
    problem = Problem(size, rows, rewards, delta=0.1)
    stops = 0
    for _ in range(12):
        means = rng.random(size)
        n = np.floor(10 ** rng.uniform(2.5, 4.5) * (0.3 + rng.random(size)))
        if rewards.name == "bernoulli":
            means = np.round(means * n) / n
        engine = informed(problem, n, means)
        assert engine._setting.rule == POLICIES
        stopped = decision(engine) == STOPPED
        search_stops, all_beaten = by_the_definition(engine)
        sure = engine._setting.log_policy
        vertices = all_of(engine.plan.problem)
        own = next(ways for policy, ways in vertices if np.allclose(policy, engine.policy))
        if stopped:
            assert search_stops
            stops += 1
        elif all_beaten:
            assert min(evidence(engine, v) for v, _ in own) < sure
    assert 2 <= stops <= 11


def between(policy, low, high):
    """Arms at their upper ends, at their lower ends, and in between."""
    up, down = np.isclose(policy, high), np.isclose(policy, low)
    return set(np.flatnonzero(up)), set(np.flatnonzero(down)), set(np.flatnonzero(~up & ~down))


@pytest.mark.parametrize("cap", [0.4, 0.5, 0.3, 1.0])
def test_pairs_by_the_definition(cap, monkeypatch):
    size = 5
    rng = np.random.default_rng(41)
    rows = [f"a{i + 1} <= {cap}" for i in range(size)] + ["a1 >= 0.1"]
    for _ in range(5):
        engine = informed(Problem(size, rows), np.full(size, 900.0), rng.permutation(size) * 1.0)
        assert engine._setting.rule == PAIRS
        assert engine._setting.log_union == pytest.approx(math.log((size - 1) / 0.1))
        asked = set()

        def spy(*given, asked=asked):
            table, edge = given[1], given[4]
            part = slice(table.first_entry[edge], table.first_entry[edge + 1])
            v, arms = table.v[part], table.arm[part]
            asked.add((int(arms[v > 0][0]), int(arms[v < 0][0])))
            return math.inf

        monkeypatch.setattr(search, "tilt_evidence", spy)
        assert decision(engine) == STOPPED
        monkeypatch.undo()
        low = np.array([0.1, 0, 0, 0, 0])
        up, down, middle = between(engine.policy, low, np.full(size, cap))
        assert len(middle) <= 1
        wanted = set(itertools.product(up | middle, down | middle))
        assert asked == {(p, q) for p, q in wanted if p != q}


def test_pairs_tell_every_two_policies_apart():
    # For each truth there is one arm such that comparisons with it alone contradict every wrong x.
    rng = np.random.default_rng(42)
    for _ in range(100):
        size = int(rng.integers(2, 6))
        low, high = np.zeros(size), rng.integers(1, 4, size) / rng.choice([4, 5, 6])
        if high.sum() < 1:
            continue
        mu = rng.permutation(size).astype(float)

        def best(worth, low=low, high=high):
            policy, left = low.copy(), 1 - low.sum()
            for a in np.argsort(-worth):
                share = min(high[a] - low[a], left)
                policy[a] += share
                left -= share
            return policy

        y = best(mu)
        up, down, middle = between(y, low, high)
        pivot = next(iter(middle), None)
        if pivot is None:
            pivot = min(up, key=lambda a: mu[a])
        false = {(pivot, a) for a in up - {pivot}} | {(a, pivot) for a in down - {pivot}}
        assert all(mu[p] < mu[q] for p, q in false)
        for order in itertools.permutations(range(size)):
            x = best(np.array(order, dtype=float))
            if np.allclose(x, y):
                continue
            up, down, middle = between(x, low, high)
            asked = {(p, q) for p, q in itertools.product(up | middle, down | middle) if p != q}
            assert asked & false


def test_epsilon_and_many_dimensions_ask_every_edge():
    good_enough = Problem(3, ["a1 <= 0.5"], epsilon=0.1)
    assert Engine(prepare(good_enough, "uniform", "tilt"))._setting.rule == EDGES
    large = Problem(80, ["a1 + a2 <= 0.5"])
    assert Engine(prepare(large, "uniform", "tilt"))._setting.rule == EDGES


def test_what_was_ruled_out_once_stays_so():
    problem = Problem(3, ["a1 + a2 <= 0.9"], delta=0.1)
    engine = informed(problem, np.full(3, 400.0), [1.0, 0.4, 0.0])
    assert decision(engine) == STOPPED
    # Later data say less; the answer stands.
    run = engine.run
    run.mean[:] = run.clipped[:] = [0.5, 0.4, 0.3]
    run.integers[PULLS] += 1
    refresh(engine._setting, engine._arrays[0], run)
    assert decision(engine) == STOPPED
    fresh = informed(problem, np.full(3, 400.0), [0.5, 0.4, 0.3])
    assert decision(fresh) == GO_ON


@pytest.mark.parametrize(
    ("rewards", "means", "share"),
    [
        (sx.Gaussian(1.0), [1.0, 0.6, 0.2], 0.95),
        (sx.Bernoulli(), [0.8, 0.5, 0.3], 0.95),
        (sx.Poisson(), [3.0, 2.0, 1.0], 0.95),
        (sx.Bounded(0.0, 2.0), [1.6, 1.0, 0.6], 0.95),
        # Its mixture has the prior of some 16 samples, not far from what this takes.
        (sx.Gaussian(1.0, domain=(-1.0, 2.0)), [1.0, 0.6, 0.2], 1.05),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
@pytest.mark.parametrize("scenario", ["end-of-time", "anytime"])
def test_fewer_samples_than_mixture_and_no_errors(rewards, means, share, scenario):
    problem = Problem(3, ["a1 + a2 <= 0.9"], rewards, means=means, delta=0.1, scenario=scenario)
    tilts, mixture = (
        sx.simulate(problem, sampler="uniform", threshold=name, runs=200, workers=1)
        for name in ("tilt", "mixture")
    )
    # With delta = 0.1 and a proven rule 60 errors in 200 runs have probability below 1e-13.
    assert tilts.correct.sum() >= 140
    assert tilts.stopping_times.mean() < share * mixture.stopping_times.mean()


def test_tables_grow_for_a_search_and_nothing_changes():
    # Twins with tables that know every vertex, or only the start, take the same decisions.
    problem = Problem(5, SHAPES["two rows"][1], means=[1.0, 0.5, 0.4, 0.95, 0.8], delta=0.1)
    one = Engine(prepare(problem, "top-two", "tilt"))
    other = Engine(prepare(problem, "top-two", "tilt"))
    other.table.explore()
    other._forget_growth()
    seeds = streams(5, range(6))
    runs = [e.simulate(problem.means, np.ones(5), seeds, 10**6)[0].tolist() for e in (one, other)]
    assert runs[0] == runs[1]
    assert int(one.run.integers[VERTEX]) >= 0


def test_less_evidence_later_takes_nothing_back():
    engine = informed(Problem(3, ["a1 + a2 <= 0.9"], delta=0.1), np.full(3, 40.0), [0.5, 0.4, 0.3])
    table, run, memory = engine._arrays
    edge = int(table.first_edge[run.integers[VERTEX]])
    memory.looks[search.BEST, edge] = 20.0
    asked = search.is_ruled_out(engine._setting, table, run, memory, edge, 0, 50.0, -9.0, 60.0)
    assert not asked
    assert memory.looks[search.ASKED, edge] == run.integers[PULLS]
    assert memory.looks[search.BEST, edge] == 20.0
