"""The evidence of `tilt` in a run without luck: every sum of rewards is what its mean says."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simplexplore.bound.information import Information
from simplexplore.kernels.tilt import TILTS_PAY
from simplexplore.problem.families import Gaussian, Poisson

from .tilts import make_tilts

Array = npt.NDArray[np.float64]

# Products of factors that underflow are of no interest.
_LEAST = 1e-300


class ExpectedEvidence:
    """Statistics and evidence of some edges at any counts, means being the true ones.

    Parameters
    ----------
    information : Information
        Of the edges and means.

    Notes
    -----
    Evidence is taken at the closest alternative, where the statistic is least, not at its own
    minimum: that is too much by a tenth of a nat or so, unless an arm has next to no samples.
    The kernel that stops runs (kernels/tilt.py) trusts no such point; this is for planning.
    """

    def __init__(self, information: Information) -> None:
        self.information = one = information
        tilts = self._tilts = make_tilts(one.rewards)
        side = (one.v > 0).astype(np.int64)
        strength = np.where(side[..., None] == 1, tilts.strength, -tilts.strength)  # (E, L, 31)
        self._slope = slope = tilts.slope[side]
        if isinstance(one.rewards, Gaussian):
            self._slope = slope / one.sigma[..., None]
            self._gain = self._slope * one.mu[..., None] - 0.5 * slope * slope
        else:
            self._gain = strength * one.mu[..., None]
        last = tilts.strength.size - 1
        scales = np.arange(tilts.scale.size)[:, None]
        tilt = np.where(tilts.step >= 0, tilts.step, last)[side][:, :, None, :]
        self._tilt = np.where(tilt == last, last, tilt + scales)  # (E, L, 20, 8)
        self._share = tilts.share[side][:, :, None, :]

    def at(self, n: Array) -> tuple[Array, Array]:
        """Statistics and logs of the evidence (E,) at counts n (K,)."""
        one = self.information
        closest = one.closest(n)
        lam = closest.alternative[..., None]
        if isinstance(one.rewards, Gaussian | Poisson):
            fair = self._slope * lam
        else:
            fair = np.log1p(self._slope * lam)
        exponent = np.where(one.used, n[one.index], 0.0)[..., None] * (self._gain - fair)
        top = exponent.max(axis=-1, keepdims=True)
        factor = np.exp(exponent - top)
        shape = self._tilt.shape
        by_scale = np.take_along_axis(factor, self._tilt.reshape(*shape[:2], -1), axis=-1)
        total = (by_scale.reshape(shape) * self._share).sum(axis=-1)  # (E, L, 20)
        logs = (np.log(np.maximum(total, _LEAST)) + top).sum(axis=1) + np.log(self._tilts.scale)
        return closest.value, np.logaddexp.reduce(logs, axis=-1) - TILTS_PAY
