"""What the promise of `tilt` costs: samples beside those of its prototype, and time per step.

    python benchmarks/promises.py [--runs 1000] [--seed 16] [--workers 1] [--out FILE]
                                  [--only samples|steps]

1. Mean samples of top-two with `tilt`, delta 0.1 and 0.001, on the paper's instances, with six ads
   (click rates of 2 to 6%), rare events (0.05 to 0.2%), Poisson and Beta rewards. A row is right if
   its mean is at most that of the prototype from which the rule was written, two standard errors
   of both allowed.
2. Microseconds a step of whole runs, `tilt` and `mixture` in turn, the least of some: processor
   time. And of 1000 arms with caps.

What is printed goes to FILE, too, as it is found.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import simplexplore as sx
from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import prepare

DELTAS = (0.1, 0.001)


class Row(NamedTuple):
    """An instance, the prototype's means by delta, and their standard error."""

    name: str
    problem: sx.Problem
    prototype: tuple[float, float]
    error: float
    scenario: str = "end-of-time"
    noise: object = None


def paper(name: str, *prototype: float, error: float = 0.03, scenario: str = "end-of-time") -> Row:
    found = sx.catalog.instance(name)
    return Row(name, found.problem, prototype, error, scenario, found.noise)


AD = sx.Problem(
    6,
    ["3*a1 + 2*a2 + 1.5*a3 + a4 + a5 + 0.5*a6 <= 1.6", "a6 >= 0.2"]
    + [f"a{i} <= 0.4" for i in range(1, 7)],
    sx.Bernoulli(),
    means=[0.06, 0.035, 0.05, 0.025, 0.035, 0.02],
)
RARE = sx.Problem(4, ["a1 + a2 <= 0.6"], sx.Bernoulli(), means=[0.002, 0.0012, 0.001, 0.0005])
COUNTS = sx.Problem(
    5, ["a1 + a2 <= 0.5", "a3 + a4 <= 0.5"], sx.Poisson(), means=[3.0, 2.6, 2.2, 1.5, 1.0]
)
BETA = sx.Problem(4, ["a1 + a2 <= 0.5"], sx.Bounded(0.0, 10.0), means=[5.6, 5.4, 5.2, 5.0])
SPREAD = [10 * math.sqrt(m / 10 * (1 - m / 10) / 101) for m in (5.6, 5.4, 5.2, 5.0)]

ROWS = [
    paper("bernoulli-1", 2678, 4636),
    paper("bernoulli-2", 6266, 10426),
    paper("triangle", 7703, 13852),
    paper("star", 2742, 5170),
    paper("eight-arms", 2698, 4514),
    paper("gaussian-1", 4006, 6604),
    paper("gaussian-2", 8196, 14185),
    paper("movies", 10457, 17363),
    Row("six ads", AD, (75052, 117636), 0.04),
    Row("rare events", RARE, (242427, 485957), 0.06),
    Row("poisson", COUNTS, (1081, 1971), 0.03),
    Row("Beta, concentration 100", BETA, (1237, 2017), 0.03, noise=SPREAD),
    paper("bernoulli-1", 3666, 5961, error=0.06, scenario="anytime"),
    paper("bernoulli-2", 6676, 10600, error=0.07, scenario="anytime"),
    paper("star", 3216, 5918, error=0.06, scenario="anytime"),
    paper("eight-arms", 4161, 6724, error=0.07, scenario="anytime"),
]


class Log:
    """Lines to the terminal, and to a file if there is one."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        if file is not None:
            file.write_text("")

    def __call__(self, line: str) -> None:
        print(line, flush=True)
        if self.file is not None:
            with self.file.open("a") as target:
                target.write(line + "\n")


def samples(runs: int, seed: int, workers: int, log: Log) -> None:
    log("| instance | scenario | delta | runs | prototype | tilt | ratio | wrong | |")
    log("|---|---|---|---|---|---|---|---|---|")
    for row in ROWS:
        for delta, before in zip(DELTAS, row.prototype, strict=True):
            found = sx.simulate(
                row.problem, sampler="top-two", threshold="tilt", delta=delta, runs=runs,
                seed=seed, scenario=row.scenario, noise=row.noise, workers=workers,
            )  # fmt: skip
            times = found.stopping_times
            error = times.std(ddof=1) / math.sqrt(runs)
            right = times.mean() <= before + 2 * math.hypot(error, row.error * before)
            log(
                f"| {row.name} | {row.scenario} | {delta:g} | {runs} | {before:,.0f} "
                f"| {times.mean():,.0f} ± {error:,.0f} | {times.mean() / before:.2f} "
                f"| {int((~found.correct).sum())} | {'kept' if right else 'MISSED'} |"
            )


def step_times(problem: sx.Problem, scenario: str, delta: float, noise: object, repeats: int):
    """Microseconds a step by rule, the least of some repeats of some 20,000 steps or four runs."""
    means = np.asarray(problem.means)
    drawn = problem.rewards.sigmas(problem.size) if noise is None else np.asarray(noise)
    engines = {
        rule: Engine(prepare(problem, "top-two", rule, delta=delta, scenario=scenario))
        for rule in ("mixture", "tilt")
    }
    least = dict.fromkeys(engines, math.inf)
    few = 4
    for one in engines.values():
        one.compile()
        pulls = one.simulate(means, drawn, streams(0, range(few)), 10_000_000)[0]
        few = max(few, int(20_000 / abs(pulls).mean()))
    for repeat in range(repeats):
        for rule, one in engines.items():
            began = time.thread_time()
            pulls = one.simulate(
                means, drawn, streams(1, range(few * repeat, few * repeat + few)), 10**7
            )[0]
            each = 1e6 * (time.thread_time() - began) / abs(pulls).sum()
            least[rule] = min(least[rule], each)
    return least["mixture"], least["tilt"]


def steps(log: Log) -> None:
    log("| instance | scenario | mixture | tilt | ratio |")
    log("|---|---|---|---|---|")
    for name in sx.catalog.names():
        found = sx.catalog.instance(name)
        for scenario in ("end-of-time", "anytime"):
            before, now = step_times(found.problem, scenario, 0.1, found.noise, 12)
            ratio = now / before
            log(f"| {name} | {scenario} | {before:.2f} | {now:.2f} | {ratio:.2f} |")
    size = 1000
    many = sx.Problem(
        size, [f"a{i} <= 0.0101" for i in range(1, size + 1)],
        means=np.linspace(1.0, 0.0, size).tolist(),
    )  # fmt: skip
    each = {}
    for rule in ("mixture", "tilt"):
        one = Engine(prepare(many, "top-two", rule, delta=0.1, scenario="end-of-time"))
        one.compile()
        for _ in range(2):  # the second time all policies are known
            began = time.thread_time()
            given = (np.asarray(many.means), np.ones(size), streams(0, range(1)), 6_000)
            pulls = one.simulate(*given)[0]
        each[rule] = 1e6 * (time.thread_time() - began) / abs(pulls).sum()
    before, now = each.values()
    row = f"{before:.1f} | {now:.1f} | {now / before:.2f}"
    log(f"| 1000 arms, caps of 0.0101 | end-of-time | {row} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=("samples", "steps"))
    given = parser.parse_args()
    log = Log(given.out)
    if given.only != "steps":
        samples(given.runs, given.seed, given.workers, log)
    if given.only != "samples":
        steps(log)


if __name__ == "__main__":
    main()
