"""Engines for tests, and runs of them step by step."""

import math

import numpy as np

from simplexplore.bound.bound import lower_bound
from simplexplore.exploration.compile import _ENTRIES
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams
from simplexplore.exploration.stopping import find_threshold
from simplexplore.samplers import find_sampler


def engine_for(problem, sampler, delta=None, *, threshold="gk16", tracking=None):
    """An engine; the oracle is given the optimal allocation at the problem's means."""
    chosen = find_sampler(sampler)
    allocation = tuple(lower_bound(problem).allocation.tolist()) if chosen.needs_truth else None
    return Engine(
        Plan(
            problem=problem,
            sampler=chosen,
            threshold=find_threshold(threshold),
            delta=problem.delta if delta is None else delta,
            scenario=problem.scenario,
            tracking=tracking,
            allocation=allocation,
        )
    )


def follow(engine, rewards, steps, seed=0, each=None):
    """Arms of one run told rewards[arm, number of the pull], step by step."""
    arm = engine.begin(streams(seed, range(1))[0])
    taken = np.zeros(engine.plan.problem.size, dtype=int)
    arms = []
    if each is not None:
        each(engine)
    while arm is not None and len(arms) < steps:
        arms.append(arm)
        engine.observe(arm, float(rewards[arm, taken[arm]]))
        taken[arm] += 1
        arm = engine.advance()
        if each is not None:
            each(engine)
    return arms


def natively(engine):
    """The same engine, its steps as machine code from the first one on."""
    engine._program.compile("step")
    engine._stopwatch.seconds = math.inf
    return engine


def uncompiled(engine):
    """The same engine, never as machine code however long it takes; simulations neither."""

    def plainly(entry, *arguments):
        with np.errstate(all="ignore"):
            return _ENTRIES[entry][0](engine._setting, *engine._arrays, *arguments)

    engine._stopwatch.LONG = math.inf
    engine.compile, engine._natively = (lambda: None), plainly
    return engine
