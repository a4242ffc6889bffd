"""What could be said along a simulated run, beside the truth."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from simplexplore.errors import SettingError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.moment import moment_of
from simplexplore.exploration.seeding import streams
from simplexplore.files import write_whole
from simplexplore.problem.spelling import policy_in_words

from .results import Results
from .simulate import drawn_noise

# Samples between two looks, as a share of those taken.
STEP = 0.05

# Runs of each result, unless told otherwise.
RUNS = 10


class Comparison(TypedDict):
    """An edge of the recommended policy."""

    direction: dict[str, float]
    p_value: float


class Look(TypedDict):
    """One moment of a run.

    `regret` is what the recommended policy earns less than the best one, by the true means;
    `p_value` the largest of the edges'. All are valid however often one looks.
    """

    sampler: str
    scenario: str
    run: int
    samples: int
    cost: float  # of these samples
    stopped: bool
    policy: str
    confidence: float
    regret_bound: float | None  # None while there is none
    regret: float
    p_value: float
    edges: list[Comparison]


def trace(results: Results, runs: int = RUNS) -> Iterator[Look]:
    """The first runs once more, with what could be said at moments ever farther apart."""
    check_threshold(results.plan.threshold.name)
    engine = Engine(results.plan)
    for run in results.run_numbers[:runs].tolist():
        yield from _run(results, engine, run)


def _run(results: Results, engine: Engine, run: int) -> Iterator[Look]:
    problem = results.plan.problem
    means = problem.rewards.to_unit(results.bound.means)
    noise = drawn_noise(problem, results.noise)
    arm = engine.begin(streams(results.seed, range(run, run + 1))[0])
    following = 0.0
    while arm is not None and engine.pulls < results.max_steps:
        arm = engine.play(arm, float(means[arm]), float(noise[arm]))
        ended = arm is None or engine.pulls == results.max_steps
        if engine.is_warm and (engine.pulls >= following or ended):
            following = (1 + STEP) * engine.pulls
            yield _look(results, engine, run, arm is None)


def _look(results: Results, engine: Engine, run: int, stopped: bool) -> Look:
    problem, means = results.plan.problem, results.bound.means
    moment = moment_of(engine)
    assert moment is not None
    p_values = np.exp(-engine.evidence()[0])
    return {
        "sampler": results.plan.sampler.name,
        "scenario": results.plan.scenario,
        "run": run,
        "samples": engine.pulls,
        "cost": float(engine.run.n @ problem.costs),
        "stopped": stopped,
        "policy": policy_in_words(engine.policy, problem.arms),
        "confidence": moment.confidence,
        "regret_bound": moment.regret_bound if math.isfinite(moment.regret_bound) else None,
        "regret": float(means @ (results.bound.policy - engine.policy)),
        "p_value": float(p_values.max(initial=0.0)),
        "edges": [
            {
                "direction": {
                    arm: float(rate)
                    for arm, rate in zip(problem.arms, direction, strict=True)
                    if rate
                },
                "p_value": float(p),
            }
            for direction, p in zip(engine.directions(), p_values, strict=True)
        ],
    }


def check_threshold(name: str) -> None:
    """Raise `SettingError` for thresholds that only say when to stop."""
    if name != "tilt":
        raise SettingError(
            f"only the threshold 'tilt' says something at every moment; {name!r} does not."
        )


def check_trace_path(path: str | os.PathLike[str]) -> None:
    """Raise `SettingError` unless a trace could be written there."""
    if Path(path).suffix not in (".csv", ".json"):
        raise SettingError(f"{path}: the ending says how to write it: .csv or .json.")
    if not Path(path).absolute().parent.is_dir():
        raise SettingError(f"{path}: there is no folder {Path(path).parent}.")


def write_trace(results: Sequence[Results], path: str | os.PathLike[str]) -> None:
    """Trace the first runs of each result into a file; CSV leaves the edges out."""
    check_trace_path(path)
    looks = [look for result in results for look in trace(result)]
    if Path(path).suffix == ".json":
        write_whole(Path(path), json.dumps(looks, allow_nan=False).encode())
        return
    buffer = io.StringIO()
    columns = [name for name in Look.__annotations__ if name != "edges"]
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(looks)
    write_whole(Path(path), buffer.getvalue().encode())
