"""How well samples tell the best policy from its rivals.

Alt(pi*) is a union of half-spaces, one per edge of the tangent cone at pi* (paper,
Section 3): D(w, mu) = min over edges e of

    D_e(w) = min { sum_a w_a d(mu_a, lam_a) : lam . v_e <= 0 },   v_e = pi* - direction e.

For the families here d is convex in lam, so each D_e is a one-dimensional problem in the
multiplier gamma of the half-space: lam_a is the tilt of mu_a at gamma v_a / w_a, clipped to
the domain, and gamma is the root of a decreasing function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.geometry.edges import Edges
from simplexplore.problem.families import Family

Array = npt.NDArray[np.float64]

# Newton with bisection needs a handful of steps; this many halvings end any bracket.
MAX_ROOT_STEPS = 200


def binary_kl(delta: float) -> float:
    """kl(delta, 1 - delta): what one bit of confidence costs in information.

    Zero for delta >= 1/2, where a guess is good enough.

    Examples
    --------
    >>> round(binary_kl(0.1), 6)
    1.75778
    """
    if delta >= 0.5:
        return 0.0
    return (1 - 2 * delta) * math.log((1 - delta) / delta)


@dataclass(frozen=True)
class Closest:
    """The closest alternative across each edge, for one allocation.

    Attributes
    ----------
    value : (E,) array
        D_e(w), the information per sample against edge e.
    alternative : (E, L) array
        lam on the arms of the edge, in unit coordinates.
    gradient : (E, L) array
        dD_e / dw_a = d(mu_a, lam_a), by the envelope theorem.
    slope : (E, L) array
        Derivative of d(mu_a, .) at lam_a; 0 where the domain holds lam_a fast.
    compliance : (E, L) array
        Reciprocal of w_a times the second derivative; 0 where lam_a is held fast.
    """

    value: Array
    alternative: Array
    gradient: Array
    slope: Array
    compliance: Array


class Information:
    """D_e and its derivatives at one instance.

    Parameters
    ----------
    edges : Edges
        At the optimal vertex.
    gaps : (E,) array
        Loss per unit along each edge; positive.
    means : (K,) array
        In the user's coordinates.
    rewards : Family
    """

    def __init__(self, edges: Edges, gaps: Array, means: Array, rewards: Family) -> None:
        self.edges = edges
        self.index = edges.index
        self.v = -edges.value
        self.used = edges.value != 0
        self.rewards = rewards
        self.size = len(means)
        unit = rewards.to_unit(means)
        self.mu = unit[self.index]
        self.sigma = rewards.sigmas(self.size)[self.index]
        # The same loss in unit coordinates (a change of scale: v sums to zero).
        scale = float(rewards.to_unit(1.0) - rewards.to_unit(0.0))
        self.gaps = gaps * scale
        self.domain = rewards.unit_domain()
        self.closed_form = rewards.closed_form

    def covered(self) -> npt.NDArray[np.bool_]:
        """Arms that at least one edge moves: only they need samples."""
        mask = np.zeros(self.size, dtype=bool)
        mask[self.index[self.used]] = True
        return mask

    def closest(self, w: Array) -> Closest:
        """Closest alternatives for an allocation that is positive on all covered arms."""
        return self._closest(np.where(self.used, w[self.index], 1.0))

    def _closest(self, weight: Array) -> Closest:
        """The same for weights that each edge may choose for itself."""
        tilt = self.v / weight
        if self.closed_form:
            variance = self.sigma * self.sigma
            compliance = variance / weight
            spread = (self.v * self.v * compliance).sum(axis=1)
            gamma = (self.gaps / spread)[:, None]
            slope = -gamma * tilt
            return Closest(
                value=0.5 * self.gaps * self.gaps / spread,
                alternative=self.mu + variance * slope,
                gradient=0.5 * variance * slope * slope,
                slope=slope,
                compliance=compliance,
            )
        gamma = self._roots(tilt)[:, None]
        lam, shift, rate, held = self._tilted(gamma * tilt)
        gradient = self.rewards.divergence(self.mu, lam, self.sigma, shift)
        gradient = np.where(self.used, gradient, 0.0)
        return Closest(
            value=(weight * gradient).sum(axis=1),
            alternative=lam,
            gradient=gradient,
            slope=np.where(held, 0.0, -gamma * tilt),
            compliance=np.where(held, 0.0, rate / weight),
        )

    def _tilted(self, s: Array) -> tuple[Array, Array, Array, npt.NDArray[np.bool_]]:
        """lam(s), lam(s) - mu, the rate, and where the domain holds lam fast."""
        lam, rate = self.rewards.tilt(self.mu, s, self.sigma)
        # Close by, lam - mu loses the digits that the tilt's own equation keeps.
        shift = np.where(np.abs(s) < 1, -s * self.rewards.variance(lam, self.sigma), lam - self.mu)
        held = np.zeros(lam.shape, dtype=bool)
        if self.domain is not None:
            low, high = self.domain
            held = (lam <= low) | (lam >= high)
            lam = np.clip(lam, low, high)
            shift = np.where(held, lam - self.mu, shift)
        return lam, shift, rate, held

    def _roots(self, tilt: Array) -> Array:
        """gamma >= 0 with v . lam(gamma tilt) = 0, for all edges at once.

        The function decreases from the gap. Newton's step, kept inside a bracket that
        every evaluation shrinks; from the left it may overshoot, then the middle is taken.
        """
        count = len(tilt)
        low = np.zeros(count)
        high = np.full(count, np.inf)
        if np.isfinite(self.rewards.lowest_tilt) and self.domain is None:
            # Tilts above lowest_tilt: gamma < lowest_tilt / tilt on arms with v < 0.
            with np.errstate(divide="ignore"):
                limits = np.where(tilt < 0, self.rewards.lowest_tilt / tilt, np.inf)
            high = limits.min(axis=1)
        rate = self.rewards.variance(self.mu, self.sigma)
        gamma = self.gaps / (self.v * tilt * rate).sum(axis=1)
        gamma = np.where(gamma < high, gamma, 0.5 * high)
        for _ in range(MAX_ROOT_STEPS):
            _, shift, rate, held = self._tilted(gamma[:, None] * tilt)
            excess = self.gaps + (self.v * shift).sum(axis=1)
            steepness = np.where(held, 0.0, self.v * tilt * rate).sum(axis=1)
            low = np.where(excess > 0, gamma, low)
            high = np.where(excess <= 0, gamma, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                proposal = gamma + excess / steepness
            middle = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * gamma)
            inside = (proposal > low) & (proposal < high)
            following = np.where(inside, proposal, middle)
            # At a root Newton's step falls on or beside the bracket's end: stay there.
            closed = np.isfinite(high) & (high - low <= 4e-16 * high)
            done = closed | (np.abs(excess) <= 1e-15 * self.gaps)
            following = np.where(done, gamma, following)
            if np.all(done | (np.abs(following - gamma) <= 1e-15 * gamma)):
                return following
            gamma = following
        raise NotConvergedError(
            "the closest alternative could not be computed: means or allocation differ by too "
            "many orders of magnitude."
        )

    def edge_times(self) -> Array:
        """For each edge, a lower bound on the time it would need if it were the only one.

        With w_a proportional to |v_a| times the standard deviation it is exact for Gaussian
        rewards (w then equalises the information of all arms); for other families a few
        multiplicative steps come close, and any step gives a valid bound: D_e never
        exceeds the largest divergence of an alternative that lies across the edge.
        """
        variance = self.rewards.variance(self.mu, self.sigma)
        weight = np.where(self.used, np.abs(self.v) * np.sqrt(variance), 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        weight = np.where(self.used, weight, 1.0)
        closest = self._closest(weight)
        for _ in range(0 if self.closed_form else 15):
            weight = np.where(self.used, weight * np.sqrt(closest.gradient), 0.0)
            weight = np.where(self.used, weight / weight.sum(axis=1, keepdims=True), 1.0)
            closest = self._closest(np.maximum(weight, 1e-12))
        return np.asarray(1.0 / closest.gradient.max(axis=1))

    def alternative(self, closest: Closest, edge: int, means: Array) -> Array:
        """The instance on the other side of one edge, in the user's coordinates."""
        instance = self.rewards.to_unit(means).copy()
        used = self.used[edge]
        instance[self.index[edge, used]] = closest.alternative[edge, used]
        return self.rewards.from_unit(instance)

    def rounding(self) -> float:
        """Relative error that rounding alone may leave in D, given how gaps cancel."""
        size = (np.abs(self.v) * np.abs(self.mu)).sum(axis=1)
        return float(64 * np.finfo(float).eps * np.max(1.0 + size / self.gaps))
