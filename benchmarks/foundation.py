"""Times and sizes of what everything else stands on: geometry, bounds, start-up.

    python benchmarks/foundation.py [--quick] [--out FILE]

One core, after warm-up, medians of several repeats, with accuracy beside time. Targets are
those of the project's first milestone, or tighter where more was reached since. Nothing is
written unless --out is given.
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
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
os.environ["PYTHONPATH"] = str(ROOT / "src")

import numpy as np
import scipy

import simplexplore as sx
from simplexplore.geometry.polytope import Polytope

MOVIES = ROOT / "examples" / "movies.toml"

# A bound counts as computed if it is certified to this.
WORST_GAP = 1e-7

# Exact to the last digit shown: computed in 40-digit arithmetic.
MOVIES_TIMES = {"end-of-time": 1149.351249909440, "anytime": 2165.793648127325}


@dataclass
class Row:
    """One line of the table."""

    what: str
    measured: float
    unit: str
    target: float | None
    accuracy: str
    repeats: int
    accurate: bool = True

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "ok" if self.accurate and self.measured <= self.target else "MISSED"


def median_time(task: Callable[[], object], repeats: int) -> float:
    """Median seconds of a task, after one run that does not count."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def instance(
    size: int, kind: str, seed: int = 0, rewards: sx.Gaussian | sx.Bernoulli | None = None
) -> tuple[sx.Problem, np.ndarray]:
    """`size` arms and 10 constraints around a random policy.

    kind "random": normal coefficients. kind "0/1": each constraint limits a group that has
    about a third of the arms to some 30%, or asks for some 30% of it, like genres of films.
    (All limits equal would be another matter: see README.md on degenerate vertices.)
    """
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.2, 0.8, size)
    if kind == "random":
        matrix = rng.normal(size=(10, size))
        limit = matrix @ rng.dirichlet(np.ones(size)) + 0.1
    else:
        matrix = (rng.random((10, size)) < 1 / 3).astype(float)
        matrix[5:] *= -1.0
        limit = np.round(rng.uniform(0.2, 0.4, 10), 3) * np.repeat([1, -1], 5)
    return sx.Problem(size, (matrix, limit), rewards), means


def bound_of_movies(repeats: int) -> Row:
    problem = sx.Problem.from_file(MOVIES)
    seconds = median_time(lambda: sx.lower_bound(problem), repeats)
    scenarios = sx.lower_bound(problem).scenarios
    error = max(
        abs(scenarios[name].characteristic_time / exact - 1) for name, exact in MOVIES_TIMES.items()
    )
    gap = max(found.relative_gap for found in scenarios.values())
    return Row(
        "bound of the 12-arm film instance, both scenarios",
        1e3 * seconds,
        "ms",
        20.0,
        f"error {error:.0e}, certified {gap:.0e}",
        repeats,
        accurate=error <= gap <= 1e-8,
    )


