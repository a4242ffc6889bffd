"""Families of rewards: how informative one sample is.

Each family is a one-parameter exponential family in its mean, with a divergence
``d(mu, lam)`` that is convex in ``lam``. That convexity is what makes the closest
alternative across an edge a one-dimensional root (:mod:`simplexplore.bound.information`).

The root is found along the *tilt* of a mean: minimising ``d(mu, lam) + s * lam``
over ``lam`` gives ``lam(s)``, the solution of ``lam - mu + s * V(lam) = 0`` with the
family's variance function ``V``. Every family has it in closed form.

Computations happen in *unit* coordinates. They differ from the user's only for
bounded rewards, which are rescaled to [0, 1]. The directions we compare sum to zero, so the shift
never matters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import Location, MeansError, ProblemError, RewardError

from .checks import NUMBERS, check_finite, check_positive
from .locations import error_context
from .rational import rational

Array = npt.NDArray[np.float64]

# Where a mean has to lie strictly inside its range, this far.
_MARGIN = 1e-9


class ExponentialTilt(NamedTuple):
    """Means after a tilt; none is a difference of close numbers."""

    mean: Array  # lam
    complement: Array  # 1 - lam, of Bernoulli rewards
    shift: Array  # lam - mu
    rate: Array  # -d lam / ds >= 0


@dataclass(frozen=True)
class Family(ABC):
    """What all families share.

    Parameters
    ----------
    domain : (float, float), optional
        Known range of the means. Alternatives outside it are ruled out, so a
        narrow domain can only make a problem easier.
    """

    domain: tuple[float, float] | None = field(default=None, kw_only=True)

    name: ClassVar[str]
    # What compiled code calls the family; those with the same variance function share a number.
    code: ClassVar[int]
    # Stopping thresholds whose error probability is proven, whatever the sampler.
    proven_thresholds: ClassVar[tuple[str, ...]] = ()
    # Means must lie strictly between these, in the user's units.
    mean_range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    # The tilt exists for s above this.
    lowest_tilt: ClassVar[float] = -math.inf
    # The strongest tilt that stopping by `tilt` bets on, in standard deviations (Gaussian), or of a
    # logarithm of odds or rates; none where kernels/tilt.py knows no fair price.
    strongest_tilt: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.domain is not None:
            with error_context("domain"):
                object.__setattr__(self, "domain", self._checked_domain(self.domain))

    def _checked_domain(self, domain: tuple[float, float]) -> tuple[float, float]:
        try:
            low, high = domain
        except (TypeError, ValueError):
            raise ProblemError(f"domain must be two numbers [low, high]; got {domain!r}.") from None
        low, high = check_finite(low, "domain's low end"), check_finite(high, "domain's high end")
        if not low < high:
            raise ProblemError(f"domain must have low < high; got [{low:g}, {high:g}].")
        range_low, range_high = self.range_of_means()
        if low < range_low or high > range_high:
            raise ProblemError(
                f"domain [{low:g}, {high:g}] leaves the range of {self.name} means, "
                f"[{range_low:g}, {range_high:g}]; shrink it."
            )
        return low, high

    @property
    def closed_form(self) -> bool:
        """Whether the closest alternative across an edge has a formula."""
        return False

    def gaussian_deviations(self, size: int) -> Array | None:
        """Deviations with which Gaussian rewards would be no more informative, if there are any.

        In unit coordinates, per arm: d(mu, lam) >= (mu - lam)^2 / (2 sigma^2) for all means.
        """
        return None

    def range_of_means(self) -> tuple[float, float]:
        """Open interval that holds every possible mean."""
        return self.mean_range

    def check_means(self, means: Array, arms: Sequence[str]) -> None:
        """Raise `MeansError` if a mean lies outside the family's range or the domain."""
        low, high = self.range_of_means()
        for arm, mean in zip(arms, means, strict=True):
            if not low < mean < high:
                wanted = (
                    f"strictly between {low:g} and {high:g}"
                    if math.isfinite(high)
                    else f"greater than {low:g}"
                )
                raise MeansError(
                    f"the mean of arm {arm!r} is {mean:g}, but a {self.name} mean must be {wanted}."
                )
            if self.domain is not None and not self.domain[0] <= mean <= self.domain[1]:
                raise MeansError(
                    f"the mean of arm {arm!r} is {mean:g}, outside the stated domain "
                    f"[{self.domain[0]:g}, {self.domain[1]:g}]; correct the mean or widen the "
                    "domain."
                )

    # What a reward may be, for people.
    rewards_are: ClassVar[str] = "finite numbers"

    def check_reward(self, reward: float) -> None:
        """Raise `RewardError` for a reward that the family cannot produce."""
        number = not isinstance(reward, bool) and isinstance(reward, NUMBERS)
        # Asked first: `float` does not know 10**400.
        limit = self.largest_reward()
        if number and limit < abs(reward) < math.inf:
            digits = math.floor(math.log10(abs(reward)))  # not as text: it may be very long
            raise RewardError(
                f"{self.name} rewards are {self.rewards_are}, at most {limit:g} in size; got about "
                f"{'-' if reward < 0 else ''}1e{digits}."
            )
        if not number or not self._is_possible(float(reward)):
            raise RewardError(f"{self.name} rewards are {self.rewards_are}; got {reward!r}.")

    def _is_possible(self, reward: float) -> bool:
        return math.isfinite(reward)

    def largest_reward(self) -> float:
        """The largest size of a reward.

        Larger numbers overflow in squares and thresholds, where a deviation, or the length of an
        interval, divides them.
        """
        return 1e30

    @property
    def knows_sigma(self) -> bool:
        """Whether the spread of rewards follows from what is known and the mean."""
        return True

    def with_known_variance(self, table: str = "rewards") -> Family:
        """The same, with a guess of sigma for the truth where it is unknown; a table has it."""
        return self

    @property
    def in_words(self) -> str:
        """What headings call these rewards.

        Examples
        --------
        >>> from simplexplore.problem.families import Bernoulli, Gaussian
        >>> Bernoulli().in_words, Gaussian("unknown").in_words
        ('bernoulli rewards', 'gaussian rewards with unknown sigma')
        """
        return f"{self.name} rewards" + ("" if self.knows_sigma else " with unknown sigma")

    def check_size(self, size: int) -> None:
        """Raise `ProblemError` unless parameters given by arm have one number for each."""
        self.sigmas(size)

    def sigmas(self, size: int) -> Array:
        """Standard deviation per arm where it is a parameter, ones elsewhere; or a guess of it."""
        return np.ones(size)

    def to_unit(self, means: npt.ArrayLike) -> Array:
        """Means in unit coordinates."""
        return np.asarray(means, dtype=float)

    def from_unit(self, means: npt.ArrayLike) -> Array:
        """Means back in the user's coordinates."""
        return np.asarray(means, dtype=float)

    @property
    def width(self) -> float:
        """What differs by 1 in unit coordinates, in the user's."""
        return 1.0

    def unit_domain(self) -> tuple[float, float] | None:
        """The domain in unit coordinates."""
        if self.domain is None:
            return None
        low, high = self.to_unit(self.domain)
        return float(low), float(high)

    def strictly_inside(self, means: Array) -> Array:
        """Means in unit coordinates, those at an end of the range moved a little inwards."""
        low, high = self.to_unit(self.range_of_means())
        return np.clip(means, low + _MARGIN, high - _MARGIN)

    def places(self, means: Array) -> tuple[Array, Array]:
        """Means in unit coordinates and 1 less them, each with all its digits."""
        unit = self.to_unit(means)
        return unit, 1.0 - unit

    def divergence(self, mu: Array, lam: Array, sigma: Array) -> Array:
        """Information of one sample: d(mu, lam), in unit coordinates."""
        return self.cost(mu, 1 - mu, ExponentialTilt(lam, 1 - lam, lam - mu, lam), sigma)

    @abstractmethod
    def cost(self, mu: Array, complement: Array, lam: ExponentialTilt, sigma: Array) -> Array:
        """The same with 1 - mu, 1 - lam and lam - mu as they were before rounding."""

    @abstractmethod
    def variance(self, mean: Array, sigma: Array) -> Array:
        """V(mean), the variance of a reward with that mean, in unit coordinates."""

    @abstractmethod
    def tilt(
        self, mu: Array, complement: Array, s: Array, room: Array, sigma: Array
    ) -> ExponentialTilt:
        """lam(s), in unit coordinates; `complement` is 1 - mu, and `room` 1 - s / lowest_tilt."""


