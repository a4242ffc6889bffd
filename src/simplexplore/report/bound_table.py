"""Bounds as text for a terminal, readable from 80 columns on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexplore.bound.information import binary_kl
from simplexplore.problem.spelling import count

from .bound_text import (
    expectation,
    hardest_first,
    headline,
    limits_used,
    move,
    notes,
    prominent_arms,
    recommended,
    relaxed,
    spending,
    times_alone,
    title,
    uses,
)
from .numbers import number, share, shorten
from .table import MAX_ROWS, print_limited, titled_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from simplexplore.bound.result import Bound, ScenarioBound, Unconstrained

    from .bound_text import Use

# Columns beside the names in the table of scenarios, with the space between them.
SCENARIO_WIDTH = 59

# One more column, and the least for names and the words above them.
COLUMN_WIDTH, NAME_WIDTH = 14, 22


def print_bound(bound: Bound, console: Console) -> None:
    """Print everything a bound says.

    Parameters
    ----------
    bound : Bound
    console : rich.console.Console
        It should not interpret markup: names may contain brackets.
    """
    problem = bound.problem
    sigma = "" if problem.rewards.knows_sigma else " with unknown sigma"
    console.print(
        f"{count(len(problem.arms), 'arm')}, {count(len(problem.names), 'constraint')}, "
        f"{problem.rewards.name} rewards{sigma}, delta {bound.delta:g}, {problem.scenario}",
        style="dim",
    )
    console.print()
    console.print(f"{title(bound)} (earns {number(bound.value)})", style="bold")
    console.print(headline(bound), style="bold")
    for sentence in expectation(bound):
        console.print(sentence)
    if problem.names:
        table = _limits("Constraints at the best mix", "constraint", uses(bound, MAX_ROWS))
        print_limited(console, table, len(problem.names), "with more slack")
    if limits := limits_used(bound, MAX_ROWS):
        table = _limits(
            "Limits on exploration at its best allocation", "limit on exploration", limits
        )
        print_limited(console, table, len(problem.exploration), "with more slack")
    if bound.edges and relaxed(bound) is None:
        print_limited(console, _comparisons(bound), len(bound.edges), "that are easier")
        console.print(
            f"decides: the bound hinges on it ({problem.scenario}); the rest is settled along the "
            "way",
            style="dim",
        )
    table = _scenarios(bound, console.width)
    print_limited(console, table, len(problem.arms), "with fewer samples")
    if problem.has_costs:
        table = _spending(bound, console.width)
        print_limited(console, table, len(problem.arms), "with fewer samples")
    console.print()
    for note in notes(bound):
        console.print(note.text)


def _limits(heading: str, noun: str, rows: list[Use]) -> Table:
    """Each limit with its use and slack."""
    table = titled_table(heading)
    table.add_column(noun, overflow="ellipsis", no_wrap=True)
    table.add_column("use", justify="right", no_wrap=True)
    table.add_column("limit", no_wrap=True)
    table.add_column("slack", justify="right", no_wrap=True)
    for use in rows:
        slack = "none" if use.active else number(use.slack)
        table.add_row(use.name, number(use.amount), use.limit, slack)
    return table


def _comparisons(bound: Bound) -> Table:
    """The edges, hardest first."""
    own = bound.scenarios[bound.problem.scenario]
    table = titled_table("Comparisons to settle, hardest first")
    table.add_column("instead of -> use", overflow="fold")
    table.add_column("gap", justify="right", no_wrap=True)
    alone = "cost alone" if bound.problem.has_costs else "samples alone"
    table.add_column(alone, justify="right", no_wrap=True)
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


def _scenarios(bound: Bound, width: int) -> Table:
    """The scenarios side by side, the unconstrained problem beside them if there is room."""
    # A third scenario takes the place of the unconstrained problem, of which a note speaks too.
    both = len(bound.scenarios) > 2 and width >= SCENARIO_WIDTH + COLUMN_WIDTH + NAME_WIDTH
    name_width = max(width - SCENARIO_WIDTH - both * COLUMN_WIDTH, 12)
    beside = [bound.unconstrained] if both or len(bound.scenarios) == 2 else []
    table = titled_table("Samples, and where they should go")
    table.add_column("", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("policy", justify="right", no_wrap=True)
    for name in (*bound.scenarios, *("no\nconstraints" for _ in beside)):
        table.add_column(name, justify="right", no_wrap=True)
    scenarios = list(bound.scenarios.values())
    everything: list[ScenarioBound | Unconstrained] = [*scenarios, *beside]
    has_costs = bound.problem.has_costs
    least, time = (
        ("cost", "characteristic cost") if has_costs else ("samples", "characteristic time")
    )
    table.add_row(f"{least}, at least", "", "", *(number(x.lower_bound) for x in everything))
    if has_costs:
        paid = (number(x.lower_bound / x.cost_per_sample) for x in everything)
        table.add_row("samples for that", "", "", *paid)
    table.add_row(time, "", "", *(number(x.characteristic_time) for x in everything))
    known = [x.known_sigma_time for x in scenarios if x.known_sigma_time is not None]
    if known:
        table.add_row("if sigma were known", "", "", *map(number, known), *("" for _ in beside))
    gaps = [f"{x.relative_gap:.0e}" for x in scenarios]
    table.add_row("certified to within", "", "", *gaps, *("" for _ in beside))
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


def _spending(bound: Bound, width: int) -> Table:
    """The same allocations in shares of what is spent."""
    table = titled_table("What they cost, and where the money goes")
    table.add_column("", no_wrap=True)
    table.add_column("cost of one", justify="right", no_wrap=True)
    for name in bound.scenarios:
        table.add_column(name, justify="right", no_wrap=True)
    scenarios = list(bound.scenarios.values())
    table.add_row("cost per sample", "", *(number(x.cost_per_sample) for x in scenarios))
    table.add_section()
    for arm in prominent_arms(bound, MAX_ROWS):
        table.add_row(
            shorten(bound.problem.arms[arm], max(width - SCENARIO_WIDTH, 12)),
            number(float(bound.problem.costs[arm])),
            *("" if w is None else share(float(w[arm])) for w in map(spending, scenarios)),
            style="bold" if bound.policy[arm] > 0 else None,
        )
    return table
