"""Uncompiled kernels on lists: the bits, the moments and the answers of those on arrays."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simplexplore as sx
from nightly import examples
from simplexplore.exploration.engines import engine_of
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.seeding import streams
from simplexplore.kernels import events
from simplexplore.kernels.lists import MANY, Lists
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, LATE, TOLD

ARMS = ["a", "b", "c", "d"]
ROWS = {"first": "a + b <= 0.5", "second": "c + d <= 0.7"}
DOSE = {"limit": "<= 0.3", "sigma": 0.5, "tolerance": 0.1}
CASES = {
    "gaussian": ({}, "top-two", "tilt"),
    "gaussian, anytime": ({"scenario": "anytime"}, "top-two", "tilt"),
    "gaussian, far": ({"rewards": sx.Gaussian(1e-3)}, "ctns", "mixture"),
    "gaussian, a domain": ({"rewards": sx.Gaussian(1.0, domain=(-1, 2))}, "cge", "kk21"),
    "gaussian, good enough": ({"epsilon": 0.2}, "top-two", "tilt"),
    "gaussian, a budget": ({"stop_when": {"budget": 90}}, "top-two", "tilt"),
    "bernoulli": ({"rewards": sx.Bernoulli()}, "top-two", "tilt"),
    "bernoulli, anytime": ({"rewards": sx.Bernoulli(), "scenario": "anytime"}, "ptns", "gk16"),
    "poisson": ({"rewards": sx.Poisson()}, "top-two", "tilt"),
    "bounded": ({"rewards": sx.Bounded(0, 2)}, "top-two", "tilt"),
    "unknown sigma": ({"rewards": sx.Gaussian("unknown")}, "top-two", "tilt"),
    "measured": ({"epsilon": 0.3, "measured": {"dose": DOSE}}, "top-two", "tilt"),
    "measured, unknown sigma": (
        {"epsilon": 0.3, "measured": {"dose": {**DOSE, "sigma": "unknown"}}},
        "ctns",
        "tilt",
    ),
}


def engine_for(name, seed=0):
    more, sampler, threshold = CASES[name]
    problem = sx.Problem(ARMS, ROWS, delta=0.3, **more)
    engine = engine_of(prepare(problem, sampler, threshold))
    engine.forget(streams(seed, range(1))[0])
    engine._stopwatch.LONG = math.inf  # it stays uncompiled
    return engine


def rewards_for(name, rng, count, size):
    """Rewards that decide soon, or never; often the same ones, for ties and means at the ends."""
    if name.startswith("bernoulli"):
        return (rng.random(count) < size).astype(float)
    if name.startswith("poisson"):
        return rng.poisson(3 * size, count).astype(float)
    if name == "bounded":
        return rng.choice([0.0, 2.0 * size, 2.0], count)
    far = 1e6 if "far" in name else 0.0
    return far + size * rng.normal(size=count) + rng.choice([0.0, 3.0], count)


def journal(name, seed, count, size):
    """Kinds, arms, rewards and measurements, in an order that makes sense."""
    rng = np.random.default_rng(seed)
    kinds, arms, flying, lost = [], [], [], []
    for _ in range(count):
        move = rng.random()
        if move < 0.15:
            kind, arm = ASKED, int(rng.integers(4))
            flying.append(arm)
        elif move < 0.3 and flying:
            kind, arm = TOLD, flying.pop(rng.integers(len(flying)))
        elif move < 0.35 and flying:
            kind, arm = EXPIRED, flying.pop(0)
            lost.append(arm)
        elif move < 0.4 and lost:
            kind, arm = LATE, lost.pop()
        else:
            kind, arm = ELSEWHERE, int(rng.integers(4))
        kinds.append(kind)
        arms.append(arm)
    told = rewards_for(name, rng, count, size) * (1 + (np.array(arms) == 0) * (name == "gaussian"))
    doses = rng.normal(0.2, 0.5, (count, 1)) if name.startswith("measured") else None
    return np.array(kinds), np.array(arms), told, doses


def folded(engine, given, step):
    """Events taken in so many at a time, until it stops: how many those were."""
    done = 0
    while done < len(given[0]) and not engine.is_enough:
        piece = [None if one is None else one[done : done + step].copy() for one in given]
        done += engine.fold(*piece, until_stopped=True)
    return done, {name: array.tobytes() for name, array in engine.state().items()}


@examples(6)
@given(
    name=st.sampled_from(list(CASES)),
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(MANY, MANY + 40),
    size=st.sampled_from([0.0, 1e-3, 0.3, 0.9, 1.0]),
)
def test_lists_say_what_arrays_say(name, seed, count, size):
    given = journal(name, seed, count, size)
    at_once = folded(engine_for(name), given, count)
    assert at_once == folded(engine_for(name), given, MANY - 1)


@pytest.mark.parametrize("name", ["gaussian", "measured"])
def test_lists_are_used_and_errors_undone(name, monkeypatch):
    """A division by zero half-way leaves no trace: arrays are taken, and go on with infinity."""
    given = journal(name, 1, MANY + 6, 0.9)
    expected = folded(engine_for(name), given, MANY - 1)
    made, real = [], Lists.of

    def of(lists, *records):
        made.append(real(lists, *records))
        return made[-1]

    monkeypatch.setattr(Lists, "of", of)
    assert folded(engine_for(name), given, len(given[0])) == expected
    assert made
    engine = engine_for(name)
    kernels = engine if name == "measured" else events
    method = "_fold_piece" if name == "measured" else "fold_events"
    plain = getattr(kernels, method)
    calls = []

    def broken(*arguments):
        found = plain(*arguments)
        calls.append(found)
        if len(calls) % 2:
            raise ZeroDivisionError
        return found

    monkeypatch.setattr(kernels, method, broken)
    assert folded(engine, given, len(given[0])) == expected
    assert len(calls) > 1


@pytest.mark.parametrize("name", ["gaussian", "gaussian, good enough", "bounded", "unknown sigma"])
def test_no_array_is_two(name):
    """Copies would go their own ways if two fields were one array."""
    engine = engine_for(name)
    folded(engine, journal(name, 1, 40, 0.9), 40)
    _, table, run, memory = engine.records
    arrays = [*table, *run, *memory, *memory.edge, engine.pending]
    arrays = [one for one in arrays if isinstance(one, np.ndarray) and one.size]
    assert len(arrays) > 30
    for one, other in itertools.combinations(arrays, 2):
        assert not np.shares_memory(one, other)
