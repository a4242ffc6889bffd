"""What a live study does, wherever it is kept."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from simplexplore.tabular import Rows, Tabular

from .database import retried
from .pulls import Answers, Pull, Reward, RewardLike, Told, as_reward, id_of
from .records import Answer, EventRecord

if TYPE_CHECKING:
    from .status_records import Status
    from .telling import Unlikely

# Seconds between looks of who waits for an answer.
_INTERVAL = 1.0


class LiveStudy(Tabular):
    """A study of a store or of a service."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def status(self) -> Status: ...

    @property
    @abstractmethod
    def answer(self) -> Answer | None: ...

    @abstractmethod
    def _tell(self, rewards: Sequence[Reward], unlikely: Unlikely) -> Answers: ...

    @abstractmethod
    def _void(
        self, pull: str | None, event: int | None, reason: str, key: str | None
    ) -> EventRecord: ...

    @abstractmethod
    def _confirm(self, pull: str | None, event: int | None, key: str | None) -> EventRecord: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self) -> Rows:
        """One row per arm, as `status` has them."""
        return [dict(arm) for arm in self.status()["arms"]]

    def tell(
        self,
        pull: str | Pull | None = None,
        reward: float | None = None,
        *,
        measured: Mapping[str, float] | None = None,
        arm: str | None = None,
        key: str | None = None,
        n: int | None = None,
        mean: float | None = None,
        sd: float | None = None,
        successes: int | None = None,
        total: int | None = None,
        unlikely: Unlikely = "hold",
    ) -> Told:
        """Report the reward of a pull, or of an arm that was played elsewhere.

        Telling a pull twice is harmless if the reward is the same and refused otherwise. A reward
        of a pull made elsewhere counts each time it is told, unless it has a key.

        Many rewards of an arm may be told by their sum: `n` of them and their `mean` (Gaussian;
        with unknown sigma their standard deviation `sd` too), how many `successes` they have
        (Bernoulli), or their `total` (Poisson).

        Parameters
        ----------
        pull : str or Pull
            What `ask` gave, or its id.
        reward : float
            In the unit of the problem's means.
        measured : mapping, optional
            The measurements of the pull by name, if the problem has measured limits.
        arm : str, optional
            Instead of a pull, the arm that was played elsewhere.
        key : str, optional
            A name for the reward of an arm, so that telling it twice counts once; a sum needs one.
        n, successes, total : int, optional
        mean, sd : float, optional
        unlikely : str
            What becomes of a reward that looks impossible: ``"hold"`` (recorded, and the study does
            not stop before somebody confirms or voids it), ``"ask"`` (`UnlikelyError`, and nothing
            is recorded), or ``"accept"``.

        Returns
        -------
        Told
            How it was recorded, and whether the study has its answer now.

        Raises
        ------
        RewardError
            If the family cannot produce such a reward, or a measurement is missing.
        PullError
            If the study never handed out this pull.
        ConflictError
            If another reward is recorded for it; `void` strikes that out.
        """
        identity = None if pull is None else id_of(pull)
        told = Reward(reward, identity, arm, key, measured, n, mean, sd, successes, total)
        return self._tell([told], unlikely)[0]

    def tell_many(self, rewards: Iterable[RewardLike], *, unlikely: Unlikely = "hold") -> Answers:
        """Report many rewards at once: all are recorded, or none.

        Parameters
        ----------
        rewards : iterable of Reward, dict or tuple
            A dict has fields of `Reward`; a tuple is a pull, its reward and, with measured limits,
            its measurements.
        unlikely : str
            As for `tell`.

        Returns
        -------
        list of Told
            In the same order.

        Raises
        ------
        RewardError, PullError, ConflictError
            As `tell` does, naming the reward that is wrong.
        """
        wanted = [as_reward(item) for item in rewards]
        return self._tell(wanted, unlikely) if wanted else []

    def void(
        self,
        pull: str | Pull | None = None,
        *,
        reason: str,
        event: int | None = None,
        key: str | None = None,
    ) -> EventRecord:
        """Void a reward: the study goes on as if it had never been told.

        Parameters
        ----------
        pull : str or Pull
            Whose reward it is. The pull is pending again: another reward can be told for it, or
            it expires.
        reason : str
            Kept in the journal.
        event : int, optional
            Instead of a pull, the number of the reward in the journal (`events`), for pulls made
            elsewhere.
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Returns
        -------
        dict
            The event, as `events` has it.
        """
        return self._void(None if pull is None else id_of(pull), event, reason, key)

    def confirm(
        self,
        pull: str | Pull | None = None,
        *,
        event: int | None = None,
        key: str | None = None,
    ) -> EventRecord:
        """Say that a reward is meant although it looks impossible: it holds no decision any more.

        Parameters
        ----------
        pull : str or Pull
            Whose reward it is.
        event : int, optional
            Instead of a pull, the number of the reward in the journal (`status` names it).
        key : str, optional
            A name for the request: sent again under the same key, it happens once.

        Returns
        -------
        dict
            The event, as `events` has it.
        """
        return self._confirm(None if pull is None else id_of(pull), event, key)

    @property
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

    def wait(self, timeout: float | None = None) -> Answer | None:
        """Wait until the study has its answer; a database that restarts is waited for.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to give up.

        Returns
        -------
        dict or None
            The answer; None if there was none in time.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while (answer := retried(lambda: self.answer)) is None and (
            left := end - time.monotonic()
        ) > 0:
            time.sleep(min(_INTERVAL, left))
        return answer
