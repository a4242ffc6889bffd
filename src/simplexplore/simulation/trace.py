"""What could be said along a simulated run, beside the truth."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simplexplore.errors import SettingError
from simplexplore.exploration.confidence import AnytimeConfidence, anytime_confidence, edges_at
from simplexplore.exploration.engine import Engine, streams
from simplexplore.files import write_whole
from simplexplore.problem.messages import policy_in_words

from .results import Results
from .simulate import drawn_noise

# One moment of a run, by name of what is known then.
Look = dict[str, Any]

# Samples between two looks, as a share of those taken.
STEP = 0.05

# Runs of each result, unless told otherwise.
RUNS = 10


def trace(results: Results, runs: int = RUNS) -> Iterator[Look]:
    """The first runs once more, with what could be said at moments ever farther apart.

    `regret` is what the recommended policy earns less than the best one, by the true means, None
    where there is no policy to compare; `p_value` that of "the recommended policy is not the best",
    1 - `confidence`; `regret_bound` is None while there is none; `limits` has p-values of measured
    ones. All are valid however often one looks.
    """
    check_threshold(results.plan.threshold.name)
    engine = Engine(results.plan)
    for run in results.run_numbers[:runs].tolist():
        yield from _run(results, engine, run)


def _run(results: Results, engine: Engine, run: int) -> Iterator[Look]:
    noise = drawn_noise(results.plan.problem, results.noise)
    words = streams(results.seed, range(run, run + 1))[0]
    following = 0.0
    for stopped in engine.played(results.means, noise, words, results.max_steps):
        ended = stopped or engine.pulls == results.max_steps
        if (engine.pulls >= following or ended) and (moment := anytime_confidence(engine)):
            following = (1 + STEP) * engine.pulls
            yield _look(results, engine, moment, run, stopped)


def _look(
    results: Results, engine: Engine, moment: AnytimeConfidence, run: int, stopped: bool
) -> Look:
    problem, known = results.plan.problem, engine.has_answer
    look: Look = {
        "sampler": results.plan.sampler.name,
        "scenario": results.plan.scenario,
        "run": run,
        "samples": engine.pulls,
        "cost": float(engine.run.n @ problem.costs),
        "stopped": stopped,
        "policy": engine.answer or policy_in_words(engine.policy, problem.arms)
        if known
        else "none is feasible",
        "confidence": moment.confidence,
        "regret_bound": moment.regret_bound if math.isfinite(moment.regret_bound) else None,
        "regret": float(results.means @ (results.bound.policy - engine.policy))
        if known and results.has_bound and not problem.question
        else None,
        "p_value": 1.0 - moment.confidence,
        "edges": edges_at(engine, moment) if known else [],
    }
    if problem.measured:
        # They come first, where there is an answer that could keep them.
        names = [row.name for row in problem.measured] if known else []
        p_values = np.minimum(np.exp(-engine.evidence.values()[0]), 1.0)
        look["limits"] = dict(zip(names, p_values.tolist(), strict=False))
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
    columns = [name for name in looks[0] if name not in ("edges", "limits")] if looks else []
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(looks)
    write_whole(Path(path), buffer.getvalue().encode())
