"""How sure a fixed number of samples can make one.

With shares w of N samples the best empirical policy is wrong only if some edge looks like an
improvement, and the probability of that falls like exp(-N D_e(w)) with

    D_e(w) = min { sum_a w_a d(lam_a, mu_a) : lam . v_e <= 0 },

the arguments of the divergence swapped: what is improbable is data, not an alternative
(docs/theory/budget.md). For Gaussian rewards the two are the same. lam_a is an exponential tilt of
mu_a, so that the solver and its certificate are those of the characteristic time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from simplexplore.errors import ProblemError
from simplexplore.geometry.edges import Edges
from simplexplore.problem.families import Bernoulli, Bounded, Gaussian, Poisson, information_cost
from simplexplore.problem.family import Family, Tilted

from .allocation import optimal_allocation
from .allocation_set import AllocationSet
from .information import Information

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Budget:
    """What a number of samples can do, spread as well as if the means were known.

    Attributes
    ----------
    samples : int
    error_probability : float or None
        That the best empirical policy is not the best one: the sum over edges of the normal
        approximation, at most 1. A number to plan with, not a promise. None if policies tie, or
        if limits leave arms that matter without samples.
    characteristic_time : float
        Samples that divide it by e, in the long run.
    allocation : (K,) array
        Shares of the samples.
    relative_gap : float
        Certified relative error of the characteristic time.
    """

    samples: int
    error_probability: float | None
    characteristic_time: float
    allocation: Array
    relative_gap: float

    def to_dict(self) -> dict[str, object]:
        """Plain Python numbers under the names of the command's JSON output."""
        return {
            "samples": self.samples,
            "error_probability": self.error_probability,
            "characteristic_time": self.characteristic_time,
            "allocation": self.allocation.tolist(),
            "relative_gap": self.relative_gap,
        }


def fixed_budget(
    edges: Edges, gaps: Array, mu: Array, rewards: Family, allowed: AllocationSet, samples: int
) -> Budget:
    """The allocation whose error falls fastest, and the error after so many samples."""
    if len(edges) == 0:
        return Budget(samples, 0.0, 0.0, allowed.deep, 0.0)
    nothing = Budget(samples, None, math.inf, allowed.deep, 0.0)
    if (gaps == 0).any():
        return nothing
    information = Information(edges, gaps, mu, swapped(rewards), sampled=allowed.arms)
    if information.lost.any():
        return nothing
    best = optimal_allocation(information, allowed)
    rates = information.closest(best.w).value
    return Budget(
        samples=samples,
        error_probability=min(1.0, float(sum(map(_tail, np.sqrt(2 * samples * rates).tolist())))),
        characteristic_time=best.characteristic_time,
        allocation=best.w,
        relative_gap=best.relative_gap,
    )


def _tail(x: float) -> float:
    """Probability that a standard normal number exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2))


class _SwappedCoin(Bernoulli):
    """d(lam, mu) for d(mu, lam): lam is mu with its log odds shifted."""

    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        return information_cost(lam.mean, mu, -lam.shift) + information_cost(
            lam.rest, rest, lam.shift
        )

    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        # One outcome becomes rarer; both probabilities in forms that never subtract.
        up = s < 0
        fall, lost = np.exp(-np.abs(s)), -np.expm1(-np.abs(s))
        rarer, other = np.where(up, rest, mu), np.where(up, mu, rest)
        total = rarer * fall + other
        fallen, risen = rarer * fall / total, other / total
        moved = rarer * other * lost / total
        return Tilted(
            mean=np.where(up, risen, fallen),
            rest=np.where(up, fallen, risen),
            shift=np.where(up, moved, -moved),
            rate=fallen * risen,
        )


class _SwappedBounded(_SwappedCoin, Bounded):
    pass


class _SwappedPoisson(Poisson):
    """The same: lam is mu times a factor."""

    lowest_tilt = -math.inf

    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        return information_cost(lam.mean, mu, -lam.shift)

    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        s = np.maximum(s, -600.0)  # larger means are as good as infinite
        lam = mu * np.exp(-s)
        return Tilted(lam, np.zeros_like(lam), mu * np.expm1(-s), lam)


_SWAPPED = {Bernoulli: _SwappedCoin, Bounded: _SwappedBounded, Poisson: _SwappedPoisson}


def swapped(rewards: Family) -> Family:
    """The family with the arguments of its divergence swapped; data know no domain.

    Whether sigma is known makes no difference to how empirical means vary.
    """
    if isinstance(rewards, Gaussian):
        return Gaussian(rewards.as_if_known().sigma)
    if type(rewards) not in _SWAPPED:
        raise ProblemError(f"{rewards.name} rewards have no bound for a given number of samples.")
    own = {f.name: getattr(rewards, f.name) for f in fields(rewards) if f.name != "domain"}
    return _SWAPPED[type(rewards)](**own)
