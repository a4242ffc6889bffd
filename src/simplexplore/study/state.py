"""The state of a live study: what the events of its journal add up to.

It is a fold: events are taken in one after the other by the functions of a simulated
run. What happened is what the journal says; a replay gives the same state and the same next
arm, the random stream included. Nothing here touches a disk or a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from simplexplore.exploration.engine import Engine, streams
from simplexplore.exploration.plan import Plan
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, EXTENDED, LATE, TOLD

from .answer import answer_of, in_words, withdrawn_in_words
from .decision import Announced, Corrections, Decision, equal_arrays
from .events import KINDS, REWARDED, Event, link, rewards_in
from .pending import PendingPull
from .records import Answer, StateName

# Events that change what is known or pending, as compiled code calls them.
_CODES = {
    "asked": ASKED,
    "told": TOLD,
    "late": LATE,
    "expired": EXPIRED,
    "elsewhere": ELSEWHERE,
    "extended": EXTENDED,
    # What they are about is taken in apart, and then the evidence is looked at.
    "batch": EXTENDED,
    "confirmed": EXTENDED,
}


# Events before and after which nothing else is handed over: thresholds change, or the decision.
_ALONE = ("extended", "stopped", "ended", "batch", "confirmed")

# Events handed over at a time, so that one can say how far it is.
_BATCH = 5_000


class Held(NamedTuple):
    """A reward that looks impossible: nobody has said yet that it is meant.

    Attributes
    ----------
    pull : str or None
        The id of its pull; None if it was made elsewhere.
    arm : int
    reward : float
    usual : tuple of float
        Between which it would not have been noticed.
    n : int
        Of how many rewards it is the mean.
    """

    pull: str | None
    arm: int
    reward: float
    usual: tuple[float, float]
    n: int = 1


class State:
    """The state of a study after the events taken in so far.

    Attributes
    ----------
    engine : Engine
        Counts, means, allocation, random stream.
    seq : int
        Number of the last event.
    asked : int
        Pulls given out; they are numbered from 1.
    totals : dict
        Events by kind.
    rewards : int
        Rewards taken in.
    held : dict
        Rewards that look impossible, by the number of their event: while there are some, no
        evidence is enough.
    pending : dict
        Pulls without a reward that have not expired, by number, oldest first.
    decision : Decision or None
        What the study found, once it has stopped; None again after an extension.
    is_paused, is_archived : bool
        Whether it gives out pulls; whether it takes anything in.
    corrections : Corrections
        Rewards that were voided: they are left out here.
    announced : Announced
        The answer that stands, and how many were taken back.
    checksum : int
        Of the journal up to the last event; before the first, the study's number.
    """

    def __init__(
        self, plan: Plan, seed: int, checksum: int = 0, corrections: Corrections | None = None
    ) -> None:
        self.engine = Engine(plan)
        self.engine.reset(streams(seed, range(1))[0])
        self.seq = 0
        self.totals = dict.fromkeys(KINDS, 0)
        self.rewards = 0
        self.held: dict[int, Held] = {}
        self.pending: dict[int, PendingPull] = {}
        self.decision: Decision | None = None
        self.is_paused = self.is_archived = False
        self.corrections = corrections or Corrections()
        self.announced = Announced()
        self.checksum = checksum

    @property
    def name(self) -> StateName:
        """Whether the study runs or has stopped, in a word."""
        if self.is_archived:
            return "archived"
        if self.decision is not None:
            return "stopped"
        return "paused" if self.is_paused else "running"

    @property
    def answer(self) -> Answer | None:
        """What the study found, once it has stopped."""
        return None if self.decision is None else self.decision.answer

    @property
    def has_evidence(self) -> bool:
        """Whether there is a policy, or the finding that there is none, to have evidence of."""
        return self.engine.has_answer or self.engine.is_infeasible

    @property
    def asked(self) -> int:
        """Pulls given out."""
        return self.totals["asked"]

    # ------------------------------------------------------------------ taking events in

    def replay(self, events: Sequence[Event], *, rejudge: bool = False) -> None:
        """Take in what was recorded.

        With `rejudge` the evidence says when it was enough, not the journal.
        """
        for taken in self._folded(events, until_stopped=rejudge):
            for event in taken:
                self._apply(event)
            last = taken[-1]
            if self.decision is not None:
                continue
            if self.engine.is_enough:
                self._settle(last.seq, last.at, answer_of(self.engine))
            elif rejudge and last.kind == "ended" and self.has_evidence:
                self._settle(last.seq, last.at, answer_of(self.engine, _data(last)["reason"]))

    def _folded(self, events: Sequence[Event], *, until_stopped: bool) -> Iterator[list[Event]]:
        """Hand events to the engine, in pieces that it takes in at once."""
        for batch in self._batches(events):
            left = batch
            while left:
                taken = self._fold(left, until_stopped)
                yield taken
                left = left[len(taken) :]

    def _batches(self, events: Sequence[Event]) -> Iterator[list[Event]]:
        """Cut where thresholds change, and where a decision was taken: it keeps what was known.

        And before a reward that holds the decision: what comes before it may be enough.
        """
        batch: list[Event] = []
        decided = self.corrections.decision or {}
        for event in events:
            is_alone = event.kind in _ALONE
            if batch and (is_alone or self._holds(event)):
                yield batch
                batch = []
            batch.append(event)
            if is_alone or event.seq == decided.get("after") or len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def decide(self, proposed: Sequence[Event], at: float) -> list[Event]:
        """Take in what happens now, and return it as it is to be recorded.

        Pulls that are asked for are given arms, and where the evidence is enough after an
        event, that is an event of its own.
        """
        recorded: list[Event] = []

        def record(event: Event) -> None:
            content = (*event[:6], at, self.seq + 1)
            recorded.append(Event(*content, link(self.checksum, (*content, 0))))
            self._apply(recorded[-1])

        for taken in self._folded(proposed, until_stopped=True):
            for event in taken:
                record(event)
            if self.engine.is_enough and self.answer is None:
                record(Event("stopped", data=answer_of(self.engine)))
        return recorded

    def _fold(self, events: list[Event], until_stopped: bool) -> list[Event]:
        """Hand events to the engine; returns those taken in, with their arms."""
        first, voided = events[0], self.corrections.voided
        held = self._holds(first) or bool(self.held)
        if first.kind == "extended":
            self.engine.workspace.set_delta(_data(first)["delta"])
        elif first.kind == "batch" and first.seq not in voided:
            assert first.arm is not None
            assert first.reward is not None
            n, sd = _data(first)["n"], _data(first).get("sd", 0.0)
            self.engine.observe_sum(first.arm, n, first.reward, sd)
        elif first.kind == "confirmed":
            held = bool(self.held.keys() - {_data(first)["confirms"]})
        codes = [-1 if e.seq in voided else _CODES.get(e.kind, -1) for e in events]
        kinds = np.array(codes, dtype=np.int64)
        numbers = [-1 if e.arm is None else e.arm for e in events]
        arms = np.array(numbers, dtype=np.int64)
        rewards = np.array([0.0 if e.reward is None else e.reward for e in events])
        # Rewards of pending pulls still come in after a stop, and change nothing about it.
        watch = until_stopped and not held
        watch = watch and (self.decision is None or first.kind == "extended")
        measured = self._measurements(events)
        done = self.engine.fold(kinds, arms, rewards, measured, until_stopped=watch)
        return [
            event._replace(arm=int(arm)) if event.kind == "asked" else event
            for event, arm in zip(events[:done], arms, strict=False)
        ]

    def _measurements(self, events: list[Event]) -> npt.NDArray[np.float64] | None:
        """Measurements (events, rows), where limits are measured."""
        rows = self.engine.plan.problem.measured
        if not rows:
            return None
        found = np.zeros((len(events), len(rows)))
        for i, event in enumerate(events):
            if event.kind in REWARDED:
                values = _data(event)["measured"]
                found[i] = [values[row.name] for row in rows]
        return found

    def _apply(self, event: Event) -> None:
        """Bring up to date what the engine does not know: totals, pending pulls, answer."""
        kind, seq = event.kind, event.seq
        self.seq, self.checksum = seq, event.checksum
        if seq in self.corrections.voided:
            return
        self.totals[kind] += 1
        self.rewards += rewards_in(event)
        if self._holds(event):
            assert event.arm is not None
            assert event.reward is not None
            found = _data(event)["held"]
            low, high = found["usual"]
            n = rewards_in(event)
            self.held[seq] = Held(found.get("pull"), event.arm, event.reward, (low, high), n)
        elif kind == "confirmed":
            self.held.pop(_data(event)["confirms"], None)
        if kind in ("stopped", "ended", "extended", "voided"):
            self.announced = self.announced.then(event)
        if kind == "asked":
            assert event.pull is not None
            assert event.arm is not None
            self.pending[event.pull] = PendingPull(event.arm, event.at, _by(event))
        elif kind in ("told", "expired"):
            assert event.pull is not None
            del self.pending[event.pull]
        elif kind == "assigned":
            for number in _data(event)["numbers"]:
                if number in self.pending:
                    self.pending[number] = self.pending[number]._replace(by=_by(event))
        elif kind in ("stopped", "ended"):
            if seq > self.corrections.until:
                after = seq - 1 if kind == "stopped" else seq
                self._settle(after, event.at, cast(Answer, dict(_data(event))))
        elif kind == "extended":
            self.decision = None
        elif kind in ("paused", "archived", "resumed"):
            self.is_paused = kind == "paused" or (self.is_paused and kind == "archived")
            self.is_archived = kind == "archived"
        decided = self.corrections.decision
        if decided is not None and seq == decided["after"]:
            self._settle(event.seq, decided["at"], cast(Answer, dict(decided["answer"])))

    def _holds(self, event: Event) -> bool:
        """Whether an event has a reward that looks impossible."""
        has_data = event.kind in REWARDED and event.data is not None
        return has_data and "held" in _data(event) and event.seq not in self.corrections.voided

    def _settle(self, after: int, at: float, answer: Answer) -> None:
        self.decision = Decision(after, at, answer, self.engine.workspace.state())

    @property
    def deciding_engine(self) -> Engine:
        """What was known at the decision; before it, what is known now."""
        if self.decision is None or self.engine.pulls == self.decision.answer["rewards"]:
            return self.engine
        engine = self.engine.clone()
        engine.workspace.restore(self.decision.arrays)
        return engine

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        if self.answer is None:
            return "No answer yet."
        words = in_words(self.answer, self.engine.plan)
        withdrawn = self.withdrawn_in_words
        return words if withdrawn is None else f"{words} {withdrawn}"

    @property
    def withdrawn_in_words(self) -> str | None:
        """What answers that were taken back say of those that were not; None without any."""
        return withdrawn_in_words(self.announced.withdrawn, self.engine.plan)

    def same_as(self, other: State) -> bool:
        """Whether two states are equal to the last bit."""
        return (
            self._meta() == other._meta()
            and self.engine.plan.delta == other.engine.plan.delta
            and equal_arrays(self.engine.workspace.state(), other.engine.workspace.state())
            and (
                other.decision is None
                if self.decision is None
                else self.decision.same_as(other.decision)
            )
        )

    def _meta(self) -> tuple[object, ...]:
        """What the engine does not know, apart from the decision."""
        flags = self.is_paused, self.is_archived, self.corrections, self.announced
        return self.seq, self.checksum, self.totals, self.rewards, self.held, self.pending, flags


def _data(event: Event) -> Mapping[str, Any]:
    assert event.data is not None
    return event.data


def _by(event: Event) -> str | None:
    """Whose a pull is."""
    return None if event.data is None else event.data.get("by")
