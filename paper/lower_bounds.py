"""The lower bound, beside what every delta-correct method of simplexplore takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import simplexplore as sx

from .criteria import SEED
from .part import OURS, Finding, Part, Table
from .verdicts import NOT_REPRODUCED, OPEN, REPRODUCED, all_of, at_least, mean_of
from .words import interval, percent_between
from .work import Work

INSTANCES = ("triangle", "star", "eight-arms", "gaussian-1", "bernoulli-2")
RANDOM = 5
DELTAS = (0.2, 0.01, 1e-3)

# With proven thresholds: each sampler with the default one, and the others with one sampler.
METHODS = (
    *((sampler, "tilt") for sampler in ("ctns", "cge", "top-two", "uniform", "ptns")),
    *(("top-two", threshold) for threshold in ("mixture", "kk21")),
)

COLUMNS = ("instance", "sampler", "threshold", "delta", "runs", "bound", "mean", "stderr",
           "over its own bound", "wrong")  # fmt: skip


@dataclass(frozen=True)
class LowerBounds(Part):
    """Runs of each method on each instance, with each delta."""

    runs: int = 100
    instances: Sequence[str] = INSTANCES
    random: int = RANDOM
    deltas: Sequence[float] = DELTAS

    name = "lower-bound"
    title = "The lower bound, and what delta-correct methods take"
    source = "Section 3 (equation 3) and Appendix B"
    note = "Thresholds that are proven to keep δ; instances of the paper, and random ones."

    def compute(self, work: Work) -> dict[str, Any]:
        """One row of numbers for each method, instance and delta."""
        every = [sx.catalog.instance(name) for name in self.instances]
        every += sx.random_instances(self.random, hardness=(20.0, 500.0), seed=SEED)
        rows = []
        for one in every:
            for sampler, threshold in METHODS:
                for delta in self.deltas:
                    result = sx.simulate(
                        one.problem, one.means, sampler, delta=delta, threshold=threshold,
                        runs=work.count(self.runs), seed=SEED, workers=work.workers,
                    )  # fmt: skip
                    rows.append([one.name, *_row(result)])
        return {"rows": rows}

    def judge(self, found: dict[str, Any]) -> list[Finding]:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in found["rows"]]
        least = min(rows, key=lambda row: row["mean"] / row["bound"])
        own = min(rows, key=lambda row: row["over its own bound"])
        return [
            Finding(
                "E[τ] ≥ T kl(δ, 1 − δ) for every δ-correct method.",
                all_of(at_least((row["mean"], row["stderr"]), row["bound"]) for row in rows),
                f"In {len(rows)} combinations of instance, method and δ the mean is at least "
                f"{least['mean'] / least['bound']:.2f} times the bound ({_name(least)}).",
                "Section 3 (equation 3)",
            ),
            Finding(
                "Σ E[N_a] d(μ_a, λ_a) ≥ kl(δ, 1 − δ) for every alternative λ.",
                all_of(
                    at_least((x := r["over its own bound"], x * r["stderr"] / r["mean"]), 1.0)
                    for r in rows
                ),
                "The closest alternative, for the samples that each method gives each arm on "
                f"average: at least {own['over its own bound']:.2f} times kl ({_name(own)}).",
                "Appendix B (lemma of Kaufmann et al.)",
            ),
            self._errors(rows),
        ]

    def _errors(self, rows: Sequence[dict[str, Any]]) -> Finding:
        """Error rates, those of all methods and instances together for each delta."""
        verdicts, words = [], []
        for delta in dict.fromkeys(row["delta"] for row in rows):
            wrong, runs = (
                sum(r[x] for r in rows if r["delta"] == delta) for x in ("wrong", "runs")
            )
            low, high = interval(wrong, runs)
            verdicts.append(
                NOT_REPRODUCED if low > delta else REPRODUCED if high <= delta else OPEN
            )
            words.append(
                f"{wrong} of {runs:,} with δ = {delta:g} (95% interval "
                f"{percent_between(low, high)})"
            )
        return Finding(
            "All these methods answer wrongly with probability at most δ.",
            all_of(verdicts),
            f"Wrong answers of all methods together: {', '.join(words)}.",
            OURS,
        )

    def tables(self, found: dict[str, Any]) -> list[Table]:
        return [Table("lower-bound", COLUMNS, found["rows"])]


def _row(result: sx.Results) -> list[Any]:
    """What is kept of one simulation."""
    delta = result.plan.delta
    mean, error = mean_of(result.stopping_times)
    kl = (1 - 2 * delta) * math.log((1 - delta) / delta)
    return [
        result.plan.sampler.name, result.plan.threshold.name, delta, result.runs,
        result.lower_bound, mean, error,
        mean / result.bound.time_of(result.pulls.mean(axis=0)) / kl,
        int((~result.correct).sum()),
    ]  # fmt: skip


def _name(row: dict[str, Any]) -> str:
    return f"{row['instance']}, {row['sampler']} with {row['threshold']}, δ = {row['delta']:g}"
