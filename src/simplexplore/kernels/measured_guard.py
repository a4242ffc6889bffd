"""Samples within measured limits: an arm is pulled only if the worst that it can be is affordable.

Upper ends of means hold at every moment with probability 1 - delta, all of them together. Pulls are
handed out such that the mean over all of them at upper ends keeps every limit; what no longer does
is answered by an arm that is known to keep them (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math

from .kernel import kernel
from .measured_records import ARM, TURN, WISH, MeasuredRun, MeasuredSetting, MeasuredWork
from .measured_search import ROUNDING, SCALE, SCALES, SHARPNESS
from .student_mixture import IS_FLAT, N, mixture_of, put_arm
from .student_statistic import floor_of_variance

# Of pulls that keep known constraints exactly.
EXACTLY = 1e-9

# Halvings of an interval's end.
HALVINGS = 30


@kernel
def reach_of_learned(work: MeasuredWork, n: float, level: float) -> float:
    """Empirical deviations above which a mean is ruled out by so much evidence."""
    if n < 2.0:
        return math.inf
    student = work.student
    student[N, 0], student[IS_FLAT, 0] = n, 0.0
    put_arm(student, 0)
    low, high = 0.0, 1.0
    for _ in range(40):
        if mixture_of(student, 0, high)[0] >= level:
            break
        low, high = high, 2.0 * high
    else:
        return math.inf
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if mixture_of(student, 0, middle)[0] >= level:
            high = middle
        else:
            low = middle
    return high


@kernel
def reach_of_known(n: float, level: float) -> float:
    """The same in known deviations, by the best of all scales."""
    least = math.inf
    for j in range(SCALES):
        c = SCALE[j]
        needed = level + math.log(float(SCALES)) + 0.5 / (SHARPNESS * SHARPNESS)
        needed += 0.5 * math.log1p(n / c)
        least = min(least, (math.sqrt(2.0 * needed * (n + c)) - math.sqrt(c) / SHARPNESS) / n)
    return least


@kernel
def learn_upper(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """Lower the upper ends of arms with new measurements."""
    for a in range(setting.size):
        n = run.n[a]
        if n == run.counted[a]:
            continue
        run.counted[a] = n
        for i in range(setting.rows):
            mean = run.measured[i, a]
            if setting.unknown[1 + i]:
                seen = max(run.squares[1 + i, a] / n, floor_of_variance(mean))
                reach = math.sqrt(seen) * reach_of_learned(work, n, setting.guard_level)
            else:
                spread = math.sqrt(setting.spread[i, a])
                reach = spread * reach_of_known(n, setting.guard_level)
            high = mean + reach * (1.0 + ROUNDING) + ROUNDING * abs(mean)
            run.upper[i, a] = min(run.upper[i, a], high)


@kernel
def is_affordable(setting: MeasuredSetting, run: MeasuredRun, arm: int) -> bool:
    """Whether with one more pull of an arm the mean over all pulls still keeps every limit."""
    for i in range(setting.rows):
        over = run.upper[i, arm] - setting.limit[i]
        for a in range(setting.size):
            pulls = run.n[a] + run.given_up[a]
            if pulls > 0.0:
                over += pulls * (run.upper[i, a] - setting.limit[i])
        if not over <= 0.0:
            return False
    for row in range(setting.moves.shape[0]):
        over = setting.moves[row, arm]
        for a in range(setting.size):
            over += (run.n[a] + run.given_up[a]) * setting.moves[row, a]
        if not over <= EXACTLY:
            return False
    return True


@kernel
def guarded(setting: MeasuredSetting, run: MeasuredRun) -> int:
    """The arm that was proposed if it is affordable; else the safe one with the most room.

    A wish stays until it is granted, so that cheap ones do not use up what dear ones wait for.
    """
    if run.integers[WISH] == 0:
        run.integers[WISH] = run.integers[ARM] + 1
        run.integers[TURN] += 1
    arm = run.integers[WISH] - 1
    if is_affordable(setting, run, arm):
        run.integers[WISH] = 0
        return arm
    widest = -math.inf
    for a in range(setting.size):
        if not setting.alone[a]:
            continue
        room = math.inf
        for i in range(setting.rows):
            room = min(room, (setting.limit[i] - run.upper[i, a]) / setting.worst[i])
        if room >= 0.0 and room > widest:
            widest = room
            arm = a
    return arm
