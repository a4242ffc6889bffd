"""One group of figures, of the package on the path: python benchmarks/measure.py GROUP.

For figures.py, which calls it for two source trees: only public names, commits may be old.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import simplexplore as sx

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SCENARIOS = ("end-of-time", "anytime")
STEPS = 200_000
PAIRS = 200

Figures = dict[str, float]


def cpu(task: Callable[[], object], repeats: int) -> float:
    """CPU seconds of a task, the least of some."""
    best = math.inf
    for _ in range(repeats):
        began = time.process_time()
        task()
        best = min(best, time.process_time() - began)
    return best


def instances() -> dict[str, Any]:
    """Star and films, with Gaussian rewards as they are and Bernoulli ones of like means."""
    found = {}
    for name, file in (("star", "star"), ("films", "movies")):
        problem = sx.Problem.from_file(EXAMPLES / f"{file}.toml")
        means = problem.means
        low, width = min(means), max(means) - min(means)
        unit = [0.2 + 0.6 * (mean - low) / width for mean in means]
        found[f"{name}, gaussian"] = problem
        found[f"{name}, bernoulli"] = problem.replace(rewards=sx.Bernoulli(), means=unit)
    return found


def steps() -> Figures:
    figures = {}
    for name, problem in instances().items():
        for scenario in SCENARIOS:
            for sampler in ("uniform", "top-two", "cge", "ctns", "ptns"):
                # Far from stopping, so that all steps are taken; the bound is not part of them.
                found = [
                    sx.simulate(
                        *(problem, None, sampler), runs=1, scenario=scenario, max_steps=STEPS,
                        delta=1e-300, workers=1,
                    ).summary()["microseconds_per_step"]
                    for _ in range(4)
                ]  # fmt: skip
                figures[f"step, {name}, {scenario}, {sampler} (us)"] = min(found)
    return figures


def bounds() -> Figures:
    films = instances()["films, gaussian"]
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 200))
    many = sx.Problem(200, (rows, rows.mean(axis=1) + 0.1), means=rng.normal(size=200))
    sx.lower_bound(films)  # imports
    return {
        "bound of the films (ms)": 1e3 * cpu(lambda: sx.lower_bound(films), 10),
        "bound of 200 arms (ms)": 1e3 * cpu(lambda: sx.lower_bound(many), 3),
    }


def live() -> Figures:
    figures = {}
    for sampler in ("top-two", "ctns"):
        with tempfile.TemporaryDirectory() as folder:
            problem = instances()["star, gaussian"].replace(delta=1e-9)
            study = sx.Study.create(f"sqlite:///{folder}/studies.db", "mix", problem, sampler)

            def pairs(study: Any = study) -> None:
                for _ in range(PAIRS):
                    pull = study.ask()[0]
                    study.tell(pull, float(len(pull.arm)))

            figures[f"ask and tell, {sampler} (ms)"] = 1e3 * cpu(pairs, 5) / PAIRS
    return figures


def first(sampler: str) -> Figures:
    problem = instances()["star, gaussian"]
    sx.simulate(problem, None, sampler, runs=1, max_steps=100, workers=1)
    return {}


def create() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        problem = instances()["star, gaussian"]
        sx.Study.create(f"sqlite:///{folder}/studies.db", "mix", problem).ask()
    return {}


if __name__ == "__main__":
    group, *arguments = sys.argv[1:]
    print(json.dumps(globals()[group](*arguments)))
