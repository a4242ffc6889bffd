"""Pulls of a live study, their ids and their rewards, as they go in and out."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from simplexplore.errors import Place, PullError, SettingError


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
    """

    id: str
    arm: str
    at: float


@dataclass(frozen=True)
class Reward:
    """A reward to tell: of a pull, or of an arm that was played elsewhere.

    Attributes
    ----------
    reward : float
    pull : str or None
        The id of the pull.
    arm : str or None
        Instead of a pull, the arm that was played elsewhere.
    key : str or None
        With a key, telling it twice counts once.
    measured : mapping or None
        The measurements of the pull by name, if the problem has measured limits.

    Examples
    --------
    >>> Reward(7.5, arm="pizza", key="table 4").arm
    'pizza'
    """

    reward: float
    pull: str | None = None
    arm: str | None = None
    key: str | None = None
    measured: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Told:
    """How a reward was recorded.

    Attributes
    ----------
    pull : str or None
        The id of the pull; None for a pull made elsewhere.
    arm : str
    reward : float
    outcome : str
        ``"told"``; ``"late"`` (its pull had expired; it still counts); ``"elsewhere"`` (of a pull
        made elsewhere); ``"repeated"`` (it was known already).
    stopped : bool
        Whether the study has its answer.
    """

    pull: str | None
    arm: str
    reward: float
    outcome: str
    stopped: bool


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
    Reward | tuple[str | Pull, float] | tuple[str | Pull, float, Mapping[str, float] | None]
)


def as_reward(item: RewardLike) -> Reward:
    """A reward to tell, from itself or from a pull and its reward."""
    if isinstance(item, Reward):
        return item
    pull, reward, *measured = item
    identity = pull.id if isinstance(pull, Pull) else pull
    return Reward(reward, identity, measured=measured[0] if measured else None)


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


def place_in_words(place: Place) -> str:
    """Where a reward came from, as messages begin.

    Examples
    --------
    >>> place_in_words(Place(file="week 3.csv", line=7)), place_in_words(Place(row=2))
    ('week 3.csv, line 7', 'reward 3')
    """
    if place.line is not None:
        return f"line {place.line}" if place.file is None else f"{place.file}, line {place.line}"
    return f"reward {(place.row or 0) + 1}"
