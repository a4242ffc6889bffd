"""Samples within measured limits: an arm is pulled only if the worst that it can be is affordable.

Upper ends of means hold at every moment with probability 1 - delta, all of them together. Pulls are
handed out such that the mean over all of them at upper ends keeps every limit; what no longer does
is answered by an arm that is known to keep them (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math

from . import records
from .kernel import kernel
from .measured_search import ROUNDING, SCALE, SCALES, SHARPNESS
from .records import MeasuredLimits, MeasuredScratch, RunState, SimulationBatch
from .student_statistic import floor_of_variance
from .unknown_variance import reach_of_learned

# Of pulls that keep known constraints exactly.
EXACTLY = 1e-9


@kernel
def reach_of_known(n: float, level: float) -> float:
    """Known deviations above which a mean is ruled out by so much evidence, by the best scale."""
    least = math.inf
    for j in range(SCALES):
        c = SCALE[j]
        needed = level + math.log(float(SCALES)) + 0.5 / (SHARPNESS * SHARPNESS)
        needed += 0.5 * math.log1p(n / c)
        least = min(least, (math.sqrt(2.0 * needed * (n + c)) - math.sqrt(c) / SHARPNESS) / n)
    return least


@kernel
def update_upper_limits(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> None:
    """Lower the upper ends of arms with new measurements, where samples keep limits at these."""
    if not measured.enforces_limits:
        return
    for a in range(measured.size):
        n = run.n[a]
        if n == run.counted[a]:
            continue
        run.counted[a] = n
        for i in range(measured.rows):
            mean = run.mean[1 + i, a]
            if measured.unknown[1 + i]:
                seen = max(run.squares[1 + i, a] / n, floor_of_variance(mean))
                reach = math.sqrt(seen) * reach_of_learned(work.hulls.arm, n, measured.guard_level)
            else:
                spread = math.sqrt(measured.variance[1 + i, a])
                reach = spread * reach_of_known(n, measured.guard_level)
            high = mean + reach * (1.0 + ROUNDING) + ROUNDING * abs(mean)
            run.upper[i, a] = min(run.upper[i, a], high)


@kernel
def is_affordable(measured: MeasuredLimits, run: RunState, arm: int) -> bool:
    """Whether with one more pull of an arm the mean over all pulls still keeps every limit."""
    for i in range(measured.rows):
        over = run.upper[i, arm] - measured.limit[i]
        for a in range(measured.size):
            pulls = run.n[a] + run.expired[a]
            if pulls > 0.0:
                over += pulls * (run.upper[i, a] - measured.limit[i])
        if not over <= 0.0:
            return False
    for row in range(measured.moves.shape[0]):
        over = measured.moves[row, arm]
        for a in range(measured.size):
            over += (run.n[a] + run.expired[a]) * measured.moves[row, a]
        if not over <= EXACTLY:
            return False
    return True


@kernel
def enforce_limits(measured: MeasuredLimits, run: RunState) -> None:
    """Pull the arm that was proposed if it is affordable; else the safe one with the most room.

    A deferred arm stays proposed until it is pulled, so that cheap arms do not use up what dear
    ones wait for.
    """
    if not measured.enforces_limits:
        return
    if run.integers[records.DEFERRED_ARM] == 0:
        run.integers[records.DEFERRED_ARM] = run.integers[records.ARM] + 1
        run.integers[records.PROPOSALS] += 1
    arm = run.integers[records.DEFERRED_ARM] - 1
    if is_affordable(measured, run, arm):
        run.integers[records.DEFERRED_ARM] = 0
        run.integers[records.ARM] = arm
        return
    widest = -math.inf
    for a in range(measured.size):
        if not measured.alone[a]:
            continue
        room = math.inf
        for i in range(measured.rows):
            room = min(room, (measured.limit[i] - run.upper[i, a]) / measured.worst[i])
        if room >= 0.0 and room > widest:
            widest = room
            arm = a
    run.integers[records.ARM] = arm


@kernel
def exceeds(measured: MeasuredLimits, run: RunState, batch: SimulationBatch) -> bool:
    """Whether the true mean over all pulls exceeds a limit that they should keep."""
    if not measured.enforces_limits:
        return False
    for i in range(measured.rows):
        over = 0.0
        size = 0.0
        for a in range(measured.size):
            over += run.n[a] * (batch.means[1 + i, a] - measured.limit[i])
            size += run.n[a] * abs(batch.means[1 + i, a])
        if over > 1e-12 * size:
            return True
    return False
