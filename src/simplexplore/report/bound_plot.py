"""Pictures: results in, a file out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simplexplore.bound.information import binary_kl
from simplexplore.bound.measured_result import MeasuredBound

from . import ternary
from .bound_text import (
    hardest_first,
    headline,
    limits_used,
    move,
    notes,
    prominent_arms,
    recommended,
    spending,
    times_alone,
    title,
    uses,
)
from .measured_plot import measured_figure
from .numbers import number, share
from .page import (
    BLUE,
    DIM,
    GREEN,
    GREY,
    GUTTER,
    HEADING,
    INK,
    LINE,
    ORANGE,
    PALE_RED,
    RED,
    SMALL,
    TEXT,
    TRACK,
    Page,
    save_picture,
)
from .table import legend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simplexplore.bound.result import Bound, Edge, ScenarioBound

    from .bound_text import Use

Array = npt.NDArray[np.float64]

SCENARIO_COLOUR = {"end-of-time": BLUE, "anytime": ORANGE, "exploration": GREEN}

# Rows beyond these are counted in words.
MAX_ARMS, MAX_EDGES, MAX_CONSTRAINTS = 16, 12, 8

# Inches. A row is a bar, or a bar below one or two lines of text.
MARGIN, HEADER = 0.3, 0.75
ARM_ROW, BAR = 0.25, 0.25
NAME_WIDTH, COLUMN_WIDTH, SIDE_WIDTH = 2.2, 1.55, 4.6


def plot_bound(bound: Bound, path: str | os.PathLike[str]) -> None:
    """Draw a bound: the policy, its constraints, the hard comparisons, where samples go.

    With three arms the simplex of policies is drawn too. With measured limits the picture shows
    what epsilon and tolerances cost instead.

    Parameters
    ----------
    bound : Bound
        From `lower_bound`.
    path : path-like
        The picture's file; its suffix chooses PNG, PDF, SVG or PGF. It is replaced if it exists.

    Raises
    ------
    SettingError
        If the suffix is unknown or the file cannot be written.
    """
    save_picture(lambda: bound_figure(bound), path)


def bound_figure(bound: Bound) -> Figure:
    """Draw a bound as a matplotlib figure, for use in a notebook or a report.

    Axes carry labels: ``policy``, ``end-of-time``, ``anytime``, ``constraints``, ``edges``,
    with limits on it ``exploration`` and ``limits``, and with three arms ``simplex`` and ``cone``.
    """
    if isinstance(bound, MeasuredBound):
        return measured_figure(bound)
    arms = bound.problem.arms
    shown = prominent_arms(bound, MAX_ARMS)
    constraints, limits = uses(bound, MAX_CONSTRAINTS), limits_used(bound, MAX_CONSTRAINTS)
    columns = 1 + len(bound.scenarios)

    # Measure first, then draw.
    page = Page()
    with_triangle = len(arms) == 3
    if with_triangle:
        names = ternary.shown_names(page, bound.problem)
    else:
        names = page.short_names(_named(bound, shown), NAME_WIDTH - 0.15)
    names_width = max(page.width_of(names[arms[a]], TEXT, "bold") for a in shown) + 0.15
    arms_width = max(names_width + columns * COLUMN_WIDTH, SIDE_WIDTH)
    edges = _edge_rows(page, bound, names, arms_width if with_triangle else SIDE_WIDTH)
    arms_height = 2 * HEADING + ARM_ROW * len(shown)
    stack = arms_height + GUTTER + HEADING + (LINE + BAR) * len(constraints)
    before_limits = stack + GUTTER
    if limits:
        stack = before_limits + HEADING + (LINE + BAR) * len(limits)
    edges_height = HEADING + sum(row.height for row in edges)
    if with_triangle:
        body_width = ternary.WIDTH + GUTTER + arms_width
        body_height = max(ternary.HEIGHT, stack + GUTTER + edges_height)
    else:
        body_width = arms_width + GUTTER + SIDE_WIDTH
        body_height = max(stack, edges_height)
    remarks = _left_out(bound, len(shown), len(edges), len(constraints), len(limits))
    remarks += [note.text for note in notes(bound)]
    remarks += legend(names)
    remark_lines = [line for remark in remarks for line in page.wrap(remark, SMALL, body_width)]
    lines = page.wrap(headline(bound), 10.5, body_width)
    top = MARGIN + HEADER + 0.2 * (len(lines) - 1)
    bottom = top + body_height + 0.15
    page.resize(body_width + 2 * MARGIN, bottom + LINE * len(remark_lines) + MARGIN)

    page.title(MARGIN, partial(title, bound), body_width)
    for i, line in enumerate(lines):
        page.write(MARGIN, MARGIN + 0.33 + 0.2 * i, line, size=10.5)
    left = MARGIN
    if with_triangle:
        ternary.draw_triangle(page, bound, left, top)
        left += ternary.WIDTH + GUTTER
    _draw_arms(page, bound, shown, left, top, names_width, names)
    note = "dot: what the best mix uses; dark: allowed; filled dot: no slack"
    if not constraints:
        note = "none: every mix is allowed"
    below_arms = top + arms_height + GUTTER
    page.heading(left, below_arms, "Constraints and their slack", note, arms_width)
    _draw_limits(page, constraints, left, below_arms, arms_width, "constraints")
    if limits:
        page.heading(
            left,
            top + before_limits,
            "Limits on exploration and their slack",
            "dot: what the best allocation uses; dark: allowed; filled dot: no slack",
            arms_width,
        )
        _draw_limits(page, limits, left, top + before_limits, arms_width, "limits")
    if with_triangle:
        _draw_edges(page, bound, edges, left, top + stack + GUTTER, arms_width)
    else:
        _draw_edges(page, bound, edges, left + arms_width + GUTTER, top, SIDE_WIDTH)
    for i, line in enumerate(remark_lines):
        page.write(MARGIN, bottom + LINE * i, line, size=SMALL, color=DIM)
    return page.figure


def _left_out(bound: Bound, arms: int, edges: int, constraints: int, limits: int) -> list[str]:
    """What the picture does not show."""
    counts = [
        (len(bound.problem.arms) - arms, "arm", "arms"),
        (len(bound.edges) - edges, "easier comparison", "easier comparisons"),
        (len(bound.problem.names) - constraints, "constraint", "constraints"),
        (limits and len(bound.problem.exploration) - limits, "limit", "limits on exploration"),
    ]
    parts = [f"{n} {one if n == 1 else many}" for n, one, many in counts if n > 0]
    return [f"Not shown: {', '.join(parts)}."] if parts else []


def _draw_arms(
    page: Page,
    bound: Bound,
    shown: list[int],
    left: float,
    top: float,
    names_width: float,
    short: Mapping[str, str],
) -> None:
    """One row per arm, one column each for the policy and the allocations."""
    line = "; line: of the cost" if bound.problem.has_costs else ""
    page.heading(
        left,
        top,
        "The best mix, and where samples should go",
        f"shares of use and of samples{line}; bold: used by the best mix",
        names_width + (1 + len(bound.scenarios)) * COLUMN_WIDTH,
    )
    columns: list[tuple[str, list[str], Array | None, str]] = [
        ("policy", [f"earns {number(bound.value)}"], bound.policy, INK)
    ]
    for name, scenario in bound.scenarios.items():
        notes_of_it = _samples_needed(scenario)
        columns.append((name, notes_of_it, recommended(scenario), SCENARIO_COLOUR[name]))
    spent = {name: spending(scenario) for name, scenario in bound.scenarios.items()}
    drawn = [*(values for _, _, values, _ in columns), *spent.values()]
    longest = max(float(values.max()) for values in drawn if values is not None)
    # Room for the number at the end of the longest bar.
    reach = longest * COLUMN_WIDTH / (COLUMN_WIDTH - 0.6)
    top += HEADING
    body = top + HEADING
    rows = len(shown)
    names = {short[bound.problem.arms[arm]]: bool(bound.policy[arm] > 0) for arm in shown}
    page.names(left + names_width - 0.1, body, names_width - 0.1, ARM_ROW, names)
    for j, (label, options, values, colour) in enumerate(columns):
        start = left + names_width + j * COLUMN_WIDTH
        width = COLUMN_WIDTH - 0.08
        note = page.first_fitting(options, SMALL, width)
        page.write(start, top, page.fit(label, TEXT, width, "bold"), weight="bold")
        page.write(start, top + 0.18, note, size=SMALL, color=DIM)
        axes = page.axes(start, body, COLUMN_WIDTH, ARM_ROW * rows, label)
        axes.set_xlim(0, reach)
        axes.set_ylim(rows, 0)
        axes.plot([0, 0], [0, rows], color=TRACK, linewidth=1, clip_on=False)
        if values is None:
            continue
        heights = np.arange(rows) + 0.5
        axes.barh(heights, values[shown], height=0.66, color=colour)
        ends = values[shown]
        if (money := spent.get(label)) is not None:
            axes.vlines(money[shown], heights - 0.42, heights + 0.42, color=INK, linewidth=1.3)
            ends = np.maximum(ends, money[shown])
        for y, value, end in zip(heights, values[shown], ends, strict=True):
            axes.text(
                end + 0.03 * reach,
                y,
                share(float(value)),
                size=SMALL,
                color=INK if value > 0 else DIM,
                va="center_baseline",
            )


def _samples_needed(scenario: ScenarioBound) -> list[str]:
    """What it takes, in the most words first: digits go before words."""
    if scenario.unknowable:
        return ["cannot be known"]
    if np.isinf(scenario.characteristic_time):
        return ["a tie: never enough"]
    if scenario.characteristic_time == 0:
        return ["no samples needed"]
    least = number(scenario.lower_bound)
    what = "samples" if scenario.spend is None else "in cost"
    return [f"at least {least} {what}", f"at least {least}", f"≥ {least}"]


def _draw_limits(
    page: Page, limits: list[Use], left: float, top: float, width: float, label: str
) -> None:
    """Each limit's use on the scale of what all policies could use, below a heading."""
    axes = _rows_axes(page, left, top, width, (LINE + BAR) * len(limits), label)
    axes.set_xlim(0, 1)
    for i, use in enumerate(limits):
        y = (LINE + BAR) * i
        numbers = f": {number(use.amount)}, {use.limit}"
        value = "binding" if use.active else f"slack {number(use.slack)}"
        room = width - page.width_of(value, SMALL) - page.width_of(numbers, TEXT) - 0.15
        name = page.fit(use.name, TEXT, max(room, 0.6))
        _write_row(page, left, top + HEADING + y, width, [f"{name}{numbers}"], value)
        low, high = use.reach
        ends = np.array([use.lower, use.upper, use.amount])
        # On the track, and in its middle if all policies use the same.
        start, end, here = np.clip((ends - low) / (high - low), 0, 1) if high > low else (0, 1, 0.5)
        y += LINE + 0.09
        axes.plot([0, 1], [y, y], color=TRACK, linewidth=5, solid_capstyle="butt")
        axes.plot([start, end], [y, y], color=GREY, linewidth=5, solid_capstyle="butt")
        fill = RED if use.active else "white"
        axes.plot(here, y, "o", markersize=8, color=fill, markeredgecolor=INK, clip_on=False)


