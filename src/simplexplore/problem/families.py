"""Reward families: all that the program knows about one stands in its class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from simplexplore.errors import Place, ProblemError

from .family import Family, Tilted, finite
from .places import about
from .rational import rational

Array = npt.NDArray[np.float64]


# The value of an unknown `sigma`.
UNKNOWN = "unknown"

Deviations = float | tuple[float, ...]


def _positive(value: object, what: str) -> float:
    number = finite(value, what)
    if number <= 0:
        raise ProblemError(f"{what} must be positive; got {number:g}.")
    return number


def _deviation(value: object, what: str) -> float:
    """A standard deviation whose square is a float too; else evidence would be infinite or none."""
    number = _positive(value, what)
    if not 1e-150 <= number <= 1e150:
        raise ProblemError(
            f"{what} must lie between 1e-150 and 1e150; got {number:g}. Measure rewards in another "
            "unit."
        )
    return number


def _deviations(given: object, what: str) -> Deviations:
    """One standard deviation, or one per arm."""
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return tuple(_deviation(x, f"{what} of arm {i + 1}") for i, x in enumerate(given))
    return _deviation(given, what)


def _by_arm(given: Deviations, what: str, size: int) -> Array:
    if not isinstance(given, tuple):
        return np.full(size, given)
    if len(given) != size:
        raise ProblemError(
            f"{what} has {len(given)} numbers for {size} arms; give one number, or one per arm.",
            place=Place(field=what),
        )
    return np.array(given)


@dataclass(frozen=True)
class Gaussian(Family):
    """Normal rewards: any real number.

    With known standard deviations, sub-Gaussian rewards with that variance proxy are covered
    too: the stopping thresholds we call proven hold for them unchanged. With unknown ones the
    divergence is the least over all of them, 1/2 log(1 + (mu - lam)^2 / sigma^2): convex only up
    to one standard deviation, so that it needs a projection of its own (bound/unknown_sigma.py).

    Parameters
    ----------
    sigma : float, sequence of float, or "unknown"
        Standard deviation, in the unit of rewards: one for all arms, or one per arm. None also
        means "unknown".
    equal_sigma : bool
        Whether unknown standard deviations are all the same.
    sigma_guess : float or sequence of float, optional
        A guess of unknown ones, for planning and simulation.
    domain : (float, float), optional
        A range in which all means are known to lie.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(2.0).divergence(np.array([1.0]), np.array([0.0]), np.array([2.0]))
    array([0.125])
    >>> Gaussian("unknown", sigma_guess=2.0).sigmas(2)
    array([2., 2.])
    """

    sigma: Deviations | str | None = 1.0
    equal_sigma: bool = False
    sigma_guess: Deviations | None = None

    name: ClassVar[str] = "gaussian"
    code: ClassVar[int] = 0
    strongest_tilt: ClassVar[float] = 1.5
    proven_thresholds: ClassVar[tuple[str, ...]] = ("kk21", "mixture", "tilt")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.sigma is not None and not isinstance(self.sigma, str)
        with about("sigma"):
            if isinstance(self.sigma, str) and self.sigma != UNKNOWN:
                raise ProblemError(
                    f"sigma must be a number; got {self.sigma!r}. If it is unknown, write "
                    f"{UNKNOWN!r}."
                )
            sigma = _deviations(self.sigma, "sigma") if known else UNKNOWN
        object.__setattr__(self, "sigma", sigma)
        with about("equal_sigma"):
            if not isinstance(self.equal_sigma, bool):
                raise ProblemError(f"equal_sigma must be true or false; got {self.equal_sigma!r}.")
            if self.equal_sigma and known:
                raise ProblemError(
                    f"equal_sigma is for sigma = {UNKNOWN!r}; write that, or remove it: numbers "
                    "say if they are equal."
                )
        with about("sigma_guess"):
            self._check_guess(known)
        if self.domain is not None and not known:
            raise ProblemError(
                "a domain needs a known sigma; remove it, or give sigma's numbers.",
                place=Place(field="domain"),
            )

    def _check_guess(self, known: bool) -> None:
        if self.sigma_guess is None:
            return
        if known:
            raise ProblemError(
                f"sigma_guess is for sigma = {UNKNOWN!r}; remove it, or sigma's numbers."
            )
        guess = _deviations(self.sigma_guess, "sigma_guess")
        if self.equal_sigma and isinstance(guess, tuple) and len(set(guess)) > 1:
            raise ProblemError("with equal_sigma, sigma_guess must be one number.")
        object.__setattr__(self, "sigma_guess", guess)

    @property
    def knows_sigma(self) -> bool:
        return self.sigma != UNKNOWN

    def check_size(self, size: int) -> None:
        for what in ("sigma", "sigma_guess"):
            if isinstance(given := getattr(self, what), tuple):
                _by_arm(given, what, size)

    def as_if_known(self) -> Gaussian:
        if self.knows_sigma:
            return self
        if self.sigma_guess is None:
            raise ProblemError(
                "sigma is unknown and no guess of it is given: a bound needs one, as it needs a "
                "guess of the means; add 'sigma_guess = ...' to [rewards], one number or one per "
                "arm.",
                place=Place(field="rewards.sigma_guess"),
            )
        return Gaussian(self.sigma_guess)

    def sigmas(self, size: int) -> Array:
        if not self.knows_sigma:
            return self.as_if_known().sigmas(size)
        assert isinstance(self.sigma, float | tuple)
        return _by_arm(self.sigma, "sigma", size)

    def largest_reward(self) -> float:
        # Squares of rewards are added up where sigma is unknown.
        least = min(self.sigma) if isinstance(self.sigma, tuple) else self.sigma
        return min(1e150, 1e30 * least) if isinstance(least, float) else 1e100

    @property
    def closed_form(self) -> bool:
        return self.domain is None and self.knows_sigma

    def gaussian_deviations(self, size: int) -> Array | None:
        return self.sigmas(size) if self.knows_sigma else None

    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        scaled = lam.shift / sigma
        square = scaled * scaled
        return np.asarray(0.5 * square if self.knows_sigma else 0.5 * np.log1p(square))

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(np.broadcast_to(sigma * sigma, np.shape(mean)))

    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        variance = self.variance(mu, sigma)
        shift = -s * variance
        return Tilted(mu + shift, np.zeros_like(shift), shift, variance)

    def sample(self, rng: np.random.Generator, means: Array, sigma: Array) -> Array:
        return np.asarray(means + sigma * rng.standard_normal(np.shape(means)))


def information_cost(mu: Array, lam: Array, shift: Array) -> Array:
    """mu log(mu / lam) + lam - mu >= 0, the shared part of Bernoulli and Poisson.

    The terms cancel to second order in the shift lam - mu: with x = shift / mu and
    r = x / (2 + x), x - log(1 + x) = x - 2 artanh r is r x less a series. An empirical mean of
    0 costs lam itself (0 log 0 = 0).
    """
    seen = mu > 0
    x = np.divide(shift, mu, out=np.zeros(np.broadcast(mu, shift).shape), where=seen)
    small = np.abs(x) < 0.1
    r = np.where(small, x / (2 + x), 0.0)
    z = r * r
    series = 2 / 7 + z * (2 / 9 + z * (2 / 11 + z * (2 / 13)))
    near = r * (x - z * (2 / 3 + z * (2 / 5 + z * series)))
    if small.all():  # which is often so, and logarithms are slow
        return np.asarray(np.where(seen, mu * near, lam))
    log, fallen = np.log1p(np.maximum(x, -0.5)), seen & (x <= -0.5)
    if fallen.any():
        ratio = np.divide(lam, mu, out=np.ones(x.shape), where=fallen)
        with np.errstate(divide="ignore"):  # lam = 0: infinitely far
            log = np.where(x > -0.5, log, np.log(ratio))
    return np.asarray(np.where(seen, mu * np.where(small, near, x - log), lam))


@lru_cache(maxsize=8192)
def _place(mean: float, low: float, high: float) -> tuple[float, float]:
    """How far a mean is from both ends of a range, over its length, to the last digit."""
    m, first, last = rational(mean), rational(low), rational(high)
    return float((m - first) / (last - first)), float((last - m) / (last - first))


@dataclass(frozen=True)
class Bernoulli(Family):
    """Rewards 0 or 1.

    Parameters
    ----------
    domain : (float, float), optional
        A range in which all means are known to lie.

    Examples
    --------
    >>> import numpy as np
    >>> half, one = np.array([0.5]), np.ones(1)
    >>> lam = Bernoulli().tilt(half, half, one, 1 + one, one).mean
    >>> float(np.round(lam[0], 6))  # solves lam - 1/2 + lam (1 - lam) = 0
    0.292893
    """

    name: ClassVar[str] = "bernoulli"
    code: ClassVar[int] = 1
    strongest_tilt: ClassVar[float] = 3.0
    proven_thresholds: ClassVar[tuple[str, ...]] = ("kk21", "mixture", "tilt")
    rewards_are: ClassVar[str] = "0 or 1"
    mean_range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def gaussian_deviations(self, size: int) -> Array:
        return np.full(size, 0.5)  # Pinsker

    def places(self, means: Array) -> tuple[Array, Array]:
        rest = 1.0 - means
        # Close to 1 the float is not close enough to the number that is meant.
        near = rest < 0.25
        rest[near] = [_place(float(x), 0.0, 1.0)[1] for x in means[near]]
        return means, rest

    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        return information_cost(mu, lam.mean, lam.shift) + information_cost(
            rest, lam.rest, -lam.shift
        )

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(mean * (1 - mean))

    def _is_possible(self, reward: float) -> bool:
        return reward in (0.0, 1.0)

    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        # One outcome becomes rarer; both probabilities in forms that never subtract.
        strength = np.minimum(np.abs(s), 1e150)
        up = s < 0
        rarer, other = np.where(up, rest, mu), np.where(up, mu, rest)
        away = np.abs(1 - strength)
        root = np.sqrt(away * away + 4 * strength * other)
        fallen = 2 * rarer / (1 + strength + root)
        ends, weak = away + root, strength < 1
        risen = np.where(weak, 2 * other, ends) / np.where(weak, ends, 2 * strength)
        both = fallen * risen
        shift = np.where(up, strength, -strength) * both
        rate = both / np.maximum(root, np.finfo(float).tiny)
        return Tilted(np.where(up, risen, fallen), np.where(up, fallen, risen), shift, rate)

    def sample(self, rng: np.random.Generator, means: Array, sigma: Array) -> Array:
        return np.asarray((rng.random(np.shape(means)) < means).astype(float))


@dataclass(frozen=True)
class Poisson(Family):
    """Counts 0, 1, 2, ...

    Parameters
    ----------
    domain : (float, float), optional
        A range in which all means are known to lie.

    Examples
    --------
    >>> float(Poisson().divergence(np.array(2.0), np.array(1.0), np.array(1.0)).round(6))
    0.386294
    """

    name: ClassVar[str] = "poisson"
    code: ClassVar[int] = 2
    proven_thresholds: ClassVar[tuple[str, ...]] = ("kk21", "mixture", "tilt")
    rewards_are: ClassVar[str] = "whole numbers, 0 or more"
    mean_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    lowest_tilt: ClassVar[float] = -1.0
    strongest_tilt: ClassVar[float] = 1.5

    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        return information_cost(mu, lam.mean, lam.shift)

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(mean)

    def _is_possible(self, reward: float) -> bool:
        return math.isfinite(reward) and reward >= 0 and reward == int(reward)

    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        # At and below -1 any mean is too small: a domain's end must stop it.
        room = np.maximum(room, 1e-50)
        lam = mu / room
        return Tilted(lam, np.zeros_like(lam), -s * lam, lam / room)

    def sample(self, rng: np.random.Generator, means: Array, sigma: Array) -> Array:
        return np.asarray(rng.poisson(means).astype(float))


@dataclass(frozen=True)
class Bounded(Bernoulli):
    """Any rewards in [low, high], whatever their distribution.

    Rewards are rescaled to [0, 1] and treated with the Bernoulli divergence. This is
    valid for every distribution on that interval: among those with a given mean the
    Bernoulli distribution has the largest moment generating function, so a bound on the
    deviations of a coin bounds theirs. Simulations draw the two end points, the
    hardest case, or Beta distributions if they are told a standard deviation.

    Parameters
    ----------
    low, high : float
        The range of rewards, in their unit.
    domain : (float, float), optional
        A range in which all means are known to lie.

    Examples
    --------
    >>> Bounded(1.0, 5.0).to_unit([3.0])
    array([0.5])
    """

    low: float = 0.0
    high: float = 1.0

    name: ClassVar[str] = "bounded"
    proven_thresholds: ClassVar[tuple[str, ...]] = ("mixture", "tilt")
    rewards_are: ClassVar[str] = "numbers between low and high"

    def __post_init__(self) -> None:
        with about("low"):
            low = finite(self.low, "low")
        with about("high"):
            high = finite(self.high, "high")
        if not low < high:
            raise ProblemError(
                f"bounded rewards need low < high; got low = {low:g}, high = {high:g}.",
                place=Place(field="low"),
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        super().__post_init__()

    def range_of_means(self) -> tuple[float, float]:
        return self.low, self.high

    def largest_reward(self) -> float:
        return 1e150

    def _is_possible(self, reward: float) -> bool:
        return self.low <= reward <= self.high

    def to_unit(self, means: npt.ArrayLike) -> Array:
        return (np.asarray(means, dtype=float) - self.low) / (self.high - self.low)

    @property
    def width(self) -> float:
        return float(rational(self.high) - rational(self.low))

    def places(self, means: Array) -> tuple[Array, Array]:
        pairs = np.array([_place(float(x), self.low, self.high) for x in means])
        return pairs[:, 0], pairs[:, 1]

    def from_unit(self, means: npt.ArrayLike) -> Array:
        return self.low + (self.high - self.low) * np.asarray(means, dtype=float)

    def sample(self, rng: np.random.Generator, means: Array, sigma: Array) -> Array:
        coins = super().sample(rng, self.to_unit(means), sigma)
        return self.from_unit(coins)


FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (Gaussian, Bernoulli, Poisson, Bounded)
}
