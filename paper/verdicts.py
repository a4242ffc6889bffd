"""Verdicts, and how numbers that vary by chance decide them: what an interval leaves open is open.

An interval is an estimate and `SURE` standard errors on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from .criteria import SURE

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
CORRECTED, OPEN = "corrected", "not decided"
VERDICTS = (REPRODUCED, CORRECTED, NOT_REPRODUCED, OPEN)

# A number and its standard error.
Estimate = tuple[float, float]


def holds(right: bool) -> str:
    """The verdict on a claim that numbers without error decide."""
    return REPRODUCED if right else NOT_REPRODUCED


def at_most(estimate: Estimate, limit: float) -> str:
    """Whether a number is at most a limit.

    Examples
    --------
    >>> at_most((1.0, 0.1), 1.5), at_most((1.4, 0.1), 1.5), at_most((2.0, 0.1), 1.5)
    ('reproduced', 'not decided', 'not reproduced')
    """
    value, error = estimate
    if value + SURE * error <= limit:
        return REPRODUCED
    return NOT_REPRODUCED if value - SURE * error > limit else OPEN


def at_least(estimate: Estimate, limit: float) -> str:
    """Whether a number is at least a limit."""
    value, error = estimate
    return at_most((-value, error), -limit)


def within(estimate: Estimate, limit: float) -> str:
    """Whether a number is between minus a limit and the limit."""
    return all_of([at_most(estimate, limit), at_least(estimate, -limit)])


def all_of(verdicts: Iterable[str]) -> str:
    """A claim about several cases holds if it holds in all of them."""
    found = set(verdicts)
    return next((v for v in (NOT_REPRODUCED, OPEN) if v in found), REPRODUCED)


def mean_of(values: npt.NDArray[Any]) -> Estimate:
    """A mean; of one value its error is not known."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return float(values.mean()), error


def log_ratio(one: Estimate, other: Estimate) -> Estimate:
    """The logarithm of the ratio of two independent positive numbers."""
    (a, s), (b, t) = one, other
    if math.isinf(s + t):
        return 0.0, math.inf
    return math.log(a / b), math.hypot(s / a, t / b)
