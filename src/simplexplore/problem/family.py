"""What a family of rewards is: how informative one sample is, and how to draw one.

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
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import MeansError, ProblemError, RewardError

from .places import about

Array = npt.NDArray[np.float64]

# Where a mean has to lie strictly inside its range, this far.
_MARGIN = 1e-9


# Not as a union, which takes longer to ask.
_NUMBERS = (int, float, np.floating, np.integer)


def finite(value: object, what: str) -> float:
    """A number that is one; else `ProblemError`."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        raise ProblemError(f"{what} must be a number; got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        raise ProblemError(f"{what} is too large for a float.") from None
    if not math.isfinite(number):
        raise ProblemError(f"{what} must be finite; got {value!r}.")
    return number


class Tilted(NamedTuple):
    """Means after a tilt; none is a difference of close numbers."""

    mean: Array  # lam
    rest: Array  # 1 - lam, of Bernoulli rewards
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
            with about("domain"):
                object.__setattr__(self, "domain", self._checked_domain(self.domain))

    def _checked_domain(self, domain: tuple[float, float]) -> tuple[float, float]:
        try:
            low, high = domain
        except (TypeError, ValueError):
            raise ProblemError(f"domain must be two numbers [low, high]; got {domain!r}.") from None
        low, high = finite(low, "domain's low end"), finite(high, "domain's high end")
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
        number = not isinstance(reward, bool) and isinstance(reward, _NUMBERS)
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

    def as_if_known(self) -> Family:
        """The same, with a guess of sigma for the truth where it is unknown."""
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
        return self.cost(mu, 1 - mu, Tilted(lam, 1 - lam, lam - mu, lam), sigma)

    @abstractmethod
    def cost(self, mu: Array, rest: Array, lam: Tilted, sigma: Array) -> Array:
        """The same with 1 - mu, 1 - lam and lam - mu as they were before rounding."""

    @abstractmethod
    def variance(self, mean: Array, sigma: Array) -> Array:
        """V(mean), the variance of a reward with that mean, in unit coordinates."""

    @abstractmethod
    def tilt(self, mu: Array, rest: Array, s: Array, room: Array, sigma: Array) -> Tilted:
        """lam(s), in unit coordinates; `rest` is 1 - mu, and `room` 1 - s / lowest_tilt."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, means: Array, sigma: Array) -> Array:
        """One reward per entry of `means`, in the user's coordinates."""
