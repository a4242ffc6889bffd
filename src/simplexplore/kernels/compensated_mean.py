"""Means of rewards as they come, however far from 0."""

from __future__ import annotations

from .kernel import inlined

# What rounding leaves out of a step is kept from this share of it on. Rewards whose deviation is
# not tiny beside their mean never get there, and their means are those of the plain update.
MUCH = 0.01


@inlined
def next_mean(mean: float, lost: float, reward: float, n: float) -> tuple[float, float]:
    """The mean with the n-th reward, and what rounding has left out of it.

    Far from 0 steps become shorter than floats are apart: the plain update would stand still,
    while evidence goes on to grow with n.
    """
    step = ((reward - mean) - lost) / n + lost
    following = mean + step
    left = step - (following - mean)
    return following, (left if abs(left) > MUCH * abs(step) else 0.0)