# The value of an unknown `sigma`.
UNKNOWN = "unknown"

Deviations = float | tuple[float, ...]


def _deviation(value: object, what: str) -> float:
    """A standard deviation whose square is a float too; else evidence would be infinite or none."""
    number = check_positive(value, what)
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
            place=Location(field=what),
        )
    return np.array(given)


@dataclass(frozen=True)
class Gaussian(Family):
    """Normal rewards: any real number.

    With known standard deviations, sub-Gaussian rewards with that variance proxy are covered
    too: the stopping thresholds we call proven hold for them unchanged. With unknown ones the
    divergence is the least over all of them, 1/2 log(1 + (mu - lam)^2 / sigma^2): convex only up
    to one standard deviation, so that stopping has evidence of its own
    (kernels/unknown_variance.py), and bounds take the guess for the truth.

    Parameters
    ----------
    sigma : float, sequence of float, or "unknown"
        Standard deviation, in the unit of rewards: one for all arms, or one per arm. None also
        means "unknown".
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
    sigma_guess: Deviations | None = None

    name: ClassVar[str] = "gaussian"
    code: ClassVar[int] = 0
    strongest_tilt: ClassVar[float] = 1.5
    proven_thresholds: ClassVar[tuple[str, ...]] = ("kk21", "mixture", "tilt")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.sigma is not None and not isinstance(self.sigma, str)
        with error_context("sigma"):
            if isinstance(self.sigma, str) and self.sigma != UNKNOWN:
                raise ProblemError(
                    f"sigma must be a number; got {self.sigma!r}. If it is unknown, write "
                    f"{UNKNOWN!r}."
                )
            sigma = _deviations(self.sigma, "sigma") if known else UNKNOWN
        object.__setattr__(self, "sigma", sigma)
        with error_context("sigma_guess"):
            if known and self.sigma_guess is not None:
                raise ProblemError(
                    f"sigma_guess is for sigma = {UNKNOWN!r}; remove it, or sigma's numbers."
                )
            if self.sigma_guess is not None:
                guess = _deviations(self.sigma_guess, "sigma_guess")
                object.__setattr__(self, "sigma_guess", guess)
        if self.domain is not None and not known:
            raise ProblemError(
                "a domain needs a known sigma; remove it, or give sigma's numbers.",
                place=Location(field="domain"),
            )

    @property
    def knows_sigma(self) -> bool:
        return self.sigma != UNKNOWN

    def check_size(self, size: int) -> None:
        for what in ("sigma", "sigma_guess"):
            if isinstance(given := getattr(self, what), tuple):
                _by_arm(given, what, size)

    def with_known_variance(self, table: str = "rewards") -> Gaussian:
        if self.knows_sigma:
            return self
        if self.sigma_guess is None:
            raise ProblemError(
                "sigma is unknown and no guess of it is given: a bound needs one, as it needs a "
                f"guess of the means; add 'sigma_guess = ...' to [{table}], one number or one per "
                "arm.",
                place=Location(field=f"{table}.sigma_guess"),
            )
        return Gaussian(self.sigma_guess)

    def sigmas(self, size: int) -> Array:
        if not self.knows_sigma:
            return self.with_known_variance().sigmas(size)
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

    def cost(self, mu: Array, complement: Array, lam: ExponentialTilt, sigma: Array) -> Array:
        scaled = lam.shift / sigma
        square = scaled * scaled
        return np.asarray(0.5 * square if self.knows_sigma else 0.5 * np.log1p(square))

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(np.broadcast_to(sigma * sigma, np.shape(mean)))

    def tilt(
        self, mu: Array, complement: Array, s: Array, room: Array, sigma: Array
    ) -> ExponentialTilt:
        variance = self.variance(mu, sigma)
        shift = -s * variance
        return ExponentialTilt(mu + shift, np.zeros_like(shift), shift, variance)


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
        complement = 1.0 - means
        # Close to 1 the float is not close enough to the number that is meant.
        near = complement < 0.25
        complement[near] = [_place(float(x), 0.0, 1.0)[1] for x in means[near]]
        return means, complement

    def cost(self, mu: Array, complement: Array, lam: ExponentialTilt, sigma: Array) -> Array:
        return information_cost(mu, lam.mean, lam.shift) + information_cost(
            complement, lam.complement, -lam.shift
        )

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(mean * (1 - mean))

    def _is_possible(self, reward: float) -> bool:
        return reward in (0.0, 1.0)

    def tilt(
        self, mu: Array, complement: Array, s: Array, room: Array, sigma: Array
    ) -> ExponentialTilt:
        # One outcome becomes rarer; both probabilities in forms that never subtract.
        strength = np.minimum(np.abs(s), 1e150)
        up = s < 0
        rarer, other = np.where(up, complement, mu), np.where(up, mu, complement)
        away = np.abs(1 - strength)
        root = np.sqrt(away * away + 4 * strength * other)
        fallen = 2 * rarer / (1 + strength + root)
        ends, weak = away + root, strength < 1
        risen = np.where(weak, 2 * other, ends) / np.where(weak, ends, 2 * strength)
        both = fallen * risen
        shift = np.where(up, strength, -strength) * both
        rate = both / np.maximum(root, np.finfo(float).tiny)
        return ExponentialTilt(
            np.where(up, risen, fallen), np.where(up, fallen, risen), shift, rate
        )


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

    def cost(self, mu: Array, complement: Array, lam: ExponentialTilt, sigma: Array) -> Array:
        return information_cost(mu, lam.mean, lam.shift)

    def variance(self, mean: Array, sigma: Array) -> Array:
        return np.asarray(mean)

    def _is_possible(self, reward: float) -> bool:
        return math.isfinite(reward) and reward >= 0 and reward == int(reward)

    def tilt(
        self, mu: Array, complement: Array, s: Array, room: Array, sigma: Array
    ) -> ExponentialTilt:
        # At and below -1 any mean is too small: a domain's end must stop it.
        room = np.maximum(room, 1e-50)
        lam = mu / room
        return ExponentialTilt(lam, np.zeros_like(lam), -s * lam, lam / room)


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
    rewards_are: ClassVar[str] = "numbers between low and high"

    def __post_init__(self) -> None:
        with error_context("low"):
            low = check_finite(self.low, "low")
        with error_context("high"):
            high = check_finite(self.high, "high")
        if not low < high:
            raise ProblemError(
                f"bounded rewards need low < high; got low = {low:g}, high = {high:g}.",
                place=Location(field="low"),
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


FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (Gaussian, Bernoulli, Poisson, Bounded)
}
