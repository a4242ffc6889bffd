"""Numbers, shares and policies as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from scipy.stats import binomtest


def number(value: float) -> str:
    """Write a number with four significant digits, thousands separated.

    Examples
    --------
    >>> number(774.387), number(0.15), number(1234567.8)
    ('774.4', '0.15', '1,234,568')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def mean_and_error(mean: float, stderr: float) -> str:
    """Write a mean with its standard error, to the digits that make sense.

    Examples
    --------
    >>> mean_and_error(1984.53, 21.4), mean_and_error(12.345, 0.5), mean_and_error(7.0, math.inf)
    ('1,985 ± 21', '12.3 ± 0.5', '7.0')
    """
    digits = 0 if mean >= 100 else 1
    error = f" ± {stderr:,.{digits}f}" if math.isfinite(stderr) else ""
    return f"{mean:,.{digits}f}{error}"


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95% interval of a share, after Clopper and Pearson."""
    found = binomtest(successes, trials).proportion_ci(method="exact")
    return float(found.low), float(found.high)


def percent_between(low: float, high: float) -> str:
    """Write an interval of shares, rounded outwards.

    Examples
    --------
    >>> percent_between(0.98172, 1.0), percent_between(0.5, 0.98172)
    ('98.1-100%', '50-98.2%')
    """
    least, most = (round(1000 * share, 9) for share in (low, high))
    return f"{math.floor(least) / 10:g}-{math.ceil(most) / 10:g}%"


def policy_in_words(policy: Iterable[float], arms: Iterable[str]) -> str:
    """Write a policy as a list of shares and arms.

    Examples
    --------
    >>> policy_in_words([0.5, 0.0, 0.5], ["a", "b", "c"]), policy_in_words([1.0, 0.0], ["a", "b"])
    ('0.5 a, 0.5 c', 'a alone')
    """
    used = [(share, arm) for share, arm in zip(policy, arms, strict=True) if share > 0]
    if len(used) == 1:
        return f"{used[0][1]} alone"
    return ", ".join(f"{share:.3g} {arm}" for share, arm in used)
