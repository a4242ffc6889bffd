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

from .gaussian import variance
from .information import refresh, respond
from .kernel import kernel
from .records import GO_ON, ITERATIONS, LOOK, PULLS, VERTEX, Memory, Run, Setting, Shares, Table

# Rates are looked at again when there are this share more samples.
GROWTH = 0.1

# Certified relative gap of a rate.
CLOSE = 0.02


@kernel
def promise(
    setting: Setting, table: Table, run: Run, memory: Memory, answer: int, needed: float
) -> float:
    """No less than an answer's rate: that of its hardest comparison alone, any w.

    0 as soon as it is below what is needed.
    """
    w = memory.scratch[3]
    least = math.inf
    first, last = table.first_edge[answer], table.first_edge[answer + 1]
    for edge in range(first, last):
        gap = table.offset[edge]
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            gap += table.v[k] * run.clipped[table.arm[k]]
        if gap <= 0.0:
            return 0.0
    for edge in range(first, last):
        base, end = table.first_entry[edge], table.first_entry[edge + 1]
        total = 0.0
        for k in range(base, end):
            a = table.arm[k]
            w[a] = abs(table.v[k]) * math.sqrt(variance(setting, run, a) / setting.costs[a])
            total += w[a]
        for k in range(base, end):
            w[table.arm[k]] /= total
        respond(setting, table, run, edge, base, w)
        # The alternative found here costs any allocation at most its largest divergence.
        most = 0.0
        for k in range(base, end):
            most = max(most, run.gradient[k - base] / setting.costs[table.arm[k]])
        if most < needed:
            return 0.0
        least = min(least, most)
    return least


@kernel
def rate_of(setting: Setting, table: Table, run: Run, memory: Memory, answer: int) -> float:
    """Most information for what is spent against all comparisons of an answer."""
    first, last = table.first_edge[answer], table.first_edge[answer + 1]
    if first == last:
        return math.inf
    w, q = memory.scratch[3], memory.edges[memory.edges.shape[0] - 1]
    q[first] = 0.0  # all alike again: means may have moved far since the last look
    for a in range(setting.size):
        w[a] = setting.spend.inside[a]
    shares, within = Shares(q, w), setting.anytime
    while True:
        gap = setting.slots.balance(setting, table, run, memory, shares, answer, within, CLOSE)
        if run.integers[ITERATIONS] == 0:
            break
    if gap == math.inf:
        return 0.0
    longest = 0.0
    for e in range(last - first):
        longest = max(longest, run.time[e])
    return 1.0 / longest


@kernel
def recommend(setting: Setting, table: Table, run: Run, memory: Memory) -> int:
    """Stay with the answer while it is plausible; else the first plausible one, in order."""
    pulls = run.integers[PULLS]
    run.integers[LOOK] = pulls + 1 + int(GROWTH * pulls)
    rarest = math.inf
    for k in range(setting.first_arms.size):
        rarest = min(rarest, run.n[setting.first_arms[k]])
    close = 1.0 - 0.5 * rarest**-0.4
    held = run.integers[VERTEX]
    best = 0.0
    for step in range(run.rate.size):
        # The answer at hand comes first: the others must come close to it.
        answer = held if step == 0 else step - 1 if step <= held else step
        run.rate[answer] = 0.0
        if promise(setting, table, run, memory, answer, close * best) > 0.0:
            run.rate[answer] = rate_of(setting, table, run, memory, answer)
            best = max(best, run.rate[answer])
    if run.rate[held] < close * best:
        for answer in range(run.rate.size):
            if run.rate[answer] >= close * best:
                run.integers[VERTEX] = answer
                break
    refresh(setting, table, run)
    return GO_ON
