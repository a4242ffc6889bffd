"""Pulls that were asked for and have neither a reward nor expired."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import NamedTuple


class PendingPull(NamedTuple):
    """A pull that is pending."""

    arm: int
    at: float
    by: str | None = None  # who makes it


class PendingPulls(dict[int, PendingPull]):
    """Pending pulls by number, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self._latest = -math.inf
        self._is_ordered = True

    def add(self, number: int, pull: PendingPull) -> None:
        """Add a pull that was asked for after all others."""
        self[number] = pull
        self._is_ordered &= pull.at >= self._latest
        self._latest = max(self._latest, pull.at)

    def overdue(self, now: float, expire_after: float) -> list[int]:
        """Pulls that have been pending for too long: they expire when somebody asks next.

        A clock that was put back must not keep a pull for ever: one that seems to lie as far in
        the future is overdue as well.
        """
        if math.isinf(expire_after):
            return []
        if self._is_ordered and self._latest - now <= expire_after:
            # There may be many, and those that are overdue come first.
            return [
                number
                for number, _ in takewhile(lambda one: now - one[1].at > expire_after, self.items())
            ]
        return [number for number, pull in self.items() if abs(now - pull.at) > expire_after]
