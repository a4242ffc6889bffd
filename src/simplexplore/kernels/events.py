"""Events of a live study, folded by the functions of a simulated run.

Rewards may arrive in any order and pulls be in flight. The statistic and the thresholds see
what was *observed*; the choice of arms sees what was *pulled*, in flight included, so that
batches and slow answers do not pile on one arm (docs/theory/stopping.md). With nothing in
flight the arithmetic is that of a simulated run, bit for bit. How events are grouped into calls
makes no difference either: a replay may take them all at once.
"""

from __future__ import annotations

import math

from . import records
from .edges import gap_and_spread
from .episode import check_stopping, choose, observe
from .information import recompute_statistics
from .kernel import kernel
from .records import EdgeTable, EventBatch, RunConfig, RunState, Scratch, Vector


@kernel
def choose_in_flight(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, pending: Vector
) -> None:
    """`choose` at the counts with pulls in flight; the observed counts come back unchanged."""
    away, aside = 0.0, scratch.aside
    for a in range(config.size):
        away += pending[a]
    warm = run.integers[records.INITIALIZED]
    if away > 0.0:
        for a in range(config.size):
            run.n[a] += pending[a]
        run.integers[records.PULLS] += int(away)
        if warm and not config.measuring:
            for e in range(run.value.size):
                aside[0, e], aside[1, e], aside[2, e] = run.gap[e], run.spread[e], run.value[e]
            recompute_statistics(config, table, run)
    choose(config, table, run, scratch)
    if away > 0.0:
        for a in range(config.size):
            run.n[a] -= pending[a]
        run.integers[records.PULLS] -= int(away)
        if warm and not config.measuring:
            for e in range(run.value.size):
                run.gap[e], run.spread[e], run.value[e] = aside[0, e], aside[1, e], aside[2, e]


@kernel
def rescale_target(config: RunConfig, run: RunState, pending: Vector, change: float) -> None:
    """Let a pull that expires, or comes back, take its share of the target along.

    The target's sum is the number of pulls it asks for. Pulls that never come back would
    leave it ahead for ever, and arms with a small share without a turn. Where limits are measured
    not every pull is in it.
    """
    mass = float(run.integers[records.PULLS])
    for a in range(config.size):
        mass += pending[a]
    if config.measuring:
        mass = 0.0
        for a in range(config.size):
            mass += run.target[a]
        if not mass + change > 0.0:
            return
    for a in range(config.size):
        if mass > 0.0:
            run.target[a] *= (mass + change) / mass
        else:
            run.target[a] = config.interior_allocation[a]


@kernel
def fold_events(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, events: EventBatch
) -> int:
    """Events progress[0] to the last, as far as known vertices allow.

    An ASKED event without an arm (-1) is given one. Returns STOPPED after the event with
    which the evidence is enough, if asked to; progress[1] says that an event was observed
    but not judged yet, and waits for a vertex.
    """
    pending, progress = events.pending, events.progress
    kinds, arms, rewards = events.kinds, events.arms, events.rewards
    while progress[0] < kinds.size:
        i = progress[0]
        kind = kinds[i]
        status = records.GO_ON
        if kind in (records.TOLD, records.LATE, records.ELSEWHERE, records.EXTENDED):
            if progress[1] == 0 and kind != records.EXTENDED:
                if kind == records.TOLD:
                    pending[arms[i]] -= 1.0
                elif kind == records.LATE:
                    rescale_target(config, run, pending, 1.0)
                    run.expired[arms[i]] -= 1.0
                for c in range(config.channels):
                    run.reported[c] = rewards[i, c]
                observe(config, table, run, arms[i])
                progress[1] = 1
            status = check_stopping(config, table, run, scratch)
            if status in (records.UNKNOWN_VERTEX, records.UNKNOWN_REGRET):
                return status
            progress[1] = 0
        elif kind == records.EXPIRED:
            rescale_target(config, run, pending, -1.0)
            pending[arms[i]] -= 1.0
            run.expired[arms[i]] += 1.0
        if kind in (records.ASKED, records.ELSEWHERE):
            # A pull made elsewhere takes a turn too, though nobody follows the choice.
            choose_in_flight(config, table, run, scratch, pending)
            if kind == records.ASKED:
                if arms[i] < 0:
                    arms[i] = run.integers[records.ARM]
                pending[arms[i]] += 1.0
        progress[0] += 1
        if status == records.STOPPED and events.until_stopped:
            return status
    return records.GO_ON


@kernel
def level_of_edge(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, edge: int
) -> float:
    """The least statistic that would rule an edge out, its arms' counts as they are.

    Thresholds only say yes or no, one's own included, so it is found by bisection. Closed
    forms read the gap itself: the means move along the edge until it fits the statistic.
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap, spread = gap_and_spread(config, table, run, edge, run.n)
    square = 0.0
    for k in range(first, last):
        square += table.v[k] * table.v[k]
    low = 0.0
    high = math.inf
    level = 1.0
    shift = 0.0
    while level < math.inf:
        shifted = (math.sqrt(2.0 * level * spread) - gap) / square
        for k in range(first, last):
            run.clipped_mean[table.arm[k]] += table.v[k] * (shifted - shift)
        shift = shifted
        if config.functions.reached(config, table, run, edge, level):
            high = level
        else:
            low = level
        if high < math.inf:
            if high - low <= 1e-12 * high:
                break
            level = 0.5 * (low + high)
        else:
            level *= 2.0
    for a in range(config.size):
        run.clipped_mean[a] = min(max(run.mean[0, a], config.lowest), config.highest)
    return high
