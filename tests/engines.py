"""Engines for tests, and runs of them step by step: all that tests know of how runs are driven."""

import numpy as np

from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import prepare, prepare_simulation
from simplexplore.kernels.records import (  # noqa: F401
    ARM,
    ASKED,
    EXPIRED,
    EXTENDED,
    LATE,
    PULLS,
    TOLD,
    VERTEX,
)

SCENARIOS = ("end-of-time", "anytime")


def engine_for(problem, sampler="top-two", delta=None, *, threshold="gk16", tracking=None):
    """An engine; the oracle is given the optimal allocation at the problem's means."""
    given = {"delta": delta, "tracking": tracking}
    if sampler == "oracle":
        plan = prepare_simulation(problem, None, sampler, threshold, is_capped=True, **given)
    else:
        plan = prepare(problem, sampler, threshold, **given)
    return Engine(plan)


def stream(seed=0, run=0):
    """The random words of a numbered run: for its rewards, and for its choices."""
    return streams(seed, range(run, run + 1))[0]


def follow(engine, rewards, steps, seed=0, each=None):
    """Arms of one run told rewards[arm, number of the pull], step by step."""
    arm = engine.begin(stream(seed))
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


def quick(engine):
    """The same engine, its steps as machine code."""
    engine.compile("advance")
    return engine


def inform(engine, n, means):
    """Give a new run the sums of past data, in unit coordinates: whether that is enough."""
    engine.begin(stream())
    config, _, run, _ = engine.workspace.records
    run.n[:], run.mean[:] = n, means
    run.clipped_mean[:] = np.clip(run.mean[0], config.lowest, config.highest)
    run.integers[PULLS] = int(np.sum(n))
    return engine.advance() is None


def chosen(engine):
    """The arm that an engine chose last."""
    return int(engine.run.integers[ARM])


def recommended(engine):
    """Number of the vertex that an engine recommends, in its table."""
    return int(engine.run.integers[VERTEX])


def edges_of(engine):
    """(statistic, v, offset) of each edge of the recommended vertex."""
    _, table, run, _ = engine.workspace.records
    first, last = table.first_edge[recommended(engine) :][:2]
    for edge in range(first, last):
        v = np.zeros(engine.plan.problem.size)
        part = slice(table.first_entry[edge], table.first_entry[edge + 1])
        v[table.arm[part]] = table.v[part]
        yield float(run.value[edge - first]), v.tolist(), float(table.offset[edge])
