"""Sums: many rewards of an arm in one event, by what their family needs to know of them.

How many there are must not depend on their values; then stopping only after sums is stopping at
fewer moments, and every guarantee holds as it is.
"""

from __future__ import annotations

import math
from typing import Any

from simplexplore.errors import PullError, RewardError, SettingError
from simplexplore.problem.checks import NUMBERS, whole_number
from simplexplore.problem.problem import Problem

from .pulls import Reward

# What is told of n rewards, by family; of others the evidence needs every value.
_TOLD = {"gaussian": "mean", "bernoulli": "successes", "poisson": "total"}
FIELDS = ("n", "mean", "sd", "successes", "total")

# Rewards in one sum.
_MAX_N = 10**9


def check_sum(item: Reward, problem: Problem) -> tuple[float, dict[str, Any]]:
    """The mean of a sum and what else its event says, or an error if it cannot be."""
    family = problem.rewards
    if problem.measured or family.name not in _TOLD:
        why = "each comes with its measurements" if problem.measured else "evidence needs every one"
        raise RewardError(f"{family.in_words} are told one by one here: {why}.")
    if item.pull is not None:
        raise PullError("a sum is of an arm; rewards of pulls are told one by one.")
    if item.key is None:
        raise SettingError("a sum needs a key, so that telling it twice counts once.")
    whole_number(item.n, "n", 1)
    assert item.n is not None
    n = int(item.n)
    if n > _MAX_N:
        raise RewardError(f"n is at most {_MAX_N:,}; got {n:,}.")
    needed = ["n", _TOLD[family.name]]
    if not family.knows_sigma and n > 1:
        needed.append("sd")
    given = [name for name in ("reward", *FIELDS) if getattr(item, name) is not None]
    if sorted(given) != sorted(needed):
        raise RewardError(
            f"a sum of {family.in_words} is told as {' and '.join(needed)}; got "
            f"{' and '.join(given)}."
        )
    if item.mean is not None:
        family.check_reward(item.mean)
        data: dict[str, Any] = {"n": n}
        if item.sd is not None:
            data["sd"] = _deviation(item.sd)
        return float(item.mean), data
    count = item.successes if item.total is None else item.total
    whole_number(count, needed[1], 0)
    assert count is not None
    if item.successes is not None and count > n:
        raise RewardError(f"there cannot be {count:,} successes in {n:,} rewards.")
    if item.total is not None:
        family.check_reward(item.total)
    return int(count) / n, {"n": n}


def _deviation(sd: object) -> float:
    is_number = isinstance(sd, NUMBERS) and not isinstance(sd, bool)
    if not is_number or not 0 <= float(sd) < math.inf:  # type: ignore[arg-type]
        raise RewardError(f"sd is the standard deviation of the rewards, 0 or more; got {sd!r}.")
    return float(sd)  # type: ignore[arg-type]
