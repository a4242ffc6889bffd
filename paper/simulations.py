"""Parts that are simulations: the paper's plots of stopping times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import simplexplore as sx

from .allocations import projected
from .criteria import ALIKE, CLOSE, MORE, PRINTED_POLICY, SEED
from .part import CTNS, OURS, THRESHOLD, Drawing, Finding, Part, Table
from .verdicts import (
    NOT_REPRODUCED,
    OPEN,
    REPRODUCED,
    Estimate,
    all_of,
    at_least,
    at_most,
    holds,
    log_ratio,
    mean_of,
    within,
)
from .words import interval, mean_and_error, number, percent_between, policy_in_words
from .work import Work

# The paper's samplers and baselines, and ours; ptns where the paper has it.
SAMPLERS = ("ctns", "cge", "uniform", "oracle", "top-two")
WITH_PTNS = ("ctns", "cge", "ptns", "uniform", "oracle", "top-two")

COLUMNS = (
    "instance", "scenario", "sampler", "threshold", "delta", "runs", "seed", "lower_bound",
    "mean", "stderr", "median", "q05", "q95", "max", "times_bound", "errors", "error_rate",
    "error_low", "error_high", "capped",
)  # fmt: skip
SHOWN = (
    "scenario", "sampler", "lower_bound", "mean", "stderr", "times_bound", "median", "q95",
    "errors", "error_low", "error_high", "capped",
)  # fmt: skip

# Results by scenario and sampler.
Groups = dict[str, dict[str, sx.Results]]
Judge = Callable[[Groups], list[Finding]]


@dataclass(frozen=True)
class Simulated(Part):
    """Samplers on an instance, in the scenarios of the paper."""

    name: str
    title: str
    instance: str
    samplers: Sequence[str]
    judges: Sequence[Judge] = field(repr=False)
    source: str = ""
    note: str = ""
    times: int = 1  # as many runs as the paper's, where with these a claim was not decided

    def settings(self, work: Work) -> dict[str, Any]:
        return {"samplers": self.samplers, "runs": self._runs(work), "seed": SEED}

    def _runs(self, work: Work) -> int:
        return work.runs or self.times * sx.catalog.instance(self.instance).runs

    def compute(self, work: Work) -> dict[str, Any]:
        """Nothing beside the simulations."""
        return {}

    def find(self, work: Work) -> Groups:
        groups = {}
        instance = sx.catalog.instance(self.instance)
        for scenario in instance.scenarios:
            files = [CTNS if name == "ctns" else name for name in self.samplers]
            compared = sx.compare(
                [instance], files, runs=self._runs(work), seed=SEED, scenario=scenario,
                threshold=THRESHOLD, workers=work.workers, folder=work.folder,
                progress=lambda what, *_, scenario=scenario: work.tell(f"{what}, {scenario}"),
            )  # fmt: skip
            groups[scenario] = dict(zip(self.samplers, compared.results[0], strict=True))
        super().find(work)
        return groups

    def results(self, found: Groups) -> list[sx.Results]:
        return [result for group in found.values() for result in group.values()]

    def judge(self, found: Groups) -> list[Finding]:
        return [finding for judge in self.judges for finding in judge(found)]

    def figures(self, found: Groups) -> list[Drawing]:
        def write(path: Path) -> None:
            sx.plot_results(self.results(found), path)

        words = f"Stopping times, right answers and allocations on {self.instance}"
        return [Drawing(self.name, f"{words}, with the lower bound", write)]

    def tables(self, found: Groups) -> list[Table]:
        """One row per simulation."""
        rows: list[list[object]] = []
        for result in self.results(found):
            summary = result.summary()
            times = summary["stopping_time"]
            errors = int((~result.correct).sum())
            low, high = interval(errors, result.runs)
            mean, least = times["mean"], result.lower_bound
            rows.append(
                [
                    self.instance, summary["scenario"], summary["sampler"], summary["threshold"],
                    summary["delta"], result.runs, result.seed, least, mean, times["stderr"],
                    times["median"], times["q05"], times["q95"], times["max"], mean / least, errors,
                    errors / result.runs, low, high, summary["capped"],
                ]
            )  # fmt: skip
        return [Table(self.name, COLUMNS, rows, SHOWN)]


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
        printed = sx.catalog.instance(of).optimum or {}
        shares = np.array([printed.get(arm, 0.0) for arm in arms])
        words = ", ".join(f"{share:g} {arm}" for arm, share in printed.items())
        return [
            Finding(
                f"The optimal policy is {words}.",
                holds(bool((np.abs(policy - shares) <= PRINTED_POLICY).all())),
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
                all_of(_fewer(group[name], group[than]) for group in groups.values()),
                " ".join(_means(scenario, g, (name, than)) for scenario, g in groups.items()),
            )
            for name in samplers
        ]

    return judge


def as_good_as_oracle(groups: Groups) -> list[Finding]:
    """Judge whether ctns and cge do as well as sampling from the optimal allocation."""
    claim = "ctns and cge perform equally to or better than the learner with the optimal allocation"
    return [
        Finding(
            f"{claim}.",
            all_of(
                at_most(_log_ratio(group[name], group["oracle"]), math.log(ALIKE))
                for group in groups.values()
                for name in ("ctns", "cge")
            ),
            " ".join(_means(s, group, ("ctns", "cge", "oracle")) for s, group in groups.items()),
        )
    ]


def close_to_bound(groups: Groups) -> list[Finding]:
    """Judge whether ctns and cge are as close to the bound as the threshold lets them be."""
    found = []
    for name in ("ctns", "cge"):
        verdicts, evidence = [], []
        for scenario, group in groups.items():
            result = group[name]
            (mean, error), least = mean_of(result.stopping_times), result.lower_bound
            delta = result.plan.delta
            kl = (1 - 2 * delta) * math.log((1 - delta) / delta)  # kl(δ, 1 - δ)
            allowed = math.log((1 + math.log(mean)) / delta) / kl
            verdicts.append(at_most((mean, error), CLOSE * allowed * least))
            evidence.append(
                f"{scenario.capitalize()}: {mean / least:.2f} ± {error / least:.2f} times the "
                f"bound (the threshold alone: {allowed:.2f})."
            )
        claim = f"{name} operates close to the lower bound."
        found.append(Finding(claim, all_of(verdicts), " ".join(evidence)))
    return found


def ptns_like_uniform(groups: Groups) -> list[Finding]:
    """Judge whether ptns is on par with uniform sampling."""
    verdicts, evidence = [], []
    for scenario, group in groups.items():
        more = _log_ratio(group["ptns"], group["uniform"])
        verdicts.append(within(more, math.log(ALIKE)))
        bound = group["ptns"].bound
        tracked = bound.time_of(projected(bound.problem, bound.unconstrained.allocation))
        equal = np.full(bound.problem.size, 1 / bound.problem.size)
        even = bound.time_of(projected(bound.problem, equal))
        evidence.append(
            f"{_means(scenario, group, ('ptns', 'uniform', 'ctns'))} ptns takes "
            f"{math.exp(more[0]):.2f} times what uniform takes; the allocations they follow in the "
            f"end have T = {number(tracked)} and {number(even)}."
        )
    claim = "ptns, which ignores the constraints, is on par with uniform sampling."
    return [Finding(claim, all_of(verdicts), " ".join(evidence))]


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
        verdict = all_of(_fewer(group[name], group["ptns"]) for name in others)
        claim = f"ptns performs worst on this instance, {scenario}."
        found.append(Finding(claim, verdict, _means(scenario, group, ("ptns", *others))))
    return found


def differs_more_at_the_end(groups: Groups) -> list[Finding]:
    """Judge whether samplers differ more end-of-time than anytime."""
    measures: list[list[Estimate]] = []  # by scenario: of ctns and cge, and with uniform
    evidence = []
    for scenario, group in groups.items():
        both = sorted(("ctns", "cge"), key=lambda name: _mean(group[name]))
        three = sorted((*both, "uniform"), key=lambda name: _mean(group[name]))
        two, every = (_log_ratio(group[names[-1]], group[names[0]]) for names in (both, three))
        measures.append([two, every])
        evidence.append(
            f"{scenario.capitalize()}: the means of ctns and cge differ by a factor of "
            f"{math.exp(two[0]):.2f}, with uniform by {math.exp(every[0]):.2f}."
        )
    bounds = [next(iter(group.values())).lower_bound for group in groups.values()]
    if abs(bounds[0] / bounds[1] - 1) < 1e-6:
        evidence.append("Constraints do not bind on the optimal allocation, so none is expected.")
    more = [(a - b, math.hypot(s, t)) for (a, s), (b, t) in zip(*measures, strict=True)]
    claim = "Sampling rules differ more with end-of-time than with anytime constraints."
    verdict = all_of(at_least(estimate, math.log(MORE)) for estimate in more)
    return [Finding(claim, verdict, " ".join(evidence))]


def uniform_varies(groups: Groups) -> list[Finding]:
    """Judge whether uniform sampling has a very high variance."""
    verdicts, evidence = [], []
    for scenario, group in groups.items():
        # Of squared distances from the mean; a ratio of variances is that of their means.
        squares = {
            name: mean_of((group[name].stopping_times - _mean(group[name])) ** 2)
            for name in ("uniform", "cge", "ctns")
        }
        verdicts += [
            at_most(log_ratio(squares[name], squares["uniform"]), 0.0) for name in ("cge", "ctns")
        ]
        words = ", ".join(f"{name} {number(math.sqrt(x))}" for name, (x, _) in squares.items())
        evidence.append(f"Standard deviation of the stopping time, {scenario}: {words}.")
    claim = "Uniform sampling has a very high variance."
    return [Finding(claim, all_of(verdicts), " ".join(evidence))]


def bounds_are_ordered(groups: Groups) -> list[Finding]:
    """Judge whether the anytime bound is at least the end-of-time bound."""
    least = {scenario: next(iter(g.values())).lower_bound for scenario, g in groups.items()}
    end, anytime = least["end-of-time"], least["anytime"]
    return [
        Finding(
            "The lower bound with anytime constraints is at least that with end-of-time ones.",
            holds(anytime >= end * (1 - 1e-8)),
            f"End-of-time {number(end)}, anytime {number(anytime)} samples, both exact.",
        )
    ]


def rarely_wrong(groups: Groups) -> list[Finding]:
    """Judge whether answers are wrong with probability at most delta, by 95% intervals."""
    every = [result for group in groups.values() for result in group.values()]
    delta = every[0].plan.delta
    wrong = [int((~r.correct).sum()) for r in every]
    worst = max(range(len(every)), key=lambda k: wrong[k] / every[k].runs)
    share = [interval(errors, r.runs) for errors, r in zip(wrong, every, strict=True)]
    if any(low > delta for low, _ in share):
        verdict = NOT_REPRODUCED
    else:
        verdict = REPRODUCED if all(high <= delta for _, high in share) else OPEN
    words = f"{sum(wrong)} of {sum(r.runs for r in every):,} runs end with a wrong answer"
    if wrong[worst]:
        plan, runs = every[worst].plan, every[worst].runs
        words += (
            f"; most for {plan.sampler.name.removesuffix('.py')}, {plan.scenario}: {wrong[worst]} "
            f"of {runs:,}, 95% interval {percent_between(*share[worst])}"
        )
    if verdict == OPEN:
        words += f". So few runs cannot show a rate below {delta:g} for every sampler"
    return [
        Finding(f"Answers are wrong with probability at most δ = {delta:g}.", verdict, f"{words}.")
    ]


def _mean(result: sx.Results) -> float:
    return float(result.stopping_times.mean())


def _log_ratio(one: sx.Results, other: sx.Results) -> Estimate:
    return log_ratio(mean_of(one.stopping_times), mean_of(other.stopping_times))


def _fewer(one: sx.Results, other: sx.Results) -> str:
    """The verdict on the claim that one needs fewer samples than the other."""
    (a, s), (b, t) = mean_of(one.stopping_times), mean_of(other.stopping_times)
    return at_most((a - b, math.hypot(s, t)), 0.0)


def _means(scenario: str, group: dict[str, sx.Results], names: Sequence[str]) -> str:
    found = (mean_and_error(*mean_of(group[name].stopping_times)) for name in names)
    parts = (f"{name} {words}" for name, words in zip(names, found, strict=True))
    return f"{scenario.capitalize()}: {', '.join(parts)}."
