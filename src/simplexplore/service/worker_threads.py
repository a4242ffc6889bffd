"""Threads that requests work in, so that the event loop never waits for a study."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.exceptions import HTTPException

Result = TypeVar("Result")

# Requests that work at the same time. Writers of a study wait for each other anyway.
_THREADS = 32

# Heavy sums (bounds, replays) at the same time.
HEAVY = 2

# Seconds after which a request is given up; a first question may have to compile for 30.
TIMEOUT = 60.0


class WorkerThreads:
    """Two pools of threads: heavy sums have few of their own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "work")
        self._heavy = ThreadPoolExecutor(HEAVY, "heavy")

    def close(self) -> None:
        """Begin nothing more."""
        for threads in (self._threads, self._heavy):
            threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], Result], *, heavy: bool = False) -> Result:
        """Do something that takes time; give up waiting for it when it takes too much.

        What is given up keeps its thread until it ends, so that requests which are sent again
        and again do not pile up.
        """
        threads = self._heavy if heavy else self._threads
        task = asyncio.get_running_loop().run_in_executor(threads, work)
        try:
            return await asyncio.wait_for(task, TIMEOUT)
        except TimeoutError:
            raise HTTPException(
                503,
                f"there was no answer within {TIMEOUT:g} s, and what was asked for may still "
                "happen. Try again, under the same idempotency key.",
                {"Retry-After": "2"},
            ) from None