@dataclass(frozen=True)
class _EdgeRow:
    """One comparison, ready to be drawn."""

    lines: list[str]
    value: str
    time: float
    decisive: bool

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + BAR


def _named(bound: Bound, shown: list[int]) -> list[str]:
    """Arms whose names the picture has: those shown, and those of the hardest comparisons."""
    hardest = hardest_first(times_alone(bound))[:MAX_EDGES]
    moved = {a for e in hardest for a in np.flatnonzero(bound.edges[e].direction).tolist()}
    return [bound.problem.arms[a] for a in sorted(moved.union(shown))]


def _edge_rows(page: Page, bound: Bound, names: Mapping[str, str], width: float) -> list[_EdgeRow]:
    """Put the hardest comparisons into words that fit."""
    own = bound.scenarios[bound.problem.scenario]
    times = times_alone(bound)
    rows = []
    for e in hardest_first(times)[:MAX_EDGES]:
        edge, time = bound.edges[e], float(times[e])
        tie = np.isinf(time)
        value = (
            "a tie" if tie else f"{number(time * binary_kl(bound.delta))}  (gap {number(edge.gap)})"
        )
        room = width - page.width_of(value, SMALL) - 0.15
        lines = _fitting_move(page, edge, [names.get(arm, arm) for arm in bound.problem.arms], room)
        rows.append(_EdgeRow(lines, value, time, tie or e in own.binding_edges))
    return rows


