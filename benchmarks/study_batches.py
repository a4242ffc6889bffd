"""What batches cost: mean samples with 1, 32, 128 and 512 pulls in flight.

    python benchmarks/study_batches.py [--runs N]

top-two, end-of-time, threshold gk16, the engine of a live study in memory. In-flight aware is
what studies do; blind is the same with every pull of a batch chosen as if none were under
way. A batch is told as a whole, and samples are all pulls made. The last column is what
another implementation gave.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np
from samplers import instance

import simplexplore as sx
from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import prepare
from simplexplore.kernels.records import ASKED, TOLD

KNOWN = {
    "exp2": {1: "1883", 32: "1955/1982", 128: "2163/2279", 512: "2723/3160"},
    "ptns8": {1: "1389", 32: "1533/1602", 128: "1674/1892", 512: "2200/3501"},
    "gauss 1": {1: "5836", 32: "5731/5799", 128: "5925/6151", 512: "6404/7077"},
}


def samples(
    problem: sx.Problem, batch: int, seed: int, engine: Engine, aware: bool
) -> tuple[int, bool]:
    """Pulls made until the evidence is enough at the end of a batch, and whether it is right."""
    rng = np.random.default_rng([seed, batch])
    engine.reset(streams(seed, range(1))[0])
    total = 0
    asked, told = np.full(batch, ASKED, dtype=np.int64), np.full(batch, TOLD, dtype=np.int64)
    while True:
        arms = np.full(batch, -1, dtype=np.int64)
        if aware or not engine.has_answer:
            engine.fold(asked, arms, np.zeros(batch))
        else:
            for i in range(batch):
                engine.fold(asked[:1], arms[i : i + 1], np.zeros(1))
                engine.workspace.pending[:] = 0
            engine.workspace.pending[:] = np.bincount(arms, minlength=problem.size)
        total += batch
        rewards = rng.normal(problem.means[arms], problem.rewards.sigmas(problem.size)[arms])
        engine.fold(told[: batch - 1], arms[: batch - 1], rewards[: batch - 1])
        engine.fold(told[:1], arms[-1:], rewards[-1:], until_stopped=True)
        if engine.is_enough:
            right = engine.workspace.polytope.optimal_vertex(problem.means).policy
            return total, bool((engine.policy == right).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=600)
    runs = parser.parse_args().runs
    print("| instance | batch | aware (s.e.) | blind (s.e.) | errors | known: aware/blind |")
    print("|---|---|---|---|---|---|")
    start = time.perf_counter()
    for name, known in KNOWN.items():
        problem = instance(name)
        settings = {"sampler": "top-two", "threshold": "gk16", "delta": problem.delta}
        one = sx.simulate(problem, runs=runs, seed=5, **settings)
        times = one.stopping_times
        error = times.std(ddof=1) / runs**0.5
        wrong = 1 - one.correct.mean()
        print(
            f"| {name} | 1 | {times.mean():.0f} ({error:.0f}) | | {100 * wrong:.1f}% | {known[1]} |"
        )
        engine = Engine(
            prepare(problem, "top-two", "gk16", scenario="end-of-time"),
        )
        for batch in (32, 128, 512):
            cells, errors = [], 0
            for aware in (True, False):
                found = [samples(problem, batch, seed, engine, aware) for seed in range(runs)]
                totals = np.array([total for total, _ in found])
                errors += sum(not right for _, right in found)
                cells.append(f"{totals.mean():.0f} ({totals.std(ddof=1) / runs**0.5:.0f})")
            share = 50 * errors / runs
            print(
                f"| {name} | {batch} | {' | '.join(cells)} | {share:.1f}% | {known[batch]} |",
                flush=True,
            )
    print(f"\n{runs} runs each, {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
