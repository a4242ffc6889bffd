"""Pulls of a live study, and their rewards, as they go in and out."""

from __future__ import annotations

from dataclasses import dataclass

from simplexplore.errors import SettingError


@dataclass(frozen=True)
class Pull:
    """A pull to make: play the arm, then tell the reward under this id."""

    id: str
    arm: str
    at: float  # when it was asked for, in seconds since 1970


@dataclass(frozen=True)
class Reward:
    """A reward to tell: of a pull, or of an arm that was played elsewhere.

    With a key, telling it twice counts once.
    """

    reward: float
    pull: str | None = None
    arm: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Told:
    """What became of a reward.

    Attributes
    ----------
    outcome : str
        ``"told"``; ``"late"`` (its pull had been given up; it counts all the same);
        ``"elsewhere"`` (of a pull made elsewhere); ``"repeated"`` (known already).
    stopped : bool
        Whether the study has its answer.
    """

    pull: str | None
    arm: str
    reward: float
    outcome: str
    stopped: bool


def as_reward(item: Reward | tuple[str | Pull, float]) -> Reward:
    """A reward to tell, from itself or from a pull and a number."""
    if isinstance(item, Reward):
        return item
    pull, reward = item
    return Reward(reward, pull.id if isinstance(pull, Pull) else pull)


def check_key(key: object) -> None:
    """Raise `SettingError` unless this can name a request or a reward; None names nothing."""
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= 200):
        raise SettingError(f"a key is a text of 1 to 200 characters; got {key!r}.")
