"""Results as documents, and in the words that documents and pictures share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any

from simplexplore.exploration.limits import limits_in_words, promise
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.problem.families import Bounded
from simplexplore.problem.messages import count
from simplexplore.problem.problem import EXPLORATION
from simplexplore.simulation.results import Results

from .bound_words import Usage, constraint_usage, exploration_usage, problem_in_words
from .document import Document, Note, Section
from .numbers import mean_and_error, number, percent, percent_between, ratio, rough_percent
from .table import Column, Field, Table, text_column

# Limits whose use is shown, the tightest.
MAX_LIMITS = 8


def results_document(results: Sequence[Results]) -> Document:
    """What simulations gave, setting by setting."""
    document = [section for group in comparable(results) for section in _sections(group)]
    guarantees = dict.fromkeys(guarantee(result) for result in results)
    return [*document, [*guarantees]]


def _sections(group: Sequence[Results]) -> Document:
    """What results of one setting gave."""
    plan = group[0].plan
    is_spent = plan.problem.budget is not None
    what = "wrong" if is_spent else "correct"
    main: Section = [
        _errors(group) if is_spent else _comparison(group),
        Note(f"{what}: with its 95% interval (Clopper-Pearson)"),
    ]
    if any(result.capped.any() for result in group):
        most = number(group[0].max_steps)
        main.append(Note(f"capped: ended by --max-steps ({most}), so the true mean is larger"))
    sections: Document = [[Note(circumstances(group))], main]
    if plan.problem.measured:
        sections.append([_ends(group)])
        if plan.scenario != "end-of-time":
            over = [result.summary()["exceeded"]["fraction"] for result in group if result.runs]
            words = f"In {percent(max(over, default=0.0))} of the runs that mean was above it at "
            sections[-1].append(promise(plan.problem, plan.delta))
            sections[-1].append(f"{words}some moment.")
    if limits := plan.problem.limits_on_samples(plan.scenario):
        usage = exploration_usage if plan.scenario == EXPLORATION else constraint_usage
        shown = usage(group[0].bound, MAX_LIMITS)
        sections.append([_realised_use(group, shown)])
        if more := len(limits) - len(shown):
            sections[-1].append(Note(f"... and {more} more limits with more slack"))
        if (excess := group[0].excess_bound) is not None:
            sections[-1].append(limits_in_words(excess))
    return sections


def measures(group: Sequence[Results]) -> list[Field[Results]]:
    """What is said of each sampler where runs end by themselves."""
    fields: list[Field[Results]] = [
        (Column("mean"), _mean),
        (Column("median", rank=5), lambda x: _quantile(x, "median")),
        (Column("95%", rank=4), lambda x: _quantile(x, "q95")),
        (Column("/bound", rank=3), _times_bound),
        (Column("correct", rank=1), _correct),
        (Column("us/step", rank=6), _speed),
    ]
    if group[0].plan.problem.has_costs:
        fields.append((Column("samples", rank=2), _samples))
    if any(result.capped.any() for result in group):
        fields.append((Column("capped"), lambda x: f"{x.summary()['capped']:,}"))
    if any(result.runs < result.runs_asked for result in group):
        fields.append((Column("runs", rank=2), lambda x: f"{x.runs:,} of {x.runs_asked:,}"))
    return fields


def _comparison(group: Sequence[Results]) -> Table:
    """What runs took, where these end by themselves."""
    amount = "Cost" if group[0].plan.problem.has_costs else "Samples"
    least = group[0].lower_bound
    heading = f"{amount} until stopping, {group[0].plan.scenario}"
    heading += f" (lower bound: {number(least)})" * (not isnan(least))
    return _by_sampler(heading, measures(group), group)


def _ends(group: Sequence[Results]) -> Table:
    """How runs ended where limits are measured."""

    def share_of(end: str) -> Callable[[Results], str]:
        return lambda result: percent(result.summary()[end]["fraction"])

    fields: list[Field[Results]] = [
        (Column("exceeds"), share_of("violations")),
        (Column("too little"), share_of("suboptimal")),
        (Column("no mix"), share_of("infeasible")),
    ]
    heading = (
        "Runs whose answer exceeds a limit by more than its tolerance, or earns too little, and "
        "runs that found no mix to keep the limits"
    )
    return _by_sampler(heading, fields, group)


def _errors(group: Sequence[Results]) -> Table:
    """How often answers are wrong, where all runs take the same number of samples."""

    def wrong(result: Results, *ends: str) -> str:
        right = result.summary()["correct"]
        return " and ".join(rough_percent(100 * (1 - right[end])) for end in ends)

    fields: list[Field[Results]] = [
        (Column("wrong"), lambda x: wrong(x, "fraction")),
        (Column("between"), lambda x: wrong(x, "high", "low")),
        (Column("us/step"), _speed),
    ]
    samples = number(group[0].plan.problem.budget)
    return _by_sampler(f"Wrong answers after {samples} samples", fields, group)


def _by_sampler(title: str, fields: list[Field[Results]], group: Sequence[Results]) -> Table:
    """A row for each sampler."""
    table = Table(title, [text_column("sampler"), *(column for column, _ in fields)])
    for label, result in zip(sampler_labels(group), group, strict=True):
        cells = [write(result) for _, write in fields] if result.runs else ["no runs"]
        table.add_row(label, *cells)
    return table


def _samples(result: Results) -> str:
    times = result.summary()["stopping_time"]
    return mean_and_error(times["mean"], times["stderr"])


def _correct(result: Results) -> str:
    """The share of right answers in percent, with its interval."""
    right = result.summary()["correct"]
    return f"{percent(right['fraction'])} ({percent_between(right['low'], right['high'])[:-1]})"


def _speed(result: Results) -> str:
    speed = result.summary()["microseconds_per_step"]
    return f"{speed:.2g}" if speed < 100 else f"{speed:,.0f}"


def _realised_use(group: Sequence[Results], limits: Sequence[Usage]) -> Table:
    """What the samples used of each limit."""

    def used(limit: str) -> Callable[[Results], str]:
        return lambda result: f"{result.constraint_use()[limit]:.3f}"

    fields: list[Field[Results]] = [
        (Column(f"{row.name} ({row.limit})", rank=k), used(row.name))
        for k, row in enumerate(limits)
    ]
    return _by_sampler("Mean use by the samples", fields, group)


def comparable(results: Sequence[Results]) -> list[list[Results]]:
    """Group results of one instance, scenario, delta and threshold, in the order they came."""
    groups: dict[object, list[Results]] = {}
    for result in results:
        plan = result.plan
        means = tuple(result.means.tolist())
        noise = None if result.noise is None else tuple(result.noise.tolist())
        key = (plan.problem, plan.scenario, means, noise, plan.delta, plan.threshold.name)
        groups.setdefault(key, []).append(result)
    return list(groups.values())


def sampler_labels(results: Sequence[Results]) -> list[str]:
    """Name results by their samplers, and by what else tells them apart."""
    plans = [result.plan for result in results]
    labels = [", ".join(filter(None, (plan.sampler.name, plan.tracking))) for plan in plans]
    pairs = set(zip(labels, (result.seed for result in results), strict=True))
    seeds = Counter(label for label, _ in pairs)
    labels = [
        f"{label}, seed {result.seed}" if seeds[label] > 1 else label
        for label, result in zip(labels, results, strict=True)
    ]
    return [
        f"{label} ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def amounts_of(result: Results) -> dict[str, Any]:
    """What runs took: samples, or money where samples cost."""
    name = "cost" if result.plan.problem.has_costs else "stopping_time"
    found: dict[str, Any] = result.summary()[name]
    return found


def _mean(result: Results) -> str:
    """The mean that runs took; where some were capped, that it is more than it seems."""
    times = amounts_of(result)
    if result.capped.any():
        return f"> {mean_and_error(times['mean'], None)}"
    return mean_and_error(times["mean"], times["stderr"])


def _quantile(result: Results, which: str) -> str:
    """A quantile of what runs took; where it falls on a capped run, that it is more."""
    amounts = amounts_of(result)
    time = amounts[which]
    # What a capped run would have cost is not known either.
    capped = amounts["max"] if result.plan.problem.has_costs else result.max_steps
    over = bool(result.capped.any()) and time >= capped
    return f"{'> ' if over else ''}{time:,.0f}"


def _times_bound(result: Results) -> str:
    """How many times the lower bound the mean is; capped runs say only that it is more."""
    mean = amounts_of(result)["mean"]
    if not result.capped.any():
        return ratio(mean, result.lower_bound)
    # Less than the bound would say nothing of the sampler, only of the cap.
    says = result.lower_bound < mean and not result.capped.all()
    return f"> {ratio(mean, result.lower_bound)}" if says else "-"


def circumstances(results: Sequence[Results]) -> str:
    """Say on which problem, and how, comparable results came about."""
    first = results[0]
    problem, plan = first.plan.problem, first.plan
    seeds = sorted({result.seed for result in results})
    return (
        f"{problem_in_words(problem)}{_drawn(first)}, "
        f"{f'costs {problem.costs.min():g} to {problem.costs.max():g}, ' * problem.has_costs}"
        f"delta {plan.delta:g}, {f'epsilon {problem.epsilon:g}, ' if problem.epsilon else ''}"
        f"{f'stopping at {problem.stop_when}, ' if problem.stop_when else ''}"
        f"threshold {plan.threshold.name}, {runs_in_words(results)}, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds[:5]))}"
    )


def runs_in_words(results: Sequence[Results]) -> str:
    """How many runs there are of each."""
    least, most = (f(result.runs for result in results) for f in (min, max))
    runs = f"{number(least)} to {number(most)} runs" if least < most else count(least, "run")
    return f"{runs} each" if len(results) > 1 else runs


def _drawn(result: Results) -> str:
    """How rewards were drawn, if not as the sampler was told."""
    if result.noise is None:
        return ""
    bounded = isinstance(result.plan.problem.rewards, Bounded)
    return " (Beta laws)" if bounded else " (noise other than stated)"


def guarantee(result: Results) -> str:
    """Say whether the error probability is a promise."""
    threshold, family = result.plan.threshold, result.plan.problem.rewards.name
    if result.plan.problem.budget is not None:
        return (
            "With a budget the number of samples is given, and nothing guarantees that wrong "
            "answers are rarer than delta."
        )
    if result.is_proven:
        return (
            f"{threshold.name} is proven for {family} rewards: a wrong answer has probability at "
            f"most {result.plan.delta:g}, whatever the sampler."
        )
    others = [name for name, rule in THRESHOLDS.items() if rule.is_proven(family)]
    best = f" The threshold {others[-1]!r} does." if others else ""
    why = f"is not proven for {family} rewards"
    if threshold.is_proven(family):
        why, best = f"is proven for {family} rewards, but these vary more than stated", ""
    return (
        f"{threshold.name} {why}: nothing guarantees that wrong answers are rarer than delta.{best}"
    )
