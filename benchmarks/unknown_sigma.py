"""Error rates and samples with an unknown sigma: ``python benchmarks/unknown_sigma.py [runs]``.

Near-ties, where a rule that promises too much errs most, with equal and unequal deviations; and
mean samples against a known sigma. Run at low priority: it takes minutes. Prints a table.
"""

import sys

import simplexplore as sx
from simplexplore.problem.families import Gaussian
from simplexplore.simulation.results import clopper_pearson

MEANS = {"tie but for 0.01": (0.5, 0.49, 0.49), "far": (1.0, 0.5, 0.0)}
SIGMAS = {"equal": (1.0, 1.0, 1.0), "unequal": (0.4, 1.0, 2.0)}
MOST = 4000


def main(runs: int) -> None:
    """Print a row for each case."""
    print(f"{runs} runs each, top-two, tilt, at most {MOST} samples\n")
    print("| means | sigma | delta | wrong | upper 95% | capped | mean samples | sigma known |")
    print("|---|---|---|---|---|---|---|---|")
    for name, means in MEANS.items():
        for kind, sigma in SIGMAS.items():
            for delta in (0.1, 0.3):
                row = []
                for rewards in (Gaussian("unknown", sigma_guess=sigma), Gaussian(sigma)):
                    problem = sx.Problem(3, rewards=rewards, means=list(means), delta=delta)
                    row.append(sx.simulate(problem, runs=runs, seed=1, max_steps=MOST))
                learned, known = row
                wrong = int((~learned.correct & ~learned.capped).sum())
                upper = clopper_pearson(wrong, runs)[1]
                print(
                    f"| {name} | {kind} | {delta} | {wrong} | {upper:.4f} | "
                    f"{int(learned.capped.sum())} | {learned.stopping_times.mean():.0f} | "
                    f"{known.stopping_times.mean():.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
