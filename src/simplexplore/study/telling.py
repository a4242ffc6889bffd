"""Rewards that a study is told together: checked one by one, then taken in or all refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from simplexplore.errors import (
    ConflictError,
    PullError,
    RewardError,
    SettingError,
    SimplexploreError,
)
from simplexplore.problem.problem import Problem

from .pull_ids import PullIds
from .pulls import Reward, Told, check_key
from .state import REWARDED, Event, Journal


class Intake:
    """Rewards on their way into a journal.

    Attributes
    ----------
    keys : list of str
        Under which rewards may have come before.
    is_repeatable : bool
        Whether telling all of them twice counts once.
    """

    def __init__(
        self, problem: Problem, ids: PullIds, rewards: Sequence[Reward], places: Sequence[str]
    ) -> None:
        self._problem, self._ids = problem, ids
        self._items = list(zip(rewards, places, strict=True))
        self._arms = {arm: a for a, arm in enumerate(problem.arms)}
        self._numbers: dict[str, int] = {}
        for item, place in self._items:
            with _placed(place):
                self._check(item)
                if item.pull is not None:
                    self._numbers[item.pull] = ids.number(item.pull)
        self.keys = [item.key for item in rewards if item.key is not None]
        # Without a pull or key, telling twice would count twice.
        self.is_repeatable = all(item.pull or item.key for item in rewards)

    def _check(self, item: Reward) -> None:
        """Refuse what can be refused without looking at the journal."""
        if (item.pull is None) == (item.arm is None):
            raise PullError(
                "name the pull, or the arm if the pull was made elsewhere: one of them."
            )
        if item.reward is None:
            raise RewardError("the reward is missing.")
        if item.arm is not None and item.arm not in self._arms:
            raise SettingError(
                f"there is no arm {item.arm!r}; arms: {', '.join(self._problem.arms)}."
            )
        check_key(item.key)
        self._problem.rewards.check_reward(item.reward)

    def landed(self, journal: Journal) -> list[int]:
        """Numbers of pulls that are not under way: of those, the journal has to be searched."""
        return [number for number in self._numbers.values() if number not in journal.flights]

    def settle(
        self, journal: Journal, landed: Sequence[Event], keyed: Sequence[Event]
    ) -> tuple[list[Event], list[Told]]:
        """What is to be recorded, and what becomes of each reward.

        `landed` and `keyed` are the recorded events of the pulls and keys above.
        """
        asked = {event.pull: event for event in landed if event.kind == "asked"}
        answered = {event.pull: event for event in landed if event.kind in REWARDED}
        known = {event.key: event for event in keyed}
        proposed, told = [], []
        for item, place in self._items:
            with _placed(place):
                event = (
                    self._of_a_pull(item, journal, asked)
                    if item.arm is None
                    else self._made_elsewhere(item, journal)
                )
                earlier = known.get(event.key) if event.key is not None else None
                if earlier is None and event.pull is not None:
                    earlier = answered.get(event.pull)
                if earlier is not None and _content(earlier) != _content(event):
                    raise _conflict(item, earlier)
            if earlier is None:
                proposed.append(event)
                if event.pull is not None:
                    answered[event.pull] = event
                if event.key is not None:
                    known[event.key] = event
            assert event.arm is not None
            arm = self._problem.arms[event.arm]
            outcome = event.kind if earlier is None else "repeated"
            told.append(Told(item.pull, arm, float(item.reward), outcome, stopped=False))
        return proposed, told

    def _made_elsewhere(self, item: Reward, journal: Journal) -> Event:
        assert item.arm is not None
        number = self._arms[item.arm]
        if not journal.engine.may_play(number):
            raise SettingError(
                f"no feasible policy uses arm {item.arm!r}, so its rewards say nothing; drop them."
            )
        return Event("elsewhere", arm=number, reward=float(item.reward), key=item.key)

    def _of_a_pull(self, item: Reward, journal: Journal, asked: dict[int | None, Event]) -> Event:
        assert item.pull is not None
        number = self._numbers[item.pull]
        flight = journal.flights.get(number)
        found = flight or asked.get(number)
        if (
            found is None
            or found.arm is None
            or self._ids.write(number, found.arm, found.at) != item.pull
        ):
            raise PullError(
                f"study {self._ids.study!r} never gave out a pull {item.pull!r}. If its store was "
                "put back from an older copy, tell the reward with the arm instead of the pull."
            )
        kind = "late" if flight is None else "told"
        return Event(kind, pull=number, arm=found.arm, reward=float(item.reward), key=item.key)


def _content(event: Event) -> tuple[int | None, int | None, float | None]:
    return event.pull, event.arm, event.reward


def _conflict(item: Reward, earlier: Event) -> ConflictError:
    if item.key is not None and earlier.key == item.key:
        return ConflictError(f"the key {item.key!r} was used for another reward or request.")
    return ConflictError(
        f"pull {item.pull!r} has the reward {earlier.reward!r} already, and now came "
        f"{float(item.reward)!r}. The first is kept; if it is wrong, note it."
    )


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say in which item of a batch something is wrong."""
    try:
        yield
    except SimplexploreError as error:
        if not place:
            raise
        raise type(error)(f"{place}: {error} Nothing was recorded.") from None
