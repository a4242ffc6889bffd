"""The desk between requests and studies: open studies, threads, a glance at what changed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.exceptions import HTTPException

from simplexplore.study.store import Store
from simplexplore.study.study import Study

Result = TypeVar("Result")

# Requests that work at the same time. Writers of a study wait for each other anyway.
_THREADS = 32

# Heavy sums (bounds, replays) at the same time.
_HEAVY = 2

# Seconds after which a request is given up; a first question may have to compile for 30.
PATIENCE = 60.0

# Studies kept in memory: each is its state, not its journal.
_MOST_OPEN = 128

# Seconds between looks at the store for those who watch a study.
GLANCE = 0.5


class Desk:
    """What the requests of one process share.

    The event loop never waits for a study: work is done in threads. There are two objects per
    study, one that asks and tells and one that is looked at, so that the sums behind a status
    hold up nobody who works.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.closing = asyncio.Event()
        self._threads = ThreadPoolExecutor(_THREADS, "work")
        self._heavy = ThreadPoolExecutor(_HEAVY, "heavy")
        self._mutex = threading.Lock()
        self._open: OrderedDict[tuple[str, bool], Study] = OrderedDict()
        self._glances: dict[str, tuple[float, asyncio.Task[dict[str, Any]]]] = {}

    def close(self) -> None:
        """Let watchers go, and begin nothing more."""
        self.closing.set()
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
            return await asyncio.wait_for(task, PATIENCE)
        except TimeoutError:
            raise HTTPException(
                503,
                f"there was no answer within {PATIENCE:g} s, and what was asked for may still "
                "happen. Try again, under the same idempotency key.",
                {"Retry-After": "2"},
            ) from None

    def study(self, name: str, *, looking: bool = False) -> Study:
        """An open study; call it in a thread."""
        key = (name, looking)
        with self._mutex:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
                return found
        opened = Study.open(self.store, name)
        with self._mutex:
            # Another thread may have been faster; two objects would not be wrong, only slow.
            kept = self._open.setdefault(key, opened)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return kept

    async def glance(self, name: str) -> dict[str, Any]:
        """What the store says of a study, at most half a second ago: one look for all watchers."""
        at, task = self._glances.get(name, (0.0, None))
        if task is None or (task.done() and time.monotonic() - at > 0.9 * GLANCE):
            if len(self._glances) > _MOST_OPEN:
                self._glances.clear()
            task = asyncio.ensure_future(self.run(lambda: self._look(name)))
            self._glances[name] = (time.monotonic(), task)
        return await asyncio.shield(task)

    def _look(self, name: str) -> dict[str, Any]:
        with self.store.reading() as connection:
            row = self.store.find(connection, name)
        return {
            "seq": row.head,
            "state": row.state,
            "asked": row.asked,
            "rewards": row.rewards,
            "pending": row.pending,
            "delta": row.delta,
        }
