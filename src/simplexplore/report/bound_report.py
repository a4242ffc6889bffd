"""Bounds as documents, and as plain data with what the program itself would take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.measured_result import Deciding, MeasuredPlan
from simplexplore.bound.result import Bound, ScenarioBound
from simplexplore.errors import SimplexploreError
from simplexplore.exploration.forecast import forecast, forecast_budget
from simplexplore.exploration.limits import excess_bound
from simplexplore.problem.measured import Measured
from simplexplore.problem.problem import Problem

from . import bound_words
from .bound_words import Array, Comparison, Usage
from .document import Document, Heading, Note
from .numbers import number, share
from .table import MAX_ROWS, Column, Field, Table, text_column

_Found = TypeVar("_Found")


def bound_to_dict(bound: Bound, *, forecasts: bool = True) -> dict[str, Any]:
    """`Bound.to_dict`, each scenario with samples to expect and, of limits, `excess_bound`.

    None where there is no number, and without forecasts, which simulate.
    """
    found: dict[str, Any] = bound.to_dict()
    for name in bound.scenarios:
        scenario, allowed = found["scenarios"][name], AllocationSet.of(bound._polytope, name)
        # No number of pulls is known by which a measured limit may be exceeded.
        learned = bound.problem.measured and name == "anytime"
        most = None if learned else excess_bound(allowed, bound.problem.initial_excess)
        scenario["excess_bound"] = None if most == math.inf else most
        expected = _known(forecast, bound, name) if forecasts else None
        scenario["expected_samples"] = expected and expected.samples
        scenario["expected_range"] = expected and [expected.low, expected.high]
        if "cost_per_sample" in scenario:
            scenario["expected_cost"] = expected and expected.cost
    if (samples := bound.problem.budget) is not None:
        known = _known(forecast_budget, bound) if forecasts else None
        nothing = dict.fromkeys(("error_probability", "error_range", "allocation"))
        found["budget"] = known.to_dict() if known else {"samples": samples, **nothing}
    return found


def _known(forecast: Callable[..., _Found], *arguments: object) -> _Found | None:
    """None where the sampler cannot run: the document says why."""
    try:
        return forecast(*arguments)
    except SimplexploreError:
        return None


def bound_document(bound: Bound, *, forecasts: bool = True) -> Document:
    """Everything that a bound says; forecasts simulate."""
    problem = bound.problem
    used = bound_words.constraint_usage(bound, MAX_ROWS)
    explored = bound_words.exploration_usage(bound, MAX_ROWS)
    title, earns = bound_words.title(bound), f" (earns {number(bound.value)})"
    what = bound_words.problem_in_words(problem)
    document: Document = [
        [Note(f"{what}, delta {bound.delta:g}, {problem.scenario}")],
        [
            Heading("title", title if bound.answer else title + earns),
            Heading("headline", bound_words.headline(bound)),
            *(bound_words.expectation(bound) if forecasts else ()),
        ],
    ]
    if problem.names:
        heading, total = "Constraints at the best mix", len(problem.names)
        document.append([_limits(heading, "constraint", used, total)])
    if explored:
        heading = "Limits on exploration at its best allocation"
        total = len(problem.exploration)
        document.append([_limits(heading, "limit on exploration", explored, total)])
    if isinstance(bound, MeasuredPlan):
        document.append([_measured(bound)])
        if bound.own.deciding:
            document.append([_deciding(bound)])
    elif bound.edges and bound_words.relaxed(bound) is None:
        decides = f"the bound depends on it ({problem.scenario})"
        words = f"decides: {decides}; the others are settled along the way"
        document.append([_comparisons(bound), Note(words)])
    is_bound = "it takes about" if problem.measured else "the lower bound is"
    words = (
        f"{_characteristic(problem)}: {is_bound} this times kl(delta, 1 - delta), about "
        f"log(1/delta){', where delta is small' * bool(problem.measured)}"
    )
    document.append([_scenarios(bound), Note(words)])
    return [*document, [*bound_words.notes(bound)]]


def _limits(heading: str, noun: str, rows: list[Usage], total: int) -> Table:
    """Each limit with its use and slack."""
    fields: list[Field[Usage]] = [
        (text_column(noun), lambda row: row.name),
        (Column("use"), lambda row: number(row.amount)),
        (Column("limit", "left"), lambda row: row.limit),
        (Column("slack", rank=1), lambda row: "none" if row.active else number(row.slack)),
    ]
    return Table.of(heading, fields, rows, total, "with more slack")


def _comparisons(bound: Bound) -> Table:
    """The edges, hardest first."""
    amount = "cost alone" if bound.problem.has_costs else "samples alone"
    fields: list[Field[Comparison]] = [
        (text_column("wrong if" if bound.answer else "instead of -> use"), lambda x: x.words),
        (Column("gap", rank=1), lambda x: number(x.gap) if x.gap > 0 else "tie"),
        (Column(amount), lambda x: number(x.amount) if x.gap > 0 else "-"),
        (Column("decides", "center", rank=2), lambda x: "yes" if x.decides else ""),
    ]
    rows = bound_words.comparisons(bound, bound.problem.arms, MAX_ROWS)
    heading = "Comparisons to settle, hardest first"
    return Table.of(heading, fields, rows, len(bound.edges), "that are easier")


def _measured(bound: MeasuredPlan) -> Table:
    """Each measured limit, where the best mix and the answer are."""
    fields: list[Field[tuple[Measured, Array]]] = [
        (text_column("measured"), lambda row: row[0].name),
        (Column("limit", "left"), lambda row: str(row[0].limit)),
        (Column("tolerance", rank=2), lambda row: number(row[0].tolerance)),
        (Column("best mix", rank=1), lambda row: number(float(row[1] @ bound.policy))),
        (Column("answer"), lambda row: number(float(row[1] @ bound.own.answer))),
    ]
    rows = list(zip(bound.problem.measured, bound.measured_means, strict=True))
    return Table.of("Measured limits", fields, rows, len(rows))


def _deciding(bound: MeasuredPlan) -> Table:
    """What would make the answer wrong, hardest first."""
    every = bound.own.deciding
    fields: list[Field[Deciding]] = [
        (text_column("the answer is wrong if"), lambda one: bound_words.reason(one, bound))
    ]
    return Table.of("What makes it hard", fields, every[:MAX_ROWS], len(every))


def _scenarios(bound: Bound) -> Table:
    """The scenarios side by side: what they take, then the share of each arm."""
    problem, scenarios = bound.problem, bound.scenarios.values()
    arms: list[Field[int]] = [
        (Column("mean", rank=2), lambda a: number(float(bound.means[a]))),
        (Column("policy", rank=1), lambda a: share(float(bound.policy[a]))),
    ]
    if isinstance(bound, MeasuredPlan):
        answer = bound.own.answer
        arms.append((Column("answer", rank=1), lambda a: share(float(answer[a]))))
    first: dict[str, Callable[[ScenarioBound], str]] = {}
    if not problem.measured:
        least = "cost, at least" if problem.has_costs else "samples, at least"
        first[least] = lambda x: number(x.lower_bound)
        if problem.has_costs:
            first["samples for that"] = lambda x: number(x.lower_bound / x.cost_per_sample)
    first[_characteristic(problem)] = lambda x: number(x.characteristic_time)
    first["certified to within"] = lambda x: f"{x.relative_gap:.0e}" if x.relative_gap else "0"
    columns = [text_column(""), *(column for column, _ in arms)]
    columns += [Column(x, rank=0 if x == problem.scenario else 3) for x in bound.scenarios]
    heading = "Samples, and where they should go"
    table = Table(heading, columns, problem.size, "with fewer samples")
    for label, write in first.items():
        table.add_row(label, *[""] * len(arms), *map(write, scenarios))
    table.add_section()
    every = [bound_words.recommended(x) for x in scenarios]
    for a in bound_words.top_arms(bound, MAX_ROWS):
        shares = ["" if w is None else share(float(w[a])) for w in every]
        style = "bold" if bound.policy[a] > 0 else None
        own = [write(a) for _, write in arms]
        table.add_row(problem.arms[a], *own, *shares, style=style)
    return table


def _characteristic(problem: Problem) -> str:
    """What a lower bound is apart from delta."""
    return f"characteristic {'cost' if problem.has_costs else 'time'}"
