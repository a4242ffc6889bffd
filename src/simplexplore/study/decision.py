"""When a study was decided and on which evidence; what striking rewards out changes about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .events import Event
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
    """Rewards that were voided, and which decision that leaves.

    Without a reward, the evidence may have been enough at another moment, or never. What follows
    was worked out when it was voided and is in the journal, so that nobody decides it anew.
    """

    voided: frozenset[int] = frozenset()  # numbers of their events
    until: int = 0  # the last event that struck one out; stops recorded before it do not count
    decision: Mapping[str, Any] | None = None  # `Decision.to_data`

    @classmethod
    def of(cls, events: Sequence[Event]) -> Corrections:
        """All of a journal's events "voided"."""
        if not events:
            return cls()
        voided: set[int] = set()
        for event in events:
            assert event.data is not None
            voided.add(event.data["voids"])
            decision = event.data.get("decision")
        return cls(frozenset(voided), events[-1].seq, decision)


class Announced(NamedTuple):
    """The answer that stands, and how many were taken back as rewards were struck out.

    Each of these was an answer on other data, with a delta of its own. One that is the same without
    the rewards is not taken back (docs/theory/stopping.md).
    """

    # Its policy and words; None before any answer, () if no mix keeps the limits.
    answer: tuple[object, ...] | None = None
    withdrawn: int = 0

    def then(self, event: Event) -> Announced:
        """After one more event."""
        data = event.data or {}
        if event.kind in ("extended", "ended"):  # by hand, no delta is promised
            return self._replace(answer=None)
        if event.kind == "stopped":
            return self._replace(answer=_said(data))
        if event.kind != "voided":
            return self
        decision = data["decision"]
        left = None
        if decision is not None and not decision["answer"].get("by_hand"):
            left = _said(decision["answer"])
        lost = self.answer is not None and left != self.answer
        return Announced(left, self.withdrawn + lost)


def _said(answer: Mapping[str, Any]) -> tuple[object, ...]:
    words = (answer["words"],) if "words" in answer else ()
    return (*(answer.get("policy") or ()), *words)


def equal_arrays(mine: Arrays, theirs: Arrays) -> bool:
    """Whether arrays are equal to the last bit."""
    return mine.keys() == theirs.keys() and all(
        mine[name].tobytes() == theirs[name].tobytes() for name in mine
    )
