"""Requests that wait to be written: those that come while others are being written go next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from simplexplore.errors import StoreError
from simplexplore.study.group import Request, commit
from simplexplore.study.study import Study

from .worker_threads import Finish, WorkerThreads

# Events of those who join a group at the last moment: others are kept waiting meanwhile.
_LATE = 256


class _Waiting(NamedTuple):
    study: Study
    request: Request
    finish: Finish


class CommitQueue:
    """Requests in the order in which they came: to one study, or to several in one store.

    Parameters
    ----------
    threads : WorkerThreads
    most : int
        Events that are decided together; no request brings more.
    """

    def __init__(self, threads: WorkerThreads, most: int) -> None:
        self._threads = threads
        self._most = most
        self._waiting: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits or is being written."""
        return self._task is None

    def add(self, study: Study, request: Request, finish: Finish) -> None:
        """Let a request be part of the next group; the outcome comes when that is flushed."""
        self._waiting.append(_Waiting(study, request, finish))
        if self._task is None:
            self._task = asyncio.ensure_future(self._commit_all())

    async def _commit_all(self) -> None:
        while self._waiting:
            group = self._next(self._most)
            try:
                outcomes = await self._threads.start(partial(self._commit, group))
            except BaseException as error:
                self._task = None
                for one in group:
                    one.finish(error)
                raise
            for one, outcome in outcomes:
                one.finish(outcome)
        self._task = None

    def _commit(self, group: list[_Waiting]) -> list[tuple[_Waiting, Any]]:
        """Commit a group, and those who come until it is its turn: in a thread."""
        parts = _by_study(group)
        alone = len(parts) == 1
        outcomes = [pair for part in parts for pair in self._commit_part(group, part, alone)]
        if not alone:  # one flush for the transactions of all studies
            try:
                group[0].study.store.flush()
            except StoreError as error:
                return [(one, error) for one, _ in outcomes]
        return outcomes

    def _commit_part(
        self, group: list[_Waiting], part: list[_Waiting], flushing: bool
    ) -> Iterable[tuple[_Waiting, Any]]:
        study = part[0].study

        def more() -> list[Request]:
            late = self._next(_LATE, study)
            group.extend(late)
            part.extend(late)
            return [one.request for one in late]

        requests = [one.request for one in part]
        found = commit(study, requests, more, flushing=flushing)
        return zip(part, found, strict=True)

    def _next(self, events: int, study: Study | None = None) -> list[_Waiting]:
        """All that waits, for one study or any, but no more events than these."""
        group: list[_Waiting] = []
        while self._waiting and self._waiting[0].request.events <= events:
            if study not in (None, self._waiting[0].study):
                break
            events -= self._waiting[0].request.events
            group.append(self._waiting.popleft())
        return group


def _by_study(group: list[_Waiting]) -> list[list[_Waiting]]:
    parts: dict[Study, list[_Waiting]] = {}
    for one in group:
        parts.setdefault(one.study, []).append(one)
    return list(parts.values())
