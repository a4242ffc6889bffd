"""Pulls that were asked for and have neither a reward nor expired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PendingPull(NamedTuple):
    """A pull that is pending."""

    arm: int
    at: float
    by: str | None = None  # who makes it


def overdue(pending: Mapping[int, PendingPull], now: float, expire_after: float) -> list[int]:
    """Pulls that have been pending for too long: they expire when somebody asks next.

    A clock that was put back must not keep a pull for ever: one that seems to lie as far in the
    future is overdue as well.
    """
    return [number for number, pull in pending.items() if abs(now - pull.at) > expire_after]
