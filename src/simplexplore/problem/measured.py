"""Limits that must be learned: a second number of every pull, whose mean over the mix is limited.

Its coefficients are unknown means. An answer may exceed the limit by a tolerance, and
earn epsilon less than the best policy that keeps it (docs/theory/measured.md). All else reads rows
as ``signed(means) @ policy <= bound``: a limit from below changes its sign here, nowhere else.
"""

from __future__ import annotations

import dataclasses
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import Location, MeansError, ProblemError, RewardError

from .checks import (
    check_amount,
    check_finite,
    check_keys,
    check_means,
    check_name,
    check_number,
    entries_of,
    frozen,
)
from .constraint import Constraint
from .families import UNKNOWN, Bernoulli, Bounded, Deviations, Family, Gaussian
from .locations import error_context
from .messages import count, exactly, listed, suggestion, unknown
from .rational import rational

Array = npt.NDArray[np.float64]

# With more, the closest alternative may lie anywhere on faces of three and more dimensions.
MAX_MEASURED = 2

_LIMIT = re.compile(r"\s*(<=|>=|≤|≥)\s*(\S(?:.*\S)?)\s*", re.DOTALL)
_SENSES = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">="}

# Columns of tables that hold measurements beside other things.
_COLUMNS = ("pull", "arm", "reward", "outcome", "asked", "told", "key", "mean", "cost", "total")


