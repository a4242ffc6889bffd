"""Ours: the empirical best policy against its closest edge (docs/theory/tracking.md).

The challenger is the edge with the least evidence, plus a small logarithmic price on arms that
have hardly been tried; between its arms, samples go where they inform most. Of bounded rewards
`tilt` knows more than their means: evidence and shares count by the variance seen. Two policies
that tie could keep each other busy for ever while a third is underrated, so now and then, about
sqrt(t) times in all for each arm, the arms are played in turn. Where samples have limits, shares
are divided by the arms' prices (top_two_within.py).
"""

from __future__ import annotations

import math

from simplexplore.kernels.information import edge_information
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import PULLS, VERTEX, EdgeTable, RunConfig, RunState, Scratch

ARM_STATE = 0
EDGE_STATE = 0
TRACKING = "focused"
WITHIN_CONSTRAINTS = "top_two_within.py"

# Of the prices 0, 1/4, 1/2, 0.7, 1 and the rates 0, 1/4, 1/2, 1 these were chosen on exp1, exp2,
# ptns8 and gauss 1 (6000 runs each): less of either leaves long tails on exp1, more costs samples.
PRICE = 0.5  # of a logarithm of pulls, beside evidence
FORCING_RATE = 0.5  # of the forced exploration that cumulative tracking uses

# Both where a number of samples ends the run: with less a few runs never find out that they were
# wrong, and nobody waits for those that take long. It pays from so many samples per arm on.
ON_A_BUDGET = 1.0
AFFORDED = 300

# The two bets of this number are weak enough to tell the mean square of rewards.
WEAK = 20

# An arm's variance is at first that of rewards at the two ends, counted like so many samples.
PRIOR = 2.0


@kernel
def forced_pulls_due(count: int, pulls: float, rate: float) -> int:
    """Forced pulls of so many arms due after so many in all."""
    size = float(count)
    return int(rate * size * (math.sqrt(size * size + pulls) - size))


@kernel
def share_of_variance(config: RunConfig, run: RunState, arm: int, gap: float) -> float:
    """Variance of bounded rewards as a share of p (1 - p), which those at the two ends have.

    No tilt is stronger than the first, so that evidence of a gap has no use for less variance than
    this leaves.
    """
    mean, n = run.mean[0, arm], run.n[arm]
    most = mean * (1.0 - mean)
    if not config.tracks_wealth or most <= 0.0:
        return 1.0
    tilts = config.tilts
    # log(1 + b x) + log(1 + c x) = (b + c) x - (b^2 + c^2) x^2 / 2 but for terms of third order.
    b, c = tilts.slope[0, WEAK], tilts.slope[1, WEAK]
    both = run.log_wealth[arm, WEAK] + run.log_wealth[arm, tilts.strength.size + WEAK]
    square = (n * (b + c) * mean - both) / (0.5 * (b * b + c * c))
    variance = (max(square - n * mean * mean, 0.0) + PRIOR * most) / (n + PRIOR)
    return min((variance + gap / tilts.strength[0]) / most, 1.0)


@kernel
def evidence(config: RunConfig, table: EdgeTable, run: RunState, first: int, edge: int) -> float:
    """The statistic of an edge, by the variances of its arms."""
    value = run.value[edge - first]
    if not config.tracks_wealth:
        return value
    gap = max(run.gap[edge - first], 0.0)
    told = 0.0
    seen = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        spread = run.mean[0, a] * (1.0 - run.mean[0, a]) * table.v[k] * table.v[k] / run.n[a]
        told += spread
        seen += spread * share_of_variance(config, run, a, gap)
    return value * told / seen if seen > 0.0 else value


@kernel
def share(config: RunConfig, table: EdgeTable, run: RunState, first: int, edge: int) -> None:
    """Share a sample among the arms of an edge by what each would tell for its cost."""
    base, end = table.first_entry[edge], table.first_entry[edge + 1]
    value = edge_information(config, table, run, edge, base, run.n)
    gap = max(run.gap[edge - first], 0.0)
    total = 0.0
    for k in range(base, end):
        a = table.arm[k]
        run.w[a] = run.n[a] * run.gradient[k - base] / value if value > 0.0 else 0.0
        if config.tracks_wealth:
            run.w[a] *= share_of_variance(config, run, a, gap)
        if config.priced:
            run.w[a] /= config.costs[a]
        total += run.w[a]
    for k in range(base, end):
        a = table.arm[k]
        if not total > 0.0:
            run.w[a] = 1.0 / (end - base)  # tied means tell nothing yet
        elif config.tracks_wealth or config.priced:
            run.w[a] /= total


@kernel
def affords(config: RunConfig) -> bool:
    """Whether a number of samples ends the run, and there are many of them."""
    return config.budget >= AFFORDED * config.size


@kernel
def rarest_of(table: EdgeTable, run: RunState, edge: int) -> float:
    """Samples of the rarest arm of an edge."""
    rarest = math.inf
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        rarest = min(rarest, run.n[table.arm[k]])
    return rarest


@kernel
def pulls_into(config: RunConfig, table: EdgeTable, run: RunState, edge: int) -> float:
    """Pulls that went into the estimate of an edge's gap.

    An arm may have few samples because they are dear, and an edge with little of a rare arm be
    studied at length by its other ones.
    """
    squares = 0.0
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        square = table.v[k] * table.v[k]
        squares += square
        spread += square / (run.n[a] * config.pulls_per_use[a])
    return squares / spread


@kernel
def challenger_of(config: RunConfig, table: EdgeTable, run: RunState, price: float) -> int:
    """The edge with the least evidence and so much of the logarithm of how often it was tried."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    challenger = first
    least = math.inf
    for edge in range(first, table.first_edge[vertex + 1]):
        score = evidence(config, table, run, first, edge)
        if score >= least:  # a price only adds to it, and logarithms are slow
            continue
        if config.anytime:
            tries = pulls_into(config, table, run, edge)
        else:
            tries = rarest_of(table, run, edge)
        score += price * math.log(tries)
        if score < least:
            least = score
            challenger = edge
    return challenger


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Share the next sample among the arms of the challenger."""
    for a in range(config.size):
        run.w[a] = 0.0
    pulls = float(run.integers[PULLS])
    rate = ON_A_BUDGET if affords(config) else FORCING_RATE
    forced = forced_pulls_due(config.size, pulls, rate)
    if forced > forced_pulls_due(config.size, pulls - 1.0, rate):
        run.w[config.useful_arms[forced % config.useful_arms.size]] = 1.0
        return
    first = table.first_edge[run.integers[VERTEX]]
    price = ON_A_BUDGET if affords(config) else PRICE
    share(config, table, run, first, challenger_of(config, table, run, price))
