"""Live studies as documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from simplexplore.exploration.confidence import Edge
from simplexplore.exploration.limits import limits_in_words
from simplexplore.problem.messages import at_most, count
from simplexplore.study.records import StudySummary
from simplexplore.study.status_records import (
    ArmStatus,
    ConstraintStatus,
    MeasuredArm,
    MeasuredLimit,
    Status,
)

from .document import Document, Heading, Note, Section
from .numbers import number, percent
from .study_words import moment_in_words, study_words
from .table import MAX_ROWS, Column, Field, Table, text_column


def status_document(status: Status) -> Document:
    """Everything that `Study.status` says."""
    document: Document = [
        [Note(_circumstances(status))],
        _progress(status),
        [_arms(status), Note(f"between: {status['intervals']}")],
    ]
    if status["edges"]:
        document.append([_comparisons(status["edges"], "question" in status)])
    if status["constraints"]:
        document.append([_constraints("Constraints", status["constraints"])])
    if status["exploration"]:
        document.append([_constraints("Limits on exploration", status["exploration"])])
    if status.get("measured"):
        document += _measured(status)
    if "promise" in status:
        document[-1].append(status["promise"])
    document[-1] += _limits_kept(status)
    return document


def studies_document(studies: Sequence[StudySummary]) -> Document:
    """A list of studies."""
    if not studies:
        words = "No studies yet: 'simplexplore study create FILE' starts one."
        return [[words]]

    def of(write: Callable[[StudySummary], object]) -> Callable[[StudySummary], str]:
        # The numbers of a damaged study may not be right.
        return lambda study: "" if "trouble" in study else str(write(study))

    fields: list[Field[StudySummary]] = [
        (text_column("study"), lambda x: x["name"]),
        (Column("state", "left"), lambda x: "damaged" if "trouble" in x else x["state"]),
        (Column("rewards"), of(lambda x: x["rewards"])),
        (Column("pending", rank=2), of(lambda x: x["pending"])),
        (Column("delta", rank=3), of(_promise)),
        (Column("last change (UTC)", "left", rank=1), of(lambda x: moment_in_words(x["changed"]))),
    ]
    damaged: Section = [
        f"{study['name']}: {study['trouble']}" for study in studies if "trouble" in study
    ]
    table = Table.of("Studies", fields, studies)
    return [[table], damaged] if damaged else [[table]]


# ---------------------------------------------------------------------- sentences


def _circumstances(status: Status) -> str:
    """What a study is."""
    epsilon, goal = status["epsilon"], status["stop_when"] or {}
    ends = [
        f", epsilon {epsilon:g}" if epsilon else "",
        f", stops after {number(goal['budget'])} samples" if "budget" in goal else "",
        f", stops at regret {goal['regret']:g}" if "regret" in goal else "",
    ]
    state = f"{status['state']}, " if status["state"] in ("paused", "archived") else ""
    return (
        f"{status['name']}: {state}{count(status['rewards'], 'reward')}, "
        f"{status['pending']} pending, "
        f"{status['sampler']}, {status['scenario']}, threshold {status['threshold']} "
        f"({_guarantee(status)}), delta {status['delta']:g}{''.join(ends)}"
    )


def _progress(status: Status) -> Section:
    """What a person wants to know first: the answer of a study, or how far it is from one."""
    (first, words), *others = study_words(status).items()
    return [
        Heading("answer", f"{first.capitalize()}: {words}"),
        *(f"{about.capitalize()}: {words}" for about, words in others),
    ]


def _guarantee(status: Status) -> str:
    """What is known of the threshold."""
    if (status["stop_when"] or {}).get("budget"):
        return "delta is not guaranteed"
    return "proven" if status["proven"] else "a heuristic"


def _limits_kept(status: Status) -> list[str]:
    """What holds of limits on samples, and which were exceeded all the same, from outside."""
    limits = status["exploration"] or status["constraints"]
    if not any(row["excess"] is not None for row in limits):
        return []
    most = math.inf if status["excess_bound"] is None else status["excess_bound"]
    above = [row for row in limits if (row["excess"] or 0.0) > most + 1e-6]
    words = "{} is exceeded by {} pulls, by pulls made elsewhere."
    exceeded = [words.format(row["name"], number(row["excess"])) for row in above]
    return [limits_in_words(most), *exceeded]


def _promise(study: StudySummary) -> str:
    """How sure a study will be; with a budget, how long it goes on instead."""
    budget = study.get("stop_when", {}).get("budget")
    return f"{study['delta']:g}" if budget is None else f"budget {number(budget)}"


# ---------------------------------------------------------------------- tables


def _arms(status: Status) -> Table:
    learned = any("sigma" in arm for arm in status["arms"])  # where nobody knows it
    sigma: Field[ArmStatus] = (Column("sigma seen", rank=5), lambda x: number(x.get("sigma")))
    mix: Field[ArmStatus] = (
        Column("in the mix", rank=1),
        lambda x: percent(x["policy"]) if x["policy"] else "",
    )
    fields: list[Field[ArmStatus]] = [
        (text_column("arm"), lambda x: x["arm"]),
        (Column("rewards"), lambda x: str(x["rewards"])),
        (Column("pending", rank=3), lambda x: str(x["pending"] or "")),
        (Column("target", rank=4), lambda x: number(x["target"])),
        (Column("mean"), lambda x: number(x["mean"])),
        (Column("between", rank=2), lambda x: _interval(x["low"], x["high"])),
        *([sigma] if learned else []),
        *([] if "question" in status else [mix]),
    ]
    rows = sorted(status["arms"], key=lambda arm: -arm["rewards"])
    return Table.of("Arms", fields, rows[:MAX_ROWS], len(rows), "with fewer rewards")


def _comparisons(edges: Sequence[Edge], is_question: bool) -> Table:
    def side(sign: int) -> Callable[[Edge], str]:
        return lambda edge: ", ".join(
            arm if abs(rate) == 1 else f"{abs(rate):.3g} {arm}"
            for arm, rate in edge["direction"].items()
            if rate * sign > 0
        )

    def p_value(edge: Edge) -> str:
        return _p_value(edge["p_pays" if is_question else "p_best"])

    fields: list[Field[Edge]] = [
        (text_column("wrong if lower" if is_question else "less of"), side(-1)),
        (text_column("wrong if higher" if is_question else "more of"), side(1)),
        (Column("evidence"), lambda x: number(x["statistic"])),
        (Column("needed"), lambda x: number(x["threshold"])),
        (Column("could be so" if is_question else "could be best", rank=1), p_value),
    ]
    rows = sorted(edges, key=lambda edge: edge["statistic"] - edge["threshold"])  # open first
    heading = "Evidence for the answer" if is_question else "Evidence against neighbouring mixes"
    return Table.of(heading, fields, rows[:MAX_ROWS], len(rows), "with more evidence")


def _constraints(heading: str, rows: Sequence[ConstraintStatus]) -> Table:
    fields: list[Field[ConstraintStatus]] = [
        (text_column("constraint"), lambda x: x["name"]),
        (Column("at least"), lambda x: number(x["lower"])),
        (Column("at most"), lambda x: number(x["upper"])),
        (Column("pulls so far"), lambda x: number(x["explored"])),
        (Column("mix"), lambda x: number(x["policy"])),
    ]
    return Table.of(heading, fields, rows[:MAX_ROWS], len(rows))


def _measured(status: Status) -> Document:
    """Measured limits, then what is known of each arm's measurements."""
    rows = status["measured"]
    limits: list[Field[MeasuredLimit]] = [
        (text_column("measured"), lambda x: x["name"]),
        (Column("limit"), lambda x: x["limit"]),
        (Column("tolerance", rank=4), lambda x: number(x["tolerance"])),
        (Column("mix"), lambda x: number(x["value"])),
        (Column("between", rank=2), lambda x: _interval(*x["value_interval"] or (None, None))),
        (Column("violated", rank=1), lambda x: _p_value(x["p_value"])),
        (Column("samples so far", rank=3), lambda x: number(x["explored"])),
    ]
    if any(row.get("explored_worst") is not None for row in rows):
        worst = Column("at worst", rank=3)
        limits.append((worst, lambda x: number(x.get("explored_worst"))))
    arms: list[Field[MeasuredArm]] = [
        (text_column("arm"), lambda x: x["arm"]),
        (Column("mean"), lambda x: number(x["mean"])),
        (Column("between"), lambda x: _interval(x["low"], x["high"])),
    ]
    words = (
        "violated: p-value, valid at every moment, of the claim that the mix misses the limit by "
        "more than its tolerance"
    )
    document: Document = [[Table.of("Measured limits", limits, rows), Note(words)]]
    for row in rows:
        title, every = f"Arms: {row['name']}", row["arms"]
        document.append([Table.of(title, arms, every[:MAX_ROWS], len(every))])
    return document


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def _p_value(value: float | None) -> str:
    return "" if value is None else f"p {at_most(value)}"
