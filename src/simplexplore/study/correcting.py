"""Correcting: a reward is struck out, with a reason; the journal keeps both."""

from __future__ import annotations

from simplexplore.errors import ConflictError, PullError, SettingError

from .asking import paused
from .events import REWARDED, Event
from .pulls import check_key
from .replica import Replica
from .transaction import Transaction


def void(
    replica: Replica, pull: str | None, event: int | None, reason: str, key: str | None
) -> Event:
    """Strike out the reward of a pull, or that of an event."""
    if (pull is None) == (event is None):
        raise PullError("name the pull, or the number of the event for a pull made elsewhere.")
    if not reason.strip() or len(reason) > 10_000:
        raise SettingError("give a reason, a text of 1 to 10,000 characters.")
    check_key(key)
    number = None if pull is None else replica.ids.number(pull)

    def work(transaction: Transaction) -> Event:
        state = transaction.state
        if state.is_archived:
            raise paused(replica.ids.study, state, "cannot be corrected")
        found = [] if key is None else transaction.events_under_keys([key])
        if found and (found[0].kind != "voided" or (found[0].data or {})["reason"] != reason):
            raise ConflictError(f"the key {key!r} was used for another request.")
        if found:
            return found[0]
        if number is None:
            assert event is not None
            wrong = _of_event(transaction, event)
        else:
            wrong = _of_pull(transaction, replica, number, pull)
        transaction.strike_out(wrong.seq)
        decision = transaction.state.corrections.decision
        data = {"voids": wrong.seq, "reason": reason, "decision": decision}
        proposed = Event("voided", key=key, data=data)
        return transaction.record([proposed], replica.store.clock())[0]

    # Struck out twice, the second time there is nothing left to strike out. It takes as long as
    # taking in the whole journal, and should keep nobody waiting.
    return replica.transact(work, idempotent=key is not None, events=replica.head)


def _of_pull(transaction: Transaction, replica: Replica, number: int, pull: str | None) -> Event:
    events = transaction.events_of_pulls([number])
    asked = [event for event in events if event.kind == "asked"]
    if not any(
        replica.ids.write(number, event.arm, event.at) == pull
        for event in asked
        if event.arm is not None
    ):
        raise PullError(f"study {replica.ids.study!r} never handed out a pull {pull!r}.")
    voided = transaction.state.corrections.voided
    told = [event for event in events if event.kind in REWARDED and event.seq not in voided]
    if not told:
        raise PullError(f"pull {pull!r} has no reward, so there is none to strike out.")
    return told[-1]


def _of_event(transaction: Transaction, seq: int) -> Event:
    if type(seq) is not int or not 0 < seq <= transaction.state.seq:
        raise PullError(f"there is no event {seq!r}; the last one is {transaction.state.seq}.")
    found = transaction.event(seq)
    if found.kind not in REWARDED:
        raise PullError(f"event {seq} ({found.kind}) has no reward to strike out.")
    if seq in transaction.state.corrections.voided:
        raise ConflictError(f"the reward of event {seq} was struck out already.")
    return found
