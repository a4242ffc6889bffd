"""Checksums by which a store finds out that something in it was damaged.

Stores hold these numbers: another definition needs a migration.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

from .events import to_json

_NUMBERS = struct.Struct("<qqqqdd")


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


def of_study(code: str, created: float, problem: str, settings: str) -> int:
    """The checksum of what is fixed when a study is made."""
    return zlib.crc32(repr((code, created, problem, settings)).encode())


def of_snapshot(data: bytes) -> int:
    """The checksum of a snapshot."""
    return zlib.crc32(data)
