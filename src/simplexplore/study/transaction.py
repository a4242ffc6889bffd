"""One transaction on a study: the latest state, and nobody else writes until it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from simplexplore.errors import ConflictError
from simplexplore.protocol import ALL

from .decision import Corrections
from .events import Event
from .journal import Journal
from .pulls import check_key
from .settings import Definition
from .snapshot import code_of, to_bytes
from .state import State

Result = TypeVar("Result")

# Events between snapshots: replaying them takes a fraction of a second.
SNAPSHOT_EVERY = 4_000

# Steps of the logarithm of the number of rewards at which the list of studies is told the progress,
# and events that change it at once.
_PROGRESS_STEP, _DECISIVE = 0.1, {"stopped", "ended", "extended", "voided"}


class Request(NamedTuple, Generic[Result]):
    """Something to be decided about a study.

    Attributes
    ----------
    work : function
        Decides, and returns what is answered. Where it refuses with an error, it has recorded
        nothing.
    events : int
        How many will be recorded.
    keys : list of str
        Under which it may have come before.
    idempotent : bool
        Whether it can safely be decided twice.
    """

    work: Callable[[Transaction], Result]
    events: int = 1
    keys: Sequence[str] = ()
    idempotent: bool = True


def once(
    key: str | None, work: Callable[[Transaction], Result], events: int = 1
) -> Request[Result]:
    """A request that happens once under its key, and should not be repeated without one."""
    check_key(key)
    return Request(work, events, [] if key is None else [key], idempotent=key is not None)


class Transaction:
    """What decisions see and write, one after the other.

    All of them are written at the end, by one statement; until then those that come later are
    shown what is not in the store yet. What the journal has under the keys of all requests was
    found before the first one is decided.

    Attributes
    ----------
    definition : Definition
    state : State
        All that others have recorded included.
    events : list of Event
        Recorded here.
    is_broken : bool
        Whether a decision broke off half-way: the state is of no use.
    """

    def __init__(
        self,
        definition: Definition,
        journal: Journal,
        state: State,
        keys: Sequence[str],
        found: Sequence[Event],
    ) -> None:
        self.definition, self.state = definition, state
        self.events: list[Event] = []
        self.is_broken = False
        self._journal = journal
        self._began, self._rewards = state.seq, state.rewards
        self._now = 0.0
        self._keyed: dict[str | None, list[Event]] = {key: [] for key in keys}
        for event in found:
            self._keyed[event.key].append(event)

    # ------------------------------------------------------------------ what was recorded

    def events_of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """What was recorded about pulls."""
        if not numbers:
            return []
        wanted = set(numbers)
        found = self._journal.of_pulls(numbers)
        return found + [event for event in self.events if event.pull in wanted]

    def events_under_keys(self, keys: Sequence[str]) -> list[Event]:
        """What was recorded under keys that a request has named."""
        return [event for key in dict.fromkeys(keys) for event in self._keyed[key]]

    def earlier(self, wanted: Event) -> Event | None:
        """The event that was recorded when the request of this key was made before, if it was."""
        found = [] if wanted.key is None else self.events_under_keys([wanted.key])
        if not found:
            return None
        known, data = dict(found[0].data or {}), dict(wanted.data or {})
        if found[0].kind != wanted.kind or known | data != known:
            raise ConflictError(f"the key {wanted.key!r} was used for another request.")
        return found[0]

    def event(self, seq: int) -> Event:
        """An event that was recorded."""
        return self._journal.read(seq - 1, 1)[0]

    # ------------------------------------------------------------------ deciding

    def now(self) -> float:
        """What the clock says, in seconds since 1970."""
        return self._journal.now()

    def void(self, seq: int) -> None:
        """Let the state be as if a reward had never been told; what is recorded next says so.

        Of a reward that came after the decision, that stays. Otherwise the evidence without it
        says whether and when there was enough.
        """
        state = self.state
        decision = state.decision
        stays = decision is not None and seq > decision.after
        corrections = Corrections(
            state.corrections.voided | {seq},
            ALL,
            decision.to_data() if decision is not None and stays else None,
        )
        without = beginning(self.definition, corrections)
        for events in self._journal.chunks(0, state.seq):
            without.replay(events, rejudge=not stays)
        found = None if without.decision is None else without.decision.to_data()
        without.corrections = corrections._replace(until=state.seq + 1, decision=found)
        self.state = without

    def record(self, proposed: Sequence[Event], now: float) -> list[Event]:
        """Decide; returns the events as they will be written."""
        self.is_broken = True
        self._now = now
        recorded = self.state.decide(proposed, now)
        self.events += recorded
        for event in recorded:
            if event.key is not None:
                self._keyed[event.key].append(event)
        self.is_broken = False
        return recorded

    # ------------------------------------------------------------------ writing

    def write(self, journal: Journal) -> None:
        """Write what was decided, if anything was."""
        if not self.events:
            return
        state = self.state
        head = {
            "head": state.seq,
            # Others may have changed their studies since it was decided.
            "changed": max(self._now, journal.now()),
            "state": state.name,
            "delta": state.engine.plan.delta,
            "asked": state.asked,
            "rewards": state.rewards,
            "pending": len(state.pending),
            "answer": None if state.answer is None else json.dumps(state.answer),
            "checksum": state.checksum,
        }
        kinds = {event.kind for event in self.events}
        if passes_step(self._rewards, state.rewards, _PROGRESS_STEP) or kinds & _DECISIVE:
            head["progress"] = progress_of(state)
        journal.append(self.events, head)
        # After a correction the journal would have to be read from its beginning.
        if state.seq // SNAPSHOT_EVERY > self._began // SNAPSHOT_EVERY or any(
            event.kind == "voided" for event in self.events
        ):
            journal.save_snapshot(code_of(state), state.seq, to_bytes(state))


def beginning(made: Definition, corrections: Corrections) -> State:
    """The state before the first event of a study."""
    return State(made.plan, made.seed, made.number, corrections)


def progress_of(state: State) -> float | None:
    """Which share of the evidence needed there is; None before there is any."""
    if state.answer is not None:
        return 1.0
    if not state.has_evidence:
        return None
    statistic, threshold = state.engine.evidence.weakest()
    return min(1.0, statistic / threshold)


def passes_step(before: int, after: int, step: float) -> bool:
    """Whether the logarithm of a number of rewards passes a multiple of a step."""
    return after > before and (before == 0 or math.log(after) // step > math.log(before) // step)
