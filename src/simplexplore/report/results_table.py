"""Results as text for a terminal of any width."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from simplexplore.exploration.excess import limits_in_words
from simplexplore.exploration.measured_safety import promise
from simplexplore.problem.problem import EXPLORATION

from .bound_text import limits_used, uses
from .numbers import mean_and_error, number, percent, percent_between, rough_percent
from .results_text import (
    circumstances,
    comparable,
    mean_of,
    quantile_of,
    sampler_labels,
    standing,
    times_bound,
)
from .table import MAX_ROWS, Column, Table, print_legend, short_names, text_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from simplexplore.simulation.results import Results


def print_results(results: Sequence[Results], console: Console) -> None:
    """Print what simulations gave, scenario by scenario.

    Parameters
    ----------
    results : sequence of Results
    console : rich.console.Console
        It should not interpret markup: names may contain brackets.
    """
    for number_of_group, group in enumerate(comparable(results)):
        if number_of_group:
            console.print()
        console.print(circumstances(group), style="dim")
        console.print()
        labels = short_names(sampler_labels(group))
        is_spent = group[0].plan.problem.budget is not None
        (_errors if is_spent else _comparison)(group, labels).print(console)
        what = "wrong" if is_spent else "correct"
        console.print(f"{what}: with its 95% interval (Clopper-Pearson)", style="dim")
        if any(result.capped.any() for result in group):
            console.print(
                f"capped: ended by --max-steps ({number(group[0].max_steps)}), so the true mean "
                "is larger",
                style="dim",
            )
        plan = group[0].plan
        if plan.problem.measured:
            console.print()
            _ends(group, labels).print(console)
            if plan.scenario != "end-of-time":
                console.print(promise(plan.problem, plan.delta))
                over = [result.summary()["exceeded"]["fraction"] for result in group if result.runs]
                share = percent(max(over, default=0.0))
                console.print(f"In {share} of the runs that mean was above it at some moment.")
        if plan.problem.has_costs:
            console.print()
            _samples(group, labels).print(console)
        if limits := plan.problem.limits_on_samples(plan.scenario):
            console.print()
            names = short_names(row.name for row in limits)
            table = _realised_use(group, labels, names)
            table.print(console, len(limits), "with more slack")
            labels |= names
            if (most := group[0].excess_bound) is not None:
                console.print(limits_in_words(most))
        print_legend(console, labels)
    console.print()
    for sentence in dict.fromkeys(standing(result) for result in results):
        console.print(sentence)


def _comparison(group: Sequence[Results], labels: Mapping[str, str]) -> Table:
    """One row per sampler."""
    amount = "cost" if group[0].plan.problem.has_costs else "stopping_time"
    what = "Cost" if amount == "cost" else "Samples"
    with_capped = any(result.capped.any() for result in group)
    least = group[0].lower_bound
    table = Table(
        f"{what} until stopping, {group[0].plan.scenario}"
        + ("" if isnan(least) else f" (lower bound: {number(least)})"),
        (
            text_column("sampler"),
            Column("mean"),
            Column("median", rank=4),
            Column("95%", rank=3),
            Column("/bound", rank=2),
            Column("correct", rank=1),
            Column("us/step", rank=5),
            *([Column("capped")] if with_capped else []),
        ),
    )
    for label, result in zip(labels.values(), group, strict=True):
        summary = result.summary()
        times, right, speed = (
            summary[amount],
            summary["correct"],
            summary["microseconds_per_step"],
        )
        if not result.runs:
            table.add_row(label, "no runs")
            continue
        row = [
            label,
            mean_of(result),
            quantile_of(result, times["median"]),
            quantile_of(result, times["q95"]),
            times_bound(result),
            f"{percent(right['fraction'])} ({percent_between(right['low'], right['high'])[:-1]})",
            f"{speed:.2g}" if speed < 100 else f"{speed:,.0f}",
        ]
        table.add_row(*row, *([f"{summary['capped']:,}"] if with_capped else []))
    return table


def _ends(group: Sequence[Results], labels: Mapping[str, str]) -> Table:
    """How runs ended where limits are measured, one row per sampler."""
    table = Table(
        "Runs whose answer exceeds a limit by more than its tolerance, or earns too little, and "
        "runs that found no mix to keep the limits",
        (text_column("sampler"), Column("exceeds"), Column("too little"), Column("no mix")),
    )
    for label, result in zip(labels.values(), group, strict=True):
        summary = result.summary()
        shares = [summary[end]["fraction"] for end in ("violations", "suboptimal", "infeasible")]
        if result.runs:
            table.add_row(label, *map(percent, shares))
    return table


def _errors(group: Sequence[Results], labels: Mapping[str, str]) -> Table:
    """One row per sampler, where all runs take the same number of samples."""
    plan, planned = group[0].plan, group[0].bound.budget
    table = Table(
        f"Wrong answers after {number(plan.problem.budget or 0)} samples",
        (text_column("sampler"), Column("wrong"), Column("between"), Column("us/step")),
    )
    for label, result in zip(labels.values(), group, strict=True):
        summary = result.summary()
        if not result.runs:
            table.add_row(label, "no runs", "", "")
            continue
        right, speed = summary["correct"], summary["microseconds_per_step"]
        rates = (right["fraction"], right["high"], right["low"])
        wrong, low, high = (rough_percent(100 * (1 - x)) for x in rates)
        table.add_row(label, wrong, f"{low} and {high}", f"{speed:.2g}")
    if planned is not None and planned.error_probability is not None:
        table.add_section()
        table.add_row(
            "planned, means known", rough_percent(100 * planned.error_probability), "", ""
        )
    return table


def _samples(group: Sequence[Results], labels: Mapping[str, str]) -> Table:
    """How many samples were bought, where they cost."""
    table = Table(
        f"Samples until stopping, {group[0].plan.scenario}",
        (text_column("sampler"), Column("mean"), Column("median", rank=2), Column("95%", rank=1)),
    )
    for label, result in zip(labels.values(), group, strict=True):
        times = result.summary()["stopping_time"]
        if result.runs:
            cells = (f"{times['median']:,.0f}", f"{times['q95']:,.0f}")
            table.add_row(label, mean_and_error(times["mean"], times["stderr"]), *cells)
    return table


def _realised_use(
    group: Sequence[Results], labels: Mapping[str, str], names: Mapping[str, str]
) -> Table:
    """What the samples used of each constraint, the tightest if there are many."""
    table = Table(
        "Mean use by the samples",
        (text_column("constraint"), Column("limit", "left"), *map(Column, labels.values())),
    )
    realised = [result.constraint_use() for result in group]
    shown = limits_used if group[0].plan.scenario == EXPLORATION else uses
    for use in shown(group[0].bound, MAX_ROWS):
        amounts = [r[use.name] for r in realised]
        cells = ("-" if x is None else f"{x:.3f}" for x in amounts)
        table.add_row(names[use.name], use.limit, *cells)
    return table
