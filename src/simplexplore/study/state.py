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
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from simplexplore.exploration.engine import Engine
from simplexplore.exploration.moment import Moment, moment_of
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, EXTENDED, LATE, TOLD
from simplexplore.problem.spelling import policy_in_words

from .checksums import link
from .events import KINDS, REWARDED, Event, EventError
from .records import Answer, RunningOrStopped, SureSoFar

# Events that change what is known or pending, as compiled code calls them.
_CODES = {
    "asked": ASKED,
    "told": TOLD,
    "late": LATE,
    "expired": EXPIRED,
    "elsewhere": ELSEWHERE,
    "extended": EXTENDED,
}


class PendingPull(NamedTuple):
    """A pull that was asked for and has neither a reward nor expired."""

    arm: int
    at: float


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
    pending : dict
        Pulls without a reward that have not expired, by number, oldest first.
    answer : Answer or None
        What the study found, once it has stopped; None again after an extension.
    checksum : int
        Of the journal up to the last event; before the first, the study's number.
    """

    def __init__(self, plan: Plan, seed: int, checksum: int = 0) -> None:
        self.engine = Engine(plan)
        self.engine.forget(streams(seed, range(1))[0])
        self.seq = 0
        self.totals = dict.fromkeys(KINDS, 0)
        self.pending: dict[int, PendingPull] = {}
        self.answer: Answer | None = None
        self.checksum = checksum

    @property
    def name(self) -> RunningOrStopped:
        """Whether the study runs or has stopped, in a word."""
        return "running" if self.answer is None else "stopped"

    @property
    def asked(self) -> int:
        """Pulls given out."""
        return self.totals["asked"]

    @property
    def rewards(self) -> int:
        """Rewards taken in."""
        return sum(self.totals[kind] for kind in REWARDED)

    # ------------------------------------------------------------------ taking events in

    def replay(self, events: Sequence[Event]) -> None:
        """Take in what was recorded; `EventError` if it cannot follow what was before."""
        for batch in _split_at_extensions(events):
            self._check(batch)
            self._fold(batch)
            for event in batch:
                self._apply(event)

    def decide(self, proposed: Sequence[Event], at: float) -> list[Event]:
        """Take in what happens now, and return it as it is to be recorded.

        Pulls that are asked for are given arms, and where the evidence is enough after an
        event, that is an event of its own.
        """
        recorded: list[Event] = []

        def record(event: Event) -> None:
            event = event._replace(at=at, seq=self.seq + 1)
            recorded.append(event._replace(checksum=link(self.checksum, event)))
            self._apply(recorded[-1])

        for batch in _split_at_extensions(proposed):
            left = batch
            while left:
                taken = self._fold(left, until_stopped=True)
                for event in taken:
                    record(event)
                if self.engine.is_enough and self.answer is None:
                    record(Event("stopped", data=self._found_now()))
                left = left[len(taken) :]
        return recorded

    def _check(self, events: list[Event]) -> None:
        """Raise `EventError` unless pulls are asked for, answered and expire in this order."""
        asked = self.asked
        changed: dict[int | None, int | None] = {}  # pulls and their arms, None if not pending
        for event in events:
            kind, pull = event.kind, event.pull
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

    def _fold(self, events: list[Event], until_stopped: bool = False) -> list[Event]:
        """Hand events to the engine; returns those taken in, with their arms."""
        if events[0].kind == "extended":
            self.engine.tighten(_data(events[0])["delta"])
        kinds = np.array([_CODES.get(event.kind, -1) for event in events], dtype=np.int64)
        arms = np.array([-1 if e.arm is None else e.arm for e in events], dtype=np.int64)
        rewards = np.array([0.0 if e.reward is None else e.reward for e in events])
        # Compiled code does not look whether there is such an arm.
        if arms.max() >= self.engine.plan.problem.size or arms.min() < -1:
            raise EventError(events[0].seq, "or one just after it names an arm that is not there")
        # Rewards of pending pulls still come in after a stop, and change nothing about it.
        watch = until_stopped and (self.answer is None or events[0].kind == "extended")
        done = self.engine.fold(kinds, arms, rewards, until_stopped=watch)
        return [
            event._replace(arm=int(arm)) if event.kind == "asked" else event
            for event, arm in zip(events[:done], arms, strict=False)
        ]

    def _apply(self, event: Event) -> None:
        """Bring up to date what the engine does not know: totals, pending pulls, answer."""
        self.seq, self.checksum = event.seq, event.checksum
        self.totals[event.kind] += 1
        if event.kind == "asked":
            assert event.pull is not None
            assert event.arm is not None
            self.pending[event.pull] = PendingPull(event.arm, event.at)
        elif event.kind in ("told", "expired"):
            assert event.pull is not None
            del self.pending[event.pull]
        elif event.kind == "stopped":
            self.answer = cast(Answer, dict(_data(event)))
        elif event.kind == "extended":
            self.answer = None

    def _found_now(self) -> Answer:
        """The answer, with the evidence for it."""
        statistics, thresholds = self.engine.evidence()
        problem, policy = self.engine.plan.problem, self.engine.policy
        means = problem.rewards.from_unit(self.engine.run.mean)
        weakest = int(np.argmin(statistics - thresholds))
        shares = zip(problem.arms, policy.tolist(), strict=True)
        moment = None if problem.budget is None else moment_of(self.engine)
        found: Answer = {
            "policy": policy.tolist(),
            "mix": {arm: share for arm, share in shares if share > 0},
            "value": float(means @ policy),
            "delta": self.engine.plan.delta,
            "rewards": self.engine.pulls,
            "statistic": float(statistics[weakest]),
            "threshold": float(thresholds[weakest]),
        }
        return found if moment is None else {**found, **_so_far(moment)}

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        if self.answer is None:
            return "No answer yet."
        plan = self.engine.plan
        problem = plan.problem
        mix = policy_in_words(np.array(self.answer["policy"]), problem.arms)
        if problem.budget is not None:
            return f"The answer, {self._sure_after(self.answer)}: {mix}."
        rule = "" if plan.threshold.is_proven(problem.rewards.name) else ", by a rule of thumb"
        within = (
            f"within {problem.accepted_regret:g} of the best, " if problem.accepted_regret else ""
        )
        sure = f"wrong with probability at most {self.answer['delta']:g}{rule}"
        return f"The answer, {within}{sure}: {mix}."

    @staticmethod
    def _sure_after(answer: Answer) -> str:
        """What can be said of an answer that came when the samples were spent."""
        confidence, lost = answer.get("confidence"), answer.get("regret_bound")
        words = f"after {answer['rewards']:,} samples (no delta is promised)"
        if confidence is not None:
            words += f", with confidence {100 * confidence:.3g}%"
        if lost is not None:
            words += f", and no mix better by over {lost:.3g}"
        return words

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state as bytes: arrays of numbers and a little JSON, nothing that runs code."""
        # Stores hold snapshots under these names ("books", "flights"): they stay.
        books = {
            "seq": self.seq,
            "totals": self.totals,
            "answer": self.answer,
            "delta": self.engine.plan.delta,
            "checksum": self.checksum,
        }
        flights = [(number, pull.arm) for number, pull in self.pending.items()]
        arrays = {
            **self.engine.state(),
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
            state.engine.restore(arrays)
            state.seq, state.totals = books["seq"], books["totals"]
            state.answer, state.checksum = books["answer"], books["checksum"]
            state.pending = {
                int(number): PendingPull(int(arm), float(at))
                for (number, arm), at in zip(flights, times, strict=True)
            }
        except (ValueError, KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile):
            return None
        return state

    def same_as(self, other: State) -> bool:
        """Whether two states are equal to the last bit."""
        mine, theirs = self.engine.state(), other.engine.state()
        return (
            (self.seq, self.checksum, self.totals, self.pending, self.answer)
            == (other.seq, other.checksum, other.totals, other.pending, other.answer)
            and self.engine.plan.delta == other.engine.plan.delta
            and mine.keys() == theirs.keys()
            and all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)
        )


def _data(event: Event) -> Mapping[str, Any]:
    assert event.data is not None
    return event.data


def _split_at_extensions(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Cut before and after extensions: thresholds change there."""
    for is_extension, group in groupby(events, lambda event: event.kind == "extended"):
        if is_extension:
            yield from ([event] for event in group)
        else:
            yield list(group)


def overdue(pending: Mapping[int, PendingPull], now: float, expire_after: float) -> list[int]:
    """Pulls that have been pending for too long: they expire when somebody asks next.

    A clock that was put back must not keep a pull for ever: one that seems to lie as far in
    the future is overdue as well.
    """
    if math.isinf(expire_after):
        return []
    return [number for number, pull in pending.items() if abs(now - pull.at) > expire_after]


def _so_far(moment: Moment) -> SureSoFar:
    lost = moment.regret_bound
    return {
        "confidence": moment.confidence,
        "regret_bound": lost if math.isfinite(lost) else None,
    }
