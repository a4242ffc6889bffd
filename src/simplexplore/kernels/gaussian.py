"""Information for Gaussian rewards: everything in closed form.

Variances are known; where they are learned, samplers take the learned ones for known.
"""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .records import VERTEX, Run, Setting, Table, Vector
from .rng import normal


@inlined
def draw(setting: Setting, run: Run, mean: float, noise: float) -> float:
    """One reward."""
    return mean + noise * normal(run.rewards)


@inlined
def variance(setting: Setting, run: Run, arm: int) -> float:
    """The variance of an arm's rewards: known, or learned."""
    if setting.closed_form:
        return setting.variance[arm]
    if setting.learning:
        return run.variance[arm]
    return setting.variance[arm]


@inlined
def respond(setting: Setting, table: Table, run: Run, edge: int, base: int, w: Vector) -> float:
    """Closest alternative across an edge: D_e(w), and its gradient by the edge's arms.

    The gradient of entry k lies at run.gradient[k - base].
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = table.offset[edge]
    spread = 0.0
    for k in range(first, last):
        a = table.arm[k]
        v = table.v[k]
        gap += v * run.clipped[a]
        spread += variance(setting, run, a) * v * v / w[a]
    if gap <= 0.0:
        for k in range(first, last):
            run.gradient[k - base] = 0.0
        return 0.0
    gamma = gap / spread
    for k in range(first, last):
        a = table.arm[k]
        slope = gamma * table.v[k] / w[a]
        run.gradient[k - base] = 0.5 * variance(setting, run, a) * slope * slope
    return 0.5 * gap * gamma


@kernel
def refresh(setting: Setting, table: Table, run: Run) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for edge in range(first, table.first_edge[vertex + 1]):
        gap = table.offset[edge]
        spread = 0.0
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            a = table.arm[k]
            gap += table.v[k] * run.clipped[a]
            spread += setting.variance[a] * table.v[k] * table.v[k] / run.n[a]
        e = edge - first
        run.gap[e] = gap
        run.spread[e] = spread
        run.value[e] = 0.5 * gap * gap / spread if gap > 0.0 else 0.0


@inlined
def touch(setting: Setting, table: Table, run: Run, arm: int, moved: float, slower: float) -> None:
    """Update the edges that contain an arm whose mean and 1 / n changed."""
    vertex = run.integers[VERTEX]
    change = setting.variance[arm] * slower
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        e = table.column_edge[k]
        v = table.column_v[k]
        gap = run.gap[e] + v * moved
        spread = run.spread[e] + v * v * change
        run.gap[e] = gap
        run.spread[e] = spread
        run.value[e] = 0.5 * gap * gap / spread if gap > 0.0 else 0.0


@kernel
def closest(setting: Setting, table: Table, run: Run, edge: int, lam: Vector) -> None:
    """Write the closest alternative across an edge into lam, by the edge's arms."""
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = table.offset[edge]
    spread = 0.0
    for k in range(first, last):
        a = table.arm[k]
        gap += table.v[k] * run.clipped[a]
        spread += variance(setting, run, a) * table.v[k] * table.v[k] / run.n[a]
    for k in range(first, last):
        a = table.arm[k]
        shift = gap / spread * variance(setting, run, a) * table.v[k] / run.n[a]
        lam[k - first] = run.clipped[a] - shift


@kernel
def mixture_evidence(setting: Setting, table: Table, run: Run, edge: int) -> float:
    """Log of Robbins' mixtures that an edge is no improvement (docs/theory/stopping.md).

    Each c of a grid is a mixture centred at the alternative with variance sigma^2 / c; the best
    one counts, with its share.
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = table.offset[edge]
    for k in range(first, last):
        gap += table.v[k] * run.clipped[table.arm[k]]
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
            spread += setting.variance[a] * table.v[k] * table.v[k] * (n + c) / (n * n)
            penalty += 0.5 * math.log1p(n / c)
        best = max(best, 0.5 * gap * gap / spread - penalty)
        c *= 4.0
    return best


@inlined
def kk21_penalty(n: float) -> float:
    """Kaufmann & Koolen's price of an arm's samples, Gaussian form."""
    return 2.0 * math.log(4.0 + math.log(n))


@inlined
def optimistic(setting: Setting, run: Run, arm: int, lam: float, f: float) -> float:
    """Largest divergence from lam over means that n samples cannot rule out (CGE's U)."""
    mean, n = run.clipped[arm], run.n[arm]
    if lam == mean:  # as for all arms but those of the closest edge
        return f / n
    square = variance(setting, run, arm)
    radius = math.sqrt(2.0 * square * f / n)
    reach = abs(mean - lam) + radius
    return 0.5 * reach * reach / square  # never less than f / n


@kernel
def alternative(
    setting: Setting, table: Table, run: Run, w: Vector, slack: Vector, lam: Vector
) -> None:
    """Write the closest alternative at w over all edges of the vertex into lam."""
    for a in range(setting.size):
        lam[a] = run.clipped[a]
        slack[a] = variance(setting, run, a) / w[a]
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
