"""Asking: which arms to play next, whose pulls expire at that moment."""

from __future__ import annotations

from simplexplore.errors import ConflictError, PausedError, StoppedError, TooLargeError
from simplexplore.problem.checks import whole_number

from .events import Event
from .pulls import Pull, Pulls, check_key
from .replica import Replica
from .state import State
from .transaction import Transaction

# Pulls or rewards in one request: a request is one transaction.
MAX_BATCH = 100_000

# Pulls in flight: all of them are kept in memory, and listed in one answer.
MAX_PENDING = 100_000


def ask(replica: Replica, n: int, key: str | None, expire_after: float) -> Pulls:
    """Give out pulls, the same ones again under the same key; no more than a budget leaves."""
    whole_number(n, "n", 1)
    if n > MAX_BATCH:
        raise TooLargeError(f"at most {MAX_BATCH} pulls at a time; got n = {n}.")
    check_key(key)
    budget = replica.plan.problem.budget

    def work(transaction: Transaction) -> Pulls:
        earlier = [] if key is None else transaction.events_under_keys([key])
        if earlier:
            is_same = len(earlier) == n if budget is None else len(earlier) <= n
            if {event.kind for event in earlier} != {"asked"} or not is_same:
                raise ConflictError(f"the key {key!r} was used for another request.")
            return [_pull(event, replica) for event in earlier]
        state = transaction.state
        if state.answer is not None and not state.is_archived:
            further = "To go on with more confidence, extend it to a smaller delta."
            if budget is not None:
                further = "The budget is spent: for more samples, create another study."
            raise StoppedError(
                f"study {replica.ids.study!r} has stopped and hands out no more pulls. "
                f"{state.answer_in_words} {further}"
            )
        if state.is_paused or state.is_archived:
            raise paused(replica.ids.study, state, "gives no pulls")
        now = replica.store.clock()
        expired = state.pending.overdue(now, expire_after)
        proposed = [
            Event("expired", pull=number, arm=state.pending[number].arm) for number in expired
        ]
        first, given = state.asked + 1, n
        if budget is not None:
            given = min(n, budget - state.rewards - len(state.pending) + len(expired))
            if given <= 0:
                raise StoppedError(
                    f"study {replica.ids.study!r} has handed out all {budget:,} pulls of its "
                    "budget; it has its answer when their rewards are told."
                )
        left = len(state.pending) - len(expired)
        if left + given > MAX_PENDING:
            raise TooLargeError(
                f"study {replica.ids.study!r} has {left:,} pulls in flight, and {given:,} more are "
                f"too many: at most {MAX_PENDING:,} may wait for their rewards. Tell these first, "
                "or let them expire (expire_after)."
            )
        proposed += [Event("asked", pull=first + i, key=key) for i in range(given)]
        recorded = transaction.record(proposed, now)
        return [_pull(event, replica) for event in recorded if event.kind == "asked"]

    # Asked again after a lost connection, pulls that nobody makes expire.
    keys = [] if key is None else [key]
    return replica.transact(work, idempotent=True, events=n, keys=keys)


def paused(study: str, state: State, what: str) -> PausedError:
    """What to say of a study that does not do something for now."""
    how = "archived" if state.is_archived else "paused"
    return PausedError(f"study {study!r} is {how} and {what}. 'resume' lets it go on.")


def _pull(event: Event, replica: Replica) -> Pull:
    assert event.pull is not None
    assert event.arm is not None
    identity = replica.ids.write(event.pull, event.arm, event.at)
    return Pull(identity, replica.plan.problem.arms[event.arm], event.at)
