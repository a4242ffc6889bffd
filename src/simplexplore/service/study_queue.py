"""Requests that wait for a study: those that come while it is being written go together next."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any, NamedTuple

from simplexplore.protocol import MAX_BATCH
from simplexplore.study.group import Request, commit
from simplexplore.study.study import Study

from .worker_threads import Finish, WorkerThreads

# Events of those who join a group at the last moment: others are kept waiting meanwhile.
_LATE = 256


class _Waiting(NamedTuple):
    study: Study
    request: Request
    finish: Finish


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

    def add(self, study: Study, request: Request, finish: Finish) -> None:
        """Let a request be part of the next transaction; the outcome comes when it is flushed."""
        self._waiting.append(_Waiting(study, request, finish))
        if self._task is None:
            self._task = asyncio.ensure_future(self._commit_all())

    async def _commit_all(self) -> None:
        while self._waiting:
            group = self._next(MAX_BATCH)
            try:
                found = await self._threads.start(partial(self._commit, group))
            except BaseException as error:
                self._task = None
                for one in group:
                    one.finish(error)
                raise
            for one, outcome in zip(group, found, strict=True):
                one.finish(outcome)
        self._task = None

    def _commit(self, group: list[_Waiting]) -> list[Any]:
        """Commit a group, and those who come until it is its turn: in a thread."""

        def more() -> list[Request]:
            late = self._next(_LATE)
            group.extend(late)
            return [one.request for one in late]

        return commit(group[0].study, [one.request for one in group], more)

    def _next(self, events: int) -> list[_Waiting]:
        """All that waits, but no more events than these; one request may bring as many."""
        group: list[_Waiting] = []
        while self._waiting and self._waiting[0].request.events <= events:
            events -= self._waiting[0].request.events
            group.append(self._waiting.popleft())
        return group