@dataclass(frozen=True)
class Measured:
    """A limit on the mean of something that every pull reports beside its reward.

    Parameters
    ----------
    name : str
        What is measured; a column of that name holds it in CSV files.
    limit : str or float
        ``"<= 0.3"`` or ``">= 0.3"``, for the mean over the mix; a number alone is a limit from
        above.
    sigma : float, sequence of float, or "unknown"
        Standard deviation of a measurement, one for all arms or one per arm; unknown unless given.
    low, high : float, optional
        For measurements that lie between these, instead of sigma. They are treated as if their
        standard deviation were (high - low) / 2, which is valid for each of them.
    tolerance : float
        By how much an answer may miss the limit, in the unit of measurements.
    means : sequence of float, optional
        One per arm: a guess or the truth, for planning and simulation.
    sigma_guess : float or sequence of float, optional
        A guess of an unknown sigma, likewise.
    domain : (float, float), optional
        Known range of the means, where measurements have no low and high.
    safe : sequence of str, optional
        Arms that are known beforehand to keep the limit. The scenario "anytime" needs one.
    independent : bool
        Whether measurements are known to be independent of the reward, and of the other
        measurements, of the same pull. Nothing of the kind is assumed otherwise, which takes more
        samples.

    Examples
    --------
    >>> row = Measured("response", ">= 1/2", sigma=0.3)
    >>> row.limit, row.sign, row.bound
    ('>= 0.5', -1, -0.5)
    >>> row.signed([0.2, 0.9]).tolist()
    [-0.2, -0.9]
    """

    name: str
    limit: str | float
    sigma: Deviations | str | None = field(default=None, kw_only=True)
    low: float | None = field(default=None, kw_only=True)
    high: float | None = field(default=None, kw_only=True)
    tolerance: float = field(default=0.0, kw_only=True)
    means: tuple[float, ...] | None = field(default=None, kw_only=True)
    sigma_guess: Deviations | None = field(default=None, kw_only=True)
    domain: tuple[float, float] | None = field(default=None, kw_only=True)
    safe: tuple[str, ...] | None = field(default=None, kw_only=True)
    independent: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        def put(name: str, check: Callable[[Any], object]) -> None:
            with error_context(name):
                object.__setattr__(self, name, check(getattr(self, name)))

        object.__setattr__(self, "name", _check_column(self.name))
        with error_context(prefix=f"measured {self.name!r}: "):
            put("limit", _check_limit)
            unit = ", in the unit of measurements"
            put("tolerance", partial(check_amount, what="tolerance", unit=unit))
            object.__setattr__(self, "sigma", self._check_noise())
            noise = self.noise
            checked = ("sigma", "sigma_guess") if isinstance(noise, Gaussian) else ("low", "high")
            for name in checked:
                object.__setattr__(self, name, getattr(noise, name))
            if self.domain is not None:
                object.__setattr__(self, "domain", Gaussian(1.0, domain=self.domain).domain)
            if self.safe is not None:
                put("safe", _check_safe)
            put("independent", _check_independent)
            if self.means is not None:
                put("means", partial(self._check_means, arms=None))

    def _check_noise(self) -> Deviations | str | None:
        """What sigma is, before its numbers are looked at."""
        if self.low is None and self.high is None:
            return UNKNOWN if self.sigma is None else self.sigma
        for what in ("sigma", "sigma_guess", "domain"):
            if getattr(self, what) is not None:
                raise ProblemError(
                    f"{what} does not go with low and high, which say how far measurements spread; "
                    "remove one of them.",
                    place=Location(field=what),
                )
        for what in ("low", "high"):
            if getattr(self, what) is None:
                raise ProblemError(
                    f"{what} is missing: measurements lie between low and high, or have a sigma.",
                    place=Location(field=what),
                )
        return None

    def _check_means(self, means: object, arms: Sequence[str] | None) -> tuple[float, ...]:
        """Means of the row, one per arm; their number is not known before the arms are."""
        names = arms
        if names is None:
            names = [str(i) for i in range(1, len(entries_of(means) or ()) + 1)]
        numbers = check_means(means, names).tolist()
        for arm, mean in zip(names, numbers, strict=True):
            # At the ends, too: whoever takes nothing has no side effects.
            low, high = self.range_of_means
            if not low <= mean <= high:
                raise MeansError(
                    f"the mean of arm {arm!r} is {mean:g}, outside [{low:g}, {high:g}]; "
                    f"correct it, or {'low and high' if self.domain is None else 'the domain'}."
                )
        return tuple(numbers)

    def check_size(self, arms: Sequence[str]) -> None:
        """Raise `ProblemError` or `MeansError` unless what is given by arm has one for each."""
        with error_context(prefix=f"measured {self.name!r}: "):
            self.noise.check_size(len(arms))
            if self.means is not None:
                with error_context("means"):
                    self._check_means(self.means, arms)
            for arm in self.safe or ():
                self._check_safety(arm, arms)

    def _check_safety(self, arm: str, arms: Sequence[str]) -> None:
        """That an arm said to be safe exists, and is so by its guess."""
        if arm not in arms:
            raise ProblemError(
                f"safe names {arm!r}, which is no arm{suggestion(arm, tuple(arms))}",
                place=Location(field="safe"),
            )
        mean = None if self.means is None else self.means[arms.index(arm)]
        if mean is not None and self.sign * mean > self.bound:
            raise ProblemError(
                f"{arm!r} is said to be safe, but its mean {mean:g} misses the limit {self.limit}; "
                "correct one of them.",
                place=Location(field="safe"),
            )

    @property
    def range_of_means(self) -> tuple[float, float]:
        """Between which the means are known to lie; infinite if nothing is known."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return self.domain or (-math.inf, math.inf)

    @cached_property
    def noise(self) -> Gaussian | Bounded:
        """The family of measurements."""
        if self.sigma is None:
            assert self.low is not None
            assert self.high is not None
            return Bounded(self.low, self.high)
        return Gaussian(self.sigma, sigma_guess=self.sigma_guess)

    @property
    def sense(self) -> str:
        """`"<="` or `">="`."""
        return str(self.limit)[:2]

    @property
    def level(self) -> float:
        """The number in the limit, as the user wrote it."""
        return float(rational(str(self.limit)[2:].strip()))

    @property
    def in_words(self) -> str:
        """The limit as a sentence has it: ``toxicity below 0.3``."""
        return f"{self.name} {'below' if self.sign > 0 else 'above'} {str(self.limit)[3:]}"

    @property
    def sign(self) -> int:
        """-1 for a limit from below, by which it becomes one from above; else 1."""
        return 1 if self.sense == "<=" else -1

    @property
    def bound(self) -> float:
        """The limit on ``signed(means) @ policy``, without the tolerance."""
        return self.sign * self.level

    def signed(self, means: npt.ArrayLike) -> Array:
        """Coefficients of the row as a limit from above."""
        return np.asarray(self.sign * np.asarray(means, dtype=float) + 0.0)

    def deviations(self, size: int) -> Array:
        """Standard deviation per arm, or half the range, or the guess where it is unknown."""
        return spreads(self.noise.with_known_variance(f"measured.{self.name}"), size)

    def means_in(self, given: object, arms: Sequence[str]) -> Array:
        """Means per arm, as given or else the row's own, unsigned.

        Raises
        ------
        MeansError
            If there are none, their number is wrong, or one cannot be.
        """
        with error_context("measured"), error_context(self.name), error_context("means"):
            if given is None:
                given = self.means
            if given is None:
                raise MeansError(
                    f"measured {self.name!r} has no means: a guess of each arm's is needed; add "
                    f"'means = [...]' to [measured.{self.name}] or pass them."
                )
            with error_context(prefix=f"measured {self.name!r}: "):
                return np.array(self._check_means(given, arms))

    def check_value(self, value: object) -> float:
        """Return a measurement as a float, or raise `RewardError` if it cannot be one."""
        try:
            number = check_number(value, f"a measurement of {self.name!r}")
        except ProblemError as error:
            raise RewardError(str(error)) from None
        if self.low is not None and self.high is not None and not self.low <= number <= self.high:
            raise RewardError(
                f"measurements of {self.name!r} lie between {self.low:g} and {self.high:g}; "
                f"got {number:g}."
            )
        limit = self.noise.largest_reward()
        if not abs(number) <= limit:
            raise RewardError(
                f"measurements of {self.name!r} are finite numbers, at most {limit:g} in size; "
                f"got {number:g}."
            )
        return number

    def to_dict(self) -> dict[str, object]:
        """The entries of its table in a problem file; what is not said is left out."""
        content = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        del content["name"]
        for name in ("tolerance", "independent"):
            if not content[name]:
                del content[name]
        return {key: value for key, value in content.items() if value is not None}


def spreads(noise: Family, size: int) -> Array:
    """Sub-Gaussian deviations per arm, in the user's units; a guess where sigma is unknown.

    Examples
    --------
    >>> spreads(Bounded(1.0, 5.0), 2).tolist()
    [2.0, 2.0]
    """
    sigma = noise.gaussian_deviations(size)
    return noise.sigmas(size) if sigma is None else noise.width * sigma


def check_measured(
    given: object, arms: tuple[str, ...], groups: Iterable[str], *constraints: Sequence[Constraint]
) -> tuple[Measured, ...]:
    """Measured rows: a list of them, or a mapping from names to rows or their tables."""
    if isinstance(given, Mapping):
        found = [_from_entry(name, entry) for name, entry in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        found = list(given)
    else:
        raise ProblemError(
            "measured must be a list of Measured(...), or a mapping from names to tables such as "
            f"{{'limit': '<= 0.3', 'sigma': 0.5}}; got {reprlib.repr(given)}."
        )
    taken = dict.fromkeys(arms, "an arm") | dict.fromkeys(groups, "a group")
    taken |= {row.name: "a constraint" for rows in constraints for row in rows}
    for row in found:
        if not isinstance(row, Measured):
            raise ProblemError(
                f"measured takes Measured('toxicity', '<= 0.3', ...); got {reprlib.repr(row)}."
            )
        with error_context(row.name):
            if row.name in taken:
                raise ProblemError(
                    f"measured {row.name!r} has the name of {taken[row.name]}; rename one of them."
                )
            taken[row.name] = "another measured row"
            row.check_size(arms)
    if len(found) > MAX_MEASURED:
        raise ProblemError(
            f"there are {count(len(found), 'measured row')}; at most {MAX_MEASURED} are possible: "
            "what an answer must be told apart from lies on faces of as many dimensions, and "
            "beyond two these cannot be searched with a certificate. Keep the limits that matter, "
            "or measure a weighted sum of them."
        )
    return tuple(found)


def measured_means(
    rows: Sequence[Measured], arms: Sequence[str], given: Mapping[str, npt.ArrayLike] | None = None
) -> Array:
    """Means of measured rows, as given by name or else their own guesses, (rows, K).

    As the user gives them; `Measured.signed` makes limits from above of them.
    """
    given = given or {}
    names = [row.name for row in rows]
    for name in given:
        if name not in names:
            raise MeansError(unknown("measured row", str(name), names))
    found = np.reshape([row.means_in(given.get(row.name), arms) for row in rows], (-1, len(arms)))
    return frozen(found)


def check_measurements(rows: Sequence[Measured], given: object) -> tuple[float, ...]:
    """Measurements of one pull, given by name, in the order of the rows."""
    names = tuple(row.name for row in rows)
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise RewardError(
            f"measured must map names to numbers, such as {{{(names or ('toxicity',))[0]!r}: "
            f"0.2}}; got {reprlib.repr(given)}."
        )
    for name in given:
        if name not in names:
            raise RewardError(unknown("measured row", str(name), names))
    missing = [name for name in names if name not in given]
    if missing:
        raise RewardError(
            f"a pull is told with its measurements: {listed(missing)} is missing; give "
            f"measured={{{missing[0]!r}: ...}}."
        )
    return tuple(row.check_value(given[row.name]) for row in rows)


def check_combination(measured: Sequence[Measured], rewards: Family, stop_when: object) -> None:
    """Refuse what does not go with measured rows."""
    if not measured:
        return
    if not isinstance(rewards, Gaussian | Bernoulli):
        raise ProblemError(
            "measured rows go with gaussian, bernoulli and bounded rewards, whose spread is known "
            f"or learned; {rewards.name} rewards have none that holds for all means. Choose "
            "another family.",
            place=Location(field="rewards.family"),
        )
    if rewards.domain is not None:
        raise ProblemError(
            "a domain does not go with measured rows; remove it.",
            place=Location(field="rewards.domain"),
        )
    if stop_when is not None:
        raise ProblemError(
            "stop_when does not go with measured rows: epsilon and the tolerances say what is good "
            "enough; give epsilon instead.",
            place=Location(field="stop_when"),
        )


def _from_entry(name: object, entry: object) -> Measured:
    if isinstance(entry, Measured):
        if entry.name != name:
            raise ProblemError(
                f"measured {reprlib.repr(name)} maps to a row that is named {entry.name!r}; give "
                "them the same name."
            )
        return entry
    with error_context(str(name)):
        if not isinstance(entry, Mapping):
            raise ProblemError(
                f"measured {reprlib.repr(name)} must be a table, a line [measured.{name}] with its "
                f"entries below; got {reprlib.repr(entry)}."
            )
        known = tuple(f.name for f in dataclasses.fields(Measured) if f.name != "name")
        check_keys(entry, known, f" in [measured.{name}]")
        if "limit" not in entry:
            raise ProblemError(
                f'limit is missing in [measured.{name}]; add a line such as limit = "<= 0.3".'
            )
        arguments: dict[str, Any] = dict(entry)
        return Measured(name, arguments.pop("limit"), **arguments)  # type: ignore[arg-type]


def _check_column(name: object) -> str:
    """A name that is a column of tables, too."""
    checked = check_name(name, "a measured row")
    wrong = re.search(r"[,;\"`]", checked)
    if wrong:
        raise ProblemError(
            f"the name of a measured row, {checked!r}, contains {wrong.group()!r}, which a column "
            "of a CSV file cannot; remove it."
        )
    if checked != checked.strip() or checked[0] in "'=+-@＝＋－＠":
        raise ProblemError(
            f"the name of a measured row, {checked!r}, begins or ends in a way that spreadsheets "
            "change; begin with a letter and leave out outer spaces."
        )
    if checked.casefold() in _COLUMNS:
        raise ProblemError(
            f"the name of a measured row, {checked!r}, is that of another column of tables; "
            "rename it."
        )
    return checked


def _check_limit(limit: object) -> str:
    """A limit as ``<= number`` or ``>= number``."""
    sense, number = "<=", limit
    if isinstance(limit, str):
        parts = _LIMIT.fullmatch(limit)
        try:
            sense = _SENSES[parts[1]] if parts else ""
            number = float(rational(parts[2] if parts else limit))
        except (ValueError, ZeroDivisionError, OverflowError):
            sense = ""
        if not sense:
            raise ProblemError(
                "limit must be '<=' or '>=' and a number, such as '<= 0.3'; got "
                f"{reprlib.repr(limit)}."
            )
    level = check_finite(number, "limit")
    return f"{sense} {exactly(level + 0.0)}"


def _check_independent(given: object) -> bool:
    if not isinstance(given, bool):
        raise ProblemError(
            "independent says whether measurements are independent of the rewards of their "
            f"pulls, true or false; got {reprlib.repr(given)}."
        )
    return given


def _check_safe(safe: object) -> tuple[str, ...]:
    arms = entries_of(safe)
    if arms is None or not all(isinstance(arm, str) for arm in arms):
        raise ProblemError(f"safe must be a list of arms; got {reprlib.repr(safe)}.")
    return tuple(arms)
