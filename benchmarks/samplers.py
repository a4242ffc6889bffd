"""Samplers: microseconds a step, compile times, and stopping times beside the reference.

    python benchmarks/samplers.py [--runs N] [--quick] [--only speed|compile|large|times]

One core. Steps are timed over whole runs at a delta that never stops them; stopping times are
means over N runs with their standard errors, next to what exact reimplementations needed (1000
runs, standard errors of 1-2%). Machines differ and are shared: read ratios.
"""

# ruff: noqa: E402 - threads must be limited before numpy is imported

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # here and in child processes

import argparse
import json
import math
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
os.environ["PYTHONPATH"] = str(ROOT / "src")

import numba
import numpy as np

import simplexplore as sx
from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.stopping import find_threshold
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.samplers import find_sampler

TRUTH = json.loads((ROOT / "tests" / "data" / "truth.json").read_text())
SCENARIOS = ("end-of-time", "anytime")
INSTANCES = {
    "exp1": "exp1",
    "exp2": "exp2",
    "ptns8": "ptns8",
    "gauss 1": "gauss_app1",
    "gauss 2": "gauss_app2",
    "IMDB": "imdb_sigma1.33",
    "Bernoulli 1": "bern_app1",
}
SPEED = ("uniform", "top-two", "cge", "ctns")

# Microseconds a step that the project set itself, by (Gaussian, scenario).
TARGETS = {
    (True, "end-of-time"): (0.1, 0.3, 0.3, 4.0),
    (True, "anytime"): (0.1, 5.0, 0.8, 6.0),
    (False, "end-of-time"): (0.6, 3.0, 6.0, 25.0),
    (False, "anytime"): (0.6, 3.0, 6.0, 25.0),
}

# Mean stopping times of exact reimplementations with gk16.
REFERENCE = {
    ("ctns", "end-of-time"): {
        "exp1": 6013, "exp2": 1984, "ptns8": 1538, "gauss 1": 6585, "gauss 2": 11631,
        "IMDB": 6797, "Bernoulli 1": 1870,
    },
    ("top-two", "end-of-time"): {
        "exp1": 5191, "exp2": 1885, "ptns8": 1436, "gauss 1": 5674, "gauss 2": 10196,
        "IMDB": 5674,
    },
    ("cge", "end-of-time"): {
        "exp1": 7930, "exp2": 2734, "ptns8": 2899, "gauss 1": 7741, "gauss 2": 13126,
        "IMDB": 12423, "Bernoulli 1": 2562,
    },
    ("uniform", "end-of-time"): {
        "exp1": 10744, "exp2": 3897, "ptns8": 4597, "gauss 1": 10757, "gauss 2": 21393,
        "IMDB": 18790, "Bernoulli 1": 3566,
    },
    ("oracle", "end-of-time"): {
        "exp1": 8228, "exp2": 3301, "ptns8": 3031, "gauss 1": 8304, "gauss 2": 14367,
    },
    ("ctns", "anytime"): {
        "exp1": 5908, "exp2": 2045, "ptns8": 2128, "gauss 1": 7925, "IMDB": 11188,
        "Bernoulli 1": 2257,
    },
    ("cge", "anytime"): {
        "exp1": 7734, "exp2": 2784, "ptns8": 3360, "gauss 1": 8356, "IMDB": 18203,
        "Bernoulli 1": 2648,
    },
    ("uniform", "anytime"): {
        "exp1": 10676, "exp2": 3814, "ptns8": 4225, "gauss 1": 10900, "IMDB": 32527,
        "Bernoulli 1": 3566,
    },
}  # fmt: skip
NEVER_CAPPED = ("ctns", "cge", "top-two")


def instance(name: str) -> sx.Problem:
    truth = TRUTH[INSTANCES.get(name, name)]
    rewards = Gaussian(truth["sigma"]) if truth["family"] == "gaussian" else Bernoulli()
    rows = (truth["B"], truth["c"])
    return sx.Problem(len(truth["mu"]), rows, rewards, delta=truth["delta"], means=truth["mu"])


def engine(problem: sx.Problem, sampler: str, scenario: str, delta: float) -> Engine:
    chosen = find_sampler(sampler)
    allocation = None
    if chosen.needs_truth:
        bound = sx.lower_bound(problem.replace(scenario=scenario))
        allocation = tuple(bound.allocation.tolist())
    rule = find_threshold("gk16")
    problem = problem.replace(scenario=scenario)
    return Engine(Plan(problem, chosen, rule, delta, None, allocation))


def microseconds(problem: sx.Problem, sampler: str, scenario: str, steps: int, runs: int) -> float:
    """Best of some repeats of one run, whose policies are all known: others share the machine."""
    made = engine(problem, sampler, scenario, 1e-300)
    means = np.asarray(problem.means, dtype=float)
    noise = problem.rewards.sigmas(problem.size)
    words = streams(0, range(1))
    made.simulate(means, noise, words, steps)
    best = math.inf
    for _ in range(runs):
        began = time.perf_counter()
        made.simulate(means, noise, words, steps)
        best = min(best, (time.perf_counter() - began) / steps)
    return 1e6 * best


def speed(quick: bool) -> None:
    print("\n## Microseconds a step (target)\n")
    print("| instance | scenario |", " | ".join(SPEED), "|")
    print("|---|---|" + "---|" * len(SPEED))
    for name in INSTANCES:
        problem = instance(name)
        for scenario in SCENARIOS:
            cells = []
            for k, sampler in enumerate(SPEED):
                us = microseconds(problem, sampler, scenario, 20_000 if quick else 100_000, 5)
                target = TARGETS[problem.rewards.name == "gaussian", scenario][k]
                missed = "" if us <= target else " MISSED"
                cells.append(f"{us:.2f} ({target:g}){missed}")
            print(f"| {name} | {scenario} |", " | ".join(cells), "|", flush=True)


