"""Voiding: a reward counts no longer, for a reason; the journal keeps both.

And confirming: a reward that looked impossible is meant, so that it holds no decision any more.
"""

from __future__ import annotations

from functools import partial

from simplexplore.errors import ConflictError, PullError

from .asking import paused, reward_of
from .events import REWARDED, Event
from .pulls import check_text
from .records import EventRecord, event_record
from .transaction import Request, Transaction, once


def voiding(
    pull: str | None, event: int | None, reason: str, key: str | None, events: int
) -> Request[EventRecord]:
    """Void the reward of a pull, or that of an event, in a journal of so many events."""
    _check_one(pull, event)
    check_text(reason, "give a reason,")
    # It takes as long as taking in the whole journal, and should keep nobody waiting.
    return once(key, partial(_void, pull=pull, event=event, reason=reason, key=key), events)


def _void(
    transaction: Transaction, pull: str | None, event: int | None, reason: str, key: str | None
) -> EventRecord:
    made, state = transaction.definition, transaction.state
    voided = transaction.earlier(Event("voided", key=key, data={"reason": reason}))
    if voided is None:
        if state.is_archived:
            raise paused(made.ids.study, state, "cannot be corrected")
        wrong = _reward(transaction, pull, event)
        transaction.void(wrong.seq)
        decision = transaction.state.corrections.decision
        data = {"voids": wrong.seq, "reason": reason, "decision": decision}
        voided = transaction.record([Event("voided", key=key, data=data)], transaction.now())[0]
    return event_record(voided, made)


def confirming(pull: str | None, event: int | None, key: str | None) -> Request[EventRecord]:
    """Say that the reward of a pull, or that of an event, is meant although it looks impossible."""
    _check_one(pull, event)
    return once(key, partial(_confirm, pull=pull, event=event, key=key))


def _confirm(
    transaction: Transaction, pull: str | None, event: int | None, key: str | None
) -> EventRecord:
    made, state = transaction.definition, transaction.state
    if state.is_archived:
        raise paused(made.ids.study, state, "records nothing")
    meant = _reward(transaction, pull, event)
    wanted = Event("confirmed", key=key, data={"confirms": meant.seq})
    confirmed = transaction.earlier(wanted)
    if confirmed is None:
        if meant.seq not in state.held:
            raise ConflictError(
                f"the reward of event {meant.seq} is not held: nobody has to say so."
            )
        confirmed = transaction.record([wanted], transaction.now())[0]
    return event_record(confirmed, made)


def _check_one(pull: str | None, event: int | None) -> None:
    if (pull is None) == (event is None):
        raise PullError("name the pull, or the number of the event for a pull made elsewhere.")


def _reward(transaction: Transaction, pull: str | None, event: int | None) -> Event:
    """The event of a reward that counts."""
    if pull is None:
        assert event is not None
        return _of_event(transaction, event)
    found = reward_of(transaction, pull)
    if found is None:
        raise PullError(f"pull {pull!r} has no reward, so there is none to void.")
    return found


def _of_event(transaction: Transaction, seq: int) -> Event:
    if type(seq) is not int or not 0 < seq <= transaction.state.seq:
        raise PullError(f"there is no event {seq!r}; the last one is {transaction.state.seq}.")
    found = transaction.event(seq)
    if found.kind not in REWARDED:
        raise PullError(f"event {seq} ({found.kind}) has no reward.")
    if seq in transaction.state.corrections.voided:
        raise ConflictError(f"the reward of event {seq} was voided already.")
    return found
