"""Forecasts against simulated means: ``python benchmarks/expected_samples.py``.

Writes benchmarks/expected_samples.md, or ``--out FILE``; ``--runs`` and ``--workers`` say how many.
The seed was not used while the forecast was made. Run at low priority: it takes minutes.
"""

import argparse
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - threads are limited before numpy is imported

import simplexplore as sx  # noqa: E402

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SEED = 20261119
OUT = Path(__file__).with_suffix(".md")

INTRODUCTION = """# What to expect

What `bound` says that sampler `top-two` with threshold `tilt` takes on average
(`expected_samples`), against the mean of {runs} simulated runs with seed {seed}, by
`benchmarks/expected_samples.py`. The ratio is forecast over mean, with the standard error of both
together; *eased* is the factor by which the variance of the noise was divided where runs are long;
*range* is the share of the simulated runs between the two ends of `expected_range`; seconds of the
processor are those of the forecast, compiled before.

Ratios lie between {least:.2f} and {most:.2f}; {close} of {count} are within 10%.

| problem | lower bound | forecast | runs | eased | simulated mean | ratio | range | s |
|---|---|---|---|---|---|---|---|---|
"""


def example(name: str, **changes: object) -> sx.Problem:
    """An example with other settings."""
    return sx.Problem.from_file(EXAMPLES / f"{name}.toml").replace(**changes)


def cases() -> dict[str, sx.Problem]:
    """Problems of all kinds, with and without epsilon."""
    meal, laboratory = example("meal"), example("laboratory")
    unknown = sx.Gaussian("unknown", sigma_guess=1.0)
    own = sx.Gaussian("unknown", sigma_guess=tuple(laboratory.rewards.sigmas(5).tolist()))
    return {
        "meal": meal,
        "meal, epsilon 0.005": meal.replace(epsilon=0.005),
        "meal, epsilon 0.1": meal.replace(epsilon=0.1),
        "meal, sigma unknown": meal.replace(rewards=unknown),
        "meal, sigma unknown, epsilon 0.1": meal.replace(rewards=unknown, epsilon=0.1),
        "meal, counts, epsilon 0.2": meal.replace(rewards=sx.Poisson(), epsilon=0.2),
        "meal, regret 0.2": meal.replace(stop_when={"regret": 0.2}),
        "laboratory (costs)": laboratory,
        "laboratory, epsilon 0.05": laboratory.replace(epsilon=0.05),
        "laboratory, epsilon 0.2": laboratory.replace(epsilon=0.2),
        "laboratory, sigma unknown": laboratory.replace(rewards=own),
        "laboratory, sigma 15": laboratory.replace(rewards=sx.Gaussian(15.0)),
        "star": example("star"),
        "star, epsilon 0.02": example("star", epsilon=0.02),
        "trial (rates)": example("trial"),
        "trial, epsilon 0.03": example("trial", epsilon=0.03),
        "strict trial (limits on samples)": example("strict_trial"),
        "strict trial, epsilon 0.03": example("strict_trial", epsilon=0.03),
        "traffic": example("traffic"),
        "traffic, epsilon 0.01": example("traffic", epsilon=0.01),
        "movies": example("movies"),
        "movies, epsilon 0.1": example("movies", epsilon=0.1),
        "dose mix (measured)": example("dose_mix"),
        "dose mix, epsilon 0.2": example("dose_mix", epsilon=0.2),
        "bernoulli-2": sx.catalog.instance("bernoulli-2").problem,
        "gaussian-1": sx.catalog.instance("gaussian-1").problem,
    }


def main(runs: int, workers: int, out: Path) -> None:
    """Simulate every problem, and write the table."""
    lines, ratios = [], []
    for name, problem in cases().items():
        bound = sx.lower_bound(problem)
        sx.forecast(bound)  # compiles
        began = time.process_time()
        found = sx.forecast(bound)
        seconds = time.process_time() - began
        times = sx.simulate(problem, runs=runs, seed=SEED, workers=workers).stopping_times
        mean, error = times.mean(), times.std() / len(times) ** 0.5
        ratios.append(found.samples / mean)
        doubt = ratios[-1] * np.hypot(found.error, error / mean)
        inside = ((times >= found.low) & (times <= found.high)).mean()
        eased = f"{found.ease:g}" if found.ease > 1 else ""
        least = "-" if np.isnan(bound.samples) else f"{bound.samples:,.0f}"  # a plan has none
        lines.append(
            f"| {name} | {least} | {found.samples:,.0f} | {found.runs} | {eased} | "
            f"{mean:,.0f} ± {error:,.0f} | {ratios[-1]:.2f} ± {doubt:.2f} | {100 * inside:.0f}% | "
            f"{seconds:.2f} |"
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
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    main(options.runs, options.workers, options.out)
