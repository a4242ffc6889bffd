"""The studies that are open in this process, and what the store says of those being watched."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from simplexplore.study.store import Store
from simplexplore.study.study import Study
from simplexplore.study.transaction import Request, Result

from . import jobs
from .scheduling import Processes, Shares, Threads, Writer

# Studies kept in memory: each is its state, not its journal, and nothing if it is large.
_MAX_OPEN = 128

# Arms of a study that is left to the worker processes: what it takes grows with their square, and
# would take the interpreter from all others.
_LARGE = 64

# Studies opened at a time, one for each token: that may take as long as making them.
_MAX_OPENING = 4

# Seconds between looks at the store for those who watch a study.
POLL_INTERVAL = 0.5


class _OpenStudy(NamedTuple):
    study: Study
    writer: Writer
    is_large: bool


class StudyCache:
    """What the requests of one process share."""

    def __init__(self, store: Store, threads: Threads, processes: Processes) -> None:
        self.store = store
        self.threads, self._processes = threads, processes
        self._opening = Shares(_MAX_OPENING, 1)
        self._open: OrderedDict[str, _OpenStudy] = OrderedDict()
        self._writing: WeakValueDictionary[str, Shares] = WeakValueDictionary()
        self._polls: dict[str, tuple[float, asyncio.Task[dict[str, Any]]]] = {}

    @property
    def where(self) -> jobs.StoreRef:
        """The store for another process."""
        return self.store.url, self.store.clock()

    async def read(self, token: str, name: str, work: Callable[[Study], Result]) -> Result:
        """Find something out about a study, by a function that can be pickled."""
        study, _, is_large = await self._find(token, name)
        if is_large:
            return await self._processes.run(token, jobs.on_study, self.where, name, work)
        return await self.threads.run(token, lambda: work(study))

    async def write(self, token: str, name: str, work: Callable[[Study], Result]) -> Result:
        """Change a study by a function that takes long, and can be pickled."""
        return await self._processes.run(token, jobs.on_study, self.where, name, work, writing=True)

    async def commit(self, token: str, name: str, request: Request[Result]) -> Result:
        """Change a study, in one transaction with others who do."""
        _, writer, is_large = await self._find(token, name)
        if is_large:
            return await self.write(token, name, partial(jobs.decided, request=request))
        return await writer.commit(token, request)

    async def _find(self, token: str, name: str) -> _OpenStudy:
        """A study, opened if need be; those that nobody has used for longest are let go."""
        found = self._open.get(name)
        if found is None:
            async with self._opening.turn(token):
                study = await self.threads.run(token, lambda: _opened(self.store, name))
            # Somebody else may have been faster.
            new = _OpenStudy(study, Writer(study, self.threads.pool), _is_large(study))
            found = self._open.setdefault(name, new)
            self._open.move_to_end(name)
            if len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(name)
        return found

    async def poll(self, name: str) -> dict[str, Any]:
        """What the store says of a study, at most half a second ago: one look for all watchers."""
        at, task = self._polls.get(name, (0.0, None))
        if task is None or (task.done() and time.monotonic() - at > 0.9 * POLL_INTERVAL):
            if len(self._polls) > _MAX_OPEN:
                self._polls.clear()
            task = asyncio.ensure_future(self.threads.run("watch", lambda: self._look(name)))
            self._polls[name] = (time.monotonic(), task)
        return await asyncio.shield(task)

    def _look(self, name: str) -> dict[str, Any]:
        row = self.store.find(name)
        return {
            "seq": row.head,
            "state": row.state,
            "asked": row.asked,
            "rewards": row.rewards,
            "pending": row.pending,
            "delta": row.delta,
        }


def _opened(store: Store, name: str) -> Study:
    study = Study.open(store, name)
    if not _is_large(study):
        _ = study.answer  # loads its state
    return study


def _is_large(study: Study) -> bool:
    return study.problem.size >= _LARGE
