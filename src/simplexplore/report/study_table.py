"""Live studies as text for a terminal of any width."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from simplexplore.exploration.excess import limits_in_words
from simplexplore.problem.measured import Measured
from simplexplore.problem.spelling import at_least, at_most, count

from .numbers import number, percent
from .table import MAX_ROWS, Column, Table, print_legend, short_names, text_column

if TYPE_CHECKING:
    from rich.console import Console

    from simplexplore.study.records import StudySummary
    from simplexplore.study.status_records import (
        ConstraintStatus,
        EdgeStatus,
        MeasuredLimit,
        Status,
    )


VIOLATION = (
    "p-value, valid at every moment, of the claim that the mix misses the limit by more than its "
    "tolerance"
)


def print_status(status: Status, console: Console) -> None:
    """Print everything that `Study.status` says."""
    _print_answer(status, console)
    arms = short_names(arm["arm"] for arm in status["arms"])
    limits = short_names(row["name"] for row in (*status["constraints"], *status["exploration"]))
    console.print()
    _arms(status, arms).print(console, len(status["arms"]), "with fewer rewards")
    console.print(f"between: {status['intervals']}", style="dim")
    if status["edges"]:
        console.print()
        table = _comparisons(status["edges"], arms)
        table.print(console, len(status["edges"]), "with more evidence")
    for title, rows in (
        ("Constraints", status["constraints"]),
        ("Limits on exploration", status["exploration"]),
    ):
        if rows:
            console.print()
            _constraints(title, rows, limits).print(console, len(rows))
    for table, length in _measured(status.get("measured", []), arms):
        console.print()
        table.print(console, length)
    if status.get("measured"):
        console.print(f"violated: {VIOLATION}", style="dim")
    if "promise" in status:
        worst = [row for row in status.get("measured", []) if row.get("explored_worst") is not None]
        told = [f"{row['name']} {_number(row.get('explored_worst'))}" for row in worst]
        console.print(f"{status['promise']}{' At worst so far: ' * bool(told)}{', '.join(told)}")
    print_legend(console, arms, limits)
    for sentence in limits_kept(status):
        console.print(sentence)


def _print_answer(status: Status, console: Console) -> None:
    """What a study is, and its answer or how far it is from one."""
    answer = status["answer"]
    epsilon, goal = status["epsilon"], status["stop_when"]
    within = epsilon or (goal or {}).get("regret", 0.0)
    budget = (goal or {}).get("budget")
    console.print(
        f"{status['name']}: {_state(status)}{count(status['rewards'], 'reward')}, "
        f"{status['pending']} pending, "
        f"{status['sampler']}, {status['scenario']}, threshold {status['threshold']} "
        f"({_standing(status)}), delta {status['delta']:g}"
        f"{f', epsilon {epsilon:g}' if epsilon else ''}"
        f"{f', stops after {number(budget)} samples' if budget else ''}"
        f"{f', stops at regret {within:g}' if goal and not budget else ''}",
        style="dim",
    )
    console.print()
    if answer is not None and budget:
        mix = ", ".join(f"{share:.3g} {arm}" for arm, share in answer["mix"].items())
        found = count(answer["rewards"], "reward")
        console.print(f"Answer: {mix}. The budget of {found} is spent.", style="bold")
        console.print("Delta is not guaranteed: what is known is the confidence so far.")
    elif answer is not None:
        mix = ", ".join(f"{share:.3g} {arm}" for arm, share in answer["mix"].items())
        if answer["policy"] is None:
            mix, within = f"no mix keeps {_limits(status)}", 0.0
        console.print(
            f"Answer: {mix}. It is {f'within {within:g} of the best, ' if within else ''}"
            f"wrong with probability at most {answer['delta']:g}"
            f"{'' if status['proven'] else ' by a heuristic'}; found with "
            f"{count(answer['rewards'], 'reward')}.",
            style="bold",
        )
        console.print(_decided(status))
    elif status.get("infeasible"):
        console.print(f"It seems that no mix keeps {_limits(status)}.", style="bold")
        console.print(_to_go(status))
    elif status["policy"] is None:
        few = "too few rewards" if "measured" in status else "no reward"
        console.print(f"No answer yet: some arms have {few}.", style="bold")
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
        console.print(f"{count(status['overdue'], 'pull')} overdue: they expire with the next ask.")


def _state(status: Status) -> str:
    """What keeps a study from going on, if somebody does."""
    return f"{status['state']}, " if status["state"] in ("paused", "archived") else ""


def _decided(status: Status) -> str:
    """When it was decided, and on which evidence; what came later stands apart."""
    decision = status["decision"]
    assert decision is not None
    at = datetime.fromtimestamp(decision["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    later = count(decision["later"], "reward")
    why = (
        f"with evidence {number(decision['statistic'])}, where "
        f"{number(decision['threshold'])} was needed"
    )
    if (regret := (status["stop_when"] or {}).get("regret")) is not None:
        why = f"when no mix could be better by more than {number(regret)}"
    return (
        f"Decided {at} (UTC) {why}."
        f"{f' {later} came later and changed nothing.' if decision['later'] else ''}"
    )


def _standing(status: Status) -> str:
    """What is known of the threshold."""
    if (status["stop_when"] or {}).get("budget"):
        return "delta is not guaranteed"
    return "proven" if status["proven"] else "a heuristic"


def _between(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "with no interval yet"
    return f"between {number(low)} and {number(high)} at every moment"


def _to_go(status: Status) -> str:
    if (budget := (status["stop_when"] or {}).get("budget")) is not None:
        return f"{number(status['to_go'] or 0)} of {number(budget)} samples to go."
    if status["to_go"] is None and "measured" in status:
        return "It is too early to say how many samples to go."
    if status["to_go"] is None:
        return (
            "The best policies tie at the means seen so far, so the samples to go cannot be "
            "estimated."
        )
    more = f"about {number(status['to_go'])} samples to go"
    if (regret := (status["stop_when"] or {}).get("regret")) is not None:
        return (
            f"At the means seen so far, {more} until no mix can be better by more than "
            f"{number(regret)}."
        )
    return (
        f"{percent(status['progress'])} of the evidence needed; {more} if the means are as they "
        f"look{_range(status['to_go_range'])}."
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
    if "measured" in status:
        return f"Confidence so far {at_least(status['confidence'])}."
    return f"Confidence so far {at_least(status['confidence'])}; " + (
        "how much a better mix could earn is not known yet."
        if lost is None
        else f"with confidence {percent(1 - status['delta'])} no mix earns over "
        f"{at_most(lost)} more."
    )


def _arms(status: Status, names: Mapping[str, str]) -> Table:
    learned = any("sigma" in arm for arm in status["arms"])  # where nobody knows it
    table = Table(
        "Arms",
        (
            text_column("arm"),
            Column("rewards"),
            Column("pending", rank=3),
            Column("target", rank=4),
            Column("mean"),
            Column("between", rank=2),
            *((Column("sigma seen", rank=5),) if learned else ()),
            Column("in the mix", rank=1),
        ),
    )
    for arm in sorted(status["arms"], key=lambda arm: -arm["rewards"])[:MAX_ROWS]:
        ends = (arm["low"], arm["high"])
        table.add_row(
            names[arm["arm"]],
            str(arm["rewards"]),
            str(arm["pending"] or ""),
            number(arm["target"]),
            _number(arm["mean"]),
            _ends(ends),
            *((_number(arm.get("sigma")),) if learned else ()),
            f"{arm['policy']:.3g}" if arm["policy"] else "",
        )
    return table


def _comparisons(edges: Sequence[EdgeStatus], names: Mapping[str, str]) -> Table:
    table = Table(
        "Evidence against neighbouring mixes",
        (text_column("less of"), text_column("more of"), Column("evidence"), Column("needed")),
    )
    open_first = sorted(edges, key=lambda edge: edge["statistic"] - edge["threshold"])
    for edge in open_first[:MAX_ROWS]:
        sides = [
            ", ".join(
                names[arm] if abs(rate) == 1 else f"{abs(rate):.3g} {names[arm]}"
                for arm, rate in edge["direction"].items()
                if rate * sign > 0
            )
            for sign in (-1, 1)
        ]
        table.add_row(*sides, number(edge["statistic"]), number(edge["threshold"]))
    return table


def _constraints(title: str, rows: Sequence[ConstraintStatus], names: Mapping[str, str]) -> Table:
    headings = ("at least", "at most", "pulls so far", "mix")
    table = Table(title, (text_column("constraint"), *map(Column, headings)))
    for row in rows[:MAX_ROWS]:
        cells = [_number(row[name]) for name in ("lower", "upper", "explored", "policy")]
        table.add_row(names[row["name"]], *cells)
    return table


def _limits(status: Status) -> str:
    """The measured limits as a sentence has them."""
    rows = [Measured(row["name"], row["limit"]) for row in status.get("measured", [])]
    return " and ".join(row.in_words for row in rows)


def _measured(
    rows: Sequence[MeasuredLimit], names: Mapping[str, str]
) -> Iterator[tuple[Table, int]]:
    """Measured limits, then what is known of each arm's measurements."""
    headings = ("limit", "tolerance", "mix", "between", "violated", "samples so far")
    ranks = (0, 4, 0, 2, 1, 3)
    columns = [Column(text, rank=rank) for text, rank in zip(headings, ranks, strict=True)]
    limits = Table("Measured limits", (text_column("measured"), *columns))
    for row in rows:
        limits.add_row(
            row["name"],
            row["limit"],
            number(row["tolerance"]),
            _number(row["value"]),
            _ends(row["value_interval"] or (None, None)),
            "" if row["p_value"] is None else f"p {at_most(row['p_value'])}",
            _number(row["explored"]),
        )
    if rows:
        yield limits, len(rows)
    for row in rows:
        table = Table(
            f"Arms: {row['name']}", (text_column("arm"), Column("mean"), Column("between"))
        )
        for arm in row["arms"][:MAX_ROWS]:
            ends = _ends((arm["low"], arm["high"]))
            table.add_row(names[arm["arm"]], _number(arm["mean"]), ends)
        yield table, len(row["arms"])


def _ends(ends: Sequence[float | None]) -> str:
    return "" if None in ends else " to ".join(map(_number, ends))


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
    table = Table(
        "Studies",
        (
            text_column("study"),
            Column("state", "left"),
            Column("rewards"),
            Column("pending", rank=2),
            Column("delta", rank=3),
            Column("last change (UTC)", "left", rank=1),
        ),
    )
    damaged = []
    for study in studies:
        if "trouble" in study:  # its numbers may not be right
            damaged.append(f"{study['name']}: {study['trouble']}")
            table.add_row(study["name"], "damaged")
            continue
        table.add_row(
            study["name"],
            study["state"],
            str(study["rewards"]),
            str(study["pending"]),
            _promise(study),
            datetime.fromtimestamp(study["changed"], UTC).strftime("%Y-%m-%d %H:%M:%S"),
        )
    table.print(console)
    if damaged:
        console.print()
    for words in damaged:
        console.print(words)


def _promise(study: StudySummary) -> str:
    """How sure a study will be; with a budget, how long it goes on instead."""
    budget = study.get("stop_when", {}).get("budget")
    return f"{study['delta']:g}" if budget is None else f"budget {number(budget)}"


def _number(value: float | None) -> str:
    return "" if value is None else number(value)
