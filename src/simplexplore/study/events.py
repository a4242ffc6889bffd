"""Events of a live study: what a journal is made of, and how damage to them is found.

Stores hold checksums: another definition is another version of the store.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

# A pull is asked for; its reward arrives in time, or after it had expired; it expires; a pull
# was made elsewhere; delta gets smaller; the evidence was enough; somebody says that it is good
# enough; pulls become somebody else's; a remark; a reward is struck out; no more pulls are given
# out for a while; the study is put aside; it goes on; many rewards of an arm by their sum; a reward
# that looked impossible is meant.
KINDS = (
    *("asked", "told", "late", "expired", "elsewhere", "extended", "stopped", "noted"),
    *("ended", "assigned", "voided", "paused", "archived", "resumed", "batch", "confirmed"),
)
REWARDED = ("told", "late", "elsewhere", "batch")

_NUMBERS = struct.Struct("<qqqqdd")


class Event(NamedTuple):
    """One line of the journal.

    ``seq`` counts from 1 without gaps; ``at`` is what the clock said, in seconds since 1970,
    and decides nothing; ``arm`` is a number; ``data`` holds what only one kind of event has:
    the answer of "stopped" and "ended", delta and the one before it of "extended", the text of
    "noted", of rewards their measurements where limits are measured, of "voided" what follows
    from it for the decision, see decision.py, and of pulls whose they are;
    ``checksum`` is that of the journal up to this event, see `link`.
    """

    kind: str
    pull: int | None = None
    arm: int | None = None
    reward: float | None = None
    key: str | None = None
    data: Mapping[str, Any] | None = None
    at: float = 0.0
    seq: int = 0
    checksum: int = 0


def rewards_in(event: Event) -> int:
    """How many rewards an event has."""
    if event.kind == "batch":
        assert event.data is not None
        return int(event.data["n"])
    return int(event.kind in REWARDED)


def to_json(data: Mapping[str, Any] | str) -> str:
    """The data of an event, as stores hold it."""
    return data if isinstance(data, str) else json.dumps(data)


def from_json(text: str | None) -> Any:
    """Read what `to_json` wrote; what is no JSON stays as it is: its checksum is wrong."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return str(text)


def link(previous: int, event: tuple[Any, ...]) -> int:
    """The checksum of a journal up to an event, from that up to the one before.

    `event` has the fields of `Event`, of which its own checksum does not count.

    An event that was changed, left out, doubled or moved breaks the chain at that place. Before
    the first event stands the study's number, so that journals cannot be mixed up either.
    """
    kind, pull, arm, reward, key, data, at, seq, _ = event
    try:
        text = kind.encode() + _NUMBERS.pack(
            previous,
            seq,
            -1 if pull is None else pull,
            -1 if arm is None else arm,
            math.nan if reward is None else reward,
            at,
        )
    except (AttributeError, struct.error):  # no event, but its place may be wanted all the same
        text = repr((previous, *event[:4], at, seq)).encode()
    if key is not None or data is not None:
        text += f"{key!r} {None if data is None else to_json(data)!r}".encode()
    return zlib.crc32(text)
