"""Events of a live study: what a journal is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# A pull is asked for; its reward arrives in time, or after it had expired; it expires; a pull
# was made elsewhere; delta gets smaller; the evidence was enough; a remark.
KINDS = ("asked", "told", "late", "expired", "elsewhere", "extended", "stopped", "noted")
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
