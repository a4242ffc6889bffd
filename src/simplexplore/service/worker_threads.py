"""Threads that requests work in, so that the event loop never waits for a study."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from .fair_queue import FairQueue

Result = TypeVar("Result")

# Takes a result, or the error in place of it.
Finish = Callable[[Any], None]

# Requests that work at the same time, of all tokens and of one. Writers of a study wait for each
# other anyway.
_THREADS = 64
SHARE = 16

# Seconds after which a request times out.
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

        def begin(finish: Finish) -> None:
            self.start(work).add_done_callback(lambda done: finish(_outcome(done)))

        found: Result = await self.admit(token, begin)
        return found

    def start(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Begin something for those who were admitted."""
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def admit(self, token: str, begin: Callable[[Finish], None], extra: int = 0) -> Any:
        """Begin something in one's turn; give up waiting for it when it takes too much time.

        It is begun with a function that takes its outcome. What has timed out keeps its thread and
        its token's share until it ends, so that requests which are sent again and again do not
        pile up.
        """
        await self._queue.enter(token, extra)
        waiting = asyncio.get_running_loop().create_future()
        begin(_Turn(self._queue, token, partial(_settle, waiting)).finish)
        return await waiting

    def admits(self, token: str, begin: Callable[[Finish], None], done: Finish, extra: int) -> bool:
        """Begin something unless it has to wait for its turn; `done` gets the outcome.

        Says whether it was begun.
        """
        if not self._queue.enters(token, extra):
            return False
        begin(_Turn(self._queue, token, done).finish)
        return True


class _Turn:
    """Something that was admitted: it ends once, and may time out before."""

    __slots__ = ("_done", "_queue", "_timer", "_token")

    def __init__(self, queue: FairQueue, token: str, done: Finish) -> None:
        self._queue, self._token = queue, token
        self._done: Finish | None = done
        # `wait_for` and `shield` take several times as long.
        self._timer = asyncio.get_running_loop().call_later(TIMEOUT, self._give_up)

    def finish(self, outcome: Any) -> None:
        self._queue.leave(self._token)
        self._timer.cancel()
        if self._done is not None:
            self._done(outcome)

    def _give_up(self) -> None:
        done, self._done = self._done, None
        assert done is not None
        done(
            HTTPException(
                503,
                f"there was no answer within {TIMEOUT:g} s, and what was asked for may still "
                "happen. Try again, under the same idempotency key.",
                {"Retry-After": "2"},
            )
        )


def _outcome(done: asyncio.Future[Any]) -> Any:
    """A result, or the error in place of it."""
    if done.cancelled():
        return asyncio.CancelledError()
    return done.exception() or done.result()


def _settle(waiting: asyncio.Future[Any], outcome: Any) -> None:
    if waiting.done():  # nobody waits any more
        return
    if isinstance(outcome, asyncio.CancelledError):
        waiting.cancel()
    elif isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)
