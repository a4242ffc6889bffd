"""Heavy work in processes that can be ended: by their deadline, or by their use of memory."""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from simplexplore.errors import TooLargeError

from .fair_queue import FairQueue
from .logs import log
from .refusals import DocumentError

Result = TypeVar("Result")

# Processes at a time, of all tokens and of one.
_PROCESSES = max(8, 2 * (os.cpu_count() or 1))
_SHARE = 2

# So many are kept when there is nothing to do, and the others for some seconds.
_WARM = 2
_KEPT = 20.0

# Seconds after which work is ended.
DEADLINE = 60.0


class WorkerProcesses:
    """Work of the requests of an application, a few processes at a time and fairly shared."""

    def __init__(self) -> None:
        self._queue = FairQueue(_PROCESSES, _SHARE)
        self._threads = ThreadPoolExecutor(_PROCESSES, "process")  # each waits for a process
        self._jobs: set[_Job] = set()

    def warm_up(self) -> None:
        """Start a process, so that the first request finds one."""
        self._threads.submit(_give_back_new)

    def close(self) -> None:
        """End what is under way."""
        for job in list(self._jobs):
            job.end()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(
        self,
        token: str,
        work: Callable[..., Result],
        *arguments: Any,
        quick: bool = False,
        writing: bool = False,
    ) -> Result:
        """Call a function of a module with plain data, in another process.

        Whatever happens, it does not go on after this has returned. Work that is `writing` may
        have been recorded when it is ended: the answer is then to send it again.
        """
        async with self._queue.turn(token, extra=int(quick)):
            job = _Job(work, arguments)
            self._jobs.add(job)
            task = asyncio.get_running_loop().run_in_executor(self._threads, job.run)
            try:
                kind, result = await asyncio.wait_for(asyncio.shield(task), DEADLINE)
            except TimeoutError:
                job.end()
                await asyncio.wait((task,))
                ended = f"this takes more than {DEADLINE:g} s, so the service ended it."
                if writing:
                    raise outcome_unknown(ended) from None
                raise TooLargeError(
                    f"{ended} Make it smaller, or do it on a machine of your own, where there is "
                    "no such limit."
                ) from None
            except EOFError:
                log("worker died", status=job.status)
                died = "the process that worked on this died, perhaps for want of memory."
                if writing:
                    raise outcome_unknown(died) from None
                raise HTTPException(
                    503, f"{died} Try again, or make it smaller.", {"Retry-After": "2"}
                ) from None
            finally:
                self._jobs.discard(job)
                asyncio.get_running_loop().call_later(_KEPT, _end_idle)
                if not task.done():  # whoever asked is gone: nobody wants to know how it ends
                    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                    job.end()
        if kind == "refused":
            raise DocumentError(result)
        if kind == "no memory":
            raise (
                outcome_unknown(f"{result}.")
                if writing
                else TooLargeError(f"{result}; make it smaller.")
            )
        if kind == "failed":
            raise RuntimeError(f"in a process for heavy work:\n{result}")
        return result  # type: ignore[no-any-return]


def outcome_unknown(reason: str) -> HTTPException:
    """Work was ended, and nobody knows whether before or after it was recorded."""
    words = (
        "It may have been recorded. Send it again under the same idempotency key: then it happens "
        "once. If it takes too much again, make it smaller."
    )
    return HTTPException(503, f"{reason} {words}", {"Retry-After": "2"})


class _Job:
    """Work on its way to a process and back."""

    def __init__(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._content = pickle.dumps((work, arguments))
        self._process: _Process | None = None
        self._mutex = threading.Lock()
        self._is_over = False
        self.status: int | None = None

    def run(self) -> tuple[str, Any]:
        """Wait for the outcome; raises EOFError if the process was ended meanwhile."""
        with self._mutex:
            if self._is_over:
                raise EOFError
            self._process = process = _take()
        stays = False
        try:
            kind, result, stays = process.call(self._content)
            return kind, result
        finally:
            with self._mutex:
                self._process = None
                stays = stays and not self._is_over
            if stays:
                _give_back(process)
            else:
                self.status = process.end()

    def end(self) -> None:
        """End the process."""
        with self._mutex:
            self._is_over = True
            if self._process is not None:
                self._process.kill()


class _Process:
    """A Python process that does one thing after the other."""

    def __init__(self) -> None:
        # First of all, it is less important than the service, which shares the machine.
        code = (
            "import os, sys; hasattr(os, 'nice') and os.nice(10); "
            f"sys.path[:] = {sys.path!r}; from simplexplore.service.worker import main; main()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A share of the machine is one core.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )

    def call(self, content: bytes) -> tuple[str, Any, bool]:
        """Kind and content of the outcome, and whether the process goes on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(content)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)  # type: ignore[no-any-return]
        except (OSError, ValueError, pickle.UnpicklingError):
            raise EOFError from None

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        self._process.kill()
        status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not sent
                    continue
        return status

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None


# Processes with nothing to do and since when, of all applications here: they know nothing of any
# of them. The last is taken first.
_idle: list[tuple[float, _Process]] = []
_mutex = threading.Lock()


def _take() -> _Process:
    while True:
        with _mutex:
            if not _idle:
                return _Process()
            _, process = _idle.pop()
        if process.is_alive:
            return process
        process.end()


def _give_back(process: _Process) -> None:
    """Keep a process for later."""
    with _mutex:
        _idle.append((time.monotonic(), process))


def _end_idle(seconds: float = _KEPT, keep: int = _WARM) -> None:
    """End processes that have had nothing to do for long, but not all of them."""
    ended = []
    with _mutex:
        while len(_idle) > keep and time.monotonic() - _idle[0][0] >= seconds:
            ended.append(_idle.pop(0)[1])
    for process in ended:
        process.end()


def _give_back_new() -> None:
    if not _idle:
        _give_back(_Process())


atexit.register(_end_idle, 0.0, 0)
