"""Heavy work for a client, which ends when the client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.exceptions import HTTPException

from .worker_processes import WorkerProcesses

Result = TypeVar("Result")


class ConnectedWork:
    """The worker processes, for as long as the client of a request waits."""

    def __init__(self, processes: WorkerProcesses, request: Request) -> None:
        self._processes = processes
        self._request = request

    async def run(
        self, token: str, work: Callable[..., Result], *arguments: Any, quick: bool = False
    ) -> Result:
        """`WorkerProcesses.run`, cancelled when nobody waits for it any more."""
        task = asyncio.ensure_future(self._processes.run(token, work, *arguments, quick=quick))
        gone = asyncio.ensure_future(self._wait_until_gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            gone.result()
            raise HTTPException(499, "the client has gone, so its work was ended.")
        finally:
            task.cancel()
            gone.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def _wait_until_gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass  # a body that nobody asked for
