"""Pictures of bounds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from simplexplore.bound.measured_result import MeasuredPlan
from simplexplore.bound.result import Bound, ScenarioBound
from simplexplore.problem.messages import count

from . import bound_words, ternary
from .bound_words import Usage
from .canvas import TEXT, Canvas, save_picture, shortened
from .colours import BLUE, GREEN, GREY, INK, ORANGE, PALE_RED, RED, SCENARIO_COLOURS, TRACK
from .figure import Bars, Panel, Track, bars, beside, compose, headed, stacked, tracks
from .numbers import number

# Rows beyond these are counted in words.
MAX_ARMS, MAX_EDGES, MAX_CONSTRAINTS = 16, 12, 8

# Inches.
NAME_WIDTH, COLUMN_WIDTH, SIDE_WIDTH = 2.2, 1.55, 4.6


def plot_bound(bound: Bound, path: str | os.PathLike[str]) -> None:
    """Draw a bound: the policy, its constraints, the hard comparisons, where samples go.

    With three arms the simplex of policies is drawn too. With measured limits the picture shows
    the answer.

    Parameters
    ----------
    bound : Bound
        From `lower_bound`.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF or SVG. It is replaced if it exists.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: bound_figure(bound), path)


def bound_figure(bound: Bound) -> Figure:
    """Draw a bound as a matplotlib figure, for use in a notebook or a report.

    Axes carry labels: ``policy``, ``end-of-time``, ``anytime``, ``constraints``, ``edges``,
    with limits on it ``exploration`` and ``limits``, and with three arms ``simplex``.
    With measured limits: ``policy``, ``answer``, ``samples``, ``limits``.
    """
    canvas = Canvas()
    problem, shown = bound.problem, bound_words.top_arms(bound, MAX_ARMS)
    names = canvas.short_names(_named(bound, shown), NAME_WIDTH - 0.15)
    arms = _arms(canvas, bound, shown, names)
    if isinstance(bound, MeasuredPlan):
        left, right = [arms], [_measured_limits(canvas, bound)]
    else:
        left, right = [arms], [_edges(canvas, bound, names)]
        if not problem.question:
            left += _constraints(canvas, bound, arms.width)
        if problem.size == 3 and not problem.question:
            limits = bound_words.constraint_usage(bound, MAX_CONSTRAINTS)
            drawn = {row.name for row in limits}
            right.append(ternary.panel(canvas, bound, names, drawn))
    remarks = [*_left_out(bound, len(shown)), *bound_words.notes(bound), *shortened(names)]
    body = beside(stacked(*left), stacked(*right))
    return compose(canvas, bound_words.title(bound), bound_words.headline(bound), body, remarks)


def _left_out(bound: Bound, arms: int) -> list[str]:
    """What the picture does not show."""
    problem = bound.problem
    counts = {"arm": problem.size - arms}
    if not problem.measured:
        counts["easier comparison"] = len(bound.edges) - MAX_EDGES
        counts["constraint"] = len(problem.names) - MAX_CONSTRAINTS
        counts["exploration limit"] = len(problem.exploration) - MAX_CONSTRAINTS
    parts = [count(n, what) for what, n in counts.items() if n > 0]
    return [f"Not shown: {', '.join(parts)}."] if parts else []


def _named(bound: Bound, shown: list[int]) -> list[str]:
    """What is named beside what is drawn: arms shown, those that are compared, limits drawn."""
    problem = bound.problem
    if problem.measured:
        return [problem.arms[a] for a in shown]
    hardest = bound_words.hardest(bound, MAX_EDGES)
    moved = {a for e in hardest for a in np.flatnonzero(bound.edges[e].direction).tolist()}
    drawn = problem.names if problem.size == 3 else ()
    return [*(problem.arms[a] for a in sorted(moved.union(shown))), *drawn]


# ---------------------------------------------------------------------- arms


def _arms(canvas: Canvas, bound: Bound, shown: list[int], short: Mapping[str, str]) -> Panel:
    """One row per arm, one column each for the policy and the allocations."""
    arms, policy = bound.problem.arms, bound.policy
    earns = f"earns {number(bound.value)}"
    columns = [Bars("policy", "policy", policy[shown], INK, earns)]
    if isinstance(bound, MeasuredPlan):
        heading = "The best mix, the answer, and where samples should go"
        note = "shares of use and of samples; the answer is easiest to be sure of"
        columns += _measured_columns(bound, shown)
    else:
        heading = "The best mix, and where samples should go"
        line = "; line: of the cost" if bound.problem.has_costs else ""
        note = f"shares of use and of samples{line}; bold: used by the best mix"
        if bound.problem.question:
            heading, note, columns = "Where samples should go", f"shares of samples{line}", []
        for name, scenario in bound.scenarios.items():
            w, spent = bound_words.recommended(scenario), scenario.spend
            shares = None if w is None else w[shown]
            marks = None if w is None or spent is None else spent[shown]
            words = _samples_needed(scenario, bound)
            columns.append(Bars(name, name, shares, SCENARIO_COLOURS[name], words, marks))
    is_mix = not bound.problem.question
    names = {short[arms[a]]: bool(is_mix and policy[a] > 0) for a in shown}
    names_width = max(canvas.width_of(name, TEXT, "bold") for name in names) + 0.15
    longest = max(column.longest for column in columns)
    panel = bars(canvas, names, names_width, columns, COLUMN_WIDTH, longest)
    return headed(canvas, heading, note, panel, SIDE_WIDTH)


