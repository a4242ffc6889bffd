"""Error rates and samples with measured limits: ``python benchmarks/measured.py [runs]``.

Instances whose limits bind, are slack, meet in ties or cannot be kept. `before` is what unshifted
mixtures on a grid of competitors took in a prototype (150 runs). Run at low priority: it takes some
ten minutes. Prints tables.
"""

import math
import sys

import simplexplore as sx
from simplexplore.problem.measured import Measured
from simplexplore.simulation.results import clopper_pearson


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
BEFORE = {"C1a": (7903, 10051), "C1b": (2512, 3117), "C2": (9891, 11942), "C3": (4509, 5390)}


def row(name, sampler, delta, runs):
    """Simulate, and print a line."""
    results = sx.simulate(INSTANCES[name], sampler=sampler, delta=delta, runs=runs, seed=1)
    summary = results.summary()
    times, wrong = summary["stopping_time"], int((~results.correct).sum())
    before = BEFORE.get(name, ("", ""))[0 if delta == 0.1 else 1]
    least = "-" if math.isnan(results.lower_bound) else f"{results.lower_bound:.0f}"
    counts = [round(runs * summary[x]["fraction"]) for x in ("violations", "suboptimal")]
    print(
        f"| {name} | {sampler} | {delta:g} | {times['mean']:.0f} ({times['stderr']:.0f}) | "
        f"{before if sampler == 'top-two' else ''} | {least} | {counts[0]} | {counts[1]} | "
        f"{round(runs * summary['infeasible']['fraction'])} | {wrong} | "
        f"{clopper_pearson(wrong, runs)[1]:.4f} |",
        flush=True,
    )


def main(runs: int) -> None:
    """Print a row for each case."""
    print("| instance | sampler | delta | mean samples | before | lower bound | violates |", end="")
    print(" suboptimal | said infeasible | wrong | upper 95% |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    few = runs // 5
    for name in INSTANCES:
        row(name, "top-two", 0.1, few if name == "two rows" else runs)
    for name in BEFORE:
        row(name, "top-two", 0.01, few)
    for sampler in ("uniform", "ctns"):
        for name in BEFORE:
            row(name, sampler, 0.1, few)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
