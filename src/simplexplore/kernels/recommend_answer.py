"""Which answer to work for, where several are good enough (Degenne & Koolen 2019).

With epsilon > 0 there are many right answers, and samples spread over several of them settle
none. So a run commits to one and stays. An answer is plausible while its rate, the most
information per sample that an allocation can gather against all means under which it is not
good enough, comes close to the best answer's at the empirical means; how close is close
shrinks more slowly than the means' errors. With exact rates, from some time on exactly the answers
that are best at the true means are plausible, and the commitment is to one of them and for good
(docs/theory/epsilon.md); rates are solved to 2% here, so answers that close may take turns.

Rates take a small convex program each, so they are looked at again only when the samples have
grown by a share, or when the present answer does not look good enough at all. Stopping does
not depend on any of this: the answer at hand is tested after every sample.
"""

from __future__ import annotations

import math

from . import records
from .edges import gap_of, variance
from .information import edge_information, recompute_statistics
from .kernel import kernel
from .maximin import MAX_ITERATIONS, evaluate, improve
from .records import EdgeTable, MaximinState, RunConfig, RunState, Scratch

# Rates are looked at again when there are this share more samples.
GROWTH = 0.1

# Certified relative gap of a rate.
RATE_GAP = 0.02

# Steps without progress after which a rate is used as it is.
MAX_STALLED = 5


@kernel
def promise(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, answer: int, needed: float
) -> float:
    """No less than an answer's rate: that of its hardest comparison alone, any w.

    0 as soon as it is below what is needed.
    """
    w = scratch.arms[3]
    least = math.inf
    first, last = table.first_edge[answer], table.first_edge[answer + 1]
    for edge in range(first, last):
        if gap_of(table, run, edge) <= 0.0:
            return 0.0
    for edge in range(first, last):
        base, end = table.first_entry[edge], table.first_entry[edge + 1]
        total = 0.0
        for k in range(base, end):
            a = table.arm[k]
            w[a] = abs(table.v[k]) * math.sqrt(variance(config, run, a) / config.costs[a])
            total += w[a]
        for k in range(base, end):
            w[table.arm[k]] /= total
        edge_information(config, table, run, edge, base, w)
        # The alternative found here costs any allocation at most its largest divergence.
        most = 0.0
        for k in range(base, end):
            most = max(most, run.gradient[k - base] / config.costs[table.arm[k]])
        if most < needed:
            return 0.0
        least = min(least, most)
    return least


@kernel
def rate_of(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, answer: int, needed: float
) -> float:
    """Most information for what is spent against all comparisons of an answer.

    Something below what is needed as soon as no allocation has that much.
    """
    if not promise(config, table, run, scratch, answer, needed) > 0.0:
        return 0.0
    first, last = table.first_edge[answer], table.first_edge[answer + 1]
    if first == last:
        return math.inf
    w, q = scratch.arms[3], run.edge_state[run.edge_state.shape[0] - 1]
    for edge in range(first, last):
        q[edge] = 1.0 / (last - first)
    for a in range(config.size):
        w[a] = config.spend.interior_allocation[a]
    state = MaximinState(q, w, answer, config.anytime)
    shortest, most, stalled = math.inf, math.inf, 0
    for _ in range(MAX_ITERATIONS):
        time, bound = evaluate(config, table, run, scratch, state)
        if time == math.inf:
            return 0.0
        # Steps may go to and fro where means lie at an end of their range: the best ones count.
        stalled = 0 if time < shortest or bound < most else stalled + 1
        shortest, most = min(shortest, time), min(most, bound)
        if most < needed or shortest * most <= 1.0 + RATE_GAP or stalled == MAX_STALLED:
            break
        improve(config, table, run, scratch, state)
    return 1.0 / shortest


@kernel
def recommend(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> int:
    """Stay with the answer while it is plausible; else the first plausible one, in order.

    Rates are looked for as far as that asks for them.
    """
    pulls = run.integers[records.PULLS]
    run.integers[records.NEXT_CHECK] = pulls + 1 + int(GROWTH * pulls)
    rarest = math.inf
    for k in range(config.useful_arms.size):
        rarest = min(rarest, run.n[config.useful_arms[k]])
    close = 1.0 - 0.5 * rarest**-0.4
    held = run.integers[records.VERTEX]
    run.rate[held] = rate_of(config, table, run, scratch, held, 0.0)
    enough = run.rate[held] / close  # the answer at hand stays where no rate is above this
    best = enough
    for answer in range(run.rate.size):
        if answer != held:
            run.rate[answer] = rate_of(config, table, run, scratch, answer, best)
            best = max(best, run.rate[answer])
    if best > enough:
        for answer in range(run.rate.size):
            needed = close * best
            if run.rate[answer] < needed:
                run.rate[answer] = rate_of(config, table, run, scratch, answer, needed)
            if run.rate[answer] >= needed:
                run.integers[records.VERTEX] = answer
                break
    recompute_statistics(config, table, run)
    return records.GO_ON
