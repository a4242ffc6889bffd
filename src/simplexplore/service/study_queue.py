"""Requests that wait for a study: those that come while it is being written go together next."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any, NamedTuple

from simplexplore.protocol import MAX_BATCH
from simplexplore.study.group import Request, commit
from simplexplore.study.study import Study

from .worker_threads import WorkerThreads


class _Waiting(NamedTuple):
    study: Study
    request: Request
    outcome: asyncio.Future[Any]


class StudyQueue:
    """The requests of one study, in the order in which they came."""

    def __init__(self, threads: WorkerThreads) -> None:
        self._threads = threads
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits or is being written."""
        return self._task is None

    def add(self, study: Study, request: Request) -> asyncio.Future[Any]:
        """Let a request be part of the next transaction; the result comes when it is flushed."""
        outcome = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(study, request, outcome))
        if self._task is None:
            self._task = asyncio.ensure_future(self._commit_all())
        return outcome

    async def _commit_all(self) -> None:
        while self._waiting:
            group = self._next_group()
            work = partial(commit, group[0].study, [one.request for one in group])
            try:
                found = await self._threads.start(work)
            except BaseException as error:
                for one in group:
                    one.outcome.set_exception(error)
                self._task = None
                raise
            for one, outcome in zip(group, found, strict=True):
                if isinstance(outcome, Exception):
                    one.outcome.set_exception(outcome)
                else:
                    one.outcome.set_result(outcome)
        self._task = None

    def _next_group(self) -> list[_Waiting]:
        """All that waits, but no more than one request may bring."""
        group = [self._waiting.popleft()]
        events = group[0].request.events
        while self._waiting and events + self._waiting[0].request.events <= MAX_BATCH:
            group.append(self._waiting.popleft())
            events += group[-1].request.events
        return group
