"""Error rates: for every sampler and paper instance, whether delta is kept.

    python benchmarks/error_rates.py [--samplers A,B] [--runs N] [--workers W] [--seconds S]
                                     [--out FILE]

With the proven threshold the 95% upper Clopper-Pearson limit must be at most delta; with gk16,
which promises nothing, errors are reported. No error in n runs leaves a limit of about 3 / n, so
instances with a small delta get as many runs as it takes (29,956 at delta = 0.0001). Writes a
table to benchmarks/error_rates.md as it goes; rows that stand there already are kept, so that it
can be continued (delete the file, or the rows of a sampler that changed, to run them anew). What
does not fit in --seconds is named as missing.
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
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "error_rates.md")
    chosen = parser.parse_args()
    heading = [
        "# Error rates\n",
        (
            f"simplexplore {sx.__version__}, numpy {np.__version__}, Python "
            f"{platform.python_version()}; seed 0, capped at 10,000,000 steps. A limit is the 95% "
            "upper Clopper-Pearson limit of the error rate.\n"
        ),
        "| threshold | instance | scenario | sampler | delta | runs | errors | limit | mean | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    done = rows_of(chosen.out)
    began = time.perf_counter()
    problems = {name: instance(name) for name in INSTANCES} | {"Bernoulli 2": instance("bern_app2")}
    jobs = list(itertools.product(("mixture", "gk16"), problems, SCENARIOS, SAMPLERS))
    # The cheapest first: what runs out of time is what needs most runs.
    for job in sorted(jobs, key=lambda job: fewest_runs(problems[job[1]].delta)):
        threshold, name, scenario, sampler = job
        if (
            job in done
            or sampler not in chosen.samplers.split(",")
            or time.perf_counter() - began > chosen.seconds
        ):
            continue
        delta = problems[name].delta
        runs = max(chosen.runs, fewest_runs(delta)) if threshold == "mixture" else chosen.runs
        r = sx.simulate(
            problems[name], None, sampler, runs=runs, seed=0, scenario=scenario,
            threshold=threshold, workers=chosen.workers,
        )  # fmt: skip
        errors = int((~r.correct).sum())
        limit = upper(errors, runs)
        verdict = ""
        if threshold == "mixture":
            verdict = "kept" if limit <= delta else "NOT SHOWN"
        done[job] = (
            f"| {threshold} | {name} | {scenario} | {sampler} | {delta:g} | {runs} "
            f"| {errors} | {limit:.2g} | {r.stopping_times.mean():.0f} | {verdict} |"
        )
        print(done[job], flush=True)
        missing = [job for job in jobs if job not in done]
        lines = heading + [done[job] for job in jobs if job in done]
        if missing:
            lines += ["", "Not run yet:", "", *("- " + ", ".join(job) for job in missing)]
        chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum(job not in done for job in jobs)} not run; table in {chosen.out}")


def rows_of(path: Path) -> dict[tuple[str, ...], str]:
    """Rows of an earlier table by threshold, instance, scenario and sampler."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    cells = {line: tuple(cell.strip() for cell in line.split("|")[1:5]) for line in lines}
    return {key: line for line, key in cells.items() if key[:1] in (("mixture",), ("gk16",))}


if __name__ == "__main__":
    main()