def _measured_columns(bound: MeasuredPlan, shown: list[int]) -> list[Bars]:
    """The answer and its samples, if any number of them is enough."""
    own = bound.own
    is_finite = math.isfinite(own.characteristic_time)
    earns = f"earns {number(float(bound.means @ own.answer))}"
    return [
        Bars(label, label, values[shown] if is_finite else None, colour, words)
        for label, values, colour, words in (
            ("answer", own.answer, GREEN, earns),
            ("samples", own.allocation, BLUE, bound.problem.scenario),
        )
    ]


def _samples_needed(scenario: ScenarioBound, bound: Bound) -> str:
    """What it takes, in few letters."""
    if scenario.unidentifiable:
        return "cannot be known"
    if np.isinf(scenario.characteristic_time):
        return "a tie: never enough"
    if scenario.characteristic_time == 0:
        return "no samples needed"
    what = "in cost" if bound.problem.has_costs else "samples"
    return f"≥ {number(scenario.lower_bound)} {what}"


# ---------------------------------------------------------------------- constraints


def _constraints(canvas: Canvas, bound: Bound, width: float) -> list[Panel]:
    """Each limit's use on the scale of what all policies could use."""
    panels: list[Panel] = []
    used = bound_words.constraint_usage(bound, MAX_CONSTRAINTS)
    explored = bound_words.exploration_usage(bound, MAX_CONSTRAINTS)
    for label, heading, what, usage in (
        ("constraints", "Constraints and their slack", "mix", used),
        ("limits", "Limits on exploration and their slack", "allocation", explored),
    ):
        rows = [_usage(row) for row in usage]
        note = f"dot: what the best {what} uses; dark: allowed; filled dot: no slack"
        if rows or not panels:
            panel = tracks(canvas, rows, width, label)
            words = note if rows else "none: every mix is allowed"
            panels.append(headed(canvas, heading, words, panel))
    return panels


def _usage(row: Usage) -> Track:
    value = "binding" if row.active else f"slack {number(row.slack)}"
    words = f"{row.name}: {number(row.amount)}, {row.limit}"
    low, high = row.reach
    if low == high:  # all policies use the same: in the middle
        low, high = low - 1.0, high + 1.0
    spans = [(low, high, TRACK), (row.lower, row.upper, GREY)]
    dots = [(row.amount, RED if row.active else "white", 8)]
    return Track(words, value, (low, high), spans, dots)


def _measured_limits(canvas: Canvas, bound: MeasuredPlan) -> Panel:
    """Each measured limit on the scale of its means, the best mix and the answer on it."""
    is_finite = math.isfinite(bound.own.characteristic_time)
    rows = []
    for row, means in zip(bound.problem.measured, bound.measured_means, strict=True):
        best, answer = float(means @ bound.policy), float(means @ bound.own.answer)
        level, loose = row.level, row.level + row.sign * row.tolerance
        words = f"{row.name} {row.limit}, tolerance {number(row.tolerance)}"
        value = f"{number(best)}, answer {number(answer)}" if is_finite else number(best)
        ends = min(*means, level, loose), max(*means, level, loose)
        allowed = (ends[0], level) if row.sign > 0 else (level, ends[1])
        spans = [(*ends, TRACK), (*allowed, GREY), (level, loose, ORANGE)]
        dots = [(best, "white", 8), (answer, GREEN, 5)]
        rows.append(Track(words, value, ends, spans, dots[: 1 + is_finite]))
    note = "ring: the best mix; dot: the answer; dark: allowed; orange: tolerance"
    return headed(canvas, "Measured limits", note, tracks(canvas, rows, SIDE_WIDTH, "limits"))


# ---------------------------------------------------------------------- what is hard


def _edges(canvas: Canvas, bound: Bound, names: Mapping[str, str]) -> Panel:
    """How hard each neighbouring policy is to rule out by itself, hardest first."""
    arms = [names.get(arm, arm) for arm in bound.problem.arms]
    shown = bound_words.comparisons(bound, arms, MAX_EDGES)
    longest = max((one.time for one in shown if one.gap > 0), default=1.0)
    rows = []
    for one in shown:
        is_tie = one.gap <= 0
        value = "a tie" if is_tie else f"{number(one.amount)}  (gap {number(one.gap)})"
        spans = [(0.0, one.time, RED if one.decides else PALE_RED)]
        rows.append(Track(one.words.replace(" -> ", " → "), value, (0.0, longest), spans))
    what = "cost" if bound.problem.has_costs else "samples"
    note = f"{what} each would take alone; pale: settled along the way"
    if bound.problem.epsilon:
        note = f"for the best mix itself (epsilon 0): {what} each would take alone"
    if not rows:
        note = "none: only one mix is allowed"
    panel = tracks(canvas, rows, SIDE_WIDTH, "edges")
    heading = "What would make the answer wrong" if bound.answer else "Which comparisons are hard"
    return headed(canvas, heading, note, panel)
