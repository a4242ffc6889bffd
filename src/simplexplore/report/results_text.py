"""Results in words for people: what tables and pictures both say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.problem.families import Bounded
from simplexplore.problem.spelling import count

from .numbers import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simplexplore.simulation.results import Results


def comparable(results: Sequence[Results]) -> list[list[Results]]:
    """Group results of one instance, scenario, delta and threshold, in the order they came."""
    groups: dict[object, list[Results]] = {}
    for result in results:
        plan = result.plan
        means = tuple(result.bound.means.tolist())
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


def circumstances(results: Sequence[Results]) -> str:
    """Say on which problem, and how, comparable results came about."""
    first = results[0]
    problem, plan = first.plan.problem, first.plan
    runs = sorted({result.runs for result in results})
    seeds = sorted({result.seed for result in results})
    shown = number(runs[0]) if len(runs) == 1 else f"{number(runs[0])} to {number(runs[-1])}"
    return (
        f"{count(problem.size, 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{problem.rewards.name} rewards{_drawn(first)}, "
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
    return " (Beta laws)" if bounded else " (noise not as told)"


def standing(result: Results) -> str:
    """Say whether the error probability is a promise."""
    threshold, family = result.plan.threshold, result.plan.problem.rewards.name
    if result.is_proven:
        return (
            f"{threshold.name} is proven for {family} rewards: a wrong answer has probability at "
            f"most {result.plan.delta:g}, whatever the sampler."
        )
    if threshold.is_proven(family):
        return (
            f"{threshold.name} is proven for {family} rewards, but these vary more than was told: "
            "nothing promises that wrong answers are rarer than delta."
        )
    others = [name for name, rule in THRESHOLDS.items() if rule.is_proven(family)]
    best = f" The threshold {others[-1]!r} does." if others else ""
    return (
        f"{threshold.name} is not proven for {family} rewards: nothing promises that wrong answers "
        f"are rarer than delta.{best}"
    )
