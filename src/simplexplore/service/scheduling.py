"""Who works when: shares of tokens, threads, processes for heavy work, and a writer for each study.

ask, tell ------> Writer of the study: tokens in turn, one group, one transaction, one flush
other requests -> Threads:   16 of a token at a time, 64 in all
heavy ones -----> Processes:  2 of a token at a time, 8 or more in all; ended after 60 s or at 2 GiB
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import anyio
from anyio import to_process
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest

from simplexplore.errors import TooLargeError
from simplexplore.study.study import Study
from simplexplore.study.transaction import Request, Result

from . import jobs
from .logs import log

# Requests of one token that wait in a line, and seconds for which they do.
MAX_WAITING = 100
MAX_WAIT = 30.0

# Seconds after which a request is answered, whatever becomes of what it began.
TIMEOUT = 60.0

# Events of a group, unless one request alone has more: others wait for one of these, not for all.
_MAX_GROUP = 1024

# Seconds for which those are waited for who were answered just now: they ask again at once.
_GATHERING = 0.001

# At a time, of all tokens and of one.
_THREADS, _THREADS_OF_TOKEN = 64, 16
_PROCESSES, _PROCESSES_OF_TOKEN = max(8, 2 * (os.cpu_count() or 1)), 2


class _Line:
    """The requests of one token."""

    def __init__(self, share: int) -> None:
        self.free = asyncio.Semaphore(share)
        self.waiting = 0


class Shares:
    """So many at a time, of all tokens and of each.

    Each token waits for its own share first. So few of one are ever in the line of all, where who
    came first is first.
    """

    def __init__(self, most: int, share: int) -> None:
        self._free, self._share = asyncio.Semaphore(most), share
        self._lines: WeakValueDictionary[str, _Line] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, token: str) -> AsyncIterator[None]:
        """Wait for one's turn, and have it."""
        line = self._lines.get(token)
        if line is None:
            line = self._lines[token] = _Line(self._share)
        if line.waiting >= MAX_WAITING:
            raise _busy()
        line.waiting += 1
        async with AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(MAX_WAIT):
                    await turn.enter_async_context(line.free)
                    await turn.enter_async_context(self._free)
            except TimeoutError:
                raise _busy() from None
            finally:
                line.waiting -= 1
            yield


class Threads:
    """Threads that requests work in, so that the event loop never waits for a store."""

    def __init__(self) -> None:
        # Writers have threads beside those that are shared: one each, while they write.
        self.pool = ThreadPoolExecutor(2 * _THREADS, "work")
        self._shares = Shares(_THREADS, _THREADS_OF_TOKEN)

    async def run(self, token: str, work: Callable[[], Result]) -> Result:
        """Do something that takes time.

        What has timed out keeps its token's share until it ends, so that requests which are sent
        again and again do not pile up.
        """
        working = asyncio.ensure_future(self._run(token, work))
        await asyncio.wait((working,), timeout=TIMEOUT)
        if working.done():
            return working.result()
        working.add_done_callback(lambda late: late.cancelled() or late.exception())
        raise _late()

    async def _run(self, token: str, work: Callable[[], Result]) -> Result:
        async with self._shares.turn(token):
            return await asyncio.get_running_loop().run_in_executor(self.pool, work)

    def close(self) -> None:
        """Begin nothing more."""
        self.pool.shutdown(wait=False, cancel_futures=True)


class _Waiting(NamedTuple):
    request: Request[Any]
    outcome: asyncio.Future[Any]


