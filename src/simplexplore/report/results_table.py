"""Results as text for a terminal, readable from 80 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexplore.exploration.excess import limits_in_words
from simplexplore.problem.problem import EXPLORATION

from .bound_text import limits_used, uses
from .numbers import mean_and_error, number, percent, percent_between, ratio
from .results_text import circumstances, comparable, sampler_labels, standing
from .table import MAX_ROWS, print_limited, titled_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

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
        console.print(_comparison(group))
        console.print("correct: with its 95% interval (Clopper-Pearson)", style="dim")
        if any(result.capped.any() for result in group):
            console.print(
                f"capped: stopped by --max-steps ({number(group[0].max_steps)}), and counted as if "
                "the answer had been given then",
                style="dim",
            )
        plan = group[0].plan
        if plan.problem.has_costs:
            console.print()
            console.print(_samples(group))
        if limits := plan.problem.limits_on_samples(plan.scenario):
            print_limited(console, _realised_use(group), len(limits), "with more slack")
            if (most := group[0].excess_bound) is not None:
                console.print(limits_in_words(most))
    console.print()
    for sentence in dict.fromkeys(standing(result) for result in results):
        console.print(sentence)


def _comparison(group: Sequence[Results]) -> Table:
    """One row per sampler."""
    scenario, least = group[0].plan.scenario, group[0].lower_bound
    amount = "cost" if group[0].plan.problem.has_costs else "stopping_time"
    what = "Cost" if amount == "cost" else "Samples"
    table = titled_table(f"{what} until stopping, {scenario} (lower bound: {number(least)})")
    table.add_column("sampler", overflow="fold")
    for heading in ("mean", "median", "95%", "/bound", "correct", "us/step"):
        table.add_column(heading, justify="right", no_wrap=True)
    with_capped = any(result.capped.any() for result in group)
    if with_capped:
        table.add_column("capped", justify="right", no_wrap=True)
    for label, result in zip(sampler_labels(group), group, strict=True):
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
            mean_and_error(times["mean"], times["stderr"]),
            f"{times['median']:,.0f}",
            f"{times['q95']:,.0f}",
            ratio(times["mean"], least),
            f"{percent(right['fraction'])} ({percent_between(right['low'], right['high'])[:-1]})",
            f"{speed:.2g}" if speed < 100 else f"{speed:,.0f}",
        ]
        table.add_row(*row, *([f"{summary['capped']:,}"] if with_capped else []))
    return table


def _samples(group: Sequence[Results]) -> Table:
    """How many samples were bought, where they cost."""
    table = titled_table(f"Samples until stopping, {group[0].plan.scenario}")
    table.add_column("sampler", overflow="fold")
    for heading in ("mean", "median", "95%"):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, result in zip(sampler_labels(group), group, strict=True):
        times = result.summary()["stopping_time"]
        if result.runs:
            cells = (f"{times['median']:,.0f}", f"{times['q95']:,.0f}")
            table.add_row(label, mean_and_error(times["mean"], times["stderr"]), *cells)
    return table


def _realised_use(group: Sequence[Results]) -> Table:
    """What the samples used of each constraint, the tightest if there are many."""
    table = titled_table("Mean use by the samples taken")
    table.add_column("constraint", overflow="ellipsis", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    for label in sampler_labels(group):
        table.add_column(label, justify="right", overflow="fold")
    realised = [result.constraint_use() for result in group]
    shown = limits_used if group[0].plan.scenario == EXPLORATION else uses
    for use in shown(group[0].bound, MAX_ROWS):
        amounts = [r[use.name] for r in realised]
        table.add_row(use.name, use.limit, *("-" if x is None else f"{x:.3f}" for x in amounts))
    return table
