"""Error rates: for every sampler and paper instance, whether delta is kept, and the longest run.

    python benchmarks/error_rates.py [--thresholds A,B] [--instances A,B] [--scenarios A,B]
                                     [--samplers A,B] [--deltas A,B] [--runs N] [--seed S]
                                     [--workers W | --device gpu | --cluster ADDRESS]
                                     [--seconds S] [--out FILE]

With a proven threshold the 95% upper Clopper-Pearson limit must be at most delta; with gk16,
which promises nothing, errors are reported. No error in n runs leaves a limit of about 3 / n, so
small deltas get as many runs as it takes (29,956 at delta = 0.0001). Without --deltas it is the
instance's own. Writes a table to benchmarks/error_rates.md as it goes; rows that stand there
already are kept, so that it can be continued (delete the file, or the rows of a sampler that
changed, to run them anew). What does not fit in --seconds is named as missing.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np
from samplers import INSTANCES, SCENARIOS, instance
from scipy.stats import beta

import simplexplore as sx

PROBLEMS = {**INSTANCES, "Bernoulli 2": "bern_app2"}
SAMPLERS = ("top-two", "ctns", "cge", "ptns", "uniform", "oracle")
PROVEN = ("tilt", "mixture", "kk21")
HEADING = (
    "| threshold | instance | scenario | sampler | delta | runs | errors | limit | mean "
    "| longest / median | |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def upper(errors: int, runs: int) -> float:
    """95% upper Clopper-Pearson limit, one-sided."""
    return 1.0 if errors == runs else float(beta.ppf(0.95, errors + 1, runs - errors))


def fewest_runs(delta: float) -> int:
    """Runs without an error that put the limit at delta."""
    return math.ceil(math.log(0.05) / math.log1p(-delta))


def row_of(job: tuple[str, ...], runs: int, seed: int, place: dict[str, Any]) -> str:
    """One row of the table."""
    threshold, name, scenario, sampler, delta = job
    if threshold in PROVEN:
        runs = max(runs, fewest_runs(float(delta)))
    r = sx.simulate(
        instance(PROBLEMS[name]), None, sampler, runs=runs, seed=seed, scenario=scenario,
        threshold=threshold, delta=float(delta), **place,
    )  # fmt: skip
    errors = int((~r.correct).sum())
    limit = upper(errors, runs)
    verdict = ""
    if threshold in PROVEN:
        verdict = "kept" if limit <= float(delta) else "NOT SHOWN"
    times = r.stopping_times
    return (
        f"| {' | '.join(job)} | {runs} | {errors} | {limit:.2g} | {times.mean():.0f} "
        f"| {times.max() / np.median(times):.1f} | {verdict} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--thresholds", default="tilt,gk16")
    parser.add_argument("--instances", default=",".join(PROBLEMS))
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--deltas", default="", help="default: the instance's own")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--cluster", help="address of a Dask scheduler")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "error_rates.md")
    chosen = parser.parse_args()
    place: dict[str, Any] = {"device": chosen.device}
    if chosen.cluster:
        place = {"executor": sx.cluster(chosen.cluster)}
    elif chosen.device == "cpu":
        place = {"workers": chosen.workers}
    heading = (
        f"# Error rates\n\nsimplexplore {sx.__version__}, numpy {np.__version__}, Python "
        f"{platform.python_version()}; seed {chosen.seed}, capped at 10,000,000 steps. A limit is "
        f"the 95% upper Clopper-Pearson limit of the error rate.\n\n"
    )
    if chosen.out.exists():  # what is said above its rows holds for those that are kept
        heading = chosen.out.read_text(encoding="utf-8").partition(HEADING)[0]
    heading += HEADING
    done = rows_of(chosen.out)
    began = time.perf_counter()
    jobs = [
        (*job, delta)
        for *job, given in itertools.product(
            chosen.thresholds.split(","),
            chosen.instances.split(","),
            chosen.scenarios.split(","),
            chosen.samplers.split(","),
            chosen.deltas.split(","),
        )
        for delta in [given or f"{instance(PROBLEMS[job[1]]).delta:g}"]
    ]
    # The cheapest first: what runs out of time is what needs most runs.
    for job in sorted(jobs, key=lambda job: fewest_runs(float(job[4]))):
        if job in done or time.perf_counter() - began > chosen.seconds:
            continue
        done[job] = row_of(job, chosen.runs, chosen.seed, place)
        print(done[job], flush=True)
        order = [*(job for job in done if job not in jobs), *(job for job in jobs if job in done)]
        lines = [heading, *(done[job] for job in order)]
        missing = [job for job in jobs if job not in done]
        if missing:
            lines += ["", "Not run yet:", "", *("- " + ", ".join(job) for job in missing)]
        chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum(job not in done for job in jobs)} not run; table in {chosen.out}")


def rows_of(path: Path) -> dict[tuple[str, ...], str]:
    """Rows of an earlier table by threshold, instance, scenario, sampler and delta."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    cells = {line: tuple(cell.strip() for cell in line.split("|")[1:6]) for line in lines}
    return {key: line for line, key in cells.items() if key[:1] and key[0] in (*PROVEN, "gk16")}


if __name__ == "__main__":
    main()
