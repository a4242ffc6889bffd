"""Statistics with empirical variances: what samplers see where sigma is unknown."""

from __future__ import annotations

import math

from .edges import gap_and_spread
from .kernel import inlined, kernel
from .records import INITIALIZED, PULLS, EdgeTable, RunConfig, RunState


@inlined
def floor_of_variance(mean: float) -> float:
    """Less variance than this is rounding."""
    return 1e-20 * mean * mean + 1e-60


@kernel
def learn(
    config: RunConfig, run: RunState, channel: int, arm: int, before: float, after: float
) -> None:
    """Take in deviations of what was reported from the arm's mean before and after it.

    Samplers see the arm's sum of squares and one more of what is usual, so that equal rewards at
    the start do not pass for no variance at all. Without any noise all arms have the same.
    """
    squares, total = run.squares, config.size
    squares[channel, arm] += before * after
    squares[channel, total] += before * after
    usual = squares[channel, total] / run.integers[PULLS]
    first, last = arm, arm + 1
    floor = 0.0
    if run.integers[INITIALIZED] == 0 or not usual > 0.0:  # what is usual still changes
        first, last = 0, config.size
    if not usual > 0.0:
        for a in range(config.size):
            floor = max(floor, floor_of_variance(run.mean[channel, a]))
    for a in range(first, last):
        if run.n[a] > 0.0:
            seen = (squares[channel, a] + usual) / run.n[a]
            seen = max(seen, floor, floor_of_variance(run.mean[channel, a]))
            run.variance[channel, a] = seen


@kernel
def statistic(config: RunConfig, table: EdgeTable, run: RunState, edge: int) -> float:
    """Student's evidence at the alternative that is closest if variances were known."""
    gap, spread = gap_and_spread(config, table, run, edge, run.n)
    if not gap > 0.0:
        return 0.0
    total = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        n = run.n[a]
        y = gap / spread * table.v[k] / n
        total += 0.5 * n * math.log1p(y * y * run.variance[0, a])
    return total
