"""Threads that requests work in, so that the event loop never waits for a study."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.exceptions import HTTPException

from .fair_queue import FairQueue

Result = TypeVar("Result")

# Requests that work at the same time, of all tokens and of one. Writers of a study wait for each
# other anyway.
_THREADS = 64
SHARE = 16

# Seconds after which a request is given up.
TIMEOUT = 60.0


class WorkerThreads:
    """A pool of threads, fairly shared."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "work")
        self._queue = FairQueue(_THREADS, SHARE)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, token: str, work: Callable[[], Result]) -> Result:
        """Do something that takes time; see `admit`."""
        return await self.admit(token, lambda: self.start(work))

    def start(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Begin something for those who were admitted."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def admit(
        self, token: str, begin: Callable[[], asyncio.Future[Result]], extra: int = 0
    ) -> Result:
        """Begin something in one's turn; give up waiting for it when it takes too much time.

        What is given up keeps its thread and its token's share until it ends, so that requests
        which are sent again and again do not pile up.
        """
        await self._queue.enter(token, extra)
        loop = asyncio.get_running_loop()
        # A future for who waits, and a timer: `wait_for` and `shield` take several times as long.
        waiting: asyncio.Future[Result] = loop.create_future()

        def finish(done: asyncio.Future[Result]) -> None:
            self._queue.leave(token)
            error = asyncio.CancelledError() if done.cancelled() else done.exception()
            if waiting.done():
                return
            if error is None:
                waiting.set_result(done.result())
            elif isinstance(error, asyncio.CancelledError):
                waiting.cancel()
            else:
                waiting.set_exception(error)

        begin().add_done_callback(finish)
        timer = loop.call_later(TIMEOUT, _give_up, waiting)
        try:
            return await waiting
        finally:
            timer.cancel()


def _give_up(waiting: asyncio.Future[Result]) -> None:
    if not waiting.done():
        waiting.set_exception(
            HTTPException(
                503,
                f"there was no answer within {TIMEOUT:g} s, and what was asked for may still "
                "happen. Try again, under the same idempotency key.",
                {"Retry-After": "2"},
            )
        )
