"""Checks of what the evidence of a study rests on, as e-values.

Each function returns the logarithm of an e-value: while nothing is wrong its mean is at most 1 at
any moment, however the arms were chosen (docs/theory/health.md).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, gammaln, logsumexp, xlogy

Array = npt.NDArray[np.float64]

# Changes of a mean, in standard deviations, that one arm or all arms together are compared with;
# each is sharp to this part of itself.
CHANGES: Array = np.array([2.0 / 3.0**i for i in range(6)])
COMMON_CHANGES: Array = np.array([1.0 / 2.0**i for i in range(7)])
SHARPNESS = 0.7

# By how much rewards may spread too far; and how much more often an arm's pulls are lost.
SPREADS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
LOSSES = np.log([1 / 2, 1 / 1.5, 1.5, 2.0, 3.0])


def some_place(logs: Array) -> float:
    """Log of the mean over the places of a change (J,), of which more are to come."""
    return float(logsumexp(logs + np.log(_weights(len(logs)))))


def _weights(places: int) -> Array:
    j = np.arange(1, places + 1)
    return np.asarray(1.0 / (j * (j + 1.0)))


def changed(
    k: Array, early: Array, m: Array, late: Array, sigma: Array, changes: Array = CHANGES
) -> Array:
    """Early and late rewards of one mean: by direction and size of a change, (2, R, ...).

    Of k and m sub-Gaussian rewards with these means.
    """
    up = np.array([1.0, -1.0]).reshape(2, 1, *[1] * np.ndim(k))
    c = 1.0 / (SHARPNESS * changes.reshape(1, -1, *[1] * np.ndim(k))) ** 2
    price = sum((n > 0) * (0.5 / SHARPNESS**2 + 0.5 * np.log1p(n / c)) for n in (k, m))
    both = (k > 0) & (m > 0)
    k, m = np.where(both, k, 1.0), np.where(both, m, 1.0)
    moved = up * (early - late) + np.sqrt(c) / SHARPNESS * sigma * (1 / k + 1 / m)
    spread = 2 * sigma**2 * ((k + c) / k**2 + (m + c) / m**2)
    return np.where(both, np.maximum(moved, 0.0) ** 2 / spread, 0.0) - price


def changed_mean(k: Array, early: Array, m: Array, late: Array, sigma: Array) -> Array:
    """The mean over directions and sizes."""
    found = changed(k, early, m, late, sigma)
    return np.asarray(logsumexp(found, axis=(0, 1)) - math.log(2 * len(CHANGES)))


def changed_share(k: Array, early: Array, m: Array, late: Array) -> Array:
    """Early and late rewards in [0, 1] of one mean."""

    def mixed(n: Array, total: Array) -> Array:
        return np.asarray(betaln(total + 0.5, n - total + 0.5) - math.log(math.pi))

    n, total = k + m, k * early + m * late
    mean = np.divide(total, n, out=np.full(np.shape(n), 0.5), where=n > 0)
    one = xlogy(total, mean) + xlogy(n - total, 1 - mean)
    return np.asarray(mixed(k, k * early) + mixed(m, m * late) - one)


def changed_rate(k: Array, early: Array, m: Array, late: Array) -> Array:
    """Early and late counts of one mean: the late ones of any size of the early ones."""

    def mixed(n: Array, total: Array, shape: float, rate: Array) -> Array:
        start = shape * np.log(rate) - gammaln(shape)
        return np.asarray(start + gammaln(total + shape) - (total + shape) * np.log(n + rate))

    n, total = k + m, k * early + m * late
    mean = np.divide(total, n, out=np.ones(np.shape(n)), where=n > 0)
    first = mixed(k, k * early, 0.5, np.full(np.shape(k), 0.1))
    second = mixed(m, m * late, 1.0, np.maximum(k, 1.0) / (k * early + 0.5))
    return np.asarray(first + second - (xlogy(total, mean) - total))


def too_wide(squares: Array, counts: Array) -> Array:
    """Squared distances from means, in variances, of so many rewards in all (...)."""
    by_size = SPREADS * squares[..., None] / 2 + counts[..., None] / 2 * np.log1p(-SPREADS)
    return np.asarray(logsumexp(by_size, axis=-1) - math.log(len(SPREADS)))


def too_wide_since(squares: Array, counts: Array) -> float:
    """The same of rewards since each of some places; those to come count as 1."""
    rest = math.log1p(-_weights(len(counts)).sum())
    return float(np.logaddexp(some_place(too_wide(squares, counts)), rest))


def lost_of(asked: Array, lost: Array) -> Array:
    """Of pulls asked for at once by arm (K,), and lost: by arm and how much more often, (K, S)."""
    every, gone = int(asked.sum()), int(lost.sum())
    found = np.zeros((len(asked), len(LOSSES)))
    if not 0 < gone < every:
        return found
    for a, n in enumerate(asked.astype(int).tolist()):
        x = np.arange(max(0, gone - (every - n)), min(n, gone) + 1)
        if len(x) > 1:
            chance = _choices(n, x) + _choices(every - n, gone - x) - _choices(every, gone)
            expected = logsumexp(chance[:, None] + x[:, None] * LOSSES, axis=0)
            found[a] = LOSSES * lost[a] - expected
    return found


def _choices(n: int, k: Array | int) -> Array:
    return np.asarray(gammaln(n + 1) - gammaln(np.add(k, 1)) - gammaln(n - np.asarray(k) + 1))
