"""Pulls of a live study, their ids and their rewards, as they go in and out."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from simplexplore.errors import Location, PullError, RewardError, SettingError


@dataclass(frozen=True)
class Pull:
    """A pull to make: play the arm, then tell the reward under this id.

    Attributes
    ----------
    id : str
        Unique in all stores.
    arm : str
        The arm to play.
    at : float
        When it was asked for, in seconds since 1970.
    by : str or None
        Who makes it.
    """

    id: str
    arm: str
    at: float
    by: str | None = None


@dataclass(frozen=True)
class Reward:
    """A reward to tell: of a pull, or of an arm that was played elsewhere.

    Or many rewards of an arm, by what their family needs to know of them: `n` of them have the
    mean `mean` (Gaussian; with unknown sigma also their standard deviation `sd`), or `successes` of
    them are 1 (Bernoulli), or they add up to `total` (Poisson). How many there are must not depend
    on their values.

    Attributes
    ----------
    reward : float or None
    pull : str or None
        The id of the pull.
    arm : str or None
        Instead of a pull, the arm that was played elsewhere.
    key : str or None
        With a key, telling it twice counts once; many rewards need one.
    measured : mapping or None
        The measurements of the pull by name, if the problem has measured limits.
    n, successes, total : int or None
    mean, sd : float or None

    Examples
    --------
    >>> Reward(7.5, arm="pizza", key="table 4").arm
    'pizza'
    >>> Reward(arm="pizza", n=48, mean=7.31, key="monday").n
    48
    """

    reward: float | None = None
    pull: str | None = None
    arm: str | None = None
    key: str | None = None
    measured: Mapping[str, float] | None = None
    n: int | None = None
    mean: float | None = None
    sd: float | None = None
    successes: int | None = None
    total: int | None = None

    @property
    def is_sum(self) -> bool:
        """Whether many rewards are told."""
        many = (self.n, self.mean, self.sd, self.successes, self.total)
        return any(value is not None for value in many)


@dataclass(frozen=True)
class Told:
    """How a reward was recorded.

    Attributes
    ----------
    pull : str or None
        The id of the pull; None for a pull made elsewhere.
    arm : str
    reward : float
        Of many rewards, their mean.
    outcome : str
        ``"told"``; ``"late"`` (its pull had expired; it still counts); ``"elsewhere"`` (of a pull
        made elsewhere); ``"batch"`` (many rewards); ``"repeated"`` (it was known already).
    stopped : bool
        Whether the study has its answer.
    held : bool
        Whether it looks impossible, so that the study does not stop before somebody confirms or
        voids it.
    """

    pull: str | None
    arm: str
    reward: float
    outcome: str
    stopped: bool
    held: bool = False


def id_of(pull: str | Pull) -> str:
    """The id of a pull."""
    return pull.id if isinstance(pull, Pull) else pull


class PullIds:
    """Ids of pulls: the study's code, the pull's number, and a check against mix-ups.

    If a store is put back from an older copy, numbers are given out again; the check tells
    the two apart.

    Examples
    --------
    >>> ids = PullIds("mix", "e6f11b")
    >>> ids.write(12, arm=0, at=1.5)
    'e6f11b-12-fde9'
    >>> ids.number("e6f11b-12-fde9")
    12
    """

    def __init__(self, study: str, code: str) -> None:
        self.study = study
        self.code = code

    def write(self, number: int, arm: int, at: float) -> str:
        """The id of a pull."""
        check = zlib.crc32(f"{self.code} {number} {arm} {at!r}".encode()) & 0xFFFF
        return f"{self.code}-{number}-{check:04x}"

    def number(self, identity: object) -> int:
        """The number in an id; whether the rest is right, the journal knows."""
        parts = identity.split("-") if isinstance(identity, str) else []
        if len(parts) != 3 or not parts[1].isdecimal() or len(parts[1]) > 18:
            raise PullError(
                f"{identity!r} is not the id of a pull; ask gives ids like {self.code}-1-0f3a."
            )
        if parts[0] != self.code:
            raise PullError(f"pull {identity!r} belongs to another study, not to {self.study!r}.")
        return int(parts[1])


# For classes in which `list` is a method.
Pulls = list[Pull]
Answers = list[Told]


# A reward; or a pull, its reward and, where limits are measured, its measurements.
RewardLike = (
    Reward
    | Mapping[str, Any]
    | tuple[str | Pull, float]
    | tuple[str | Pull, float, Mapping[str, float] | None]
)


_FIELDS = tuple(field.name for field in fields(Reward))


def as_reward(item: RewardLike) -> Reward:
    """A reward to tell, from itself, from its fields, or from a pull and its reward."""
    if isinstance(item, Reward):
        return item
    if isinstance(item, Mapping):
        unknown = item.keys() - _FIELDS
        if unknown:
            raise RewardError(
                f"a reward has no {', '.join(map(repr, sorted(unknown)))}; it may have "
                f"{', '.join(_FIELDS)}."
            )
        return Reward(**item)
    pull, reward, *measured = item
    return Reward(reward, id_of(pull), measured=measured[0] if measured else None)


def named(rewards: Sequence[Reward], key: str | None) -> list[Reward]:
    """Rewards with keys after that of their request; a pull is its own key."""
    if key is None:
        return [*rewards]
    return [
        replace(one, key=f"{key}#{i}") if one.arm is not None and one.key is None else one
        for i, one in enumerate(rewards)
    ]


def check_key(key: object) -> None:
    """Raise `SettingError` unless this can name a request or a reward; None names nothing."""
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= 200):
        raise SettingError(f"a key is a text of 1 to 200 characters; got {key!r}.")


def check_owner(by: object) -> None:
    """Raise `SettingError` unless pulls can be somebody's of this name."""
    if not (isinstance(by, str) and len(by.strip()) > 0 and len(by) <= 50 and by.isprintable()):
        raise SettingError(f"by: who makes a pull is a name of 1 to 50 characters; got {by!r}.")


def check_text(text: str, what: str) -> None:
    """Raise `SettingError` unless this can be kept in a journal."""
    if not text.strip() or len(text) > 10_000:
        raise SettingError(f"{what} a text of 1 to 10,000 characters.")


def place_in_words(place: Location) -> str:
    """Where a reward came from, as messages begin.

    Examples
    --------
    >>> place_in_words(Location(file="week 3.csv", line=7)), place_in_words(Location(row=2))
    ('week 3.csv, line 7', 'reward 3')
    """
    if place.line is not None:
        return f"line {place.line}" if place.file is None else f"{place.file}, line {place.line}"
    return f"reward {(place.row or 0) + 1}"
