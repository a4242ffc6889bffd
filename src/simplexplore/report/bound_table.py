"""Bounds as text for a terminal of any width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simplexplore.bound.information import binary_kl
from simplexplore.bound.measured_result import MeasuredBound
from simplexplore.problem.problem import MEASURED_LIMIT
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
from .measured_text import reason
from .numbers import number, share
from .table import MAX_ROWS, Column, Table, print_legend, short_names, text_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from simplexplore.bound.result import Bound, ScenarioBound, Unconstrained
    from simplexplore.problem.problem import Problem

    from .bound_text import Use

# Said below the table that has the number.
CHARACTERISTIC_TIME = "{}: the lower bound is this times kl(delta, 1 - delta), about log(1/delta)"


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
        f"{f'{count(len(problem.measured), MEASURED_LIMIT)}, ' if problem.measured else ''}"
        f"{problem.rewards.in_words}, delta {bound.delta:g}, {problem.scenario}",
        style="dim",
    )
    console.print()
    console.print(f"{title(bound)} (earns {number(bound.value)})", style="bold")
    console.print(headline(bound), style="bold")
    for sentence in expectation(bound):
        console.print(sentence)
    arms, constraints = short_names(problem.arms), short_names(_rows_of(bound))
    if problem.names:
        console.print()
        table = _limits(
            "Constraints at the best mix", "constraint", uses(bound, MAX_ROWS), constraints
        )
        table.print(console, len(problem.names), "with more slack")
    if limits := limits_used(bound, MAX_ROWS):
        console.print()
        table = _limits(
            "Limits on exploration at its best allocation",
            "limit on exploration",
            limits,
            constraints,
        )
        table.print(console, len(problem.exploration), "with more slack")
    if isinstance(bound, MeasuredBound):
        console.print()
        _measured(bound).print(console, len(problem.measured), "")
        if bound.own.deciding:
            console.print()
            _deciding(bound).print(console, len(bound.own.deciding), "of less weight")
    elif bound.edges and relaxed(bound) is None:
        console.print()
        _comparisons(bound, arms).print(console, len(bound.edges), "that are easier")
        console.print(
            f"decides: the bound depends on it ({problem.scenario}); the others are settled along "
            "the way",
            style="dim",
        )
    console.print()
    _scenarios(bound, arms).print(console, len(problem.arms), "with fewer samples")
    console.print(CHARACTERISTIC_TIME.format(_least_of(problem)[1]), style="dim")
    if problem.has_costs:
        console.print()
        _spending(bound, arms).print(console, len(problem.arms), "with fewer samples")
    console.print()
    shown = [problem.arms[a] for a in prominent_arms(bound, MAX_ROWS)]
    print_legend(console, {arm: arms[arm] for arm in shown}, constraints)
    for note in notes(bound):
        console.print(note.text)


def _rows_of(bound: Bound) -> list[str]:
    """Names of the constraints and limits on exploration that are shown."""
    rows = [*uses(bound, MAX_ROWS), *limits_used(bound, MAX_ROWS)]
    return [row.name for row in rows]


def _limits(heading: str, noun: str, rows: list[Use], names: Mapping[str, str]) -> Table:
    """Each limit with its use and slack."""
    columns = (text_column(noun), Column("use"), Column("limit", "left"), Column("slack", rank=1))
    table = Table(heading, columns)
    for use in rows:
        slack = "none" if use.active else number(use.slack)
        table.add_row(names[use.name], number(use.amount), use.limit, slack)
    return table


def _comparisons(bound: Bound, names: Mapping[str, str]) -> Table:
    """The edges, hardest first."""
    own = bound.scenarios[bound.problem.scenario]
    alone = "cost alone" if bound.problem.has_costs else "samples alone"
    table = Table(
        "Comparisons to settle, hardest first",
        (
            text_column("instead of -> use"),
            Column("gap", rank=1),
            Column(alone),
            Column("decides", "center", rank=2),
        ),
    )
    times = times_alone(bound)
    arms = [names[arm] for arm in bound.problem.arms]
    for e in hardest_first(times)[:MAX_ROWS]:
        edge = bound.edges[e]
        table.add_row(
            " -> ".join(move(edge, arms)),
            number(edge.gap) if edge.gap > 0 else "tie",
            number(float(times[e]) * binary_kl(bound.delta)) if edge.gap > 0 else "-",
            "yes" if edge.gap <= 0 or e in own.binding_edges else "",
        )
    return table


def _measured(bound: MeasuredBound) -> Table:
    """Each measured limit, where the best mix and the answer are."""
    columns = (
        text_column("measured"),
        Column("limit", "left"),
        Column("tolerance", rank=2),
        Column("best mix", rank=1),
        Column("answer"),
    )
    table = Table("Measured limits", columns)
    for row, means in zip(bound.problem.measured, bound.measured_means, strict=True):
        at = (number(float(means @ policy)) for policy in (bound.policy, bound.own.answer))
        table.add_row(row.name, str(row.limit), number(row.tolerance), *at)
    return table


def _deciding(bound: MeasuredBound) -> Table:
    """What would make the answer wrong, hardest first."""
    columns = (text_column("the answer is wrong if"), Column("weight"))
    table = Table("What makes it hard", columns)
    for deciding in bound.own.deciding[:MAX_ROWS]:
        table.add_row(reason(deciding, bound), f"{100 * deciding.weight:.0f}%")
    return table


def _scenarios(bound: Bound, names: Mapping[str, str]) -> Table:
    """The scenarios side by side, the unconstrained problem beside them."""
    own = bound.problem.scenario
    answer = bound.own.answer if isinstance(bound, MeasuredBound) else None
    blank = ["", ""] if answer is None else ["", "", ""]
    table = Table(
        "Samples, and where they should go",
        (
            text_column(""),
            Column("mean", rank=2),
            Column("policy", rank=1),
            *([Column("answer", rank=1)] if answer is not None else []),
            *(Column(name, rank=0 if name == own else 3) for name in bound.scenarios),
            Column("no constraints", rank=4),
        ),
    )
    scenarios = list(bound.scenarios.values())
    everything: list[ScenarioBound | Unconstrained] = [*scenarios, bound.unconstrained]
    least, time = _least_of(bound.problem)
    table.add_row(f"{least}, at least", *blank, *(number(x.lower_bound) for x in everything))
    if bound.problem.has_costs:
        paid = (number(x.lower_bound / x.cost_per_sample) for x in everything)
        table.add_row("samples for that", *blank, *paid)
    table.add_row(time, *blank, *(number(x.characteristic_time) for x in everything))
    known = [x.known_sigma_time for x in scenarios if x.known_sigma_time is not None]
    if known:
        table.add_row("if sigma were known", *blank, *map(number, known))
    table.add_row("certified to within", *blank, *(_certified(x.relative_gap) for x in scenarios))
    table.add_section()
    for arm in prominent_arms(bound, MAX_ROWS):
        table.add_row(
            names[bound.problem.arms[arm]],
            number(float(bound.means[arm])),
            share(float(bound.policy[arm])),
            *([share(float(answer[arm]))] if answer is not None else []),
            *("" if w is None else share(float(w[arm])) for w in map(recommended, everything)),
            style="bold" if bound.policy[arm] > 0 else None,
        )
    return table


def _least_of(problem: Problem) -> tuple[str, str]:
    """What a bound says the least of, and what it is called apart from delta."""
    kind = "cost" if problem.has_costs else "time"
    return ("cost" if problem.has_costs else "samples"), f"characteristic {kind}"


def _spending(bound: Bound, names: Mapping[str, str]) -> Table:
    """The same allocations in shares of what is spent."""
    own = bound.problem.scenario
    scenarios = list(bound.scenarios.values())
    table = Table(
        "What they cost, and where the money goes",
        (
            text_column(""),
            Column("cost of one"),
            *(Column(name, rank=0 if name == own else 1) for name in bound.scenarios),
        ),
    )
    table.add_row("cost per sample", "", *(number(x.cost_per_sample) for x in scenarios))
    table.add_section()
    for arm in prominent_arms(bound, MAX_ROWS):
        table.add_row(
            names[bound.problem.arms[arm]],
            number(float(bound.problem.costs[arm])),
            *("" if w is None else share(float(w[arm])) for w in map(spending, scenarios)),
            style="bold" if bound.policy[arm] > 0 else None,
        )
    return table


def _certified(gap: float) -> str:
    return f"{gap:.0e}" if gap else "0"
