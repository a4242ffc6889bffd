"""Rewards that look impossible: a typo must not end a study.

A reward is compared with what its arm has had before it (docs/theory/health.md, outliers).
"""

from __future__ import annotations

import math

from simplexplore.problem.families import Gaussian

from .health import FALSE_ALARMS, OUTLIER
from .state import State


class Outliers:
    """What is usual for each arm, reward by reward; known for Gaussian rewards of known sigma.

    Rewards that are held are left out, so that one typo does not make others look impossible.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        family = state.engine.plan.problem.rewards
        self._is_on = isinstance(family, Gaussian) and family.knows_sigma
        self._tests = state.rewards
        self._seen: dict[int, tuple[int, float]] = {}  # number and mean, by arm

    def usual(self, arm: int, n: int = 1) -> tuple[float, float] | None:
        """Where the mean of n rewards of an arm lies, None if nothing is known of it."""
        count, mean = self._known(arm) if self._is_on else (0, 0.0)
        if not count:
            return None
        config = self._state.engine.workspace.config
        alpha = OUTLIER * FALSE_ALARMS
        apart = farthest(count, self._tests + 1, config.size, alpha, n)
        apart *= math.sqrt(config.variance[arm])
        return mean - apart, mean + apart

    def take(self, arm: int, reward: float, n: int = 1) -> None:
        """Take in a reward, or the mean of many."""
        if self._is_on:
            count, mean = self._known(arm)
            self._tests += n
            self._seen[arm] = count + n, mean + (reward - mean) * n / (count + n)

    def _known(self, arm: int) -> tuple[int, float]:
        if arm not in self._seen:
            run = self._state.engine.run
            count, mean = int(run.n[arm]), float(run.mean[0, arm])  # as they are told
            for one in self._state.held.values():
                if one.arm == arm:
                    mean -= (one.reward - mean) * one.n / max(count - one.n, 1)
                    count -= one.n
            self._seen[arm] = count, mean
        return self._seen[arm]


def farthest(n: float, number: int, arms: int, alpha: float, many: int = 1) -> float:
    """How far, in standard deviations, a reward may be from the mean of n earlier ones of its arm.

    It is the `number`-th of a study; none of a study is farther, with probability 1 - alpha. Or it
    is the mean of `many`.
    """
    of_mean = math.sqrt((n + 1) / n**2 * (2 * math.log(2 * arms / alpha) + math.log1p(n)))
    of_reward = math.sqrt(2 * math.log(2 * math.pi**2 * number**2 / (3 * alpha)) / many)
    return of_mean + of_reward
