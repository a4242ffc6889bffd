"""Expected samples against simulated means: `python benchmarks/expected_samples.py [RUNS]`.

Writes benchmarks/expected_samples.md. The seed was not used while the estimate was made.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import simplexplore as sx

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

Movies are simulated with rewards that vary less than the sampler is told, as in the paper.

| instance | scenario | delta | lower bound | estimate | simulated mean | ± | ratio |
|---|---|---|---|---|---|---|---|
"""


def main(runs: int) -> None:
    """Simulate every instance, and write the table."""
    lines, ratios = [], []
    for scenario in SCENARIOS:
        for name in sx.catalog.names():
            instance = sx.catalog.instance(name)
            for delta in DELTAS:
                bound = sx.lower_bound(instance.problem, delta=delta)
                expected = sx.expected_samples(bound, scenario)
                results = sx.simulate(
                    instance.problem,
                    sampler="top-two",
                    threshold="tilt",
                    delta=delta,
                    scenario=scenario,
                    runs=runs if instance.problem.size > 3 else 10 * runs,
                    seed=SEED,
                    noise=instance.noise,
                )
                times = results.summary()["stopping_time"]
                mean, error = times["mean"], times["stderr"]
                least = bound.scenarios[scenario].lower_bound
                ratios.append(expected / mean)
                lines.append(
                    f"| {name} | {scenario} | {delta:g} | {least:.0f} | {expected:.0f} | "
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
    OUT.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
