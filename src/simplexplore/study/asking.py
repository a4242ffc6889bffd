"""Asking: which arms to play next, and what becomes of pulls that have no reward yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from simplexplore.errors import (
    ConflictError,
    PausedError,
    PullError,
    StoppedError,
    TooLargeError,
)
from simplexplore.problem.checks import whole_number

from .events import REWARDED, Event
from .pending import overdue
from .pulls import Pull, Pulls, check_key, check_owner, check_text
from .settings import Definition
from .state import State
from .transaction import Request, Transaction

# Pulls or rewards in one request: a request is one transaction.
MAX_BATCH = 100_000

# Pulls in flight: all of them are kept in memory, and listed in one answer.
MAX_PENDING = 100_000


def asking(n: int, key: str | None = None, by: str | None = None) -> Request[Pulls]:
    """Give out pulls, the same ones again under the same key; no more than a budget leaves."""
    whole_number(n, "n", 1)
    if n > MAX_BATCH:
        raise TooLargeError(f"at most {MAX_BATCH} pulls at a time; got n = {n}.")
    check_key(key)
    if by is not None:
        check_owner(by)
    # Asked again after a lost connection, pulls that nobody makes expire.
    return Request(partial(_ask, n=n, key=key, by=by), n, [] if key is None else [key])


def _ask(transaction: Transaction, n: int, key: str | None, by: str | None) -> Pulls:
    state, made = transaction.state, transaction.definition
    budget = made.plan.problem.budget
    earlier = [] if key is None else transaction.events_under_keys([key])
    if earlier:
        is_same = len(earlier) == n if budget is None else len(earlier) <= n
        if {event.kind for event in earlier} != {"asked"} or not is_same:
            raise ConflictError(f"the key {key!r} was used for another request.")
        return [_pull(event, made) for event in earlier]
    if state.answer is not None and not state.is_archived:
        further = "To go on with more confidence, extend it to a smaller delta."
        if budget is not None:
            further = "The budget is spent: for more samples, create another study."
        raise StoppedError(
            f"study {made.ids.study!r} has stopped and hands out no more pulls. "
            f"{state.answer_in_words} {further}"
        )
    if state.is_paused or state.is_archived:
        raise paused(made.ids.study, state, "gives no pulls")
    now = transaction.now()
    expired = overdue(state.pending, now, made.expire_after)
    left = len(state.pending) - len(expired)
    given = n
    if budget is not None:
        given = min(n, budget - state.rewards - left)
        if given <= 0:
            raise StoppedError(
                f"study {made.ids.study!r} has handed out all {budget:,} pulls of its "
                "budget; it has its answer when their rewards are told."
            )
    if left + given > MAX_PENDING:
        raise TooLargeError(
            f"study {made.ids.study!r} has {left:,} pulls in flight, and {given:,} more are "
            f"too many: at most {MAX_PENDING:,} may wait for their rewards. Tell these first, "
            "or let them expire (expire_after)."
        )
    proposed = [Event("expired", pull=number, arm=state.pending[number].arm) for number in expired]
    first = state.asked + 1
    data = None if by is None else {"by": by}
    proposed += [Event("asked", pull=first + i, key=key, data=data) for i in range(given)]
    recorded = transaction.record(proposed, now)
    return [_pull(event, made) for event in recorded if event.kind == "asked"]


def paused(study: str, state: State, what: str) -> PausedError:
    """What to say of a study that does not do something for now."""
    how = "archived" if state.is_archived else "paused"
    return PausedError(f"study {study!r} is {how} and {what}. 'resume' lets it go on.")


def _pull(event: Event, made: Definition) -> Pull:
    assert event.pull is not None
    assert event.arm is not None
    identity = made.ids.write(event.pull, event.arm, event.at)
    by = None if event.data is None else event.data["by"]
    return Pull(identity, made.plan.problem.arms[event.arm], event.at, by)


def pending_pulls(state: State, made: Definition) -> Iterator[tuple[int, Pull]]:
    """Pulls that have neither a reward nor expired, with their numbers, oldest first."""
    for number, one in state.pending.items():
        identity = made.ids.write(number, one.arm, one.at)
        yield number, Pull(identity, made.plan.problem.arms[one.arm], one.at, one.by)


def assigning(pulls: Sequence[str], by: str) -> Request[Pulls]:
    """Let pulls that are pending be somebody's; returns them."""
    check_owner(by)
    return Request(partial(_assign, pulls=pulls, by=by))


def _assign(transaction: Transaction, pulls: Sequence[str], by: str) -> Pulls:
    state, made = transaction.state, transaction.definition
    if state.is_archived:
        raise paused(made.ids.study, state, "records nothing")
    wanted: set[int] = set()
    for pull in pulls:
        number = _pending(transaction, pull)
        if number is None:
            raise PullError(f"pull {pull!r} has expired, so nobody makes it.")
        wanted.add(number)
    others = [number for number in sorted(wanted) if state.pending[number].by != by]
    if others:
        data = {"numbers": others, "by": by}
        transaction.record([Event("assigned", data=data)], transaction.now())
    return [pull for number, pull in pending_pulls(transaction.state, made) if number in wanted]


def releasing(pulls: Sequence[str], reason: str) -> Request[Pulls]:
    """Let pulls that were not made expire now; those that have expired stay as they are."""
    check_text(reason, "give a reason,")
    return Request(partial(_release, pulls=pulls, reason=reason), len(pulls))


def _release(transaction: Transaction, pulls: Sequence[str], reason: str) -> Pulls:
    state, made = transaction.state, transaction.definition
    if state.is_archived:
        raise paused(made.ids.study, state, "records nothing")
    numbers = dict.fromkeys(_pending(transaction, pull) for pull in pulls)
    released = [(n, pull) for n, pull in pending_pulls(state, made) if n in numbers]
    data = {"reason": reason}
    proposed = [Event("expired", n, state.pending[n].arm, data=data) for n, _ in released]
    if proposed:
        transaction.record(proposed, transaction.now())
    return [pull for _, pull in released]


def _pending(transaction: Transaction, pull: str) -> int | None:
    """The number of a pull that is pending, None if it has expired; it must not have a reward."""
    ids, state = transaction.definition.ids, transaction.state
    number = ids.number(pull)
    one = state.pending.get(number)
    if one is not None and ids.write(number, one.arm, one.at) == pull:
        return number
    if reward_of(transaction, pull) is not None:
        raise PullError(f"pull {pull!r} has a reward; if that is wrong, void it.")
    return None


def reward_of(transaction: Transaction, pull: str) -> Event | None:
    """The event of the reward that a pull has, None if it has none."""
    made, voided = transaction.definition, transaction.state.corrections.voided
    events = transaction.events_of_pulls([made.ids.number(pull)])
    if not any(event.kind == "asked" and _pull(event, made).id == pull for event in events):
        raise PullError(f"study {made.ids.study!r} never handed out a pull {pull!r}.")
    told = [event for event in events if event.kind in REWARDED and event.seq not in voided]
    return told[-1] if told else None
