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
from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, EXTENDED, LATE, TOLD
from simplexplore.problem.spelling import policy_in_words

from .events import KINDS, REWARDED, Event
from .records import Answer, RunningOrStopped

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
    last : Event or None
        The last event; None before the first and just after a snapshot was read.
    """

    def __init__(self, plan: Plan, seed: int) -> None:
        self.engine = Engine(plan)
        self.engine.forget(streams(seed, range(1))[0])
        self.seq = 0
        self.totals = dict.fromkeys(KINDS, 0)
        self.pending: dict[int, PendingPull] = {}
        self.answer: Answer | None = None
        self.last: Event | None = None

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
        """Take in what was recorded."""
        for batch in _split_at_extensions(events):
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
            recorded.append(event._replace(at=at, seq=self.seq + 1))
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

    def _fold(self, events: list[Event], until_stopped: bool = False) -> list[Event]:
        """Hand events to the engine; returns those taken in, with their arms."""
        if events[0].kind == "extended":
            self.engine.tighten(_data(events[0])["delta"])
        kinds = np.array([_CODES.get(event.kind, -1) for event in events], dtype=np.int64)
        arms = np.array([-1 if e.arm is None else e.arm for e in events], dtype=np.int64)
        rewards = np.array([0.0 if e.reward is None else e.reward for e in events])
        # Rewards of pending pulls still come in after a stop, and change nothing about it.
        watch = until_stopped and (self.answer is None or events[0].kind == "extended")
        done = self.engine.fold(kinds, arms, rewards, until_stopped=watch)
        return [
            event._replace(arm=int(arm)) if event.kind == "asked" else event
            for event, arm in zip(events[:done], arms, strict=False)
        ]

    def _apply(self, event: Event) -> None:
        """Bring up to date what the engine does not know: totals, pending pulls, answer."""
        self.seq, self.last = event.seq, event
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
        _, statistics, thresholds = self.engine.evidence()
        problem, policy = self.engine.plan.problem, self.engine.policy
        means = problem.rewards.from_unit(self.engine.run.mean)
        weakest = int(np.argmin(statistics - thresholds))
        shares = zip(problem.arms, policy.tolist(), strict=True)
        return {
            "policy": policy.tolist(),
            "mix": {arm: share for arm, share in shares if share > 0},
            "value": float(means @ policy),
            "delta": self.engine.plan.delta,
            "rewards": self.engine.pulls,
            "statistic": float(statistics[weakest]),
            "threshold": float(thresholds[weakest]),
        }

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        if self.answer is None:
            return "No answer yet."
        plan = self.engine.plan
        problem = plan.problem
        mix = policy_in_words(np.array(self.answer["policy"]), problem.arms)
        rule = "" if plan.threshold.is_proven(problem.rewards.name) else ", by a rule of thumb"
        within = f"within {problem.epsilon:g} of the best, " if problem.epsilon else ""
        sure = f"wrong with probability at most {self.answer['delta']:g}{rule}"
        return f"The answer, {within}{sure}: {mix}."

    def ends_with(self, event: Event) -> bool:
        """Whether an event, recorded under the number of the last one, is the last one."""
        last = self.last
        return last is None or (*last[:4], last.at) == (*event[:4], event.at)

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state as bytes: arrays of numbers and a little JSON, nothing that runs code."""
        # Stores hold snapshots under these names ("books", "flights"): they stay.
        books = {
            "seq": self.seq,
            "totals": self.totals,
            "answer": self.answer,
            "delta": self.engine.plan.delta,
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
        except (ValueError, KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile):
            return None
        state.seq, state.totals = books["seq"], books["totals"]
        state.answer = books["answer"]
        state.pending = {
            int(number): PendingPull(int(arm), float(at))
            for (number, arm), at in zip(flights, times, strict=True)
        }
        return state

    def same_as(self, other: State) -> bool:
        """Whether two states are equal to the last bit."""
        mine, theirs = self.engine.state(), other.engine.state()
        return (
            (self.seq, self.totals, self.pending, self.answer)
            == (other.seq, other.totals, other.pending, other.answer)
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
