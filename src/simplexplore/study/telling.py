"""Telling: rewards that come together are checked one by one, then all taken in or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simplexplore.errors import (
    ConflictError,
    Place,
    PullError,
    RewardError,
    SettingError,
    SimplexploreError,
)

from .asking import paused
from .events import REWARDED, Event
from .pulls import Answers, Reward, Told, check_key, place_in_words
from .replica import Replica
from .state import State
from .transaction import Transaction


def check(
    replica: Replica, rewards: Sequence[Reward], places: Sequence[Place]
) -> tuple[list[str | None], list[SimplexploreError]]:
    """What would become of each reward, None if it is wrong, and all that is wrong."""
    faults: list[SimplexploreError] = []
    telling = Telling(replica, rewards, places, faults)

    def work(transaction: Transaction) -> list[str | None]:
        _, told = telling.settle(
            transaction.state,
            transaction.events_of_pulls(telling.not_pending(transaction.state)),
            transaction.events_under_keys(telling.keys),
        )
        return [None if one is None else one[3] for one in told]

    return replica.transact(work, idempotent=True, events=len(rewards)), faults


def tell(
    replica: Replica,
    rewards: Sequence[Reward],
    places: Sequence[Place],
    progress: Callable[[int, int], None] | None = None,
) -> Answers:
    """Record rewards; messages name the place of the one that is wrong."""
    if not rewards:
        return []
    telling = Telling(replica, rewards, places)

    def report(done: int) -> None:
        if progress is not None:
            progress(min(done, len(rewards)), len(rewards))

    def work(transaction: Transaction) -> Answers:
        report(0)
        if transaction.state.is_archived:
            raise paused(replica.ids.study, transaction.state, "takes no rewards")
        proposed, told = telling.settle(
            transaction.state,
            transaction.events_of_pulls(telling.not_pending(transaction.state)),
            transaction.events_under_keys(telling.keys),
        )
        if proposed:
            transaction.record(proposed, replica.store.clock(), report)
        stopped = transaction.state.answer is not None
        return [Told(*one, stopped=stopped) for one in told if one is not None]

    return replica.transact(
        work, idempotent=telling.is_idempotent, events=len(rewards), keys=telling.keys
    )


# Pull, arm, reward, and what becomes of it.
_Outcome = tuple[str | None, str, float, str]


class Telling:
    """Rewards on their way into a journal.

    With `faults` all that are wrong are listed there; without, the first one is raised.

    Attributes
    ----------
    keys : list of str
        Under which rewards may have come before.
    is_idempotent : bool
        Whether telling all of them twice counts once.
    """

    def __init__(
        self,
        replica: Replica,
        rewards: Sequence[Reward],
        places: Sequence[Place],
        faults: list[SimplexploreError] | None = None,
    ) -> None:
        self._problem, self._ids = replica.plan.problem, replica.ids
        self._names = [row.name for row in self._problem.measured]
        self._faults = faults
        self._wrong: set[int] = set()
        self._rewards, self._places = rewards, places
        self._arms = {arm: a for a, arm in enumerate(self._problem.arms)}
        self._numbers: dict[str, int] = {}
        self._measurements: list[dict[str, float] | None] = []
        for i, item in enumerate(rewards):
            measured = None
            try:
                measured = self._checked(item)
                if item.pull is not None:
                    self._numbers[item.pull] = self._ids.number(item.pull)
            except SimplexploreError as error:
                self._refuse(i, error)
            self._measurements.append(measured)
        self.keys = [item.key for item in rewards if item.key is not None]
        # Without a pull or key, telling twice would count twice.
        self.is_idempotent = all(item.pull or item.key for item in rewards)

    def _checked(self, item: Reward) -> dict[str, float] | None:
        """Measurements, if any; refuse what can be refused without looking at the journal."""
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
        values = self._problem.check_measurements(item.measured)
        # SQLite knows no negative zero.
        return {name: value + 0.0 for name, value in zip(self._names, values, strict=True)} or None

    def not_pending(self, state: State) -> list[int]:
        """Numbers of pulls that are not pending: of those, the journal has to be searched."""
        return [
            number
            for number in self._numbers.values()
            # One that is pending again had a reward, which was struck out.
            if number not in state.pending or state.corrections.voided
        ]

    def settle(
        self, state: State, of_pulls: Sequence[Event], under_keys: Sequence[Event]
    ) -> tuple[list[Event], list[_Outcome | None]]:
        """What is to be recorded, and what becomes of each reward.

        `of_pulls` and `under_keys` are the recorded events of the pulls and keys above.
        """
        asked = {event.pull: event for event in of_pulls if event.kind == "asked"}
        voided = state.corrections.voided
        rewarded = [event for event in of_pulls if event.kind in REWARDED]
        answered = {event.pull: event for event in rewarded if event.seq not in voided}
        struck_out = {event.pull: event.seq for event in rewarded if event.seq in voided}
        known = {event.key: event for event in under_keys if event.seq not in voided}
        proposed: list[Event] = []
        told: list[_Outcome | None] = []
        for i, item in enumerate(self._rewards):
            if i in self._wrong:
                told.append(None)
                continue
            try:
                event = self._event(i, item, state, asked)
                earlier = known.get(event.key) if event.key is not None else None
                if earlier is None and event.pull is not None:
                    earlier = answered.get(event.pull)
                if earlier is not None and _content(earlier) != _content(event):
                    raise _conflict(item, earlier)
            except SimplexploreError as error:
                self._refuse(i, error)
                told.append(None)
                continue
            if earlier is None:
                if event.pull in struck_out and event.pull is not None:
                    replacing = {"replaces": struck_out[event.pull]}
                    event = event._replace(data={**(event.data or {}), **replacing})
                proposed.append(event)
                if event.pull is not None:
                    answered[event.pull] = event
                if event.key is not None:
                    known[event.key] = event
            assert event.arm is not None
            arm = self._problem.arms[event.arm]
            outcome = event.kind if earlier is None else "repeated"
            told.append((item.pull, arm, float(item.reward), outcome))
        return proposed, told

    def _event(self, i: int, item: Reward, state: State, asked: dict[int | None, Event]) -> Event:
        """What is to be recorded of a reward."""
        if item.arm is None:
            kind, number, arm = self._of_a_pull(item, state, asked)
        else:
            kind, number, arm = "elsewhere", None, self._arms[item.arm]
            if not state.engine.may_play(arm):
                raise SettingError(
                    f"no feasible policy uses arm {item.arm!r}, so its rewards say nothing; drop "
                    "them."
                )
        values = self._measurements[i]
        data = None if values is None else {"measured": values}
        # SQLite knows no negative zero.
        return Event(kind, number, arm, float(item.reward) + 0.0, item.key, data)

    def _of_a_pull(
        self, item: Reward, state: State, asked: dict[int | None, Event]
    ) -> tuple[str, int, int]:
        """Whether it comes in time, the pull's number, and its arm."""
        assert item.pull is not None
        number = self._numbers[item.pull]
        pending = state.pending.get(number)
        found = pending or asked.get(number)
        if (
            found is None
            or found.arm is None
            or self._ids.write(number, found.arm, found.at) != item.pull
        ):
            raise PullError(
                f"study {self._ids.study!r} never handed out a pull {item.pull!r}. If its store "
                "was restored from an older copy, tell the reward with the arm instead of the pull."
            )
        return "late" if pending is None else "told", number, found.arm

    def _refuse(self, i: int, error: SimplexploreError) -> None:
        """Say which of the rewards is wrong; of a single one without a file, only as data."""
        place = self._places[i]
        if self._faults is not None:
            error.place = place
            self._faults.append(error)
            self._wrong.add(i)
            return
        if len(self._rewards) == 1 and place.file is None:
            error.place = place
            raise error
        text = f"{place_in_words(place)}: {error} Nothing was recorded."
        raise type(error)(text, place=place) from None


def _content(event: Event) -> tuple[object, ...]:
    return event.pull, event.arm, event.reward, (event.data or {}).get("measured")


def _conflict(item: Reward, earlier: Event) -> ConflictError:
    if item.key is not None and earlier.key == item.key:
        return ConflictError(f"the key {item.key!r} was used for another reward or request.")
    known, now = f"{earlier.reward!r}", f"{float(item.reward)!r}"
    if item.measured:
        known += f" and the measurements {(earlier.data or {})['measured']!r}"
        now += f" and {dict(item.measured)!r}"
    return ConflictError(
        f"pull {item.pull!r} already has the reward {known}; got {now}. The first is "
        "kept; if it is wrong, strike it out with 'void'."
    )
