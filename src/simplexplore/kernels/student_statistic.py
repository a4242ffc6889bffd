"""Statistics with empirical variances: what samplers see where sigma is unknown."""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .records import PULLS, VERTEX, WARM, Run, Setting, Table


@inlined
def floor_of_variance(mean: float) -> float:
    """Less variance than this is rounding."""
    return 1e-20 * mean * mean + 1e-60


@kernel
def learn(setting: Setting, run: Run, arm: int, before: float, after: float) -> None:
    """Take in a reward's deviations from the arm's mean before and after it.

    Samplers see the arm's sum of squares and one more of what is usual, so that equal rewards at
    the start do not pass for no variance at all; or what is usual, where all have the same.
    """
    total = setting.size
    run.squares[arm] += before * after
    run.squares[total] += before * after
    usual = run.squares[total] / run.integers[PULLS]
    first, last = arm, arm + 1
    if setting.pooled or run.integers[WARM] == 0:  # what is usual still changes
        first, last = 0, setting.size
    for a in range(first, last):
        if run.n[a] > 0.0:
            seen = usual if setting.pooled else (run.squares[a] + usual) / run.n[a]
            run.variance[a] = max(seen, floor_of_variance(run.mean[a]))


@inlined
def at_closest(
    setting: Setting, table: Table, run: Run, edge: int, gap: float, spread: float
) -> float:
    """Student's evidence at the alternative that is closest if variances were known."""
    if not gap > 0.0:
        return 0.0
    total = 0.0
    if setting.pooled:
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            total += run.n[table.arm[k]]
        return 0.5 * total * math.log1p(gap * gap / (spread * total))
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        n = run.n[a]
        y = gap / spread * table.v[k] / n
        total += 0.5 * n * math.log1p(y * y * run.variance[a])
    return total


@kernel
def gap_and_spread(table: Table, run: Run, edge: int) -> tuple[float, float]:
    """The loss of an edge by the empirical means, and its variance."""
    gap = table.offset[edge]
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        gap += table.v[k] * run.clipped[a]
        spread += run.variance[a] * table.v[k] * table.v[k] / run.n[a]
    return gap, spread


@kernel
def statistic(setting: Setting, table: Table, run: Run, edge: int) -> float:
    """The statistic of an edge of any table."""
    gap, spread = gap_and_spread(table, run, edge)
    return at_closest(setting, table, run, edge, gap, spread)


@kernel
def refresh_edge(setting: Setting, table: Table, run: Run, edge: int, e: int) -> None:
    """Recompute gap and statistic of an edge, the e-th of its vertex."""
    gap, spread = gap_and_spread(table, run, edge)
    run.gap[e] = gap
    run.spread[e] = spread
    run.value[e] = at_closest(setting, table, run, edge, gap, spread)


@kernel
def refresh(setting: Setting, table: Table, run: Run) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for edge in range(first, table.first_edge[vertex + 1]):
        refresh_edge(setting, table, run, edge, edge - first)


@kernel
def touch(setting: Setting, table: Table, run: Run, arm: int) -> None:
    """Update the edges that contain an arm with a new reward."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        e = table.column_edge[k]
        refresh_edge(setting, table, run, first + e, e)
