"""One transaction on a study: the latest state, and nobody else writes until it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from simplexplore import __version__
from simplexplore.errors import ConflictError

from .events import Event
from .journal import Journal
from .records import HistoryPoint
from .state import State
from .store import Store

# Events between snapshots: replaying them takes a fraction of a second.
SNAPSHOT_EVERY = 4_000

# The history has a point at every step of the logarithm of the number of rewards: 2% more.
HISTORY_STEP = 0.02


class Transaction:
    """What a decision sees and writes.

    Attributes
    ----------
    state : State
        All that others have recorded included.
    is_dirty : bool
        Whether the state is ahead of what the store is sure to hold.
    """

    def __init__(
        self, store: Store, journal: Journal, connection: Connection, state: State
    ) -> None:
        self._store, self._journal, self._connection = store, journal, connection
        self.state = state
        self.is_dirty = False

    def events_of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """What was recorded about pulls."""
        return self._journal.of_pulls(self._connection, numbers)

    def events_under_keys(self, keys: Sequence[str]) -> list[Event]:
        """What was recorded under keys."""
        return self._journal.under_keys(self._connection, keys)

    def earlier(self, wanted: Event) -> Event | None:
        """The event that was recorded when the request of this key was made before, if it was."""
        found = [] if wanted.key is None else self.events_under_keys([wanted.key])
        if not found:
            return None
        known, data = dict(found[0].data or {}), dict(wanted.data or {})
        if found[0].kind != wanted.kind or known | data != known:
            raise ConflictError(f"the key {wanted.key!r} was used for another request.")
        return found[0]

    def record(self, proposed: Sequence[Event], now: float) -> list[Event]:
        """Decide and write; returns the events as they were recorded."""
        state, store, study = self.state, self._store, self._journal.study
        seq, rewards = state.seq, state.rewards
        self.is_dirty = True
        with self._journal.explained():
            recorded = state.decide(proposed, now)
        point = None
        if state.engine.is_warm and _is_due(rewards, state.rewards, recorded):
            point = self._point(now)
        store.append(
            self._connection,
            study,
            recorded,
            {
                "head": state.seq,
                "changed": now,
                "state": state.name,
                "delta": state.engine.plan.delta,
                "asked": state.asked,
                "rewards": state.rewards,
                "pending": len(state.pending),
                "answer": None if state.answer is None else json.dumps(state.answer),
                "progress": _progress(state, point),
                "checksum": state.checksum,
            },
        )
        if point is not None:
            store.add_point(self._connection, study, point)
        if state.seq // SNAPSHOT_EVERY > seq // SNAPSHOT_EVERY:
            code = snapshot_code(state)
            store.save_snapshot(self._connection, study, code, state.seq, state.snapshot())
        return recorded

    def _point(self, now: float) -> HistoryPoint:
        state = self.state
        statistics, thresholds = state.engine.evidence()
        weakest = int((statistics - thresholds).argmin())
        return {
            "seq": state.seq,
            "at": now,
            "rewards": state.rewards,
            "statistic": float(statistics[weakest]),
            "threshold": float(thresholds[weakest]),
            "policy": state.engine.policy.tolist(),
        }


def _progress(state: State, point: HistoryPoint | None) -> float | None:
    """Which share of the evidence needed there is; None if it is as it was."""
    if state.answer is not None:
        return 1.0
    return None if point is None else min(1.0, point["statistic"] / point["threshold"])


def snapshot_code(state: State) -> str:
    """Which program can use a snapshot: this version, with this compiled code."""
    return f"{__version__} {state.engine.fingerprint}"


def _is_due(before: int, rewards: int, recorded: Sequence[Event]) -> bool:
    """Whether the history needs a point: at every 2% more rewards, and where delta or state change.

    It depends on the journal alone, not on who writes.
    """
    if any(event.kind in ("stopped", "extended") for event in recorded):
        return True
    return rewards > before and (
        before == 0 or math.log(rewards) // HISTORY_STEP > math.log(before) // HISTORY_STEP
    )
