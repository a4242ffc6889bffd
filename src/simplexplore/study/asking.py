"""Asking: which arms to play next, whose pulls expire at that moment."""

from __future__ import annotations

from simplexplore.errors import ConflictError, PausedError, StoppedError, TooLargeError
from simplexplore.problem.checks import whole_number

from .events import Event
from .pulls import Pull, Pulls, check_key
from .replica import Replica
from .state import State, overdue
from .transaction import Transaction

# Pulls or rewards in one request: a request is one transaction.
MAX_BATCH = 100_000


def ask(replica: Replica, n: int, key: str | None, expire_after: float) -> Pulls:
    """Give out pulls, the same ones again under the same key."""
    whole_number(n, "n", 1)
    if n > MAX_BATCH:
        raise TooLargeError(f"at most {MAX_BATCH} pulls at a time; got n = {n}.")
    check_key(key)

    def work(transaction: Transaction) -> Pulls:
        earlier = [] if key is None else transaction.events_under_keys([key])
        if earlier:
            if {event.kind for event in earlier} != {"asked"} or len(earlier) != n:
                raise ConflictError(f"the key {key!r} was used for another request.")
            return [_pull(event, replica) for event in earlier]
        state = transaction.state
        if state.answer is not None and not state.is_archived:
            raise StoppedError(
                f"study {replica.ids.study!r} has stopped and gives no more pulls. "
                f"{state.answer_in_words} To go on with more confidence, extend it to a smaller "
                "delta."
            )
        if state.is_paused or state.is_archived:
            raise paused(replica.ids.study, state, "gives no pulls")
        now = replica.store.clock()
        expired = overdue(state.pending, now, expire_after)
        proposed = [
            Event("expired", pull=number, arm=state.pending[number].arm) for number in expired
        ]
        first = state.asked + 1
        proposed += [Event("asked", pull=first + i, key=key) for i in range(n)]
        recorded = transaction.record(proposed, now)
        return [_pull(event, replica) for event in recorded if event.kind == "asked"]

    # Asked again after a lost connection, pulls that nobody makes expire.
    return replica.transact(work, idempotent=True, events=n)


def paused(study: str, state: State, what: str) -> PausedError:
    """What to say of a study that does not do something for now."""
    how = "archived" if state.is_archived else "paused"
    return PausedError(f"study {study!r} is {how} and {what}. 'resume' lets it go on.")


def _pull(event: Event, replica: Replica) -> Pull:
    assert event.pull is not None
    assert event.arm is not None
    identity = replica.ids.write(event.pull, event.arm, event.at)
    return Pull(identity, replica.plan.problem.arms[event.arm], event.at)
