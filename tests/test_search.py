"""Which policies `tilt` must rule out: against the definition, all vertices known."""

import functools
import itertools
import math

import numpy as np
import pytest

import simplexplore as sx
from engines import engine_for, follow, inform, recommended
from instances import drawn
from nightly import crossed
from simplexplore import Bernoulli, Gaussian, Problem
from tilting import Comparison

SHAPES = {
    "two rows": (5, ["a1 + a2 <= 0.5", "a3 + a4 <= 0.5"]),
    "a budget": (4, ["3*a1 + 2*a2 + a3 <= 1.5"]),
    "budget and caps": (4, ["3*a1 + 2*a2 + a3 <= 1.5", *(f"a{i} <= 0.6" for i in range(1, 5))]),
    "an equality": (5, ["a1 + a2 == 0.4", "a3 + 2*a4 <= 0.9"]),
}


def informed(problem, n, means):
    """An engine that was told the sums of past data, and whether they are enough."""
    engine = engine_for(problem, "uniform", threshold="tilt")
    return engine, inform(engine, n, means)


def evidence(engine, v):
    """Of a direction, by the kernel that test_tilt.py checks."""
    used, run = np.flatnonzero(v), engine.run
    rewards = engine.plan.problem.rewards
    asked = Comparison(rewards, v[used], run.n[used], rewards.from_unit(run.mean[0, used]))
    return asked.evidence() if asked.statistic > 0 else -math.inf


@functools.cache
def all_of(problem):
    """Every vertex: (policy, [(direction out of it, number of the neighbour)])."""
    table = engine_for(problem, "uniform", threshold="tilt").workspace.table
    assert table.explore()
    arrays = table.arrays
    found = []
    for number in range(len(table.vertices)):
        ways = []
        for edge in range(arrays.first_edge[number], arrays.first_edge[number + 1]):
            part = slice(arrays.first_entry[edge], arrays.first_entry[edge + 1])
            v = np.zeros(problem.size)
            v[arrays.arm[part]] = arrays.v[part]
            ways.append((v, table.follow(edge)))
        found.append((table.policy(number), ways))
    return found


def by_the_definition(engine):
    """Whether to stop (searching), and whether every other policy is beaten."""
    config, vertices = engine.workspace.config, all_of(engine.plan.problem)
    beaten = []
    for _, ways in vertices:
        low = config.log_policy + math.log(len(ways))
        beaten.append(any(evidence(engine, -v) >= low for v, _ in ways))
    here = next(i for i, (policy, _) in enumerate(vertices) if np.allclose(policy, engine.policy))
    met, waiting = {here}, [here]
    while waiting:
        for v, neighbour in vertices[waiting.pop()][1]:
            if neighbour not in met and evidence(engine, v) < config.log_union:
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
        engine, stopped = informed(problem, n, means)
        search_stops, all_beaten = by_the_definition(engine)
        sure = engine.workspace.config.log_policy
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
def test_pairs_by_the_definition(cap):
    """It stops where each arm that could give a share beats each that could take it, surely."""
    size, low = 5, np.array([0.1, 0, 0, 0, 0])
    rng = np.random.default_rng(41)
    rows = [f"a{i + 1} <= {cap}" for i in range(size)] + ["a1 >= 0.1"]
    level = math.log((size - 1) / 0.1)
    stops = 0
    for _ in range(12):
        means = rng.permutation(size) * 1.0
        engine, stopped = informed(Problem(size, rows), rng.integers(10, 60, size), means)
        up, down, middle = between(engine.policy, low, np.full(size, cap))
        assert len(middle) <= 1
        pairs = {(p, q) for p, q in itertools.product(up | middle, down | middle) if p != q}
        found = [evidence(engine, np.eye(size)[p] - np.eye(size)[q]) for p, q in pairs]
        assert stopped == (min(found) >= level)
        stops += stopped
    assert 2 <= stops <= 10


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
    one, other = (engine_for(problem, "top-two", threshold="tilt") for _ in range(2))
    known = 0
    while known < other.workspace.known_edges:
        known = other.workspace.known_edges
        other.workspace.follow(np.arange(known))
    assert len(other.workspace.table.vertices) > len(one.workspace.table.vertices)
    for seed in range(6):
        runs = [follow(engine, drawn(problem, 3000, seed), 3000, seed) for engine in (one, other)]
        assert runs[0] == runs[1]
        assert one.policy.tolist() == other.policy.tolist()
    assert recommended(one) >= 0
