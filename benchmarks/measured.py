"""Error rates and samples with measured limits: ``python benchmarks/measured.py --help``.

Instances whose limits bind, are slack, meet in ties or cannot be kept; with sigmas that nobody
knows; with samples that keep the limits. `before` is what unshifted mixtures on a grid of
competitors took in a prototype (150 runs). A thousand runs of each take about half an hour of
processor time, or a few minutes on 16 cores (``--workers 16``).
"""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path

import simplexplore as sx
from simplexplore.exploration.proportion import clopper_pearson
from simplexplore.problem.measured import Measured


def one_row(means, coefficients, limit, epsilon, tolerance, sigma=1.0, **more):
    """A problem with one measured row; sigma is that of measurements."""
    row = Measured("m", limit, sigma=sigma, tolerance=tolerance, means=coefficients)
    return sx.Problem(len(means), means=means, epsilon=epsilon, measured=[row], **more)


INSTANCES = {
    "C1a": one_row([1, 0], [1, 0], 0.5, 0.1, 0.0),
    "C1b": one_row([1, 0], [1, 0], 0.5, 0.2, 0.0),
    "C2": one_row([1, 0.6, 0.2], [1, 0.5, 0.1], 0.5, 0.1, 0.05),
    "C3": one_row([1, 0.8, 0.5, 0.3], [0.9, 0.6, 0.3, 0.2], 0.45, 0.1, 0.05, sigma=0.5),
    "tight": one_row([1, 0.4, 0.1], [0.9, 0.2, 0.5], 0.3, 0.2, 0.02, sigma=0.3),
    "slack": one_row([1, 0.5, 0.2], [0.2, 0.5, 0.9], 0.5, 0.1, 0.0),
    "degenerate": one_row([1, 0.5, 0], [1, 0.5, 0], 0.5, 0.2, 0.05),
    "infeasible": one_row([1, 0.5, 0.2], [1, 0.8, 0.7], 0.5, 0.1, 0.05, sigma=0.5),
    "hardly infeasible": one_row([1, 0.5, 0.2], [1, 0.8, 0.55], 0.5, 0.2, 0.1, sigma=0.5),
    "known limits": one_row(
        [1, 0.7, 0.5, 0.2],
        [0.9, 0.6, 0.2, 0.1],
        0.4,
        0.2,
        0.05,
        sigma=0.5,
        constraints=["a1 + a2 <= 0.6", "a4 >= 0.1"],
    ),
    "bounded": sx.Problem(
        3,
        rewards=sx.Bounded(0, 1),
        means=[0.7, 0.5, 0.2],
        epsilon=0.1,
        measured=[Measured("m", 0.4, low=0, high=1, tolerance=0.05, means=[0.7, 0.3, 0.1])],
    ),
    "two rows": sx.Problem(
        3,
        means=[1, 0.8, 0.5],
        epsilon=0.2,
        measured=[
            Measured("m", 0.5, sigma=0.5, tolerance=0.1, means=[0.9, 0.6, 0.3]),
            Measured("n", ">= 0.5", sigma=0.5, tolerance=0.1, means=[0.5, 0.7, 0.5]),
        ],
    ),
}
# Answers that tie, and coefficients that are exactly at their limits: where errors would show.
INSTANCES |= {
    "two best": one_row([1, 1, 0.2], [0.8, 0.2, 0.1], 0.5, 0.1, 0.05, sigma=0.5),
    "all tie": one_row([0.5, 0.5, 0.5], [0.8, 0.4, 0.2], 0.5, 0.1, 0.05, sigma=0.5),
    "at the limit": one_row([1, 0.5, 0.2], [0.5, 0.3, 0.1], 0.5, 0.1, 0.05, sigma=0.5),
    "no room": one_row([1, 0.5, 0.2], [0.9, 0.7, 0.5], 0.5, 0.2, 0.1, sigma=0.5),
    "beyond the tolerance": one_row([1, 0.5, 0.2], [0.6, 0.3, 0.1], 0.5, 0.1, 0.1, sigma=0.5),
}


