"""Expected samples against simulated means: ``python benchmarks/expected_samples.py``.

Writes benchmarks/expected_samples.md, or ``--out FILE``; ``--runs`` and ``--workers`` say how many.
The seed was not used while the estimate was made.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import simplexplore as sx
from simplexplore.problem.problem import Problem

DELTAS = (0.3, 0.1, 0.01, 0.001, 1e-4, 1e-6)
SCENARIOS = ("end-of-time", "anytime")
SEED = 20261118
OUT = Path(__file__).with_suffix(".md")

INTRODUCTION = """# Expected samples

`expected_samples` (sampler `top-two`, threshold `tilt`) against the mean of {runs} simulated runs
(ten times as many of the meals, which are quick) with seed {seed}, by
`benchmarks/expected_samples.py`. The ratio is estimate over mean; ± is the standard error of the
mean; runs with different deltas are the same up to where they stop.

Worst ratios: {least:.2f} and {most:.2f}; {close} of {count} are within 10%.

Movies are simulated with rewards that vary less than the sampler is told, as in the paper; with
an unknown sigma, with the one that is guessed. *Each its own*: `sigma = "unknown"`; *one for all*:
with `equal_sigma = true`.

| instance | sigma is | scenario | delta | lower bound | estimate | simulated mean | ± | ratio |
|---|---|---|---|---|---|---|---|---|
"""


def cases() -> Iterator[tuple[str, str, Problem, object]]:
    """Instances as they are, and those with a sigma with an unknown one."""
    for name in sx.catalog.names():
        instance = sx.catalog.instance(name)
        yield name, "known", instance.problem, instance.noise
    for name in sx.catalog.names():
        problem = sx.catalog.instance(name).problem
        if not isinstance(problem.rewards, sx.Gaussian):
            continue
        guess = problem.rewards.sigma
        for what, equal in (("each its own", False), ("one for all", True)):
            rewards = sx.Gaussian("unknown", sigma_guess=guess, equal_sigma=equal)
            yield name, what, problem.replace(rewards=rewards), None


def main(runs: int, workers: int, out: Path) -> None:
    """Simulate every instance, and write the table."""
    lines, ratios = [], []
    for scenario in SCENARIOS:
        for name, what, problem, noise in cases():
            for delta in DELTAS:
                bound = sx.lower_bound(problem, delta=delta)
                expected = sx.expected_samples(bound, scenario)
                results = sx.simulate(
                    problem,
                    sampler="top-two",
                    threshold="tilt",
                    delta=delta,
                    scenario=scenario,
                    runs=runs if problem.size > 3 else 10 * runs,
                    seed=SEED,
                    noise=noise,
                    workers=workers,
                )
                times = results.summary()["stopping_time"]
                mean, error = times["mean"], times["stderr"]
                least = bound.scenarios[scenario].lower_bound
                ratios.append(expected / mean)
                kind = what if isinstance(problem.rewards, sx.Gaussian) else "-"
                lines.append(
                    f"| {name} | {kind} | {scenario} | {delta:g} | {least:.0f} | {expected:.0f} | "
                    f"{mean:.0f} | {error:.0f} | {ratios[-1]:.2f} |"
                )
                print(lines[-1], flush=True)
    text = INTRODUCTION.format(
        runs=runs,
        seed=SEED,
        least=min(ratios),
        most=max(ratios),
        close=sum(abs(ratio - 1) <= 0.1 for ratio in ratios),
        count=len(ratios),
    )
    out.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    main(options.runs, options.workers, options.out)
