"""What people decide about a study: how sure it is to be, that it ends, pauses; and remarks."""

from __future__ import annotations

from functools import partial
from typing import Literal, cast

from simplexplore.errors import ConflictError, SettingError, StoppedError, StudyError

from .answer import answer_of
from .asking import paused
from .events import Event
from .pulls import check_text
from .records import Answer, EventRecord, event_record
from .transaction import Request, Transaction, once


def extending(delta: float, key: str | None) -> Request[Answer | None]:
    """Go on with a smaller delta; returns the answer, if the evidence is enough for it."""
    return once(key, partial(_extend, delta=delta, key=key))


def _extend(transaction: Transaction, delta: float, key: str | None) -> Answer | None:
    made, state = transaction.definition, transaction.state
    delta = made.plan.problem.replace(delta=delta).delta
    if transaction.earlier(Event("extended", key=key, data={"delta": delta})) is None:
        if state.is_archived:
            raise paused(made.ids.study, state, "cannot be extended")
        present = state.engine.plan.delta
        if not delta < present:
            raise SettingError(
                f"a study can only be extended to a smaller delta: it has {present:g}, got "
                f"{delta:g}."
            )
        event = Event("extended", key=key, data={"delta": delta, "before": present})
        transaction.record([event], transaction.now())
    return transaction.state.answer


def noting(text: str, key: str | None) -> Request[EventRecord]:
    """Put a remark into the journal."""
    check_text(text, "a note is")
    return once(key, partial(_note, event=Event("noted", key=key, data={"text": text})))


def _note(transaction: Transaction, event: Event) -> EventRecord:
    noted = transaction.earlier(event) or transaction.record([event], transaction.now())[0]
    return event_record(noted, transaction.definition)


def stopping(reason: str, key: str | None) -> Request[Answer]:
    """Say that what is known is good enough; returns the answer."""
    check_text(reason, "give a reason,")
    return once(key, partial(_stop, reason=reason, key=key))


def _stop(transaction: Transaction, reason: str, key: str | None) -> Answer:
    ended = transaction.earlier(Event("ended", key=key, data={"reason": reason}))
    if ended is None:
        state, study = transaction.state, transaction.definition.ids.study
        if state.is_archived:
            raise paused(study, state, "cannot be stopped")
        if state.answer is not None:
            raise StoppedError(f"study {study!r} has stopped. {state.answer_in_words}")
        if state.held:
            raise ConflictError(
                f"study {study!r} holds a reward that looks impossible: confirm or void it first."
            )
        if not state.has_evidence:
            raise StudyError(
                f"study {study!r} has nothing to recommend yet: every arm needs a reward first. "
                "To hand out no more pulls, pause it."
            )
        event = Event("ended", key=key, data=answer_of(state.engine, reason))
        ended = transaction.record([event], transaction.now())[0]
    return cast(Answer, dict(ended.data or {}))


def switching(kind: Literal["paused", "archived", "resumed"]) -> Request[None]:
    """Pause, archive or resume a study; nothing happens if that is how it is."""
    return Request(partial(_switch, kind=kind))


def _switch(transaction: Transaction, kind: str) -> None:
    state, study = transaction.state, transaction.definition.ids.study
    if kind == "paused" and state.is_archived:
        raise paused(study, state, "is not running")
    is_so = {
        "paused": state.is_paused,
        "archived": state.is_archived,
        "resumed": not (state.is_paused or state.is_archived),
    }
    if is_so[kind]:
        return
    if kind == "paused" and state.answer is not None:
        raise StoppedError(f"study {study!r} has stopped: it is not running.")
    transaction.record([Event(kind)], transaction.now())
