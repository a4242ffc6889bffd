"""From an allocation to the next arm."""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .limits import fallback_arm, is_allowed
from .records import DIRECT, FOCUSED, PULLS, SAMPLED, RunConfig, RunState, Scratch
from .rng import uniform

# Direct tracking soon takes back what early allocations gave an arm, and so forces more where arms
# are few: with a rate of 1 the longest of 10,000 runs of ctns on the triangle took 23 times the
# median, with 2 it took 8.5. Without a largest share 60 random problems took 1.3% more samples.
DIRECT_RATE, DIRECT_ARMS, DIRECT_SHARE = 2.0, 10.0, 2.0 / 7.0


@inlined
def exploration(count: int, pulls: float, rate: float) -> float:
    """Share of forced exploration: at a rate of 1/2 C-tracking's 1 / (2 sqrt(K^2 + t)), K times."""
    size = float(count)
    part = rate * size / math.sqrt(size * size + pulls)
    return part / (1.0 + part)


@kernel
def track(config: RunConfig, run: RunState, scratch: Scratch) -> int:
    """Choose the arm that follows the allocation run.w.

    The allocation that is tracked leans towards the inside of the set by the share of
    forced exploration, so it stays in the set. Cumulative tracking follows the sum of all
    allocations; direct tracking follows the present one, but plays the rarest arm while it has
    fewer than (sqrt(K^2 + t) - K) / 2 pulls; sampling draws from it. Focused tracking is
    cumulative among the arms of the present allocation only, without forced exploration. Where
    samples have limits, only arms that keep them are chosen (limits.py).
    """
    if config.tracking == SAMPLED:
        for a in range(config.size):
            run.target[a] += run.w[a]
        left = uniform(run.choices)
        arm = config.useful_arms[0]
        for a in range(config.size):
            if run.w[a] > 0.0:
                arm = a
                left -= run.w[a]
                if left < 0.0:
                    break
        if config.anytime and not is_allowed(config, run, scratch, arm):
            return fallback_arm(config, run, scratch)
        return arm
    share = 0.0
    if config.tracking == DIRECT:
        rate = max(0.5, min(DIRECT_RATE, DIRECT_ARMS / config.size))
        share = min(exploration(config.size, float(run.integers[PULLS]), rate), DIRECT_SHARE)
    elif config.tracking != FOCUSED:
        share = exploration(config.size, float(run.integers[PULLS]), 0.5)
    arm = -1
    least = math.inf
    pulls = run.integers[PULLS] + 1.0
    size = float(config.size)
    for a in range(config.size):
        tracked = (1.0 - share) * run.w[a] + share * config.interior_allocation[a]
        if not tracked > 0.0:
            continue
        run.target[a] += tracked
        owed = run.target[a]
        if config.tracking == DIRECT:
            rare = run.n[a] < 0.5 * (math.sqrt(size * size + pulls - 1.0) - size)
            owed = 3.0 * pulls if rare else pulls * tracked  # of two rare arms the rarer one
        lag = run.n[a] - owed
        if lag < least and (not config.anytime or is_allowed(config, run, scratch, a)):
            least = lag
            arm = a
    return arm if arm >= 0 else fallback_arm(config, run, scratch)
