"""Events of a live study: what a journal is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, EXTENDED, LATE, TOLD

# Events that change what is known or pending, by their names in the journal. The others:
# "stopped" (the evidence was enough) and "noted" (a remark).
KINDS = {
    "asked": ASKED,
    "told": TOLD,
    "late": LATE,
    "expired": EXPIRED,
    "elsewhere": ELSEWHERE,
    "extended": EXTENDED,
}
REWARDED = ("told", "late", "elsewhere")


class Event(NamedTuple):
    """One line of the journal.

    ``seq`` counts from 1 without gaps; ``at`` is what the clock said, in seconds since 1970,
    and decides nothing; ``arm`` is a number; ``data`` holds what only one kind of event has:
    the answer of "stopped", delta and the one before it of "extended", the text of "noted".
    """

    kind: str
    pull: int | None = None
    arm: int | None = None
    reward: float | None = None
    key: str | None = None
    data: Mapping[str, Any] | None = None
    at: float = 0.0
    seq: int = 0