class Writer:
    """Group commit for a study: requests that come while others are written go next, together."""

    def __init__(self, study: Study, pool: ThreadPoolExecutor) -> None:
        self._study, self._pool = study, pool
        self._lines: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None

    async def commit(self, token: str, request: Request[Result]) -> Result:
        """Be part of a group; the outcome is on the disk when this returns."""
        line = self._lines.setdefault(token, deque())
        if len(line) >= MAX_WAITING:
            raise _busy()
        loop = asyncio.get_running_loop()
        waiting = _Waiting(request, loop.create_future())
        line.append(waiting)
        if self._task is None:
            self._task = loop.create_task(self._write_all())
        try:
            async with asyncio.timeout(TIMEOUT):
                result: Result = await waiting.outcome
        except TimeoutError:
            raise _late() from None
        return result

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        group: list[_Waiting] = []
        try:
            while self._lines:
                group = self._next()
                requests = [one.request for one in group]
                commit = partial(self._study.replica.commit, requests)
                outcomes = await loop.run_in_executor(self._pool, commit)
                for one, outcome in zip(group, outcomes, strict=True):
                    _settle(one.outcome, outcome)
                if len(group) + sum(map(len, self._lines.values())) > 1:
                    await asyncio.sleep(_GATHERING)
        except BaseException as error:
            for one in (*group, *(one for line in self._lines.values() for one in line)):
                _settle(one.outcome, error)
            self._lines.clear()
            raise
        finally:
            self._task = None

    def _next(self) -> list[_Waiting]:
        """The first request of each token, then the second ones, until these are many events."""
        group: list[_Waiting] = []
        room = _MAX_GROUP
        while self._lines:
            token, line = next(iter(self._lines.items()))
            if group and line[0].request.events > room:
                break
            room -= line[0].request.events
            group.append(line.popleft())
            del self._lines[token]
            if line:
                self._lines[token] = line  # behind all others
        return group


class Processes:
    """Heavy work, in processes that are ended by their deadline, or when nobody waits."""

    def __init__(self) -> None:
        self._shares = Shares(_PROCESSES, _PROCESSES_OF_TOKEN)
        self._limiter = anyio.CapacityLimiter(_PROCESSES)  # never waited for: shares are fewer

    async def run(
        self,
        token: str,
        work: Callable[..., Result],
        *arguments: Any,
        request: HttpRequest | None = None,
        writing: bool = False,
    ) -> Result:
        """Call a function of a module with plain data, in another process.

        Whatever happens, it does not go on after this has returned. It ends when the client of a
        request hangs up. Work that is `writing` may have been recorded when it is ended: the
        answer is then to send it again.
        """
        async with self._shares.turn(token):
            task = asyncio.ensure_future(self._run(work, arguments))
            gone = asyncio.ensure_future(_wait_until_gone(request))
            try:
                async with asyncio.timeout(TIMEOUT):
                    await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
                if not task.done():
                    raise HTTPException(499, "the client has gone, so its work was ended.")
                return task.result()
            except TimeoutError:
                ended = f"this takes more than {TIMEOUT:g} s, so the service ended it."
                raise _ended(ended, writing=writing) from None
            except MemoryError:
                needs = f"this needs more than {jobs.MAX_MEMORY / 2**30:g} GiB of memory."
                raise _ended(needs, writing=writing) from None
            except anyio.BrokenWorkerProcess:
                log("worker died")
                died = "the worker process died (possibly out of memory)."
                if writing:
                    raise _ended(died, writing=True) from None
                raise _unavailable(f"{died} Try again, or make it smaller.") from None
            finally:
                for one in (task, gone):
                    one.cancel()
                await asyncio.gather(task, gone, return_exceptions=True)

    async def _run(self, work: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        # Cancelled, it kills the process.
        return await to_process.run_sync(
            jobs.limited, work, arguments, cancellable=True, limiter=self._limiter
        )

    async def warm_up(self) -> None:
        """Start a process, so that the first request finds one."""
        await self._run(os.getpid, ())


def _ended(reason: str, *, writing: bool) -> Exception:
    """Work was ended; what was writing may have been recorded before."""
    if writing:
        return _unavailable(
            f"{reason} It may have been recorded. Send it again under the same idempotency key: "
            "then it happens once. If it takes too much again, make it smaller."
        )
    return TooLargeError(
        f"{reason} Make it smaller, or do it on a machine of your own, where there is no such "
        "limit."
    )


async def _wait_until_gone(request: HttpRequest | None) -> None:
    """Return when a request's client hangs up; never if there is none to watch."""
    if request is None:
        await asyncio.Event().wait()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass  # a body that nobody asked for


def _settle(waiting: asyncio.Future[Any], outcome: Any) -> None:
    if waiting.done():  # nobody waits any more
        return
    if isinstance(outcome, asyncio.CancelledError):
        waiting.cancel()
    elif isinstance(outcome, BaseException):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)


def _late() -> HTTPException:
    return _unavailable(
        f"there was no answer within {TIMEOUT:g} s, and what was asked for may still happen. Try "
        "again, under the same idempotency key."
    )


def _busy() -> HTTPException:
    return _unavailable(
        "this token has too much work in progress; wait until it is done, then try again."
    )


def _unavailable(words: str) -> HTTPException:
    return HTTPException(503, words, {"Retry-After": "2"})
