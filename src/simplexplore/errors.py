"""What can go wrong, as one base class and its leaves.

Every message names what came, what was wrong with it and what to do about it.
The command line prints the message and exits with status 2; nothing else in the
package turns these into text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
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
    """Base class of all errors a user can cause or meet.

    Attributes
    ----------
    place : Place or None
        Where the input is wrong, for programs; the message says it in words.
    """

    def __init__(self, message: str = "", *, place: Place | None = None) -> None:
        super().__init__(message)
        self.place = place


class ProblemError(SimplexploreError):
    """A problem's description is wrong: arms, rewards, delta, scenario, file."""


class ConstraintError(ProblemError):
    """One constraint cannot be read."""


class InfeasibleError(ProblemError):
    """No policy satisfies all constraints.

    Attributes
    ----------
    conflict : tuple of str
        Names of constraints that cannot hold together; dropping any one of
        them would resolve this particular conflict.
    """

    def __init__(
        self, message: str, conflict: Sequence[str], *, place: Place | None = None
    ) -> None:
        super().__init__(message, place=place)
        self.conflict = tuple(conflict)


class MeansError(SimplexploreError):
    """Means do not fit the problem: wrong length, not finite, outside the family's range."""


class RewardError(SimplexploreError):
    """A reward that the family cannot produce."""


class TooLargeError(SimplexploreError):
    """A stated size limit was met; the message names the limit."""


class NotConvergedError(SimplexploreError):
    """A solver could not certify its answer; the message says how far it came."""


class SettingError(SimplexploreError):
    """An option, argument or file path is not usable: unknown name, bad number, not writable."""


class StudyError(SimplexploreError):
    """A live study refuses a request; what was asked for changed nothing."""


class UnknownStudyError(StudyError):
    """There is no study of that name in the store."""


class StoppedError(StudyError):
    """The study has its answer and gives no more pulls; the message says the answer."""


class PausedError(StudyError):
    """The study is paused or archived; the message says what it does not do meanwhile."""


class PullError(StudyError):
    """A pull that the study never gave out, or that belongs to another study."""


class ConflictError(StudyError):
    """Something else is recorded already: a name, a pull's reward, a request's key."""


class StoreError(SimplexploreError):
    """The store cannot be used: not there, damaged, full, or made by a newer version.

    Attributes
    ----------
    passing : bool
        Whether the connection was lost, so that trying again may help.
    """

    def __init__(self, message: str, *, passing: bool = False, place: Place | None = None) -> None:
        super().__init__(message, place=place)
        self.passing = passing


class ServiceError(SimplexploreError):
    """A service cannot be reached, or does not answer as it should."""


class AccessError(SimplexploreError):
    """A service wants a token, or one that allows more."""
