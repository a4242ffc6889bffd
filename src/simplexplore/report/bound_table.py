"""Bounds and results as text for a terminal, readable from 80 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table

from simplexplore.bound.information import binary_kl
from simplexplore.problem.spelling import count

from .bound_text import (
    circumstances,
    comparable,
    hardest_first,
    headline,
    mean_and_error,
    move,
    notes,
    number,
    percent,
    percent_between,
    prominent_arms,
    ratio,
    recommended,
    relaxed,
    sampler_labels,
    share,
    shorten,
    standing,
    times_alone,
    title,
    uses,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from simplexplore.bound.result import Bound, ScenarioBound, Unconstrained
    from simplexplore.simulation.results import Results

# Rows beyond this are counted in words.
MAX_ROWS = 15

# Columns beside the names in the table of scenarios, with the space between them.
SCENARIO_WIDTH = 59


def print_bound(bound: Bound, console: Console) -> None:
    """Print everything a bound says.

    Parameters
    ----------
    bound : Bound
    console : rich.console.Console
        It should not interpret markup: names may contain brackets.
    """
    problem = bound.problem
    console.print(
        f"{count(len(problem.arms), 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{problem.rewards.name} rewards, delta {bound.delta:g}, {problem.scenario}",
        style="dim",
    )
    console.print()
    console.print(f"{title(bound)} (earns {number(bound.value)})", style="bold")
    console.print(headline(bound), style="bold")
    if problem.names:
        print_limited(console, _constraints(bound), len(problem.names), "with more slack")
    if bound.edges and relaxed(bound) is None:
        print_limited(console, _comparisons(bound), len(bound.edges), "that are easier")
        console.print(
            f"decides: the bound hinges on it ({problem.scenario}); the rest is settled along the "
            "way",
            style="dim",
        )
    table = _scenarios(bound, name_width=max(console.width - SCENARIO_WIDTH, 12))
    print_limited(console, table, len(problem.arms), "with fewer samples")
    console.print()
    for note in notes(bound):
        console.print(note)


def print_limited(console: Console, table: Table, total: int, what: str) -> None:
    """Print a table, and how many rows of the total it leaves out."""
    console.print()
    console.print(table)
    if total > MAX_ROWS:
        console.print(f"... and {total - MAX_ROWS} more {what}", style="dim")


def titled_table(title: str) -> Table:
    """An empty table in the style of all of them."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )


def _constraints(bound: Bound) -> Table:
    """Each constraint with its use and slack, the tightest if there are many."""
    table = titled_table("Constraints at the best mix")
    table.add_column("constraint", overflow="ellipsis", no_wrap=True)
    table.add_column("use", justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("slack", justify="right", no_wrap=True)
    for use in uses(bound, MAX_ROWS):
        slack = "none" if use.active else number(use.slack)
        table.add_row(use.name, number(use.amount), use.limit, slack)
    return table


def _comparisons(bound: Bound) -> Table:
    """The edges, hardest first."""
    own = bound.scenarios[bound.problem.scenario]
    table = titled_table("Comparisons to settle, hardest first")
    table.add_column("instead of -> use", overflow="fold")
    table.add_column("gap", justify="right", no_wrap=True)
    table.add_column("samples alone", justify="right", no_wrap=True)
    table.add_column("decides", justify="center", no_wrap=True)
    times = times_alone(bound)
    for e in hardest_first(times)[:MAX_ROWS]:
        edge = bound.edges[e]
        table.add_row(
            " -> ".join(move(edge, bound.problem.arms, name_width=28)),
            number(edge.gap) if edge.gap > 0 else "tie",
            number(float(times[e]) * binary_kl(bound.delta)) if edge.gap > 0 else "-",
            "yes" if edge.gap <= 0 or e in own.binding_edges else "",
        )
    return table


def _scenarios(bound: Bound, name_width: int) -> Table:
    """The scenarios side by side, the unconstrained problem beside them."""
    table = titled_table("Samples, and where they should go")
    table.add_column("", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("policy", justify="right", no_wrap=True)
    for name in (*bound.scenarios, "no\nconstraints"):
        table.add_column(name, justify="right", no_wrap=True)
    scenarios = list(bound.scenarios.values())
    everything: list[ScenarioBound | Unconstrained] = [*scenarios, bound.unconstrained]
    table.add_row("samples, at least", "", "", *(number(x.lower_bound) for x in everything))
    table.add_row(
        "characteristic time", "", "", *(number(x.characteristic_time) for x in everything)
    )
    table.add_row("certified to within", "", "", *(f"{x.relative_gap:.0e}" for x in scenarios), "")
    table.add_section()
    for arm in prominent_arms(bound, MAX_ROWS):
        used = bound.policy[arm] > 0
        table.add_row(
            shorten(bound.problem.arms[arm], name_width),
            number(float(bound.means[arm])),
            share(float(bound.policy[arm])),
            *("" if w is None else share(float(w[arm])) for w in map(recommended, everything)),
            style="bold" if used else None,
        )
    return table


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
        if plan.scenario == "anytime" and plan.problem.names:
            console.print()
            console.print(_realised_use(group))
            left = len(plan.problem.names) - MAX_ROWS
            if left > 0:
                console.print(f"... and {left} more with more slack", style="dim")
    console.print()
    for sentence in dict.fromkeys(standing(result) for result in results):
        console.print(sentence)


def _comparison(group: Sequence[Results]) -> Table:
    """One row per sampler."""
    scenario, least = group[0].plan.scenario, group[0].lower_bound
    table = titled_table(f"Samples until stopping, {scenario} (lower bound: {number(least)})")
    table.add_column("sampler", overflow="fold")
    for heading in ("mean", "median", "95%", "/bound", "correct", "us/step"):
        table.add_column(heading, justify="right", no_wrap=True)
    with_capped = any(result.capped.any() for result in group)
    if with_capped:
        table.add_column("capped", justify="right", no_wrap=True)
    for label, result in zip(sampler_labels(group), group, strict=True):
        summary = result.summary()
        times, right, speed = (
            summary["stopping_time"],
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


def _realised_use(group: Sequence[Results]) -> Table:
    """What the samples used of each constraint, the tightest if there are many."""
    table = titled_table("Mean use by the samples taken")
    table.add_column("constraint", overflow="ellipsis", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    for label in sampler_labels(group):
        table.add_column(label, justify="right", overflow="fold")
    realised = [result.constraint_use() for result in group]
    for use in uses(group[0].bound, MAX_ROWS):
        amounts = [r[use.name] for r in realised]
        table.add_row(use.name, use.limit, *("-" if x is None else f"{x:.3f}" for x in amounts))
    return table
