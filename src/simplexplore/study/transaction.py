"""One transaction on a study: the latest state, and nobody else writes until it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.engine import Connection

from simplexplore import __version__
from simplexplore.errors import ConflictError
from simplexplore.exploration.intervals import known_means
from simplexplore.protocol import ALL

from .decision import Corrections
from .events import Event
from .journal import Journal
from .records import HistoryPoint
from .state import State
from .store import Store

# Events between snapshots: replaying them takes a fraction of a second.
SNAPSHOT_EVERY = 4_000

# The history has a point at every step of the logarithm of the number of rewards: 2% more. Means
# with their intervals, which take some milliseconds, are at fewer of them, and not of many arms.
HISTORY_STEP = 0.02
MEANS_STEP = 0.1
MEANS_CLOSE = 1e-3
MOST_MEANS = 100


class _Concluded(NamedTuple):
    """What is to be written besides events and points."""

    head: dict[str, Any]
    snapshot: bytes | None


class Transaction:
    """What decisions see and write, one after the other.

    All of them are written at the end, by one statement; until then those that come later are
    shown what is not in the store yet. Decisions that take long are taken before others are kept
    waiting, without a connection: they hold if nobody has recorded anything when they are written.

    Attributes
    ----------
    state : State
        All that others have recorded included.
    is_dirty : bool
        Whether the state is ahead of what the store is sure to hold.
    is_spoiled : bool
        Whether a decision broke off half-way: the state is of no use.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        connection: Connection | None,
        state: State,
        beginning: Callable[[Corrections], State],
    ) -> None:
        self._store, self._journal, self._connection = store, journal, connection
        self.state, self._beginning = state, beginning
        self.is_dirty = self.is_spoiled = False
        self._began = state.seq
        self._events: list[Event] = []
        self._points: list[HistoryPoint] = []
        self._now = 0.0
        self._in_journal: dict[str, list[Event]] = {}  # by key, of keys that were looked up
        self._keyed: dict[str, list[Event]] = {}  # recorded here, by key
        self._concluded: _Concluded | None = None

    def events_of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """What was recorded about pulls."""
        if not numbers:
            return []
        with self._connected() as connection:
            found = self._journal.of_pulls(connection, numbers)
        wanted = set(numbers)
        return found + [event for event in self._events if event.pull in wanted]

    def events_under_keys(self, keys: Sequence[str]) -> list[Event]:
        """What was recorded under keys."""
        self.look_up(keys)
        return [
            event
            for key in dict.fromkeys(keys)
            for event in (*self._in_journal[key], *self._keyed.get(key, ()))
        ]

    def look_up(self, keys: Sequence[str]) -> None:
        """Read what the journal has under keys, all at once for those who will want to know."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._in_journal]
        if unknown:
            with self._connected() as connection:
                self.remember(unknown, self._journal.under_keys(connection, unknown))

    def remember(self, keys: Sequence[str], found: Sequence[Event]) -> None:
        """Take what the journal has under keys from somebody who has looked."""
        self._in_journal |= {key: [] for key in keys}
        for event in found:
            assert event.key is not None
            self._in_journal[event.key].append(event)

    def _connected(self) -> AbstractContextManager[Connection]:
        return self._store.reading() if self._connection is None else nullcontext(self._connection)

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
        with self._connected() as connection:
            return self._journal.read(connection, seq - 1, 1)[0]

    def strike_out(self, seq: int) -> None:
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
        without = self._beginning(corrections)
        with self._connected() as connection, self._journal.explained():
            for events in self._journal.chunks(connection, 0, state.seq):
                without.replay(events, rejudge=not stays)
        found = None if without.decision is None else without.decision.to_data()
        without.corrections = corrections._replace(until=state.seq + 1, decision=found)
        self.state = without

    def record(
        self, proposed: Sequence[Event], now: float, progress: Callable[[int], None] | None = None
    ) -> list[Event]:
        """Decide; returns the events as they will be written."""
        assert self._concluded is None
        state = self.state
        rewards = state.rewards
        self.is_dirty = self.is_spoiled = True
        with self._journal.explained():
            recorded = state.decide(proposed, now, progress)
        if _has_evidence(state) and _is_due(rewards, state.rewards, recorded, HISTORY_STEP):
            self._points.append(self._point(now))
            few = state.engine.plan.problem.size <= MOST_MEANS
            if few and _is_due(rewards, state.rewards, recorded, MEANS_STEP):
                self._points[-1]["means"] = _means(state)
        self._events += recorded
        self._now = now
        for event in recorded:
            if event.key is not None:
                self._keyed.setdefault(event.key, []).append(event)
        self.is_spoiled = False
        return recorded

    def conclude(self) -> None:
        """Make ready what is to be written, if anything was decided; others need not wait yet."""
        if not self._events:
            return
        state = self.state
        head = {
            "head": state.seq,
            "changed": self._now,
            "state": state.name,
            "delta": state.engine.plan.delta,
            "asked": state.asked,
            "rewards": state.rewards,
            "pending": len(state.pending),
            "answer": None if state.answer is None else json.dumps(state.answer),
            "progress": _progress(state, self._points[-1] if self._points else None),
            "checksum": state.checksum,
            "tags": json.dumps(state.tags) if state.tags else None,
        }
        # After a correction the journal would have to be read from its beginning.
        is_due = state.seq // SNAPSHOT_EVERY > self._began // SNAPSHOT_EVERY or any(
            event.kind == "voided" for event in self._events
        )
        self._concluded = _Concluded(head, state.snapshot() if is_due else None)

    def write(self, connection: Connection) -> None:
        """Write what was decided, if anything was."""
        if self._concluded is None:
            return
        store, study = self._store, self._journal.study
        head, snapshot = self._concluded
        if self._connection is None:  # others may have changed their studies in the meantime
            head["changed"] = max(head["changed"], float(store.clock()))
        store.append(connection, study, self._events, head)
        for point in self._points:
            store.add_point(connection, study, point)
        if snapshot is not None:
            code = snapshot_code(self.state)
            store.save_snapshot(connection, study, code, self.state.seq, snapshot)

    def _point(self, now: float) -> HistoryPoint:
        state = self.state
        statistic, threshold = state.engine.weakest()
        return {
            "seq": state.seq,
            "at": now,
            "rewards": state.rewards,
            "statistic": statistic,
            "threshold": threshold,
            "policy": state.engine.policy.tolist() if state.engine.has_answer else None,
            "counts": [int(n) for n in state.engine.run.n],
        }


def _progress(state: State, point: HistoryPoint | None) -> float | None:
    """Which share of the evidence needed there is; None if it is as it was."""
    if state.answer is not None:
        return 1.0
    if point is None:  # without rewards that were struck out, some arm may have none again
        return None if state.engine.is_warm or not state.corrections.voided else 0.0
    return min(1.0, point["statistic"] / point["threshold"])


def _has_evidence(state: State) -> bool:
    """Whether there is a policy, or the finding that there is none, to have evidence of."""
    return state.engine.has_answer or state.engine.is_infeasible


def snapshot_code(state: State) -> str:
    """Which program can use a snapshot: this version, with this compiled code."""
    return f"{__version__} {state.engine.fingerprint}"


def _means(state: State) -> list[list[float | None]]:
    """Low, mean and high by arm: intervals that hold together, at every moment."""
    low, means, high = known_means(state.engine, MEANS_CLOSE)
    known = np.where(state.engine.run.n > 0, means, math.nan)
    rows = np.stack([low, known, high], axis=1).tolist()
    return [[one if math.isfinite(one) else None for one in row] for row in rows]


def _is_due(before: int, rewards: int, recorded: Sequence[Event], step: float) -> bool:
    """Whether the history needs a point: at every step, and where delta or state change.

    It depends on the journal alone, not on who writes.
    """
    if any(event.kind in ("stopped", "extended", "voided") for event in recorded):
        return True
    return rewards > before and (
        before == 0 or math.log(rewards) // step > math.log(before) // step
    )
