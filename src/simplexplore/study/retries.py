"""Trying again while a database cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from simplexplore.errors import StoreError

Result = TypeVar("Result")

# Seconds for which a lost connection is tried again: a database restarts in a few.
RETRY_FOR = 30.0


class Retries:
    """Attempts at the same thing, with longer and longer pauses."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pause = 0.05

    def wait_or_raise(self, error: StoreError) -> None:
        """Wait for the next attempt; raise if there is no use in one."""
        if not error.passing or time.monotonic() - self._started > RETRY_FOR:
            raise error
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, 1.0)


def retried(work: Callable[[], Result]) -> Result:
    """Do what may be done twice, again if the connection was lost."""
    retries = Retries()
    while True:
        try:
            return work()
        except StoreError as error:
            retries.wait_or_raise(error)
