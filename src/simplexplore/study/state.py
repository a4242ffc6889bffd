"""The state of a live study: what the events of its journal add up to.

It is a fold: events are taken in one after the other by the functions of a simulated
run. What happened is what the journal says; a replay gives the same state and the same next
arm, the random stream included. Nothing here touches a disk or a clock.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from simplexplore.exploration.engines import ExplorationEngine, engine_of
from simplexplore.exploration.moment import Moment, moment_of
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, EXTENDED, LATE, TOLD
from simplexplore.problem.spelling import at_least, at_most, policy_in_words

from .checksums import link
from .decision import CorrectedError, Corrections, Decision, equal_arrays
from .events import KINDS, REWARDED, Event, EventError
from .pending import PendingPull, PendingPulls
from .records import Answer, StateName, SureSoFar

# Events that change what is known or pending, as compiled code calls them.
_CODES = {
    "asked": ASKED,
    "told": TOLD,
    "late": LATE,
    "expired": EXPIRED,
    "elsewhere": ELSEWHERE,
    "extended": EXTENDED,
}


# Events handed over at a time, so that one can say how far it is.
_BATCH = 5_000

# Before names of arrays in a snapshot: as they were at the decision.
_KEPT = "decision/"


class State:
    """The state of a study after the events taken in so far.

    Attributes
    ----------
    engine : ExplorationEngine
        Counts, means, allocation, random stream.
    seq : int
        Number of the last event.
    asked : int
        Pulls given out; they are numbered from 1.
    totals : dict
        Events by kind.
    pending : PendingPulls
        Pulls without a reward that have not expired, by number, oldest first.
    decision : Decision or None
        What the study found, once it has stopped; None again after an extension.
    is_paused, is_archived : bool
        Whether it gives out pulls; whether it takes anything in.
    tags : list of str
        By which lists sort it.
    corrections : Corrections
        Rewards that were struck out: they are left out here.
    checksum : int
        Of the journal up to the last event; before the first, the study's number.
    """

    def __init__(
        self, plan: Plan, seed: int, checksum: int = 0, corrections: Corrections | None = None
    ) -> None:
        self.engine = engine_of(plan)
        self.engine.forget(streams(seed, range(1))[0])
        self.seq = 0
        self.totals = dict.fromkeys(KINDS, 0)
        self.pending = PendingPulls()
        self.decision: Decision | None = None
        self.is_paused = self.is_archived = False
        self.tags: list[str] = []
        self.corrections = corrections or Corrections()
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
    def asked(self) -> int:
        """Pulls given out."""
        return self.totals["asked"]

    @property
    def rewards(self) -> int:
        """Rewards taken in."""
        return sum(self.totals[kind] for kind in REWARDED)

    # ------------------------------------------------------------------ taking events in

    def replay(self, events: Sequence[Event], *, rejudge: bool = False) -> None:
        """Take in what was recorded; `EventError` if it cannot follow what was before.

        With `rejudge` the evidence says when it was enough, not the journal.
        """
        for batch in self._batches(events):
            self._check(batch)
            left = batch
            while left:
                taken = self._fold(left, until_stopped=rejudge)
                for event in taken:
                    self._apply(event)
                if self.engine.is_enough and self.decision is None:
                    self._settle(taken[-1].seq, taken[-1].at, self._found_now())
                left = left[len(taken) :]

    def _batches(self, events: Sequence[Event]) -> Iterator[list[Event]]:
        """Cut where thresholds change, and where a decision was taken: it keeps what was known."""
        self.engine.foresee(len(events))
        batch: list[Event] = []
        for event in events:
            is_cut = event.kind in ("extended", "stopped")
            if is_cut and batch:
                yield batch
                batch = []
            batch.append(event)
            if is_cut or event.seq == self.corrections.after or len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def decide(
        self, proposed: Sequence[Event], at: float, progress: Callable[[int], None] | None = None
    ) -> list[Event]:
        """Take in what happens now, and return it as it is to be recorded.

        Pulls that are asked for are given arms, and where the evidence is enough after an
        event, that is an event of its own. `progress` is told how many there are so far.
        """
        recorded: list[Event] = []

        def record(event: Event) -> None:
            content = (*event[:6], at, self.seq + 1)
            recorded.append(Event(*content, link(self.checksum, (*content, 0))))
            self._apply(recorded[-1])

        for batch in self._batches(proposed):
            left = batch
            while left:
                taken = self._fold(left, until_stopped=True)
                for event in taken:
                    record(event)
                if self.engine.is_enough and self.answer is None:
                    record(Event("stopped", data=self._found_now()))
                left = left[len(taken) :]
            if progress is not None:
                progress(len(recorded))
        return recorded

    def _check(self, events: list[Event]) -> None:
        """Raise `EventError` unless pulls are asked for, answered and expire in this order."""
        asked = self.asked
        changed: dict[int | None, int | None] = {}  # pulls and their arms, None if not pending
        for event in events:
            kind, pull = event.kind, event.pull
            if kind == "voided" and _data(event)["voids"] not in self.corrections.voided:
                raise CorrectedError
            if event.seq in self.corrections.voided:
                if kind not in REWARDED:
                    raise EventError(event.seq, f"({kind}) has no reward, and was struck out")
                continue
            if kind == "extended" and not 0 < _data(event)["delta"] < self.engine.plan.delta:
                before = self.engine.plan.delta
                raise EventError(event.seq, f"extends {before:g} to {_data(event)['delta']:g}")
            if pull is None:
                continue
            if kind == "asked":
                asked += 1
                if pull != asked:
                    raise EventError(event.seq, f"asks for pull {pull} where {asked} is next")
                changed[pull] = event.arm
                continue
            if pull > asked:
                raise EventError(event.seq, f"is about pull {pull}, which nobody asked for")
            pending = self.pending.get(pull)
            arm = changed.get(pull, None if pending is None else pending.arm)
            if kind == "late":
                if arm is not None:
                    raise EventError(event.seq, f"is late for pull {pull}, which is pending")
            elif arm != event.arm:
                raise EventError(
                    event.seq, f"is about pull {pull} of arm {event.arm}, which is not pending"
                )
            else:
                changed[pull] = None

    def _fold(self, events: list[Event], until_stopped: bool) -> list[Event]:
        """Hand events to the engine; returns those taken in, with their arms."""
        if events[0].kind == "extended":
            self.engine.tighten(_data(events[0])["delta"])
        voided = self.corrections.voided
        codes = [-1 if e.seq in voided else _CODES.get(e.kind, -1) for e in events]
        kinds = np.array(codes, dtype=np.int64)
        numbers = [-1 if e.arm is None else e.arm for e in events]
        # Compiled code does not look whether there is such an arm.
        if max(numbers) >= self.engine.plan.problem.size or min(numbers) < -1:
            raise EventError(events[0].seq, "or one just after it names an arm that is not there")
        arms = np.array(numbers, dtype=np.int64)
        rewards = np.array([0.0 if e.reward is None else e.reward for e in events])
        # Rewards of pending pulls still come in after a stop, and change nothing about it.
        watch = until_stopped and (self.decision is None or events[0].kind == "extended")
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
        if kind == "asked":
            assert event.pull is not None
            assert event.arm is not None
            self.pending.add(event.pull, PendingPull(event.arm, event.at))
        elif kind in ("told", "expired"):
            assert event.pull is not None
            del self.pending[event.pull]
        elif kind == "stopped":
            if seq > self.corrections.until:
                self._settle(seq - 1, event.at, cast(Answer, dict(_data(event))))
        elif kind == "extended":
            self.decision = None
        elif kind in ("paused", "archived", "resumed"):
            self.is_paused = kind == "paused" or (self.is_paused and kind == "archived")
            self.is_archived = kind == "archived"
        elif kind == "tagged":
            self.tags = list(_data(event)["tags"])
        if seq == self.corrections.after:
            found = self.corrections.decision
            assert found is not None
            self._settle(event.seq, found["at"], cast(Answer, dict(found["answer"])))

    def _settle(self, after: int, at: float, answer: Answer) -> None:
        self.decision = Decision(after, at, answer, self.engine.state())

    @property
    def deciding_engine(self) -> ExplorationEngine:
        """What was known at the decision; before it, what is known now."""
        if self.decision is None or self.engine.pulls == self.decision.answer["rewards"]:
            return self.engine
        engine = self.engine.twin()
        engine.restore(self.decision.arrays)
        return engine

    def _found_now(self) -> Answer:
        """The answer, with the evidence for it."""
        statistic, threshold = self.engine.weakest()
        problem, policy = self.engine.plan.problem, self.engine.policy
        means = problem.rewards.from_unit(self.engine.run.mean)
        shares = zip(problem.arms, policy.tolist(), strict=True)
        moment = None if problem.budget is None else moment_of(self.engine)
        found: Answer = {
            "policy": policy.tolist() if self.engine.has_answer else None,
            "mix": {arm: share for arm, share in shares if share > 0},
            "value": float(means @ policy) if self.engine.has_answer else None,
            "delta": self.engine.plan.delta,
            "rewards": self.engine.pulls,
            "statistic": statistic,
            "threshold": threshold,
        }
        if problem.measured:
            found["infeasible"] = self.engine.is_infeasible
        return found if moment is None else {**found, **_so_far(moment)}

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        if self.answer is None:
            return "No answer yet."
        plan = self.engine.plan
        problem = plan.problem
        if self.answer["policy"] is None:
            limits = " and ".join(row.in_words for row in problem.measured)
            mix = f"no mix keeps {limits}"
        else:
            mix = policy_in_words(np.array(self.answer["policy"]), problem.arms)
        if problem.budget is not None:
            return f"The answer, {self._sure_after(self.answer)}: {mix}."
        rule = "" if plan.threshold.is_proven(problem.rewards.name) else ", by a heuristic"
        within = ""
        if problem.accepted_regret and self.answer["policy"] is not None:
            kept = " and ".join(
                f"{row.in_words} (tolerance {row.tolerance:g})" for row in problem.measured
            )
            best = f"the best mix that keeps {kept}" if kept else "the best"
            within = f"within {problem.accepted_regret:g} of {best}, "
        sure = f"wrong with probability at most {self.answer['delta']:g}{rule}"
        return f"The answer, {within}{sure}: {mix}."

    @staticmethod
    def _sure_after(answer: Answer) -> str:
        """What can be said of an answer that came when the samples were spent."""
        confidence, lost = answer.get("confidence"), answer.get("regret_bound")
        words = f"after {answer['rewards']:,} samples (delta is not guaranteed)"
        if confidence is not None:
            words += f", with confidence {at_least(confidence)}"
        if lost is not None:
            words += f", and no mix is better by over {at_most(lost)}"
        return words

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state as bytes: arrays of numbers and a little JSON, nothing that runs code."""
        # Stores hold snapshots under these names ("books", "flights"): they stay.
        books = {
            "seq": self.seq,
            "totals": self.totals,
            "decision": None if self.decision is None else self.decision.to_data(),
            "delta": self.engine.plan.delta,
            "checksum": self.checksum,
            "paused": self.is_paused,
            "archived": self.is_archived,
            "tags": self.tags,
            "voided": sorted(self.corrections.voided),
            "until": self.corrections.until,
            "corrected": self.corrections.decision,
        }
        flights = [(number, pull.arm) for number, pull in self.pending.items()]
        kept = {} if self.decision is None else self.decision.arrays
        arrays = {
            **self.engine.state(),
            **{_KEPT + name: array for name, array in kept.items()},
            "books": np.frombuffer(json.dumps(books).encode(), dtype=np.uint8),
            "flights": np.array(flights, dtype=np.int64).reshape(-1, 2),
            "times": np.array([pull.at for pull in self.pending.values()], dtype=float),
        }
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_snapshot(cls, plan: Plan, data: bytes) -> State | None:
        """The state that a snapshot holds, or None if it cannot be used: it is only a cache."""
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = dict(file)
            books = json.loads(arrays.pop("books").tobytes())
            flights, times = arrays.pop("flights"), arrays.pop("times")
            state = cls(plan, 0)
            if books["delta"] != plan.delta:
                state.engine.tighten(books["delta"])
            kept = {name: arrays.pop(name) for name in list(arrays) if name.startswith(_KEPT)}
            state.engine.restore(arrays)
            state.seq, state.totals = books["seq"], dict.fromkeys(KINDS, 0) | books["totals"]
            state.checksum = books["checksum"]
            state.is_paused, state.is_archived = books["paused"], books["archived"]
            state.tags = books["tags"]
            voided = frozenset(books["voided"])
            state.corrections = Corrections(voided, books["until"], books["corrected"])
            if books["decision"] is not None:
                at_stop = {name.removeprefix(_KEPT): array for name, array in kept.items()}
                state.decision = Decision(**books["decision"], arrays=at_stop)
            for (number, arm), at in zip(flights, times, strict=True):
                state.pending.add(int(number), PendingPull(int(arm), float(at)))
        except (
            ValueError,
            KeyError,
            TypeError,
            OSError,
            EOFError,
            RuntimeError,
            zipfile.BadZipFile,
        ):
            return None
        return state

    def same_as(self, other: State) -> bool:
        """Whether two states are equal to the last bit."""
        return (
            self._books() == other._books()
            and self.engine.plan.delta == other.engine.plan.delta
            and equal_arrays(self.engine.state(), other.engine.state())
            and (
                other.decision is None
                if self.decision is None
                else self.decision.same_as(other.decision)
            )
        )

    def _books(self) -> tuple[object, ...]:
        """What the engine does not know, apart from the decision."""
        flags = self.is_paused, self.is_archived, self.tags, self.corrections
        return self.seq, self.checksum, self.totals, self.pending, flags


def _data(event: Event) -> Mapping[str, Any]:
    assert event.data is not None
    return event.data


def _so_far(moment: Moment) -> SureSoFar:
    lost = moment.regret_bound
    return {
        "confidence": moment.confidence,
        "regret_bound": lost if math.isfinite(lost) else None,
    }
