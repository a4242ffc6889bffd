"""Evidence over time, for charts: derived from the journal by who wants to see it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from simplexplore.exploration.intervals import known_means

from .decision import Corrections
from .events import Event, rewards_in
from .records import HistoryPoint
from .settings import Definition
from .state import State
from .transaction import passes_step

# There is a point at every step of the logarithm of the number of rewards: 2% more. Means with
# their intervals, which take some milliseconds, are at fewer of them, and not of many arms.
HISTORY_STEP = 0.02
MEANS_STEP = 0.1
MEANS_CLOSE = 1e-3
MAX_MEANS = 100


class History(State):
    """A state that remembers how it came about.

    Attributes
    ----------
    points : list of dict
    """

    def __init__(self, made: Definition, corrections: Corrections) -> None:
        super().__init__(made.plan, made.seed, made.number, corrections)
        self.points: list[HistoryPoint] = []

    def take(self, events: Sequence[Event]) -> None:
        """Take in what was recorded, as `replay` does."""
        piece: list[Event] = []
        rewards = self.rewards
        for event in events:
            piece.append(event)
            before = rewards
            if event.seq not in self.corrections.voided:
                rewards += rewards_in(event)
            changed = event.kind in ("stopped", "ended", "extended", "voided")
            is_first = rewards > before and not self.points
            if changed or is_first or passes_step(before, rewards, HISTORY_STEP):
                self.replay(piece)
                piece = []
                if self.has_evidence:
                    if changed and self.points and self.points[-1]["seq"] == event.seq - 1:
                        del self.points[-1]  # the same, but for what has just changed
                    self.points.append(_point(self, event.at))
                    if changed or is_first or passes_step(before, rewards, MEANS_STEP):
                        _add_means(self, self.points[-1])
        self.replay(piece)


def _point(state: State, at: float) -> HistoryPoint:
    statistic, threshold = state.engine.evidence.weakest()
    return {
        "seq": state.seq,
        "at": at,
        "rewards": state.rewards,
        "statistic": statistic,
        "threshold": threshold,
        "policy": state.engine.policy.tolist() if state.engine.has_answer else None,
        "counts": [int(n) for n in state.engine.run.n],
    }


def _add_means(state: State, point: HistoryPoint) -> None:
    """Low, mean and high by arm: intervals that hold together, at every moment."""
    if state.engine.plan.problem.size > MAX_MEANS:
        return
    low, means, high = known_means(state.engine, MEANS_CLOSE)
    known = np.where(state.engine.run.n > 0, means, math.nan)
    rows = np.stack([low, known, high], axis=1).tolist()
    point["means"] = [[one if math.isfinite(one) else None for one in row] for row in rows]
