"""What could be said along a simulated run, beside the truth."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from simplexplore.errors import SettingError
from simplexplore.exploration.engines import ExplorationEngine, engine_of
from simplexplore.exploration.moment import Moment, moment_of
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
    regret: float | None  # None where there is no policy to compare
    p_value: float
    edges: list[Comparison]
    limits: NotRequired[dict[str, float]]  # p-values of measured ones


def trace(results: Results, runs: int = RUNS) -> Iterator[Look]:
    """The first runs once more, with what could be said at moments ever farther apart."""
    check_threshold(results.plan.threshold.name)
    engine = engine_of(results.plan)
    for run in results.run_numbers[:runs].tolist():
        yield from _run(results, engine, run)


def _run(results: Results, engine: ExplorationEngine, run: int) -> Iterator[Look]:
    noise = drawn_noise(results.plan.problem, results.noise)
    words = streams(results.seed, range(run, run + 1))[0]
    following = 0.0
    for stopped in engine.played(results.means, noise, words, results.max_steps):
        ended = stopped or engine.pulls == results.max_steps
        if not (engine.is_warm and (engine.pulls >= following or ended)):
            continue
        moment = moment_of(engine)
        if moment is not None:
            following = (1 + STEP) * engine.pulls
            yield _look(results, engine, moment, run, stopped)


def _look(
    results: Results, engine: ExplorationEngine, moment: Moment, run: int, stopped: bool
) -> Look:
    problem, known = results.plan.problem, engine.has_answer
    p_values = np.minimum(np.exp(-engine.evidence()[0]), 1.0)
    # Measured limits come first, where there is an answer that could keep them.
    names = [row.name for row in problem.measured] if known else []
    directions = engine.directions() if known else np.zeros((0, problem.size))
    look: Look = {
        "sampler": results.plan.sampler.name,
        "scenario": results.plan.scenario,
        "run": run,
        "samples": engine.pulls,
        "cost": float(engine.run.n @ problem.costs),
        "stopped": stopped,
        "policy": policy_in_words(engine.policy, problem.arms) if known else "none is feasible",
        "confidence": moment.confidence,
        "regret_bound": moment.regret_bound if math.isfinite(moment.regret_bound) else None,
        "regret": float(results.means @ (results.bound.policy - engine.policy))
        if known and results.has_bound
        else None,
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
            for direction, p in zip(directions, p_values[len(names) :], strict=known)
        ],
    }
    if problem.measured:
        look["limits"] = dict(zip(names, p_values[: len(names)].tolist(), strict=True))
    return look


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
    columns = [name for name in Look.__annotations__ if name not in ("edges", "limits")]
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(looks)
    write_whole(Path(path), buffer.getvalue().encode())