def learned(problem, rewards=False):
    """The same problem where nobody knows the sigma of measurements, or of rewards."""
    rows = [replace(row, sigma="unknown", sigma_guess=row.sigma) for row in problem.measured]
    if rewards:
        problem = problem.replace(rewards=sx.Gaussian("unknown", sigma_guess=1.0))
    return problem.replace(measured=rows)


for name in ("C1b", "C2", "tight", "slack", "infeasible", "two best", "at the limit", "two rows"):
    INSTANCES[f"{name}, unknown sigma"] = learned(INSTANCES[name])
for name in ("C1b", "tight"):
    INSTANCES[f"{name}, unknown sigmas"] = learned(INSTANCES[name], rewards=True)

# Samples that keep the limit while it is learned, beside those that need not.
DOSES = {
    "limit": 0.45,
    "tolerance": 0.05,
    "means": (0.9, 0.6, 0.3, 0.2),
    "safe": ["a4"],
}
for kind, noise in {
    "doses": {"sigma": 0.5, "domain": (0, 1)},
    "doses, unknown sigma": {"sigma": "unknown", "sigma_guess": 0.5, "domain": (0, 1)},
    "doses, bounded": {"low": 0, "high": 1},
}.items():
    doses = sx.Problem(
        4,
        means=[1, 0.8, 0.5, 0.3],
        epsilon=0.1,
        measured=[Measured("m", **DOSES, **noise)],
        constraints=["a1 <= 0.6"],
    )
    INSTANCES[kind] = doses
    INSTANCES[f"{kind}, anytime"] = doses.replace(scenario="anytime")

BEFORE = {"C1a": (7903, 10051), "C1b": (2512, 3117), "C2": (9891, 11942), "C3": (4509, 5390)}


def row(name, sampler, delta, runs, workers, independent):
    """Simulate; the line of a table."""
    given = INSTANCES[name]
    rows = [replace(one, independent=independent) for one in given.measured]
    problem = given.replace(measured=rows, delta=delta)
    results = sx.simulate(problem, sampler=sampler, runs=runs, seed=1, workers=workers)
    summary = results.summary()
    times, wrong = summary["stopping_time"], int((~results.correct).sum())
    before = BEFORE.get(name, ("", ""))[0 if delta == 0.1 else 1]
    least = "-" if math.isnan(results.lower_bound) else f"{results.lower_bound:.0f}"
    counts = [round(runs * summary[x]["fraction"]) for x in ("violations", "suboptimal")]
    over = round(runs * summary["exceeded"]["fraction"]) if "exceeded" in summary else ""
    return (
        f"| {name} | {sampler} | {delta:g} | {times['mean']:.0f} ({times['stderr']:.0f}) | "
        f"{before if sampler == 'top-two' else ''} | {least} | {counts[0]} | {counts[1]} | "
        f"{round(runs * summary['infeasible']['fraction'])} | {wrong} | "
        f"{clopper_pearson(wrong, runs)[1]:.4f} | {over} |"
    )


HEAD = (
    "| instance | sampler | delta | mean samples | before | lower bound | violates | suboptimal | "
    "said infeasible | wrong | upper 95% | samples exceed |\n" + "|---" * 12 + "|"
)


def lines(runs, few, workers, independent):
    """All tables, line by line."""
    yield f"{runs} runs each:\n\n{HEAD}"
    for name in INSTANCES:
        yield row(name, "top-two", 0.1, runs, workers, independent)
    yield f"\n{few} runs each:\n\n{HEAD}"
    for name in BEFORE:
        yield row(name, "top-two", 0.01, few, workers, independent)
    for sampler in ("uniform", "ctns"):
        for name in BEFORE:
            yield row(name, sampler, 0.1, few, workers, independent)


def main() -> None:
    """Print the tables, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument("--few", type=int, help="of other deltas and samplers; a fifth of runs")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--independent",
        action="store_true",
        help="measurements are declared independent of rewards",
    )
    parser.add_argument("--out", type=Path, help="a file for the tables")
    given = parser.parse_args()
    few = given.runs // 5 if given.few is None else given.few
    found = []
    for line in lines(given.runs, few, given.workers, given.independent):
        print(line, flush=True)
        found.append(line)
        if given.out is not None:  # what is done stays, whatever comes
            given.out.write_text("\n".join(found) + "\n", encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