def compile_times() -> None:
    """First use in a new process, with an empty cache and again."""
    print("\n## Seconds to the first two steps of a new process: cold, then from the cache\n")
    print("| sampler | family | cold | warm |\n|---|---|---|---|")
    text = (
        "import sys, time\n"
        "import numpy, scipy.special, simplexplore\n"
        "from simplexplore.simulation.simulate import simulate\n"
        "from simplexplore.exploration.engine import Engine\n"
        "import numba\n"
        "sys.path.insert(0, {here!r})\n"
        "import samplers\n"
        "problem = samplers.instance({name!r})\n"
        "began = time.perf_counter()\n"
        "made = samplers.engine(problem, {sampler!r}, 'end-of-time', 0.1)\n"
        "noise = problem.rewards.sigmas(problem.size)\n"
        "mu = numpy.asarray(problem.means, dtype=float)\n"
        "made.simulate(mu, noise, samplers.streams(0, range(1)), 2)\n"
        "print(time.perf_counter() - began)\n"
    )
    here = str(Path(__file__).resolve().parent)
    for name, family in (("exp1", "gaussian"), ("Bernoulli 1", "others")):
        total = [0.0, 0.0]
        for sampler in (*SPEED, "ptns"):
            with tempfile.TemporaryDirectory() as folder:
                seconds = []
                for _ in range(2):
                    done = subprocess.run(
                        [sys.executable, "-c", text.format(here=here, name=name, sampler=sampler)],
                        env={**os.environ, "SIMPLEXPLORE_CACHE": folder},
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    seconds.append(float(done.stdout))
            total = [x + y for x, y in zip(total, seconds, strict=True)]
            missed = "" if seconds[0] <= 45 and seconds[1] <= 1 else " MISSED"
            print(
                f"| {sampler} | {family} | {seconds[0]:.1f} | {seconds[1]:.2f}{missed} |",
                flush=True,
            )
        print(f"| all five | {family} | {total[0]:.1f} | {total[1]:.2f} |", flush=True)


def large() -> None:
    """Linear in arms: 1000 arms, 10 constraints; whole runs, every new policy included."""
    print("\n## 1000 arms, 10 constraints: microseconds a step (target 150), set-up in seconds\n")
    print("| sampler | scenario | us a step | set-up |\n|---|---|---|---|")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(10, 1000))
    bounds = rows.mean(axis=1) + 0.1
    problem = sx.Problem(1000, (rows, bounds), means=rng.normal(size=1000))
    for scenario in SCENARIOS:
        for sampler in ("uniform", "cge", "top-two"):
            if sampler == "top-two" and scenario == "anytime":
                continue  # solves for its target there, like ctns
            means = np.asarray(problem.means, dtype=float)
            noise = np.ones(1000)
            best = math.inf
            for run in range(2):
                began = time.perf_counter()
                made = engine(problem, sampler, scenario, 1e-300)
                made.simulate(means, noise, streams(run, range(1)), 2)
                setup = time.perf_counter() - began
                began = time.perf_counter()
                made.simulate(means, noise, streams(run, range(1)), 20_000)
                best = min(best, (time.perf_counter() - began) / 20_000)
            missed = "" if best <= 150e-6 else " MISSED"
            print(
                f"| {sampler} | {scenario} | {1e6 * best:.1f}{missed} | {setup:.1f} |", flush=True
            )


def times(runs: int, workers: int) -> None:
    print(f"\n## Mean stopping time with gk16 (standard error), {runs} runs, capped at 200,000\n")
    print("| instance | scenario | sampler | mean (s.e.) | reference | correct | capped | |")
    print("|---|---|---|---|---|---|---|---|")
    for name in INSTANCES:
        problem = instance(name)
        for scenario in SCENARIOS:
            for sampler in ("ctns", "cge", "top-two", "ptns", "uniform", "oracle"):
                began = time.perf_counter()
                r = sx.simulate(
                    problem, None, sampler, runs=runs, seed=0, scenario=scenario,
                    max_steps=200_000, workers=workers,
                )  # fmt: skip
                mean = r.stopping_times.mean()
                error = r.stopping_times.std(ddof=1) / math.sqrt(runs)
                reference = REFERENCE.get((sampler, scenario), {}).get(name)
                worse = reference is not None and mean - 3 * error > reference
                capped = int(r.capped.sum())
                flaw = " WORSE" if worse else ""
                flaw += " CAPPED" if capped and sampler in NEVER_CAPPED else ""
                spent = time.perf_counter() - began
                print(
                    f"| {name} | {scenario} | {sampler} | {mean:.0f} ({error:.0f}) "
                    f"| {reference or ''} | {100 * r.correct.mean():.1f}% | {capped} "
                    f"| {spent:.1f} s{flaw} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="100 runs, no compile times")
    parser.add_argument("--only", choices=("speed", "compile", "large", "times"))
    chosen = parser.parse_args()
    print(
        f"simplexplore {sx.__version__}, numba {numba.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    )
    if chosen.only in (None, "speed"):
        speed(chosen.quick)
    if chosen.only in (None, "large"):
        large()
    if chosen.only == "compile" or (chosen.only is None and not chosen.quick):
        compile_times()
    if chosen.only in (None, "times"):
        times(min(chosen.runs, 100) if chosen.quick else chosen.runs, chosen.workers)


if __name__ == "__main__":
    main()
