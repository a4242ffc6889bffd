"""Samplers of ours and of the literature on published instances: docs/benchmarks.md.

    python benchmarks/field.py [--runs N] [--out FILE]

Mean stopping times with standard errors, threshold gk16. Published figures stand beside ours with
their source; none is made up where we know of none.
"""

# ruff: noqa: E402 - the package is imported from this checkout

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import simplexplore as sx

LITERATURE = ("eb_tci", "t3c", "frank_wolfe", "lucb", "racing")
OURS = ("top-two", "ctns", "ctns, cumulative", "cge", "uniform")
SEED = 20261119

BERNOULLI = sx.Bernoulli()
BEST_ARM = {
    "μ¹": sx.Problem(4, rewards=BERNOULLI, means=[0.5, 0.45, 0.43, 0.4], delta=0.1),
    "μ²": sx.Problem(5, rewards=BERNOULLI, means=[0.3, 0.21, 0.2, 0.19, 0.18], delta=0.1),
}

# Garivier and Kaufmann (2016), table 1, as we remember it.
PUBLISHED = {
    "Track-and-Stop": (4052, 1406),
    "Chernoff-Racing": (4516, 3078),
    "KL-LUCB": (8437, 2716),
    "KL-Racing": (9590, 3334),
}

# The best m of K arms: mixes of at most 1/m each.
TOP = {
    "best 2 of 5, Gaussian": (2, [1.0, 0.9, 0.7, 0.6, 0.2], sx.Gaussian()),
    "best 3 of 6, Bernoulli": (3, [0.8, 0.7, 0.6, 0.4, 0.3, 0.2], BERNOULLI),
}
ARMS = [*[0.1] * 3, 0.35, 0.45, 0.55, 0.65, *[0.9] * 3]
THRESHOLD = sx.Problem(
    10, rewards=BERNOULLI, means=ARMS, delta=0.1, question=sx.Question("threshold", at=0.5)
)

# Limits that are measured: two arms, one of which keeps the limit, and the example file.
TOXICITY = {"means": [1.0, 0.0], "sigma": 1.0}
MEASURED = {
    f"two arms, ε = {epsilon:g}, tolerance {tolerance:g}": sx.Problem(
        2, means=[1.0, 0.0], epsilon=epsilon, delta=0.1,
        measured=[sx.Measured("toxicity", "<= 0.5", tolerance=tolerance, **TOXICITY)],
    )
    for epsilon, tolerance in ((0.2, 0.0), (0.1, 0.1))
} | {"`dose_mix.toml`": sx.Problem.from_file(ROOT / "examples" / "dose_mix.toml")}  # fmt: skip
MEASURING = ("top-two", "ctns", "uniform", "lagex")
PAPER = ("triangle", "star", "eight-arms", "gaussian-1", "gaussian-2", "movies", "bernoulli-2")

HEAD = """# Benchmarks

<!-- Written by `make benchmarks`; do not edit. -->

Our samplers and [those of the literature](write_your_own_sampler.md#samplers-of-the-literature)
on published instances: mean samples ± standard error over {runs:,} runs, seed {seed}. All stop by
the threshold `gk16`, log((1 + log t)/δ), so that samplers are compared and nothing else; published
figures have the stopping rule of their source. Bold: the least of a row, and all within two
standard errors of it.
"""

GK16 = """## Best arm: Garivier and Kaufmann (2016), table 1

Source: *Optimal best arm identification with fixed confidence*, COLT 2016, PMLR 49:998-1027, means
of 3,000 runs. Bernoulli rewards, δ = 0.1, μ¹ = (0.5, 0.45, 0.43, 0.4), μ² = (0.3, 0.21, 0.2, 0.19,
0.18). The published figures were written down from memory: check them there before you quote them.
Their optimal allocations, (0.417, 0.390, 0.136, 0.057) and (0.336, 0.251, 0.177, 0.132, 0.104), are
those of `bound` to every digit. KL-LUCB and KL-Racing stop by confidence intervals, while `lucb`
here shares the threshold of the others, and `racing` drops arms by it.
"""

TOP_TEXT = """## The best m arms, and arms above a threshold

"The best m of K arms" is a problem of mixes: each arm at most 1/m of the mix. The ten arms are the
first experiment of Locatelli, Gutzeit and Carpentier (2016): Bernoulli, three of 0.1, then 0.35,
0.45, 0.55 and 0.65, three of 0.9, and the threshold 0.5; they have a budget where we have a δ. δ =
0.1. There is no published figure of which we are sure. `t3c` knows mixes only.
"""

PAPER_TEXT = """## Mixes under constraints: Carlsson, Basu, Johansson and Dubhashi (2024)

The paper's instances with its δ. It has plots and no numbers. With the authors' public code (commit
f7e8b42), which is slow, we measured means of 3 to 8 runs: `ctns` about 9,100 (triangle, anytime),
2,400 (star, anytime), 2,100 and 3,000 (eight arms, end-of-time and anytime), 6,400 and 9,400
(gaussian-1); `cge` about 7,100, 3,900, 2,700 and 3,800, 8,200 and 7,000. `ctns` tracks the sum of
its allocations, as in the paper, in `ctns, cumulative`; anytime it always does
([tracking](theory/tracking.md#samplers-what-is-known)). Films have σ = 1.33 here, told and drawn.
"""

