"""Results in words for people: what tables and pictures both say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.problem.families import Bounded
from simplexplore.problem.problem import MEASURED_LIMIT
from simplexplore.problem.spelling import count

from .numbers import mean_and_error, number, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexplore.simulation.results import Results


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
    labels = [
        f"{r.plan.sampler.name}, {r.plan.tracking}" if r.plan.tracking else r.plan.sampler.name
        for r in results
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{x}, seed {r.seed}" for x, r in zip(labels, results, strict=True)]
    return [
        f"{label} ({labels[: i + 1].count(label)})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels)
    ]


def amounts_of(result: Results) -> dict[str, Any]:
    """What runs took: samples, or money where samples cost."""
    name = "cost" if result.plan.problem.has_costs else "stopping_time"
    found: dict[str, Any] = result.summary()[name]
    return found


def mean_of(result: Results) -> str:
    """The mean that runs took; where some were capped, that it is more than it seems."""
    times = amounts_of(result)
    if result.capped.any():
        return f"> {mean_and_error(times['mean'], None)}"
    return mean_and_error(times["mean"], times["stderr"])


def quantile_of(result: Results, time: float) -> str:
    """A quantile of stopping times; where it falls on a capped run, that it is more."""
    # What a capped run would have cost is not known either.
    most = float(amounts_of(result)["max"])
    capped = most if result.plan.problem.has_costs else result.max_steps
    over = bool(result.capped.any()) and time >= capped
    return f"{'> ' if over else ''}{time:,.0f}"


def times_bound(result: Results) -> str:
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
    runs = sorted({result.runs for result in results})
    seeds = sorted({result.seed for result in results})
    shown = number(runs[0]) if len(runs) == 1 else f"{number(runs[0])} to {number(runs[-1])}"
    return (
        f"{count(problem.size, 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{f'{count(len(problem.measured), MEASURED_LIMIT)}, ' if problem.measured else ''}"
        f"{problem.rewards.in_words}{_drawn(first)}, "
        f"{f'costs {problem.costs.min():g} to {problem.costs.max():g}, ' * problem.has_costs}"
        f"delta {plan.delta:g}, {f'epsilon {problem.epsilon:g}, ' if problem.epsilon else ''}"
        f"{f'stopping at {problem.stop_when}, ' if problem.stop_when else ''}"
        f"threshold {plan.threshold.name}, "
        f"{shown} {'run' if runs == [1] else 'runs'}"
        f"{' each' if len(results) > 1 else ''}, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds[:5]))}"
    )


def _drawn(result: Results) -> str:
    """How rewards were drawn, if not as the sampler was told."""
    if result.noise is None:
        return ""
    bounded = isinstance(result.plan.problem.rewards, Bounded)
    return " (Beta laws)" if bounded else " (noise other than stated)"


def standing(result: Results) -> str:
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
    if threshold.is_proven(family):
        return (
            f"{threshold.name} is proven for {family} rewards, but these vary more than stated: "
            "nothing guarantees that wrong answers are rarer than delta."
        )
    others = [name for name, rule in THRESHOLDS.items() if rule.is_proven(family)]
    best = f" The threshold {others[-1]!r} does." if others else ""
    return (
        f"{threshold.name} is not proven for {family} rewards: nothing guarantees that wrong "
        f"answers are rarer than delta.{best}"
    )
