"""Events of a live study, folded by the functions of a simulated run.

Rewards may arrive in any order and pulls be in flight. The statistic and the thresholds see
what was *observed*; the choice of arms sees what was *pulled*, in flight included, so that
batches and slow answers do not pile on one arm (docs/theory/stopping.md). With nothing in
flight the arithmetic is that of a simulated run, bit for bit. How events are grouped into calls
makes no difference either: a replay may take them all at once.
"""

from __future__ import annotations

import math

from .episode import choose, judge, observe
from .gaussian import variance
from .information import refresh
from .kernel import kernel
from .records import (
    ARM,
    ASKED,
    ELSEWHERE,
    EXPIRED,
    EXTENDED,
    GO_ON,
    LATE,
    PULLS,
    STOPPED,
    TOLD,
    UNKNOWN_REGRET,
    UNKNOWN_VERTEX,
    WARM,
    Events,
    Matrix,
    Memory,
    Run,
    Setting,
    Table,
    Vector,
)


@kernel
def choose_in_flight(
    setting: Setting, table: Table, run: Run, memory: Memory, pending: Vector, aside: Matrix
) -> None:
    """`choose` at the counts with pulls in flight; the observed counts come back unchanged."""
    away = 0.0
    for a in range(setting.size):
        away += pending[a]
    warm = run.integers[WARM]
    if away > 0.0:
        for a in range(setting.size):
            run.n[a] += pending[a]
        run.integers[PULLS] += int(away)
        if warm:
            for e in range(run.value.size):
                aside[0, e], aside[1, e], aside[2, e] = run.gap[e], run.spread[e], run.value[e]
            refresh(setting, table, run)
    choose(setting, table, run, memory)
    if away > 0.0:
        for a in range(setting.size):
            run.n[a] -= pending[a]
        run.integers[PULLS] -= int(away)
        if warm:
            for e in range(run.value.size):
                run.gap[e], run.spread[e], run.value[e] = aside[0, e], aside[1, e], aside[2, e]


@kernel
def weigh(setting: Setting, run: Run, pending: Vector, change: float) -> None:
    """Let a pull that expires, or comes back, take its share of the target along.

    The target's sum is the number of pulls it asks for. Pulls that never come back would
    leave it ahead for ever, and arms with a small share without a turn.
    """
    mass = float(run.integers[PULLS])
    for a in range(setting.size):
        mass += pending[a]
    for a in range(setting.size):
        if mass > 0.0:
            run.target[a] *= (mass + change) / mass
        else:
            run.target[a] = setting.inside[a]


@kernel
def fold_events(setting: Setting, table: Table, run: Run, memory: Memory, events: Events) -> int:
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
        status = GO_ON
        if kind in (TOLD, LATE, ELSEWHERE, EXTENDED):
            if progress[1] == 0 and kind != EXTENDED:
                if kind == TOLD:
                    pending[arms[i]] -= 1.0
                elif kind == LATE:
                    weigh(setting, run, pending, 1.0)
                    run.given_up[arms[i]] -= 1.0
                observe(setting, table, run, arms[i], rewards[i])
                progress[1] = 1
            status = judge(setting, table, run, memory)
            if status in (UNKNOWN_VERTEX, UNKNOWN_REGRET):
                return status
            progress[1] = 0
        elif kind == EXPIRED:
            weigh(setting, run, pending, -1.0)
            pending[arms[i]] -= 1.0
            run.given_up[arms[i]] += 1.0
        if kind in (ASKED, ELSEWHERE):
            # A pull made elsewhere takes a turn too, though nobody follows the choice.
            choose_in_flight(setting, table, run, memory, pending, events.aside)
            if kind == ASKED:
                if arms[i] < 0:
                    arms[i] = run.integers[ARM]
                pending[arms[i]] += 1.0
        progress[0] += 1
        if status == STOPPED and events.until_stopped:
            return status
    return GO_ON


@kernel
def level_of_edge(setting: Setting, table: Table, run: Run, memory: Memory, edge: int) -> float:
    """The least statistic that would rule an edge out, its arms' counts as they are.

    Thresholds only say yes or no, one's own included, so it is found by bisection. Closed
    forms read the gap itself: the means move along the edge until it fits the statistic.
    """
    first, last = table.first_entry[edge], table.first_entry[edge + 1]
    gap = table.offset[edge]
    spread = 0.0
    square = 0.0
    for k in range(first, last):
        a = table.arm[k]
        v = table.v[k]
        gap += v * run.clipped[a]
        spread += variance(setting, run, a) * v * v / run.n[a]
        square += v * v
    low = 0.0
    high = math.inf
    level = 1.0
    shift = 0.0
    while level < math.inf:
        shifted = (math.sqrt(2.0 * level * spread) - gap) / square
        for k in range(first, last):
            run.clipped[table.arm[k]] += table.v[k] * (shifted - shift)
        shift = shifted
        if setting.slots.reached(setting, table, run, edge, level):
            high = level
        else:
            low = level
        if high < math.inf:
            if high - low <= 1e-12 * high:
                break
            level = 0.5 * (low + high)
        else:
            level *= 2.0
    for a in range(setting.size):
        run.clipped[a] = min(max(run.mean[a], setting.lowest), setting.highest)
    return high
