"""The studies that are open in this process, and what the store says of those being watched."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from simplexplore.protocol import MAX_BATCH
from simplexplore.study.group import Request, may_go_with_others
from simplexplore.study.store import Store
from simplexplore.study.study import Study

from . import heavy_work
from .commit_queue import CommitQueue
from .fair_queue import FairQueue
from .heavy_work import Where
from .worker_processes import WorkerProcesses
from .worker_threads import Finish, Result, WorkerThreads

# Studies kept in memory, and their bytes: each is its state, not its journal.
_MOST_OPEN = 128
_MOST_BYTES = 2**31

# Arms of a study that is left to the worker processes: what it takes grows with their square.
_LARGE = 64

# Studies opened at a time, one for each token.
_MOST_OPENING = 4

# Events of several studies that are decided before any of them is answered.
_TOGETHER = 1024

# Requests of a token at a time, more than those of other kinds: a group takes one thread.
_IN_GROUPS = 16

# Seconds between looks at the store for those who watch a study.
POLL_INTERVAL = 0.5


class OpenStudies:
    """What the requests of one process share.

    There are two objects per study, one that asks and tells and one that is read, so that the
    sums behind a status hold up nobody who works. Studies of many arms are left to the worker
    processes: what they decide would take the interpreter from all others.
    """

    def __init__(self, store: Store, threads: WorkerThreads, processes: WorkerProcesses) -> None:
        self.store = store
        self.closing = asyncio.Event()  # set when those who watch have to go
        self._threads = threads
        self._processes = processes
        self._writing: dict[str, FairQueue] = {}
        self._queues: dict[str, CommitQueue] = {}
        self._quick = CommitQueue(threads, _TOGETHER)  # to any study
        self._opening = FairQueue(_MOST_OPENING, 1)
        self._mutex = threading.Lock()
        self._open: OrderedDict[tuple[str, bool], Study] = OrderedDict()
        self._polls: dict[str, tuple[float, asyncio.Task[dict[str, Any]]]] = {}

    @property
    def where(self) -> Where:
        """The store for another process."""
        return self.store.url, self.store.clock()

    async def read(self, token: str, name: str, work: Callable[[Study], Result]) -> Result:
        """Find something out about a study, by a function that can be pickled."""
        study = await self._study(token, (name, True))
        if _is_large(study):
            return await self._apart(token, name, work, writing=False)
        return await self._threads.run(token, lambda: work(study))

    async def write(
        self, token: str, name: str, work: Callable[[Study], Result], *, heavy: bool = False
    ) -> Result:
        """Do something that may change a study, by a function that can be pickled.

        What is `heavy` takes long whatever the study.
        """
        study = await self._study(token, (name, False))
        if not heavy and not _is_large(study):
            return await self._threads.run(token, lambda: work(study))
        if len(self._writing) > _MOST_OPEN:
            self._writing = {k: queue for k, queue in self._writing.items() if not queue.is_empty}
        # One at a time: processes that write to the same study get in each other's way.
        async with self._writing.setdefault(name, FairQueue(1, 1)).turn(token):
            return await self._apart(token, name, work, writing=True)

    async def commit(self, token: str, name: str, request: Request) -> Any:
        """Ask or tell something, in one transaction with others who do."""
        study = await self._study(token, (name, False))
        if _is_large(study):
            return await self.write(token, name, request.work)
        begin = partial(self._queue(study, request).add, study, request)
        return await self._threads.admit(token, begin, _IN_GROUPS)

    def commits(self, token: str, name: str, request: Request, done: Finish) -> bool:
        """Like `commit`, if nothing has to be waited for before; says whether that was so."""
        study = self._remembered((name, False))
        if study is None or _is_large(study):
            return False
        return self._threads.admits(
            token, partial(self._queue(study, request).add, study, request), done, _IN_GROUPS
        )

    def _queue(self, study: Study, request: Request) -> CommitQueue:
        if may_go_with_others(study, request):
            return self._quick
        if len(self._queues) > _MOST_OPEN:
            self._queues = {k: queue for k, queue in self._queues.items() if not queue.is_empty}
        if study.name not in self._queues:
            self._queues[study.name] = CommitQueue(self._threads, MAX_BATCH)
        return self._queues[study.name]

    async def _apart(
        self, token: str, name: str, work: Callable[[Study], Result], *, writing: bool
    ) -> Result:
        return await self._processes.run(
            token, heavy_work.on_study, self.where, name, work, quick=True, writing=writing
        )

    async def _study(self, token: str, key: tuple[str, bool]) -> Study:
        study = self._remembered(key)
        if study is not None:
            return study
        # Few are opened at a time: that may take as long as making them.
        async with self._opening.turn(token):
            return await self._threads.run(token, lambda: self._found(key))

    def _remembered(self, key: tuple[str, bool]) -> Study | None:
        with self._mutex:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
            return found

    def _found(self, key: tuple[str, bool]) -> Study:
        found = self._remembered(key)
        if found is not None:
            return found
        opened = Study.open(self.store, key[0])
        if not _is_large(opened):
            _ = opened.answer  # loads its state
        with self._mutex:
            # Another thread may have been faster; two objects would not be wrong, only slow.
            kept = self._open.setdefault(key, opened)
            while len(self._open) > _MOST_OPEN or (
                len(self._open) > 2 and sum(map(_weight, self._open.values())) > _MOST_BYTES
            ):
                self._open.popitem(last=False)
        return kept

    async def poll(self, name: str) -> dict[str, Any]:
        """What the store says of a study, at most half a second ago: one look for all watchers."""
        at, task = self._polls.get(name, (0.0, None))
        if task is None or (task.done() and time.monotonic() - at > 0.9 * POLL_INTERVAL):
            if len(self._polls) > _MOST_OPEN:
                self._polls.clear()
            task = asyncio.ensure_future(self._threads.run("watch", lambda: self._look(name)))
            self._polls[name] = (time.monotonic(), task)
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


def _is_large(study: Study) -> bool:
    return study.problem.size >= _LARGE


def _weight(study: Study) -> int:
    """Bytes that a study may come to need: each pair of arms is an edge of its tables."""
    return 96 * study.problem.size**2
