"""From an allocation to the next arm."""

from __future__ import annotations

import math

from .guard import fill, keeps
from .kernel import inlined, kernel
from .records import AVERAGED, DIRECT, FOCUSED, PULLS, SAMPLED, Memory, Run, Setting
from .rng import uniform

# Averaged tracking weighs the allocation of time s like s^(FORGETTING - 1). Of 2 and 4, 2 was
# kept: 4 was faster on exp1 and gauss 1 but had long tails on ptns8 (anytime, 1000 runs each).
FORGETTING = 2.0


@inlined
def exploration(setting: Setting, pulls: float) -> float:
    """Share of forced exploration: C-tracking's eps_t = 1 / (2 sqrt(K^2 + t)), K times.

    Twice as much for direct tracking, which soon takes back what early allocations gave an arm:
    with as much a few runs of ctns took 41 (movies) and 12 times the median (triangle).
    """
    size = float(setting.size)
    part = (1.0 if setting.tracking == DIRECT else 0.5) * size / math.sqrt(size * size + pulls)
    return part / (1.0 + part)


@kernel
def track(setting: Setting, run: Run, memory: Memory) -> int:
    """Choose the arm that follows the allocation run.w.

    The allocation that is tracked leans towards the inside of the set by the share of
    forced exploration, so it stays in the set. Cumulative tracking follows the sum of all
    allocations; averaged tracking an average in which late ones weigh more, which forgets
    early mistakes and still settles where optimal allocations are not unique; direct
    tracking follows the present one; sampling draws from it. Focused tracking is cumulative
    among the arms of the present allocation only, without forced exploration. Where samples have
    limits, only arms that keep them are chosen (guard.py).
    """
    if setting.tracking == SAMPLED:
        for a in range(setting.size):
            run.target[a] += run.w[a]
        left = uniform(run.choices)
        arm = setting.first_arms[0]
        for a in range(setting.size):
            if run.w[a] > 0.0:
                arm = a
                left -= run.w[a]
                if left < 0.0:
                    break
        if setting.anytime and not keeps(setting, run, memory, arm):
            return fill(setting, run, memory)
        return arm
    share = 0.0
    if setting.tracking != FOCUSED:
        share = exploration(setting, float(run.integers[PULLS]))
    arm = -1
    least = math.inf
    pulls = run.integers[PULLS] + 1.0
    for a in range(setting.size):
        tracked = (1.0 - share) * run.w[a] + share * setting.inside[a]
        if setting.tracking == AVERAGED:
            run.average[a] += (tracked - run.average[a]) * min(1.0, FORGETTING / pulls)
        if not tracked > 0.0:
            continue
        run.target[a] += tracked
        owed = run.target[a]
        if setting.tracking == DIRECT:
            owed = pulls * tracked
        elif setting.tracking == AVERAGED:
            owed = pulls * run.average[a]
        lag = run.n[a] - owed
        if lag < least and (not setting.anytime or keeps(setting, run, memory, a)):
            least = lag
            arm = a
    return arm if arm >= 0 else fill(setting, run, memory)
