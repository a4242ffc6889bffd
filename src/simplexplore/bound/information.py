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
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from simplexplore.errors import NotConvergedError
from simplexplore.geometry.edges import EXACT_BELOW, Edges
from simplexplore.problem.families import ExponentialTilt, Family
from simplexplore.problem.rational import rational

Array = npt.NDArray[np.float64]

EPS = float(np.finfo(float).eps)

# Relative rounding errors of a divergence, of a tilted mean and of what is computed from them.
ROUNDING = 64 * EPS

# Guesses of a root closer to each other than this, relatively, are the same.
RESOLUTION = 1e-15


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
    return (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


@lru_cache(maxsize=8192)
def _reading(mean: float) -> float:
    """Distance of a float from the number that is meant by it: either may be the truth."""
    return abs(float(Fraction(mean) - rational(mean)))


@dataclass(frozen=True)
class Closest:
    """The closest alternative across each edge, for one allocation.

    Attributes
    ----------
    value : (E,) array
        D_e(w), the information per sample against edge e; by weak duality never more.
    error : (E,) array
        Relative error that rounding may leave in it.
    alternative : (E, L) array
        lam on the arms of the edge, in unit coordinates.
    gradient : (E, L) array
        dD_e / dw_a = d(mu_a, lam_a), by the envelope theorem.
    ceiling : (E, L) array
        The same, and no less than what some alternative across the edge costs, rounding counted.
    slope : (E, L) array
        Derivative of d(mu_a, .) at lam_a; 0 where the domain holds lam_a fast.
    compliance : (E, L) array
        Reciprocal of w_a times the second derivative; 0 where lam_a is held fast.
    """

    value: Array
    error: Array
    alternative: Array
    gradient: Array
    ceiling: Array
    slope: Array
    compliance: Array

    def hardest(self, weights: Array) -> npt.NDArray[np.int64]:
        """The edges of least value, those of the largest weights first.

        Weights that differ by rounding come in the order of the edges.
        """
        found = np.flatnonzero(self.value <= self.value.min() * (1 + 1e-6))
        return found[np.argsort(-weights[found].round(6), kind="stable")]


@dataclass(frozen=True)
class _Trial:
    """Tilted means at a guess of each edge's multiplier."""

    gamma: Array
    s: Array
    lam: ExponentialTilt
    held: npt.NDArray[np.bool_]  # by the domain
    excess: Array  # v . lam + offset, which is to vanish
    noise: Array  # what of it may be rounding
    doubt: Array  # and how well its terms are known
    steep: Array  # how fast it falls with the guess


# Attributes that have a row for each edge.
_BY_EDGE = (
    *("index", "v", "used", "mu", "complement", "sigma", "gaps", "reading", "doubt"),
    *("offset", "offset_of_complement", "free", "end", "costs"),
)


class Information:
    """D_e and its derivatives at one instance.

    Parameters
    ----------
    edges : Edges
        At the optimal vertex.
    gaps : (E,) array
        Loss per unit along each edge, plus the offset; positive.
    means : (K,) array
        In the user's coordinates.
    rewards : Family
    offset : float
        Alternatives are lam . v <= -offset: epsilon for comparisons of answers.
    sampled : (K,) array of bool, optional
        Arms that may get samples; all, unless given. The means of others are free within their
        range, so that an alternative takes the worst end for nothing: see `lost`.
    costs : (K,) array, optional
        What one sample of each arm costs; 1, unless given. Allocations are shares of what is
        spent, and D_e is information per unit spent: w_a samples cost c_a w_a.
    """

    def __init__(
        self,
        edges: Edges,
        gaps: Array,
        means: Array,
        rewards: Family,
        offset: float = 0.0,
        sampled: npt.NDArray[np.bool_] | None = None,
        costs: Array | None = None,
    ) -> None:
        self.index = edges.index
        self.v = -edges.value
        self.used = edges.value != 0
        self.rewards = rewards
        self.size = len(means)
        unit, complement = rewards.places(means)
        self.mu, self.complement = unit[self.index], complement[self.index]
        self.sigma = rewards.sigmas(self.size)[self.index]
        self.costs = (np.ones(self.size) if costs is None else costs)[self.index]
        # The same loss in unit coordinates.
        scale = 1.0 / rewards.width
        self.gaps = gaps * scale
        # v . lam + offset in the coordinates of the means, and of 1 less them.
        self.offset = self.offset_of_complement = offset * scale + edges.unit_offset(rewards)
        if np.ndim(edges.offset):  # such directions need not sum to zero
            self.offset_of_complement = self.offset + self.v.sum(axis=1)
        self.domain = rewards.unit_domain()
        self.closed_form = rewards.closed_form
        # How well gaps are known: a mean is read as a float or as the number meant by it, and
        # sums round unless terms cancel so far that they were taken exactly (geometry/edges.py).
        size = np.abs(self.v)
        total = (size * np.abs(means[self.index])).sum(axis=1) + abs(offset) + abs(edges.offset)
        exact = gaps < EXACT_BELOW * total
        self.free = np.zeros(self.used.shape, dtype=bool)
        self.end = self.mu
        if sampled is not None and not sampled[self.index[self.used]].all():
            self._set_free(self.used & ~sampled[self.index])
            exact &= ~self.free.any(axis=1)
            size = np.abs(self.v)
        self.reading = scale * size * np.array([_reading(float(x)) for x in means])[self.index]
        rounded = np.where(exact, EPS * gaps, 5 * EPS * total)
        self.doubt = self.reading.sum(axis=1) + scale * rounded

    def _set_free(self, free: npt.NDArray[np.bool_]) -> None:
        """Put the means of arms without samples at the ends that favour alternatives."""
        low, high = self.domain or self.rewards.to_unit(np.array(self.rewards.range_of_means()))
        end = np.where(self.v > 0, low, high)
        v = np.where(free, self.v, 0.0)
        self.free, self.end = free, np.where(free, end, self.mu)
        self.gaps = self.gaps + (v * (self.end - self.mu)).sum(axis=1)
        # What rounding leaves of nothing is nothing.
        self.gaps[self.gaps <= 8 * EPS * np.abs(v).sum(axis=1)] = 0.0
        self.offset = self.offset + (v * np.where(free, end, 0.0)).sum(axis=1)
        self.offset_of_complement = self.offset_of_complement - (
            v * np.where(free, 1 - end, 0.0)
        ).sum(axis=1)
        self.v, self.used = np.where(free, 0.0, self.v), self.used & ~free

    def only(self, chosen: npt.NDArray[np.int64] | slice) -> Information:
        """The same instance with some of its edges, in the order given."""
        some = copy(self)
        for name in _BY_EDGE:
            setattr(some, name, getattr(self, name)[chosen])
        return some

    @property
    def lost(self) -> npt.NDArray[np.bool_]:
        """Edges that the means of arms without samples lead across, so that no samples tell."""
        return np.asarray(self.free.any(axis=1) & (self.gaps <= 0))

    def covered(self) -> npt.NDArray[np.bool_]:
        """Arms that at least one edge moves: only they need samples."""
        mask = np.zeros(self.size, dtype=bool)
        mask[self.index[self.used]] = True
        return mask

    def closest(self, w: Array) -> Closest:
        """Closest alternatives for an allocation that is positive on all covered arms."""
        return self._closest(np.where(self.used, w[self.index], 1.0))

    def _closest(self, weight: Array) -> Closest:
        """The same for weights that each edge may choose for itself.

        In samples w = spent / c derivatives by what is spent are those by samples over c; with
        `slope` over c and the same `compliance` the second derivatives are right as well.
        """
        weight = weight / self.costs
        tilt = self.v / weight
        if self.closed_form:
            variance = self.sigma * self.sigma
            compliance = variance / weight
            spread = (self.v * self.v * compliance).sum(axis=1)
            gamma = (self.gaps / spread)[:, None]
            slope = -gamma * tilt
            gradient = 0.5 * variance * slope * slope
            error = self.rounding_of_gaps()
            return Closest(
                value=0.5 * self.gaps * self.gaps / spread,
                error=error,
                alternative=self.mu + variance * slope,
                gradient=gradient / self.costs,
                ceiling=gradient / self.costs * (1 + error)[:, None],
                slope=slope / self.costs,
                compliance=compliance,
            )
        at = self._balanced(tilt)
        gradient = self.rewards.cost(self.mu, self.complement, at.lam, self.sigma)
        gradient = np.where(self.used, gradient, 0.0)
        # The dual at this multiplier, which is below D_e whether or not it is the best one.
        value = (weight * gradient).sum(axis=1) + at.gamma * at.excess
        if not (np.isfinite(value).all() and (value > 0).all()):
            raise NotConvergedError(
                "the closest alternative could not be computed: means or allocation differ by too "
                "many orders of magnitude."
            )
        return Closest(
            value=value,
            error=ROUNDING + at.gamma * (at.noise + at.doubt) / value,
            alternative=at.lam.mean,
            gradient=gradient / self.costs,
            ceiling=self._ceiling(at, gradient) / self.costs,
            slope=np.where(at.held, 0.0, -at.s / self.costs),
            compliance=np.where(at.held, 0.0, at.lam.rate / weight),
        )

    def _ceiling(self, at: _Trial, gradient: Array) -> Array:
        """Divergences of an alternative that certainly lies across its edge.

        Moving means a little farther from mu makes up for the excess and its rounding: of arms
        that are not about to reach the end of their range, where there are any. By convexity this
        costs at most the derivative there, which is less than twice the one here unless the way
        to the end shrinks by a quarter.
        """
        shift = np.abs(at.lam.shift)
        low, high = self.rewards.to_unit(np.array(self.rewards.range_of_means()))
        left = np.full(shift.shape, np.inf)
        if np.isfinite(low):
            left = np.where(at.lam.shift < 0, at.lam.mean, left)
        if np.isfinite(high):
            left = np.where(at.lam.shift > 0, at.lam.complement, left)
        moved = np.where(at.held, 0.0, shift)
        roomy = np.where(shift <= 1e3 * left, moved, 0.0)
        moved = np.where(roomy.any(axis=1, keepdims=True), roomy, moved)
        short = np.maximum(at.excess + at.noise + at.doubt, 0.0)
        total = (np.abs(self.v) * moved).sum(axis=1)
        farther = np.divide(short, total, out=np.full(len(total), np.inf), where=total > 0)
        farther = np.where(short > 0, np.minimum(farther, 1e100), 0.0)[:, None]
        step = farther * moved
        price = 2 * step * np.abs(at.s)
        left = np.where(self.used & (moved > 0), left, np.where(total > 0, np.inf, 0.0)[:, None])
        return np.where(step <= 0.25 * left, gradient * (1 + ROUNDING) + price, np.inf)

    def _balanced(self, tilt: Array) -> _Trial:
        """gamma >= 0 with v . lam(gamma tilt) + offset = 0, for all edges at once.

        The rule of kernels/roots.py: Newton's step if it stays inside the bracket and the last
        one halved the excess, else the middle. Every two evaluations halve the excess or the
        bracket, so it ends.
        """
        pole = self._pole(tilt)
        low, high = np.zeros(len(tilt)), np.full(len(tilt), np.inf)
        before = high
        # Roots as if rewards were Gaussian.
        x = self.gaps / (self.v * tilt * self.rewards.variance(self.mu, self.sigma)).sum(axis=1)
        x = x if pole is None else x / pole[1]
        while True:
            at = self._tilted(x, tilt, pole)
            low = np.where(at.excess > 0, x, low)
            high = np.where(at.excess > 0, high, x)
            wide = np.isinf(high) | (high - low > 2 * RESOLUTION * high)
            going = (np.abs(at.excess) > at.noise) & wide & np.isfinite(x)
            if not going.any():
                return at
            least = RESOLUTION * x
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = at.excess / at.steep
                step = np.where(at.excess > 0, np.maximum(step, least), np.minimum(step, -least))
                proposal = x + step
                middle = np.where(np.isinf(high), 4.0 * x, 0.5 * (low + high))
            fits = (np.abs(at.excess) <= 0.5 * before) & (proposal > low) & (proposal < high)
            before = np.where(fits, np.abs(at.excess), np.inf)
            x = np.where(going, np.where(fits, proposal, middle), x)

    def _pole(self, tilt: Array) -> tuple[Array, Array, Array] | None:
        """Whether a tilt ends, the first multiplier at which one does, and what is left there.

        None where none of any edge does.
        """
        lowest = self.rewards.lowest_tilt
        if not np.isfinite(lowest) or self.domain is not None:
            return None
        # Tilts above lowest_tilt: gamma < lowest_tilt / tilt on arms with v < 0.
        poles = np.full(tilt.shape, np.inf)
        np.divide(lowest, tilt, out=poles, where=tilt < 0)
        pole = poles.min(axis=1, keepdims=True)
        ends = np.isfinite(pole)
        pole = np.where(ends, pole, 1.0)
        left = np.where(poles == pole, 0.0, np.maximum(1 - pole * tilt / lowest, 0.0))
        return ends[:, 0], pole[:, 0], left

    def _tilted(self, x: Array, tilt: Array, pole: tuple[Array, Array, Array] | None) -> _Trial:
        """Tilted means at gamma = x, or x / (1 + x) of a pole: both ends keep their digits."""
        lowest = self.rewards.lowest_tilt
        last = lowest if np.isfinite(lowest) else -1.0
        gamma, rate, room = x, np.ones(len(x)), 1 - x[:, None] * tilt / last
        if pole is not None:
            ends, first, left = pole
            gamma = np.where(ends, first * (x / (1 + x)), x)
            rate = np.where(ends, first / (1 + x) / (1 + x), 1.0)
            room = np.where(ends[:, None], (1 + x[:, None] * left) / (1 + x[:, None]), room)
        s = gamma[:, None] * tilt
        lam = self.rewards.tilt(self.mu, self.complement, s, room, self.sigma)
        held = np.zeros(s.shape, dtype=bool)
        if self.domain is not None:
            low, high = self.domain
            held = (lam.mean <= low) | (lam.mean >= high)
            end = np.where(held, np.clip(lam.mean, low, high), lam.mean)
            lam = ExponentialTilt(
                mean=end,
                complement=np.where(held, 1 - end, lam.complement),
                shift=np.where(held, end - self.mu, lam.shift),
                rate=np.where(held, 0.0, lam.rate),
            )
        # v . lam + offset in the form with the smallest terms: v sums to zero.
        terms, rounded = self.v * lam.shift, np.abs(lam.mean) + np.abs(self.mu)
        size = self.gaps + np.abs(terms).sum(axis=1)
        size += (np.abs(self.v) * np.where(held, rounded, 0.0)).sum(axis=1)
        excess, doubt = self.gaps + terms.sum(axis=1), self.doubt
        others = []
        if np.isfinite(self.rewards.range_of_means()[0]):
            others.append((1.0, lam.mean, self.mu, self.offset))
        if np.isfinite(self.rewards.range_of_means()[1]):
            others.append((-1.0, lam.complement, self.complement, self.offset_of_complement))
        for sign, part, whole, offset in others:
            terms = sign * self.v * part
            total = np.abs(offset) + np.abs(terms).sum(axis=1)
            better = total < size
            excess = np.where(better, offset + terms.sum(axis=1), excess)
            doubt = np.where(better, (self.reading * (part / whole)).sum(axis=1), doubt)
            size = np.where(better, total, size)
        return _Trial(
            gamma=gamma,
            s=s,
            lam=lam,
            held=held,
            excess=excess,
            noise=(8 + tilt.shape[1]) * EPS * size,
            doubt=doubt + EPS * size,
            steep=rate * (self.v * tilt * lam.rate).sum(axis=1),
        )

    def edge_times(self) -> Array:
        """For each edge, a lower bound on the time it would need if it were the only one.

        With w_a proportional to |v_a| times the standard deviation, and the root of the cost, it
        is exact for Gaussian rewards (w then equalises the information of all arms); for other
        families a few multiplicative steps come close, and any step gives a valid bound: D_e
        never exceeds the largest divergence, over the cost, of an alternative that lies across
        the edge.
        """
        variance = self.rewards.variance(self.mu, self.sigma)
        weight = np.where(self.used, np.abs(self.v) * np.sqrt(variance * self.costs), 0.0)
        weight = np.where(self.used, weight / weight.sum(axis=1, keepdims=True), 1.0)
        closest = self._closest(weight)
        for _ in range(0 if self.closed_form else 15):
            weight = np.where(self.used, weight * np.sqrt(closest.gradient), 0.0)
            weight = np.where(self.used, weight / weight.sum(axis=1, keepdims=True), 1.0)
            closest = self._closest(np.maximum(weight, 1e-12))
        return np.asarray(1.0 / closest.ceiling.max(axis=1))

    def alternative(self, closest: Closest, edge: int, means: Array) -> Array:
        """The instance on the other side of one edge, in the user's coordinates."""
        instance = self.rewards.to_unit(means).copy()
        used = self.used[edge]
        instance[self.index[edge, used]] = closest.alternative[edge, used]
        free = self.free[edge]
        instance[self.index[edge, free]] = self.end[edge, free]
        return self.rewards.from_unit(instance)

    def rounding_of_gaps(self) -> Array:
        """Relative error of D_e, in closed form, that comes from rounding."""
        terms = (self.v.shape[1] + 2) * EPS
        return np.asarray(ROUNDING + terms + 2 * self.doubt / self.gaps)

    def rounding(self) -> float:
        """Relative error that rounding mostly leaves in D: no solver gets closer."""
        return float(self.rounding_of_gaps().max())
