"""All errors that a user can cause or meet: one base class and its leaves.

Every message says what was given, what is wrong with it and what to do. The command line prints
the message and exits with status 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where in the input an error lies, as far as it is known.

    Parameters
    ----------
    file : str, optional
        Path of the file, as it was given.
    line : int, optional
        Its line, from 1.
    field : str, optional
        Name of the field, for example ``arms`` or ``reward``.
    row : int, optional
        Index of the row in what was handed over at once, from 0.
    """

    file: str | None = None
    line: int | None = None
    field: str | None = None
    row: int | None = None


class SimplexploreError(Exception):
    """Base class of all errors that a user can cause or meet.

    Attributes
    ----------
    place : Location or None
        Where the input is wrong, for programs; the message says it in words.
    """

    def __init__(self, message: str = "", *, place: Location | None = None) -> None:
        super().__init__(message)
        self.place = place


class ProblemError(SimplexploreError):
    """A problem's description is wrong: arms, rewards, delta, scenario, file."""


class ConstraintError(ProblemError):
    """A constraint cannot be read; the message points at the place."""


class InfeasibleError(ProblemError):
    """No policy satisfies all constraints.

    Attributes
    ----------
    conflict : tuple of str
        Names of constraints that cannot hold together; dropping any one of
        them would resolve this particular conflict.
    """

    def __init__(
        self, message: str, conflict: Sequence[str] = (), *, place: Location | None = None
    ) -> None:
        super().__init__(message, place=place)
        self.conflict = tuple(conflict)


class MeansError(SimplexploreError):
    """Means do not fit the problem: wrong length, not finite, outside the family's range."""


class RewardError(SimplexploreError):
    """A reward or measurement is impossible: not finite, or outside the family's range."""


class TooLargeError(SimplexploreError):
    """A size limit is exceeded; the message names the limit."""


class NotConvergedError(SimplexploreError):
    """A solver could not certify its answer; the message says how close it came."""


class SettingError(SimplexploreError):
    """An option, argument or file path is not usable: unknown name, bad number, not writable."""


class StudyError(SimplexploreError):
    """A live study refuses a request; nothing was changed."""


class UnknownStudyError(StudyError):
    """There is no study of that name in the store."""


class StoppedError(StudyError):
    """The study has its answer and hands out no more pulls; the message has the answer."""


class PausedError(StudyError):
    """The study is paused or archived, and refuses this until it is resumed."""


class PullError(StudyError):
    """The study never handed out this pull, or it belongs to another study."""


class ConflictError(StudyError):
    """Something else is recorded already: a name, a pull's reward, a request's key."""


class UnlikelyError(StudyError):
    """A reward looks impossible, and nobody has said yet that it is meant.

    Attributes
    ----------
    rewards : list of dict
        Of each: its `row` or `line`, `arm`, `reward`, and what is `usual`, low and high.
    """

    def __init__(
        self,
        message: str,
        rewards: Sequence[Mapping[str, object]] = (),
        *,
        place: Location | None = None,
    ) -> None:
        super().__init__(message, place=place)
        self.rewards = [*rewards]


class StoreError(SimplexploreError):
    """The store cannot be used: not there, damaged, full, or made by a newer version.

    Attributes
    ----------
    retryable : bool
        Whether the connection was lost, so that trying again may help.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, place: Location | None = None
    ) -> None:
        super().__init__(message, place=place)
        self.retryable = retryable


class ServiceError(SimplexploreError):
    """A service cannot be reached, or does not answer as it should."""


class AccessError(SimplexploreError):
    """A service needs a token, or one with another role."""
