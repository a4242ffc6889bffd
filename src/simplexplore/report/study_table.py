"""Live studies as text for a terminal, readable from 80 columns on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from simplexplore.exploration.excess import limits_in_words
from simplexplore.problem.spelling import count

from .numbers import number, percent, shorten
from .table import MAX_ROWS, print_limited, titled_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from simplexplore.study.records import StudySummary
    from simplexplore.study.status import ConstraintStatus, EdgeStatus, Status


def print_status(status: Status, console: Console) -> None:
    """Print everything that `Study.status` says."""
    answer = status["answer"]
    epsilon, goal = status["epsilon"], status["stop_when"]
    within = epsilon or (goal["regret"] if goal else 0.0)
    console.print(
        f"{status['name']}: {count(status['rewards'], 'reward')}, {status['pending']} pending, "
        f"{status['sampler']}, {status['scenario']}, threshold {status['threshold']} "
        f"({'proven' if status['proven'] else 'a heuristic'}), delta {status['delta']:g}"
        f"{f', epsilon {epsilon:g}' if epsilon else ''}"
        f"{f', stops at regret {within:g}' if goal else ''}",
        style="dim",
    )
    console.print()
    if answer is not None:
        mix = ", ".join(f"{share:.3g} {arm}" for arm, share in answer["mix"].items())
        console.print(
            f"Answer: {mix}. It is {f'within {within:g} of the best, ' if within else ''}"
            f"wrong with probability at most {answer['delta']:g}"
            f"{'' if status['proven'] else ' by a rule of thumb'}; found with "
            f"{count(answer['rewards'], 'reward')}.",
            style="bold",
        )
    elif status["policy"] is None:
        console.print("No answer yet: some arms have no reward.", style="bold")
    else:
        low, high = status["value_interval"] or (None, None)
        console.print(f"Best mix so far: {status['policy_in_words']}", style="bold")
        console.print(f"It earns {_number(status['value'])}, {_between(low, high)}.")
        console.print(_to_go(status))
    if "cost" in status:
        console.print(_cost(status))
    if status["confidence"] is not None:
        console.print(_so_far(status))
    if status["overdue"]:
        console.print(
            f"{count(status['overdue'], 'pull')} overdue: given up with the next question."
        )
    print_limited(console, _arms(status), len(status["arms"]), "with fewer rewards")
    console.print(f"between: {status['intervals']}", style="dim")
    if status["edges"]:
        print_limited(
            console, _comparisons(status["edges"]), len(status["edges"]), "nearer their end"
        )
    if status["constraints"]:
        table = _constraints("Constraints", status["constraints"])
        print_limited(console, table, len(status["constraints"]), "")
    if status["exploration"]:
        table = _constraints("Limits on exploration", status["exploration"])
        print_limited(console, table, len(status["exploration"]), "")
    for sentence in limits_kept(status):
        console.print(sentence)


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "within limits that are not known yet"
    return f"between {number(low)} and {number(high)} whatever the moment"


def _to_go(status: Status) -> str:
    if status["to_go"] is None:
        return "The best policies tie at the means seen so far: no telling how many samples to go."
    return (
        f"{percent(status['progress'])} of the evidence needed; about {number(status['to_go'])} "
        f"samples to go if the means are as they look{_range(status['to_go_range'])}."
    )


def _cost(status: Status) -> str:
    """What was spent, and about how much more will be."""
    spent = f"Cost so far {number(status['cost'])}"
    left = status["cost_to_go"]
    if left is None or status["answer"] is not None:
        return f"{spent}."
    return f"{spent}, to go about {number(left)}{_range(status['cost_to_go_range'])}."


def _range(ends: Sequence[float | None] | None) -> str:
    if ends is None:
        return ""
    low, high = ends[0] or 0, ends[1]
    if not low and high is None:
        return "; it is too early for a range"
    upper = "or more" if high is None else f"to {number(high)}"
    return f", {number(low)} {upper} in four runs of five"


def _so_far(status: Status) -> str:
    """What holds at every moment, however often one looks."""
    assert status["confidence"] is not None
    lost = status["regret_bound"]
    return f"Confidence so far {percent(status['confidence'])}; " + (
        "how much a better mix could earn is not known yet."
        if lost is None
        else f"with confidence {percent(1 - status['delta'])} no mix earns more by over "
        f"{number(lost)}."
    )


def _arms(status: Status) -> Table:
    table = titled_table("Arms")
    table.add_column("arm")
    for name in ("rewards", "pending", "target", "mean", "between", "", "in the mix"):
        table.add_column(name, justify="right")
    for arm in sorted(status["arms"], key=lambda arm: -arm["rewards"])[:MAX_ROWS]:
        table.add_row(
            shorten(arm["arm"], 24),
            str(arm["rewards"]),
            str(arm["pending"] or ""),
            number(arm["target"]),
            _number(arm["mean"]),
            _number(arm["low"]),
            _number(arm["high"]),
            f"{arm['policy']:.3g}" if arm["policy"] else "",
        )
    return table


def _comparisons(edges: Sequence[EdgeStatus]) -> Table:
    table = titled_table("Evidence against neighbouring mixes")
    table.add_column("less of")
    table.add_column("more of")
    for name in ("evidence", "needed"):
        table.add_column(name, justify="right")
    open_first = sorted(edges, key=lambda edge: edge["statistic"] - edge["threshold"])
    for edge in open_first[:MAX_ROWS]:
        sides = [
            ", ".join(
                arm if abs(rate) == 1 else f"{abs(rate):.3g} {arm}"
                for arm, rate in edge["direction"].items()
                if rate * sign > 0
            )
            for sign in (-1, 1)
        ]
        table.add_row(
            *(shorten(side, 26) for side in sides),
            number(edge["statistic"]),
            number(edge["threshold"]),
        )
    return table


def _constraints(title: str, rows: Sequence[ConstraintStatus]) -> Table:
    table = titled_table(title)
    table.add_column("constraint")
    for name in ("at least", "at most", "pulls so far", "mix"):
        table.add_column(name, justify="right")
    for row in rows[:MAX_ROWS]:
        cells = [_number(row[name]) for name in ("lower", "upper", "explored", "policy")]
        table.add_row(shorten(row["name"], 30), *cells)
    return table


def limits_kept(status: Status) -> list[str]:
    """What holds of limits on samples, and which were exceeded all the same, from outside."""
    limits = status["exploration"] or status["constraints"]
    if not any(row["excess"] is not None for row in limits):
        return []
    most = math.inf if status["excess_bound"] is None else status["excess_bound"]
    above = [row for row in limits if (row["excess"] or 0.0) > most + 1e-6]
    return [
        limits_in_words(most),
        *(
            f"{row['name']} is exceeded by {number(row['excess'] or 0.0)} pulls, by pulls made "
            "elsewhere."
            for row in above
        ),
    ]


def print_studies(studies: Sequence[StudySummary], console: Console) -> None:
    """Print a list of studies."""
    if not studies:
        console.print("No studies yet: 'simplexplore study create FILE' starts one.")
        return
    table = titled_table("Studies")
    for name in ("study", "state"):
        table.add_column(name)
    for name in ("rewards", "pending", "delta"):
        table.add_column(name, justify="right")
    table.add_column("last change (UTC)")
    damaged = []
    for study in studies:
        if "trouble" in study:  # its numbers may not be right
            damaged.append(f"{study['name']}: {study['trouble']}")
            table.add_row(shorten(study["name"], 30), "damaged")
            continue
        table.add_row(
            shorten(study["name"], 30),
            study["state"],
            str(study["rewards"]),
            str(study["pending"]),
            f"{study['delta']:g}",
            datetime.fromtimestamp(study["changed"], UTC).strftime("%Y-%m-%d %H:%M:%S"),
        )
    console.print(table)
    if damaged:
        console.print()
    for words in damaged:
        console.print(words)


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