def _fitting_move(page: Page, edge: Edge, arms: Sequence[str], width: float) -> list[str]:
    """Say what an edge moves: on one line, or on as many as it takes."""
    losing, gaining = move(edge, arms)
    line = f"{losing} → {gaining}"
    if page.width_of(line, TEXT) <= width:
        return [line]
    return [*page.wrap(losing, TEXT, width), *page.wrap(f"→ {gaining}", TEXT, width)]


def _draw_edges(
    page: Page, bound: Bound, rows: list[_EdgeRow], left: float, top: float, width: float
) -> None:
    """Draw how hard each neighbouring policy is to rule out by itself."""
    what = "cost" if bound.problem.has_costs else "samples"
    note = f"{what} each would take alone; pale: settled along the way"
    if bound.problem.epsilon:
        note = f"for the best mix itself (epsilon 0): {what} each would take alone"
    if not rows:
        note = "none: only one mix is allowed"
    page.heading(left, top, "Which comparisons are hard", note, width)
    axes = _rows_axes(page, left, top, width, sum(row.height for row in rows), "edges")
    longest = max((row.time for row in rows if np.isfinite(row.time)), default=1.0)
    axes.set_xlim(0, longest)
    y = 0.0
    for row in rows:
        _write_row(page, left, top + HEADING + y, width, row.lines, row.value)
        bar = y + row.height - BAR + 0.09
        axes.plot(
            [0, min(row.time, longest)],
            [bar, bar],
            color=RED if row.decisive else PALE_RED,
            linewidth=5,
            solid_capstyle="butt",
            linestyle="-" if np.isfinite(row.time) else (0, (1, 0.6)),
        )
        y += row.height


def _rows_axes(
    page: Page, left: float, top: float, width: float, height: float, label: str
) -> Axes:
    """Axes below a heading whose vertical unit is an inch, downwards."""
    height = max(height, 0.01)  # there may be no rows
    axes = page.axes(left, top + HEADING, width, height, label)
    axes.set_ylim(height, 0)
    return axes


def _write_row(
    page: Page, left: float, top: float, width: float, lines: list[str], value: str
) -> None:
    """Write a row's words above its bar, and its value at the right."""
    for i, line in enumerate(lines):
        page.write(left, top + LINE * i, line)
    page.write(left + width, top, value, size=SMALL, color=DIM, ha="right")
