"""A writer's turn at a study: the latest state, and nobody else decides until it is over."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from sqlalchemy.engine import Connection

from simplexplore import __version__
from simplexplore.errors import ConflictError

from .state import Event, Journal
from .store import Store

# Events between snapshots: replaying them takes a fraction of a second.
SNAPSHOT_EVERY = 4_000

# The history has a point at every step of the logarithm of the number of rewards: 2% more.
HISTORY_STEP = 0.02


class Turn:
    """What a decision sees and does, inside the one transaction that it is.

    Attributes
    ----------
    journal : Journal
        The state, all that others have recorded included.
    has_decided : bool
        Whether the state is ahead of what the store is sure to hold.
    """

    def __init__(self, store: Store, study: int, connection: Connection, journal: Journal) -> None:
        self._store, self._study, self._connection = store, study, connection
        self.journal = journal
        self.has_decided = False

    def of_pulls(self, numbers: Sequence[int]) -> list[Event]:
        """What was recorded about pulls."""
        return self._store.pulls(self._connection, self._study, numbers)

    def under_keys(self, keys: Sequence[str]) -> list[Event]:
        """What was recorded under keys."""
        return self._store.keys(self._connection, self._study, keys)

    def fulfilled(self, wanted: Event) -> Event | None:
        """The event with which the request that a key names was fulfilled before, if it was."""
        earlier = [] if wanted.key is None else self.under_keys([wanted.key])
        if not earlier:
            return None
        known, data = dict(earlier[0].data or {}), dict(wanted.data or {})
        if earlier[0].kind != wanted.kind or known | data != known:
            raise ConflictError(f"the key {wanted.key!r} was used for another request.")
        return earlier[0]

    def record(self, proposed: Sequence[Event], now: float) -> list[Event]:
        """Decide and write down; returns the events as they were recorded."""
        journal, store = self.journal, self._store
        seq, rewards = journal.seq, journal.rewards
        self.has_decided = True
        recorded = journal.decide(proposed, now)
        store.append(
            self._connection,
            self._study,
            recorded,
            {
                "head": journal.seq,
                "changed": now,
                "state": "running" if journal.answer is None else "stopped",
                "delta": journal.engine.plan.delta,
                "asked": journal.asked,
                "rewards": journal.rewards,
                "pending": len(journal.flights),
                "answer": None if journal.answer is None else json.dumps(journal.answer),
            },
        )
        if journal.engine.is_warm and _is_due(rewards, journal.rewards, recorded):
            self._add_to_history(now)
        if journal.seq // SNAPSHOT_EVERY > seq // SNAPSHOT_EVERY:
            data = journal.snapshot()
            store.keep(self._connection, self._study, code_of(journal), journal.seq, data)
        return recorded

    def _add_to_history(self, now: float) -> None:
        journal = self.journal
        _, statistics, thresholds = journal.engine.evidence()
        weakest = int((statistics - thresholds).argmin())
        self._store.add_point(
            self._connection,
            {
                "study": self._study,
                "seq": journal.seq,
                "at": now,
                "rewards": journal.rewards,
                "statistic": float(statistics[weakest]),
                "threshold": float(thresholds[weakest]),
                "policy": json.dumps(journal.engine.policy.tolist()),
            },
        )


def code_of(journal: Journal) -> str:
    """Which program can use a snapshot: this version, with this compiled code."""
    return f"{__version__} {journal.engine.fingerprint}"


def _is_due(before: int, rewards: int, recorded: Sequence[Event]) -> bool:
    """Whether the history needs a point: at every 2% more rewards, and where delta or state change.

    It depends on the journal alone, not on who writes.
    """
    if any(event.kind in ("stopped", "extended") for event in recorded):
        return True
    return rewards > before and (
        before == 0 or math.log(rewards) // HISTORY_STEP > math.log(before) // HISTORY_STEP
    )
