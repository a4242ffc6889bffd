"""Error rates: for every sampler and paper instance, whether delta is kept.

    python benchmarks/error_rates.py [--runs N] [--workers W] [--seconds S] [--out FILE]

With the proven threshold the 95% upper Clopper-Pearson limit must be at most delta; with gk16,
which promises nothing, errors are reported. No error in n runs leaves a limit of about 3 / n, so
instances with a small delta get as many runs as it takes (29,956 at delta = 0.0001). Writes a
table to benchmarks/error_rates.md as it goes; what does not fit in --seconds is named as missing.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import itertools
import math
import platform
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np
from samplers import INSTANCES, SCENARIOS, instance
from scipy.stats import beta

import simplexplore as sx

SAMPLERS = ("top-two", "ctns", "cge", "ptns", "uniform", "oracle")


def upper(errors: int, runs: int) -> float:
    """95% upper Clopper-Pearson limit, one-sided."""
    return 1.0 if errors == runs else float(beta.ppf(0.95, errors + 1, runs - errors))


def fewest_runs(delta: float) -> int:
    """Runs without an error that put the limit at delta."""
    return math.ceil(math.log(0.05) / math.log1p(-delta))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "error_rates.md")
    chosen = parser.parse_args()
    lines = [
        "# Error rates\n",
        (
            f"simplexplore {sx.__version__}, numpy {np.__version__}, Python "
            f"{platform.python_version()}; seed 0, capped at 10,000,000 steps. A limit is the 95% "
            "upper Clopper-Pearson limit of the error rate.\n"
        ),
        "| threshold | instance | scenario | sampler | delta | runs | errors | limit | mean | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    missing = []
    began = time.perf_counter()
    problems = {name: instance(name) for name in INSTANCES} | {"Bernoulli 2": instance("bern_app2")}
    # The cheapest first: what runs out of time is what needs most runs.
    jobs = sorted(
        itertools.product(("mixture", "gk16"), problems, SAMPLERS, SCENARIOS),
        key=lambda job: fewest_runs(problems[job[1]].delta) if job[0] == "mixture" else math.inf,
    )
    for threshold, name, sampler, scenario in jobs:
        problem = problems[name]
        delta = problem.delta
        runs = max(chosen.runs, fewest_runs(delta)) if threshold == "mixture" else chosen.runs
        if time.perf_counter() - began > chosen.seconds:
            missing.append(f"{threshold}, {name}, {scenario}, {sampler}")
            continue
        r = sx.simulate(
            problem, None, sampler, runs=runs, seed=0, scenario=scenario,
            threshold=threshold, workers=chosen.workers,
        )  # fmt: skip
        errors = int((~r.correct).sum())
        limit = upper(errors, runs)
        verdict = ""
        if threshold == "mixture":
            verdict = "kept" if limit <= delta else "NOT SHOWN"
        lines.append(
            f"| {threshold} | {name} | {scenario} | {sampler} | {delta:g} | {runs} "
            f"| {errors} | {limit:.2g} | {r.stopping_times.mean():.0f} | {verdict} |"
        )
        print(lines[-1], flush=True)
        chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if missing:
        lines.append("\nNot run, for want of time:\n")
        lines += [f"- {what}" for what in missing]
    chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(missing)} not run; table in {chosen.out}")


if __name__ == "__main__":
    main()
