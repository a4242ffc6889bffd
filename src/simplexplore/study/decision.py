"""When a study was decided and on which evidence; what striking rewards out changes about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .events import Event, EventError
from .records import Answer

Arrays = Mapping[str, npt.NDArray[np.generic]]


class Decision(NamedTuple):
    """A study's answer, and what was known then: rewards that come later do not touch it."""

    after: int  # number of the event with which the evidence was enough
    at: float
    answer: Answer
    arrays: Arrays  # the engine's state at that moment

    def to_data(self) -> dict[str, Any]:
        """As the event "voided" holds it."""
        return {"after": self.after, "at": self.at, "answer": self.answer}

    def same_as(self, other: Decision | None) -> bool:
        """Whether two decisions are equal to the last bit."""
        return (
            other is not None and self[:3] == other[:3] and equal_arrays(self.arrays, other.arrays)
        )


class Corrections(NamedTuple):
    """Rewards that were struck out, and which decision that leaves.

    Without a reward, the evidence may have been enough at another moment, or never. What follows
    was worked out when it was struck out and is in the journal, so that nobody decides it anew.
    """

    voided: frozenset[int] = frozenset()  # numbers of their events
    until: int = 0  # the last event that struck one out; stops recorded before it do not count
    decision: Mapping[str, Any] | None = None  # `Decision.to_data`

    @property
    def after(self) -> int | None:
        """The event after which the study was decided, if that is before the last correction."""
        return None if self.decision is None else int(self.decision["after"])

    @classmethod
    def of(cls, events: Sequence[Event]) -> Corrections:
        """All of a journal's events "voided"."""
        if not events:
            return cls()
        voided: set[int] = set()
        for event in events:
            assert event.data is not None
            seq = event.data["voids"]
            if seq in voided or not 0 < seq < event.seq:
                raise EventError(event.seq, f"strikes out event {seq}, which cannot be")
            voided.add(seq)
            decision = event.data.get("decision")
        return cls(frozenset(voided), events[-1].seq, decision)


class CorrectedError(Exception):
    """A reward was struck out that is part of a state: that has to be added up anew."""


def equal_arrays(mine: Arrays, theirs: Arrays) -> bool:
    """Whether arrays are equal to the last bit."""
    return mine.keys() == theirs.keys() and all(
        mine[name].tobytes() == theirs[name].tobytes() for name in mine
    )