def edges_of_a_vertex(kind: str, repeats: int) -> list[Row]:
    problem, means = instance(1000, kind)
    polytope = Polytope(problem)
    vertex = polytope.optimal_vertex(means)
    seconds = median_time(lambda: polytope.edges(vertex), repeats)
    edges = polytope.edges(vertex)
    directions = edges.dense(problem.size)
    slack = problem.upper - problem.matrix @ vertex.policy
    # Feasible directions: shares at zero and rows that are tight must not be violated.
    violation = max(
        float(-directions[:, vertex.policy == 0].min(initial=0.0)),
        float((directions @ problem.matrix[slack < 1e-12].T).max(initial=0.0)),
        float(np.abs(directions.sum(axis=1)).max()),
    )
    shape = "degenerate" if polytope.is_degenerate(vertex) else "nondegenerate"
    build = median_time(lambda: Polytope(problem).optimal_vertex(means), max(3, repeats // 3))
    return [
        Row(
            f"edges of one vertex, K = 1000, 10 {kind} constraints",
            1e3 * seconds,
            "ms",
            50.0,
            f"{len(edges)} edges, {shape}, off by {abs(violation):.0e}",
            repeats,
        ),
        Row(
            "  the feasible set and its optimal vertex",
            1e3 * build,
            "ms",
            None,
            f"dimension {polytope.dimension}",
            max(3, repeats // 3),
        ),
    ]


def characteristic_time(
    size: int, kind: str, target: float, seeds: int, rewards: str = "gaussian"
) -> Row:
    """Several instances, as their difficulty differs: median time, worst certificate."""
    times, gaps = [], []
    for seed in range(seeds):
        family = sx.Bernoulli() if rewards == "bernoulli" else sx.Gaussian(1.0)
        problem, means = instance(size, kind, seed, family)
        start = time.perf_counter()
        try:
            scenarios = sx.lower_bound(problem, means).scenarios.values()
            gaps.append(max(found.relative_gap for found in scenarios))
        except sx.NotConvergedError:
            gaps.append(math.inf)
        times.append(time.perf_counter() - start)
    return Row(
        f"bound, both scenarios, K = {size}, 10 {kind} constraints, {rewards}",
        statistics.median(times),
        "s",
        target,
        f"certified {max(gaps):.0e} at worst, {statistics.median(gaps):.0e} median; "
        f"slowest {max(times):.2g} s",
        seeds,
        accurate=max(gaps) <= WORST_GAP,
    )


def in_child(code: str) -> float:
    """The number that a fresh interpreter prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return float(result.stdout)


def peak_memory(size: int) -> Row:
    code = (
        "import resource, sys; sys.path.insert(0, 'benchmarks')\n"
        "from foundation import instance, sx\n"
        f"problem, means = instance({size}, 'random', rewards=sx.Gaussian(1.0))\n"
        "sx.lower_bound(problem, means)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    return Row(f"peak memory of that process, K = {size}", in_child(code), "MiB", 1024.0, "", 1)


def import_time(repeats: int) -> Row:
    code = (
        "import time; start = time.perf_counter(); import simplexplore; "
        "print(time.perf_counter() - start)"
    )
    times = [in_child(code) for _ in range(repeats + 1)][1:]
    return Row("import simplexplore", statistics.median(times), "s", 0.5, "", repeats)


def command_time(repeats: int) -> Row:
    command = [sys.executable, "-m", "simplexplore.cli.app", "bound", str(MOVIES)]
    installed = Path(sys.executable).parent / "simplexplore"
    if installed.exists():
        command = [str(installed), "bound", str(MOVIES)]

    def run() -> None:
        subprocess.run(command, capture_output=True, check=True, cwd=ROOT)

    return Row(
        "simplexplore bound examples/movies.toml, from the shell",
        median_time(run, repeats),
        "s",
        2.0,
        "",
        repeats,
    )


def machine() -> dict[str, str]:
    """Versions and processor."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "simplexplore": sx.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "cpu": f"{model}, one core of {os.cpu_count()}",
        "system": f"{platform.system()} {platform.release()}",
    }


def run(quick: bool) -> list[Row]:
    rows = [bound_of_movies(20)]
    for kind in ("random", "0/1"):
        rows += edges_of_a_vertex(kind, 10)
    sizes = {200: 2.0} if quick else {200: 2.0, 1000: 5.0, 10_000: 60.0}
    for size, target in sizes.items():
        for kind in ("random", "0/1"):
            rows.append(characteristic_time(size, kind, target, 5))
            rows.append(characteristic_time(size, kind, target, 5, "bernoulli"))
    rows.append(peak_memory(max(sizes)))
    rows += [import_time(5), command_time(5)]
    return rows


def show(rows: list[Row], about: dict[str, str]) -> None:
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    header = ("", "measured", "target", "", "accuracy", "repeats")
    lines = [header]
    for row in rows:
        target = "" if row.target is None else f"<= {row.target:g} {row.unit}"
        lines.append(
            (
                row.what,
                f"{row.measured:.3g} {row.unit}"
                if row.measured < 1000
                else f"{row.measured:.0f} {row.unit}",
                target,
                row.verdict,
                row.accuracy,
                str(row.repeats),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    for line in lines:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Times and sizes of geometry and bounds.")
    parser.add_argument(
        "--quick", action="store_true", help="leave out bounds of 1000 and more arms"
    )
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    rows, about = run(arguments.quick), machine()
    show(rows, about)
    if arguments.out:
        content = {
            "machine": about,
            "rows": [asdict(row) | {"verdict": row.verdict} for row in rows],
        }
        arguments.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
