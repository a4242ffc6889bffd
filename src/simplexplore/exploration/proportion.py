"""Intervals for probabilities that were counted."""

from __future__ import annotations

CONFIDENCE = 0.95


def clopper_pearson(successes: int, trials: int) -> tuple[float, float]:
    """Interval for a probability that is never too narrow (95%, both sides 2.5%).

    Examples
    --------
    >>> low, high = clopper_pearson(100, 100)
    >>> round(low, 4), high
    (0.9638, 1.0)
    """
    from scipy.special import betaincinv

    outside = (1 - CONFIDENCE) / 2
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, outside)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - outside)) if failures else 1.0
    return low, high
