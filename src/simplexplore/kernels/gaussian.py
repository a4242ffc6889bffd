"""Information for Gaussian rewards: everything in closed form.

Variances are known; where they are learned, samplers take the learned ones for known.
"""

from __future__ import annotations

import math

from .edges import gap_and_spread, gap_of, variance
from .kernel import inlined, kernel
from .records import VERTEX, EdgeTable, RunConfig, RunState, Vector


@inlined
def edge_information(
    config: RunConfig, table: EdgeTable, run: RunState, edge: int, base: int, w: Vector
) -> float:
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    The gradient of entry k lies at run.gradient[k - base].
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap, spread = gap_and_spread(config, table, run, edge, w)
    if gap <= 0.0:
        for k in range(first, last):
            run.gradient[k - base] = 0.0
        return 0.0
    gamma = gap / spread
    for k in range(first, last):
        a = table.arm[k]
        slope = gamma * table.v[k] / w[a]
        run.gradient[k - base] = 0.5 * variance(config, run, a) * slope * slope
    return 0.5 * gap * gamma


@inlined
def refresh_edge(config: RunConfig, table: EdgeTable, run: RunState, edge: int, e: int) -> None:
    """Recompute gap and statistic of an edge, the e-th of its vertex."""
    gap, spread = gap_and_spread(config, table, run, edge, run.n)
    run.gap[e] = gap
    run.spread[e] = spread
    run.value[e] = 0.5 * gap * gap / spread if gap > 0.0 else 0.0


@inlined
def update_statistics(
    config: RunConfig, table: EdgeTable, run: RunState, arm: int, moved: float, slower: float
) -> None:
    """Update the edges that contain an arm whose mean and 1 / n changed."""
    vertex = run.integers[VERTEX]
    change = config.variance[arm] * slower
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        e = table.column_edge[k]
        v = table.column_v[k]
        gap = run.gap[e] + v * moved
        spread = run.spread[e] + v * v * change
        run.gap[e] = gap
        run.spread[e] = spread
        run.value[e] = 0.5 * gap * gap / spread if gap > 0.0 else 0.0


@kernel
def closest(config: RunConfig, table: EdgeTable, run: RunState, edge: int, lam: Vector) -> None:
    """Write the closest alternative across an edge into lam, by the edge's arms."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap, spread = gap_and_spread(config, table, run, edge, run.n)
    for k in range(first, last):
        a = table.arm[k]
        shift = gap / spread * variance(config, run, a) * table.v[k] / run.n[a]
        lam[k - first] = run.clipped_mean[a] - shift


@kernel
def mixture_evidence(config: RunConfig, table: EdgeTable, run: RunState, edge: int) -> float:
    """Log of Robbins' mixtures that an edge is no improvement (docs/theory/stopping.md).

    Each c of a grid is a mixture centred at the alternative with variance sigma^2 / c; the best
    one counts, with its share.
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = gap_of(table, run, edge)
    best = -math.inf
    if gap <= 0.0:
        return best
    c = 1.0
    for _ in range(7):
        spread = 0.0
        penalty = math.log(7.0)
        for k in range(first, last):
            a = table.arm[k]
            n = run.n[a]
            spread += config.variance[a] * table.v[k] * table.v[k] * (n + c) / (n * n)
            penalty += 0.5 * math.log1p(n / c)
        best = max(best, 0.5 * gap * gap / spread - penalty)
        c *= 4.0
    return best


@inlined
def ucb_divergence(config: RunConfig, run: RunState, arm: int, lam: float, f: float) -> float:
    """Largest divergence from lam over means that n samples cannot rule out (CGE's U)."""
    mean, n = run.clipped_mean[arm], run.n[arm]
    if lam == mean:  # as for all arms but those of the closest edge
        return f / n
    square = variance(config, run, arm)
    radius = math.sqrt(2.0 * square * f / n)
    reach = abs(mean - lam) + radius
    return 0.5 * reach * reach / square  # never less than f / n


@kernel
def alternative(
    config: RunConfig, table: EdgeTable, run: RunState, w: Vector, slack: Vector, lam: Vector
) -> None:
    """Write the closest alternative at w over all edges of the vertex into lam."""
    for a in range(config.size):
        lam[a] = run.clipped_mean[a]
        slack[a] = variance(config, run, a) / w[a]
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    closest = first
    least = math.inf
    gamma = 0.0
    for edge in range(first, table.first_edge[vertex + 1]):
        spread = 0.0
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            spread += table.v[k] * table.v[k] * slack[table.arm[k]]
        gap = max(run.gap[edge - first], 0.0)
        if gap * gap < least * spread:  # seldom true, and divisions are slow
            gamma = gap / spread
            least = gap * gamma
            closest = edge
    for k in range(table.first_entry[closest], table.first_entry[closest + 1]):
        a = table.arm[k]
        lam[a] -= gamma * slack[a] * table.v[k]
