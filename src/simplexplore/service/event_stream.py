"""Changes of a study, pushed to those who watch it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Header, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from simplexplore.errors import StoreError

from .access import CheckedRoute, identify
from .dependencies import Name, Reader, Studies
from .metrics import Metrics
from .open_studies import POLL_INTERVAL

# Watchers of one process; each holds a connection open.
_MOST_WATCHERS = 500

# Seconds between signs of life on a quiet stream, so that nothing on the way closes it.
_SIGN_OF_LIFE = 15.0

router = APIRouter(prefix="/v1/studies", route_class=CheckedRoute)


@router.get(
    "/{name}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: 'change', at most twice a second.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    request: Request,
    studies: Studies,
    name: Name,
    _token: Reader,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> Response:
    """A stream of changes: number of the last event, state, pulls and rewards so far."""
    metrics: Metrics = request.app.state.metrics
    if metrics.watchers >= _MOST_WATCHERS:
        raise HTTPException(503, "too many watch already; ask for the status now and then.")
    first = await studies.poll(name)

    async def stream() -> AsyncIterator[str]:
        metrics.watchers += 1
        try:
            seen = int(last) if last is not None and last.isdecimal() else -1
            quiet = 0.0
            yield "retry: 2000\n\n"
            now: Mapping[str, Any] = first
            while not studies.closing.is_set():
                if now["seq"] != seen:
                    seen, quiet = now["seq"], 0.0
                    yield f"id: {seen}\nevent: change\ndata: {json.dumps(now)}\n\n"
                elif quiet >= _SIGN_OF_LIFE:
                    quiet = 0.0
                    yield ": nothing new\n\n"
                with anyio.move_on_after(POLL_INTERVAL):
                    await studies.closing.wait()
                quiet += POLL_INTERVAL
                try:
                    now = await studies.poll(name)
                    await identify(request)
                except StoreError:
                    continue  # the store may come back
                except HTTPException:
                    break  # the token was revoked
        finally:
            metrics.watchers -= 1

    return StreamingResponse(stream(), media_type="text/event-stream")
