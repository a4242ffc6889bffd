"""The evidence of `tilt` in a run without luck where sigma is unknown and what was guessed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from simplexplore.bound.information import Information
from simplexplore.kernels.pooled import constant_of, prior_of
from simplexplore.kernels.student_mixture import SCALES, scale_of

Array = npt.NDArray[np.float64]

# By scale: the shift, and how many samples its priors of mean and variance are worth.
_SHIFT, _MEAN, _VARIANCE = np.array([scale_of(scale) for scale in range(SCALES)]).T

# Alternatives that are looked at: the closest one if sigma were known, and some on the way from
# it to the one in which the rarest arm alone is wrong, and beyond.
_ON_THE_WAY = np.array([0.0, 0.4, 0.8, 1.0, 1.15])[:, None, None]

# Steps of Newton's method, and of a fixed point.
_STEPS = 5

_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


class ExpectedStudent:
    """Statistics and evidence of some edges at any counts, means and sigmas being the true ones.

    Parameters
    ----------
    information : Information
        Of the edges and means, as if sigma were known.
    pooled : bool
        Whether all arms have one sigma.

    Notes
    -----
    The kernels that stop runs (kernels/student.py, kernels/pooled.py) look for the least favourable
    alternative and prove that there is none worse; here a few are compared.
    """

    def __init__(self, information: Information, pooled: bool) -> None:
        self._one, self._pooled = information, pooled
        self._c = np.abs(information.v) * information.sigma

    def at(self, n: Array) -> tuple[Array, Array]:
        """Statistics and logs of the evidence (E,) at counts n (K,)."""
        one, c = self._one, self._c
        count = np.where(one.used, n[one.index], 1.0)
        spread = (c * c / count).sum(axis=1)
        y = (one.gaps / spread)[:, None] * c / count
        rare = np.where(one.used, count, math.inf).argmin(axis=1)
        edge = np.arange(len(rare))
        alone = np.zeros(y.shape)
        alone[edge, rare] = one.gaps / c[edge, rare]
        tried = y + _ON_THE_WAY * (alone - y)
        if not self._pooled:
            logs = np.where(one.used, _own_mixture(count, tried), 0.0).sum(axis=-1)
            return (0.5 * count * np.log1p(y * y)).sum(axis=1), logs.min(axis=0)
        total = np.where(one.used, count, 0.0).sum(axis=1)
        statistic = 0.5 * total * np.log1p(one.gaps * one.gaps / (spread * total))
        return statistic, self._pooled_mixture(count, total, tried).min(axis=0)

    def _pooled_mixture(self, n: Array, total: Array, y: Array) -> Array:
        """Of the arms of each edge together, at the deviation that goes best with the means.

        By a tangent of the logarithm, whose slope b is improved as it is in the kernel.
        """
        used = self._one.used
        prior = np.array([prior_of(x) for x in total.tolist()])
        constant = [constant_of(x, a) for x, a in zip(total.tolist(), prior.tolist(), strict=True)]
        shape = prior + 0.5 * total
        precision = 1 / (1 + np.where(used, n * y * y, 0.0).sum(axis=-1) / total)
        x = (y * np.sqrt(precision)[..., None])[..., None]
        square = (_weight(n[..., None]) * (x - _SHIFT) ** 2) * used[..., None]
        pays = -0.5 * np.log1p(n[..., None] / _MEAN) - math.log(SCALES)
        rest = prior + 0.5 * total * precision
        b = np.ones(rest.shape)
        for _ in range(_STEPS):
            parts = pays - b[..., None, None] * square
            share = np.exp(parts - parts.max(axis=-1, keepdims=True))
            share /= share.sum(axis=-1, keepdims=True)
            b = 0.5 * (b + shape / (rest + (share * square).sum(axis=(-2, -1))))
        mixed = np.logaddexp.reduce(pays - b[..., None, None] * square, axis=-1)
        value = shape * np.log(b) - b * rest + 0.5 * total * precision
        value += (np.where(used, mixed + 0.5 * n * x[..., 0] ** 2, 0.0)).sum(axis=-1)
        return np.asarray(value + constant)


def _weight(n: Array) -> Array:
    """By scale, what it weighs the mean by."""
    return np.asarray(0.5 * _MEAN * n / (n + _MEAN))


def _own_mixture(n: Array, y: Array) -> Array:
    """Log of one arm's mixture, each scale at the deviation that it likes least.

    That is at the largest root of a cubic, reached by Newton's method from above.
    """
    n, y = n[..., None], y[..., None]
    shape, k = _VARIANCE + 0.5 * n, _weight(n)
    q2, q1, q0 = _VARIANCE + k * _SHIFT**2, 2 * k * _SHIFT * y, 0.5 * n + k * y * y
    b = n * (1 + y * y)
    third, second, first, zeroth = b * q0, -b * q1, b * q2 - 2 * shape * q0, shape * q1
    low = (np.sqrt(np.maximum(second * second - 3 * third * first, 0.0)) - second) / (3 * third)
    value = ((third * low + second) * low + first) * low + zeroth
    steep = np.maximum(3 * third * low + second, 1e-300)
    p = low + np.sqrt(np.maximum(-value, 0.0) / steep)
    p = np.where((q1 < 0) & (first >= 0), np.cbrt(np.maximum(-zeroth, 0.0) / third), p)
    for _ in range(_STEPS):
        slope = (3 * third * p + 2 * second) * p + first
        value = ((third * p + second) * p + first) * p + zeroth
        p = np.where(slope > 0, np.maximum(p - value / np.where(slope > 0, slope, 1.0), 0.0), p)
    inside = 0.5 * b * p * p - shape * np.log(q2 + (q0 * p - q1) * p)
    least = np.minimum(inside, -shape * np.log(q2))
    paid = _log_gamma(_VARIANCE).astype(float) - _VARIANCE * np.log(_VARIANCE) + math.log(SCALES)
    base = _log_gamma(shape).astype(float) - paid - 0.5 * np.log1p(n / _MEAN)
    return np.asarray(np.logaddexp.reduce(least + base, axis=-1))
