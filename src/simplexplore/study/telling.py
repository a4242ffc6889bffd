"""Telling: rewards that come together are checked one by one, then all taken in or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from simplexplore.errors import (
    ConflictError,
    Location,
    PullError,
    RewardError,
    SettingError,
    SimplexploreError,
    UnlikelyError,
)
from simplexplore.problem.measured import check_measurements
from simplexplore.problem.messages import unknown

from .asking import paused
from .events import REWARDED, Event, rewards_in
from .outliers import Outliers
from .pulls import Answers, Reward, Told, check_key, place_in_words
from .sums import check_sum
from .transaction import Request, Transaction

# What becomes of rewards that look impossible.
Unlikely = Literal["hold", "ask", "accept"]


class Outcome(NamedTuple):
    """What becomes of a reward.

    Attributes
    ----------
    pull : str or None
    arm : str
    reward : float
        Of many, their mean.
    outcome : str
        See `Told`.
    usual : tuple of float or None
        Where rewards of the arm lie, if this one looks impossible.
    """

    pull: str | None
    arm: str
    reward: float
    outcome: str
    usual: tuple[float, float] | None = None


def checking(rewards: Sequence[Reward]) -> Request[list[Outcome | SimplexploreError]]:
    """Say what would become of each reward, or what is wrong with it."""
    return Request(partial(_check, rewards=rewards), len(rewards), _keys(rewards))


def _check(
    transaction: Transaction, rewards: Sequence[Reward]
) -> list[Outcome | SimplexploreError]:
    return _Telling(transaction, rewards, "hold").resolve()[1]


def telling(
    rewards: Sequence[Reward],
    places: Sequence[Location] | None = None,
    unlikely: Unlikely = "hold",
) -> Request[Answers]:
    """Record rewards; messages name the place of the one that is wrong.

    One that looks impossible holds the decision, is asked about, or is accepted.
    """
    if places is None:
        places = [Location(row=i) for i in range(len(rewards))]
    if unlikely not in get_args(Unlikely):
        raise SettingError(f"unlikely is 'hold', 'ask' or 'accept'; got {unlikely!r}.")
    work = partial(_tell, rewards=rewards, places=places, unlikely=unlikely)
    # Without a pull or key, telling twice would count twice.
    is_idempotent = all(item.pull or item.key for item in rewards)
    return Request(work, len(rewards), _keys(rewards), is_idempotent)


def _keys(rewards: Sequence[Reward]) -> list[str]:
    return [item.key for item in rewards if isinstance(item.key, str)]


def _tell(
    transaction: Transaction,
    rewards: Sequence[Reward],
    places: Sequence[Location],
    unlikely: Unlikely,
) -> Answers:
    if transaction.state.is_archived:
        raise paused(transaction.definition.ids.study, transaction.state, "takes no rewards")
    proposed, found = _Telling(transaction, rewards, unlikely).resolve()
    outcomes = [
        _right(one, place, is_alone=len(rewards) == 1)
        for one, place in zip(found, places, strict=True)
    ]
    if unlikely == "ask":
        _ask(outcomes, places)
    if proposed:
        transaction.record(proposed, transaction.now())
    stopped = transaction.state.answer is not None
    return [
        Told(*one[:4], stopped=stopped, held=unlikely == "hold" and one.usual is not None)
        for one in outcomes
    ]


def _right(found: Outcome | SimplexploreError, place: Location, *, is_alone: bool) -> Outcome:
    """What becomes of a reward; what is wrong with it is raised, and names the place."""
    if isinstance(found, Outcome):
        return found
    if is_alone and place.file is None:
        found.place = place
        raise found
    text = f"{place_in_words(place)}: {found} Nothing was recorded."
    raise type(found)(text, place=place)


def _ask(outcomes: Sequence[Outcome], places: Sequence[Location]) -> None:
    """Raise `UnlikelyError` if a reward looks impossible."""
    found = [
        (place, one, one.usual)
        for one, place in zip(outcomes, places, strict=True)
        if one.usual is not None
    ]
    if not found:
        return
    place, first, (low, high) = found[0]
    where = "" if len(outcomes) == 1 and place.line is None else f"{place_in_words(place)}: "
    more = f" So do {len(found) - 1:,} more." if len(found) > 1 else ""
    raise UnlikelyError(
        f"{where}{first.reward:g} looks impossible for {first.arm!r}: all its rewards should lie "
        f"between {low:.4g} and {high:.4g}.{more} Nothing was recorded. Correct it or, if it is "
        "meant, accept it.",
        [
            {
                "row": place.row,
                "line": place.line,
                "arm": one.arm,
                "reward": one.reward,
                "usual": list(usual),
            }
            for place, one, usual in found
        ],
        place=place,
    )


class _Telling:
    """Rewards on their way into a journal.

    One that looks impossible holds the decision if `unlikely` is "hold".
    """

    def __init__(
        self, transaction: Transaction, rewards: Sequence[Reward], unlikely: Unlikely
    ) -> None:
        self._state, made = transaction.state, transaction.definition
        self._problem, self._ids = made.plan.problem, made.ids
        self._rewards, self._unlikely = rewards, unlikely
        self._arms = {arm: a for a, arm in enumerate(self._problem.arms)}
        self._outliers = Outliers(self._state)
        self._drafts = [self._draft(item) for item in rewards]
        pending, voided = self._state.pending, self._state.corrections.voided
        # Of pulls that are not pending, the journal has to be searched; and if rewards were voided,
        # of those that are: they may be pending again.
        of_pulls = transaction.events_of_pulls(
            [
                one.pull
                for one in self._drafts
                if isinstance(one, Event)
                and one.pull is not None
                and (voided or one.pull not in pending)
            ]
        )
        under_keys = transaction.events_under_keys(_keys(rewards))
        self._asked = {event.pull: event for event in of_pulls if event.kind == "asked"}
        rewarded = [event for event in of_pulls if event.kind in REWARDED]
        self._answered = {event.pull: event for event in rewarded if event.seq not in voided}
        self._voided = {event.pull: event.seq for event in rewarded if event.seq in voided}
        self._known = {event.key: event for event in under_keys if event.seq not in voided}
        self._proposed: list[Event] = []

    def resolve(self) -> tuple[list[Event], list[Outcome | SimplexploreError]]:
        """What is to be recorded, and what becomes of each reward, or is wrong with it."""
        found: list[Outcome | SimplexploreError] = []
        for item, draft in zip(self._rewards, self._drafts, strict=True):
            try:
                found.append(draft if isinstance(draft, Exception) else self._decide(item, draft))
            except SimplexploreError as error:
                found.append(error)
        return self._proposed, found

    # ------------------------------------------------------------------ without the journal

    def _draft(self, item: Reward) -> Event | SimplexploreError:
        """What is to be recorded of a reward, as if its pull were pending; or what is wrong."""
        try:
            if (item.pull is None) == (item.arm is None):
                raise PullError(
                    "name the pull, or the arm if the pull was made elsewhere: one of them."
                )
            if item.arm is not None and item.arm not in self._arms:
                raise SettingError(unknown("arm", item.arm, self._problem.arms))
            check_key(item.key)
            reward, data = check_sum(item, self._problem) if item.is_sum else self._checked(item)
            if item.arm is None:
                return Event("told", self._ids.number(item.pull), None, reward, item.key, data)
            arm, engine = self._arms[item.arm], self._state.engine
            if not engine.may_play(arm):
                why = engine.plan.why_unused(item.arm)
                raise SettingError(f"{why}, so its rewards say nothing; drop them.")
            kind = "batch" if item.is_sum else "elsewhere"
            return Event(kind, None, arm, reward, item.key, data)
        except SimplexploreError as error:
            return error

    def _checked(self, item: Reward) -> tuple[float, Mapping[str, Any] | None]:
        """A reward and what its event says beside it."""
        if item.reward is None:
            raise RewardError("the reward is missing.")
        self._problem.rewards.check_reward(item.reward)
        reward = float(item.reward) + 0.0  # SQLite knows no negative zero
        rows = self._problem.measured
        if not rows and item.measured is None:
            return reward, None
        values = check_measurements(rows, item.measured)
        found = {row.name: value + 0.0 for row, value in zip(rows, values, strict=True)}
        return reward, {"measured": found} if found else None

    # ------------------------------------------------------------------ one after the other

    def _decide(self, item: Reward, event: Event) -> Outcome:
        """What becomes of a reward after those before it."""
        if item.pull is not None:
            event = self._of_a_pull(item.pull, event)
        arm, reward = event.arm, event.reward
        assert arm is not None
        assert reward is not None
        name = self._problem.arms[arm]
        earlier = None if event.key is None else self._known.get(event.key)
        if earlier is None and event.pull is not None:
            earlier = self._answered.get(event.pull)
        if earlier is not None:
            if _content(earlier) != _content(event):
                raise _conflict(item, earlier)
            return Outcome(item.pull, name, reward, "repeated")
        if event.pull in self._voided:
            event = _with(event, replaces=self._voided[event.pull])
        n = rewards_in(event)
        usual = self._outliers.usual(arm, n)
        if usual is not None and usual[0] <= reward <= usual[1]:
            usual = None  # nothing has to be said of it
        if usual is not None and self._unlikely == "hold":
            of_pull = {} if item.pull is None else {"pull": item.pull}
            event = _with(event, held={"usual": [*usual], **of_pull})
        if usual is None or self._unlikely == "accept":
            self._outliers.take(arm, reward, n)
        self._proposed.append(event)
        if event.pull is not None:
            self._answered[event.pull] = event
        if event.key is not None:
            self._known[event.key] = event
        return Outcome(item.pull, name, reward, event.kind, usual)

    def _of_a_pull(self, pull: str, event: Event) -> Event:
        """The event with the arm of its pull, which may come late."""
        number = event.pull
        assert number is not None
        pending = self._state.pending.get(number)
        found = pending or self._asked.get(number)
        if (
            found is None
            or found.arm is None
            or self._ids.write(number, found.arm, found.at) != pull
        ):
            raise PullError(
                f"study {self._ids.study!r} never handed out a pull {pull!r}. If its store "
                "was restored from an older copy, tell the reward with the arm instead of the pull."
            )
        return event._replace(kind="late" if pending is None else "told", arm=found.arm)


def _with(event: Event, **data: Any) -> Event:
    return event._replace(data={**(event.data or {}), **data})


def _content(event: Event) -> tuple[object, ...]:
    data = event.data or {}
    beside = [data.get(name) for name in ("measured", "n", "sd")]
    return event.pull, event.arm, event.reward, *beside


def _conflict(item: Reward, earlier: Event) -> ConflictError:
    if item.key is not None and earlier.key == item.key:
        return ConflictError(f"the key {item.key!r} was used for another reward or request.")
    known, now = f"{earlier.reward!r}", f"{float(item.reward or 0.0)!r}"
    if item.measured:
        known += f" and the measurements {(earlier.data or {})['measured']!r}"
        now += f" and {dict(item.measured)!r}"
    return ConflictError(
        f"pull {item.pull!r} already has the reward {known}; got {now}. The first is "
        "kept; if it is wrong, void it first."
    )
