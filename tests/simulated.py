"""Results without a simulation: drawn from a fixed stream, for tests of files and pictures."""

import functools
from dataclasses import replace

import numpy as np

import simplexplore as sx
from simplexplore import Results
from simplexplore.exploration.plan import prepare_simulation

# What the summary of a result holds, and no less.
RESULT_KEYS = {
    "sampler",
    "scenario",
    "threshold",
    "delta",
    "runs",
    "seed",
    "stopping_time",
    "correct",
    "capped",
    "lower_bound",
    "microseconds_per_step",
    "mean_allocation",
}


bound_of = functools.cache(sx.lower_bound)


def made_up(
    problem,
    sampler="uniform",
    *,
    scale=2.0,
    runs=50,
    asked=None,
    cap=10_000_000,
    seed=0,
    threshold="gk16",
    tracking=None,
    wrong=0,
    name=None,
    delta=None,
):
    """Gamma-distributed stopping times around a multiple of the lower bound."""
    rng = np.random.default_rng([seed, runs, int(100 * scale)])
    bound = bound_of(problem, delta=delta)
    plan = prepare_simulation(
        problem, None, sampler, threshold, tracking=tracking, is_capped=True, delta=delta
    )
    if name is not None:
        plan = replace(plan, sampler=replace(plan.sampler, name=name))
    base = bound.samples if 0 < bound.samples < np.inf else 1000.0
    times = (problem.size + base * scale * rng.gamma(3.0, 1 / 3, size=runs)).astype(np.int64)
    times = np.minimum(times, cap)
    shares = 0.7 * bound.allocation + 0.3 / problem.size
    pulls = np.array([rng.multinomial(t, shares / shares.sum()) for t in times], dtype=float)
    return Results(
        plan=plan,
        seed=seed,
        runs_asked=runs if asked is None else asked,
        max_steps=cap,
        run_numbers=np.arange(runs),
        stopping_times=times,
        capped=times >= cap,
        correct=np.arange(runs) >= wrong,
        pulls=pulls.reshape(runs, problem.size),
        seconds=0.25,
    )


def group(scenario="end-of-time", **scales):
    """Results of several samplers, by how long each takes."""
    problem = sx.catalog.instance("eight-arms").problem.replace(scenario=scenario)
    return [
        made_up(problem, name.replace("_", "-"), scale=s, runs=400) for name, s in scales.items()
    ]
