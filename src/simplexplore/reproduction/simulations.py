"""Parts that are simulations: the paper's plots of stopping times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from simplexplore.bound.information import binary_kl
from simplexplore.problem.catalog import instance
from simplexplore.problem.spelling import policy_in_words
from simplexplore.report.numbers import mean_and_error, number, percent_between, ratio
from simplexplore.report.results_plot import results_figure
from simplexplore.report.results_text import comparable
from simplexplore.simulation.results import Results, clopper_pearson

from .allocations import projected
from .criteria import ALIKE, CLOSE, MORE, PRINTED_POLICY, SURE
from .part import (
    NOT_REPRODUCED,
    OPEN,
    OURS,
    REPRODUCED,
    Drawing,
    Evidence,
    Finding,
    Job,
    Part,
    Table,
)

# The paper's samplers and baselines, and ours; ptns where the paper has it.
SAMPLERS = ("ctns", "cge", "uniform", "oracle", "top-two")
WITH_PTNS = ("ctns", "cge", "ptns", "uniform", "oracle", "top-two")

COLUMNS = (
    "instance", "scenario", "sampler", "threshold", "delta", "runs", "seed", "lower_bound",
    "mean", "stderr", "median", "q05", "q95", "max", "times_bound", "errors", "error_rate",
    "error_low", "error_high", "capped",
)  # fmt: skip

Groups = dict[str, dict[str, Results]]
Judge = Callable[[Groups], list[Finding]]


def simulated(
    name: str,
    title: str,
    of: str,
    samplers: Sequence[str],
    judges: Sequence[Judge],
    source: str | None = None,
    note: str = "",
) -> Part:
    """Make a part that runs samplers on an instance, in the scenarios of the paper."""
    found = instance(of)
    jobs = tuple(Job(of, s, scenario) for scenario in found.scenarios for s in samplers)

    def findings(evidence: Evidence) -> list[Finding]:
        groups = by_scenario(evidence.results)
        return [finding for judge in judges for finding in judge(groups)]

    def figures(evidence: Evidence) -> list[Drawing]:
        words = f"Stopping times, right answers and allocations on {of}, with the lower bound"
        return [Drawing(name, words, lambda: results_figure(evidence.results))]

    return Part(
        name=name,
        title=title,
        source=source or found.source,
        note=note,
        jobs=jobs,
        figures=figures,
        tables=lambda evidence: [results_table(name, of, evidence.results)],
        findings=findings,
    )


def by_scenario(results: Sequence[Results]) -> Groups:
    """Results by scenario and sampler."""
    return {
        group[0].plan.scenario: {result.plan.sampler.name: result for result in group}
        for group in comparable(results)
    }


def results_table(name: str, of: str, results: Sequence[Results]) -> Table:
    """One row per simulation."""
    rows: list[list[object]] = []
    shown: list[list[str]] = []
    for result in results:
        summary = result.summary()
        times = summary["stopping_time"]
        errors = int((~result.correct).sum())
        low, high = clopper_pearson(errors, result.runs)
        mean, least = times["mean"], result.lower_bound
        sampler, scenario = summary["sampler"], summary["scenario"]
        rows.append(
            [
                of, scenario, sampler, summary["threshold"], summary["delta"], result.runs,
                result.seed, least, mean, times["stderr"], times["median"], times["q05"],
                times["q95"], times["max"], mean / least, errors, errors / result.runs, low, high,
                summary["capped"],
            ]
        )  # fmt: skip
        shown.append(
            [
                scenario, sampler, number(least), mean_and_error(mean, times["stderr"]),
                ratio(mean, least), number(times["median"]), number(times["q95"]),
                f"{errors} of {result.runs:,}", percent_between(low, high),
                f"{summary['capped']:,}",
            ]
        )  # fmt: skip
    heading = (
        "scenario", "sampler", "lower bound", "mean ± s.e.", "× bound", "median", "95%",
        "errors", "error rate, 95% interval", "capped",
    )  # fmt: skip
    return Table(name, COLUMNS, rows, heading, shown)


# ---------------------------------------------------------------------- judgements


def said(where: str, *judges: Judge) -> Judge:
    """Claims that the paper makes of this experiment, and where."""

    def judge(groups: Groups) -> list[Finding]:
        return [replace(finding, where=where) for one in judges for finding in one(groups)]

    return judge


def ours(*judges: Judge) -> Judge:
    """The same questions, asked by us of an experiment of which the paper does not say it."""
    return said(OURS, *judges)


def optimum(of: str) -> Judge:
    """Judge whether the printed optimal policy is optimal."""

    def judge(groups: Groups) -> list[Finding]:
        result = next(iter(next(iter(groups.values())).values()))
        arms, policy = result.plan.problem.arms, result.bound.policy
        printed = instance(of).optimum or {}
        shares = [printed.get(arm, 0.0) for arm in arms]
        same = all(
            abs(a - b) <= PRINTED_POLICY for a, b in zip(policy.tolist(), shares, strict=True)
        )
        words = ", ".join(f"{share:g} {arm}" for arm, share in printed.items())
        return [
            Finding(
                f"The optimal policy is {words}.",
                REPRODUCED if same else NOT_REPRODUCED,
                f"Exact: {policy_in_words(policy, arms)}, unique.",
            )
        ]

    return judge


def better(samplers: Sequence[str], than: str) -> Judge:
    """Judge whether samplers need fewer samples than another."""

    def judge(groups: Groups) -> list[Finding]:
        return [
            Finding(
                f"{name} outperforms {than}.",
                _overall([_fewer(group[name], group[than]) for group in groups.values()]),
                " ".join(_means(scenario, g, (name, than)) for scenario, g in groups.items()),
            )
            for name in samplers
        ]

    return judge


def as_good_as_oracle(groups: Groups) -> list[Finding]:
    """Judge whether ctns and cge do as well as sampling from the optimal allocation."""
    verdicts, evidence = [], []
    for scenario, group in groups.items():
        for name in ("ctns", "cge"):
            apart = _apart(group[name], group["oracle"])
            alike = _mean(group[name]) <= ALIKE * _mean(group["oracle"])
            verdicts.append(REPRODUCED if apart < SURE or alike else NOT_REPRODUCED)
        evidence.append(_means(scenario, group, ("ctns", "cge", "oracle")))
    claim = "ctns and cge perform equally to or better than the learner with the optimal allocation"
    return [Finding(f"{claim}.", _overall(verdicts), " ".join(evidence))]


def close_to_bound(groups: Groups) -> list[Finding]:
    """Judge whether ctns and cge are as close to the bound as the threshold lets them be."""
    found = []
    for name in ("ctns", "cge"):
        verdicts, evidence = [], []
        for scenario, group in groups.items():
            mean, least = _mean(group[name]), group[name].lower_bound
            delta = group[name].plan.delta
            allowed = math.log((1 + math.log(mean)) / delta) / binary_kl(delta)
            verdicts.append(REPRODUCED if mean <= CLOSE * allowed * least else NOT_REPRODUCED)
            evidence.append(
                f"{scenario.capitalize()}: {mean / least:.2f} times the bound (the threshold "
                f"alone: {allowed:.2f})."
            )
        claim = f"{name} operates close to the lower bound."
        found.append(Finding(claim, _overall(verdicts), " ".join(evidence)))
    return found


def ptns_like_uniform(groups: Groups) -> list[Finding]:
    """Judge whether ptns is on par with uniform sampling."""
    verdicts, evidence = [], []
    for scenario, group in groups.items():
        times = _mean(group["ptns"]) / _mean(group["uniform"])
        verdicts.append(REPRODUCED if 1 / ALIKE <= times <= ALIKE else NOT_REPRODUCED)
        bound = group["ptns"].bound
        tracked = bound.time_of(projected(bound.problem, bound.unconstrained.allocation))
        equal = np.full(bound.problem.size, 1 / bound.problem.size)
        even = bound.time_of(projected(bound.problem, equal))
        evidence.append(
            f"{_means(scenario, group, ('ptns', 'uniform', 'ctns'))} ptns takes {times:.2f} times "
            f"what uniform takes; the allocations they follow in the end have T = "
            f"{number(tracked)} and {number(even)}."
        )
    return [
        Finding(
            "ptns, which ignores the constraints, is on par with uniform sampling.",
            _overall(verdicts),
            " ".join(evidence),
        )
    ]


def ptns_is_worst(groups: Groups) -> list[Finding]:
    """Judge whether ptns is the worst, and worse than uniform sampling end-of-time."""
    end = groups["end-of-time"]
    found = [
        Finding(
            "End-of-time, ptns is outperformed by uniform sampling.",
            _fewer(end["uniform"], end["ptns"]),
            _means("end-of-time", end, ("ptns", "uniform")),
        )
    ]
    for scenario, group in groups.items():
        others = [name for name in group if name != "ptns"]
        verdict = _overall([_fewer(group[name], group["ptns"]) for name in others])
        claim = f"ptns performs worst on this instance, {scenario}."
        found.append(Finding(claim, verdict, _means(scenario, group, ("ptns", *others))))
    return found


def differs_more_at_the_end(groups: Groups) -> list[Finding]:
    """Judge whether samplers differ more end-of-time than anytime."""
    spread: dict[str, list[float]] = {}
    evidence = []
    for scenario, group in groups.items():
        means = [_mean(group[name]) for name in ("ctns", "cge", "uniform")]
        spread[scenario] = [max(means[:2]) / min(means[:2]), max(means) / min(means)]
        two, every = spread[scenario]
        evidence.append(
            f"{scenario.capitalize()}: the means of ctns and cge differ by a factor of {two:.2f}, "
            f"with uniform by {every:.2f}."
        )
    more = [a / b for a, b in zip(spread["end-of-time"], spread["anytime"], strict=True)]
    verdict = REPRODUCED if min(more) > MORE else NOT_REPRODUCED if max(more) < 1 / MORE else OPEN
    bounds = [next(iter(group.values())).lower_bound for group in groups.values()]
    if abs(bounds[0] / bounds[1] - 1) < 1e-6:
        verdict = OPEN
        evidence.append("Constraints do not bind on the optimal allocation, so none is expected.")
    claim = "Sampling rules differ more with end-of-time than with anytime constraints."
    return [Finding(claim, verdict, " ".join(evidence))]


def uniform_varies(groups: Groups) -> list[Finding]:
    """Judge whether uniform sampling has a very high variance."""
    wider, evidence = [], []
    for scenario, group in groups.items():
        spread = {name: float(group[name].stopping_times.std()) for name in group}
        wider.append(spread["uniform"] > max(spread["ctns"], spread["cge"]))
        words = ", ".join(f"{name} {number(spread[name])}" for name in ("uniform", "cge", "ctns"))
        evidence.append(f"Standard deviation of the stopping time, {scenario}: {words}.")
    return [
        Finding(
            "Uniform sampling has a very high variance.",
            REPRODUCED if all(wider) else NOT_REPRODUCED,
            " ".join(evidence),
        )
    ]


def bounds_are_ordered(groups: Groups) -> list[Finding]:
    """Judge whether the anytime bound is at least the end-of-time bound."""
    least = {scenario: next(iter(g.values())).lower_bound for scenario, g in groups.items()}
    end, anytime = least["end-of-time"], least["anytime"]
    return [
        Finding(
            "The lower bound with anytime constraints is at least that with end-of-time ones.",
            REPRODUCED if anytime >= end * (1 - 1e-8) else NOT_REPRODUCED,
            f"End-of-time {number(end)}, anytime {number(anytime)} samples, both exact.",
        )
    ]


def rarely_wrong(groups: Groups) -> list[Finding]:
    """Judge whether answers are wrong with probability at most delta."""
    every = [result for group in groups.values() for result in group.values()]
    delta = every[0].plan.delta
    errors, runs = sum(int((~r.correct).sum()) for r in every), sum(r.runs for r in every)
    worst = max(every, key=lambda r: float((~r.correct).mean()))
    share = [clopper_pearson(int((~r.correct).sum()), r.runs) for r in every]
    if any(low > delta for low, _ in share):
        verdict = NOT_REPRODUCED
    else:
        verdict = REPRODUCED if all(high <= delta for _, high in share) else OPEN
    words = f"{errors} of {runs:,} runs end with a wrong answer"
    if errors:
        wrong = int((~worst.correct).sum())
        low, high = clopper_pearson(wrong, worst.runs)
        words += (
            f"; most for {worst.plan.sampler.name}, {worst.plan.scenario}: {wrong} of "
            f"{worst.runs:,}, 95% interval {percent_between(low, high)}"
        )
    if verdict == OPEN:
        words += f". So few runs cannot show a rate below {delta:g} for every sampler"
    return [
        Finding(f"Answers are wrong with probability at most δ = {delta:g}.", verdict, f"{words}.")
    ]


def _mean(result: Results) -> float:
    return float(result.stopping_times.mean())


def _fewer(one: Results, other: Results) -> str:
    """The verdict on the claim that one needs fewer samples than the other."""
    apart = _apart(one, other)
    return REPRODUCED if apart < -SURE else NOT_REPRODUCED if apart > SURE else OPEN


def _apart(one: Results, other: Results) -> float:
    """How many standard errors the mean of one is above the other's."""
    variance = sum(
        float(r.stopping_times.var(ddof=1)) / r.runs if r.runs > 1 else math.inf
        for r in (one, other)
    )
    return (_mean(one) - _mean(other)) / math.sqrt(variance)


def _means(scenario: str, group: dict[str, Results], names: Sequence[str]) -> str:
    parts = []
    for name in names:
        times = group[name].summary()["stopping_time"]
        parts.append(f"{name} {mean_and_error(times['mean'], times['stderr'])}")
    return f"{scenario.capitalize()}: {', '.join(parts)}."


def _overall(verdicts: Sequence[str]) -> str:
    """A claim about several cases holds if it holds in all of them."""
    for verdict in (NOT_REPRODUCED, OPEN):
        if verdict in verdicts:
            return verdict
    return REPRODUCED