MEASURED_TEXT = """## Limits that are measured

[Limits](samplers.md#measured-limits) on a second number that pulls report, δ = 0.1, all by `tilt`.
`lagex` is after LAGEX of Das and Basu (2024), who look for the best mix itself, without tolerances;
of their instances we know no figure that would compare.
"""


def mean_of(
    problem: sx.Problem, name: str, runs: int, scenario: str | None, threshold: str = "gk16"
) -> tuple[float, float, int]:
    """Mean, standard error and wrong answers."""
    sampler, _, tracking = name.partition(", ")
    file = ROOT / "examples" / "samplers" / f"{name}.py"
    found = sx.simulate(
        problem, sampler=str(file) if file.is_file() else sampler, runs=runs, seed=SEED,
        scenario=scenario, threshold=threshold, tracking=tracking or None, max_steps=1_000_000,
    )  # fmt: skip
    times = found.stopping_times
    return (
        float(times.mean()),
        float(times.std(ddof=1)) / math.sqrt(runs),
        int((~found.correct).sum()),
    )


def row_of(found: Sequence[tuple[float, float, int]]) -> list[str]:
    """Cells, the least ones bold."""
    best = min(found)
    cells = []
    for mean, error, _ in found:
        near = mean - best[0] <= 2 * math.hypot(error, best[1])
        text = f"{mean:,.0f} ± {error:,.0f}"
        cells.append(f"**{text}**" if near else text)
    return cells


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first row is its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    given = parser.parse_args()
    names = (*OURS, *LITERATURE)
    won: dict[str, list[str]] = {}
    wrong = total = 0

    def measure(
        problem: sx.Problem, title: str, scenario: str = "end-of-time", but: str = ""
    ) -> list[str]:
        nonlocal wrong, total
        run = [
            name for name in names
            if name != but and (scenario == "end-of-time" or "cumulative" not in name)
        ]  # fmt: skip
        found = [mean_of(problem, name, given.runs, scenario) for name in run]
        print(title, [round(mean) for mean, _, _ in found], flush=True)
        wrong += sum(errors for _, _, errors in found)
        total += given.runs * len(found)
        cells = dict(zip(run, row_of(found), strict=True))
        for name, cell in cells.items():
            if cell.startswith("**"):
                won.setdefault(name, []).append(title)
        return [cells.get(name, "–") for name in names]

    best = {key: measure(problem, f"best arm, {key}") for key, problem in BEST_ARM.items()}
    columns = list(zip(*best.values(), strict=True))
    published = [
        [f"{name}, published", *(f"{x:,}" for x in xs)] for name, xs in PUBLISHED.items()
    ]  # fmt: skip
    bounds = [
        "lower bound",
        *(f"{sx.lower_bound(problem).samples:,.0f}" for problem in BEST_ARM.values()),
    ]
    gk16 = table(
        [
            ["", *BEST_ARM],
            bounds,
            *published,
            *([f"`{n}`", *c] for n, c in zip(names, columns, strict=True)),
        ]
    )
    heads = ["", "lower bound", *(f"`{name}`" for name in names)]
    rows = [heads]
    for title, (m, means, rewards) in TOP.items():
        arms = [f"a{k}" for k in range(1, len(means) + 1)]
        limits = {f"most {arm}": f"{arm} <= 1/{m}" for arm in arms}
        problem = sx.Problem(arms, limits, rewards=rewards, means=means, delta=0.1)
        rows.append([title, f"{sx.lower_bound(problem).samples:,.0f}", *measure(problem, title)])
    least = f"{sx.lower_bound(THRESHOLD).samples:,.0f}"
    title = "above 0.5, of ten"
    rows.append([title, least, *measure(THRESHOLD, title, but="t3c")])
    top = table(rows)
    rows = [heads]
    for name in PAPER:
        instance = sx.catalog.instance(name)
        problem = instance.problem.replace(means=instance.means)
        for scenario in instance.scenarios:
            title = f"{name}, {scenario}"
            bound = sx.lower_bound(problem).scenarios[scenario].lower_bound
            rows.append([title, f"{bound:,.0f}", *measure(problem, title, scenario)])
    paper = table(rows)
    rows = [["", *(f"`{name}`" for name in MEASURING)]]
    for title, problem in MEASURED.items():
        found = [mean_of(problem, name, given.runs, None, "tilt") for name in MEASURING]
        wrong += sum(errors for _, _, errors in found)
        total += given.runs * len(found)
        rows.append([title, *row_of(found)])
    measured = table(rows)
    count = len(BEST_ARM) + len(TOP) + 1 + paper.count("\n") - 2
    summary = ", ".join(f"`{name}` {len(titles)}" for name, titles in won.items())
    never = [f"`{name}`" for name in names if name not in won]
    winners = (
        f"Rows, of {count}, in which a sampler is the best or on par with it: {summary}"
        f"{'; never ' + ', '.join(never) if never else ''}. {wrong:,} of {total:,} runs end with a "
        "wrong answer (δ is 0.1 or less everywhere).\n"
    )
    text = "\n".join(
        [
            HEAD.format(runs=given.runs, seed=SEED), winners,
            GK16, gk16, TOP_TEXT, top, PAPER_TEXT, paper, MEASURED_TEXT, measured,
        ]
    )  # fmt: skip
    given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
