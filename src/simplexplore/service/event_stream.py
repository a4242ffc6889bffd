"""Changes of a study, pushed to those who watch it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import Header, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from simplexplore.errors import StoreError

from .access import identify
from .dependencies import Name, Reader, Studies, new_router
from .monitoring import Metrics
from .study_cache import POLL_INTERVAL

# Watchers of one process and of one token; each holds a connection open.
_MAX_WATCHERS, _MAX_OF_TOKEN = 500, 50

# Seconds between signs of life on a quiet stream, so that nothing on the way closes it.
_KEEPALIVE = 15.0

router = new_router()


@router.get(
    "/v1/studies/{name}/events",
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
    token: Reader,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> Response:
    """A stream of changes: number of the last event, state, pulls and rewards so far."""
    first = await studies.poll(name)
    metrics: Metrics = request.app.state.metrics
    of_token = metrics.watchers[token.id]
    if of_token >= _MAX_OF_TOKEN or metrics.watchers.total() >= _MAX_WATCHERS:
        raise HTTPException(
            503,
            f"{'this token has' if of_token >= _MAX_OF_TOKEN else 'the service has'} too many "
            "event streams open; ask for the status now and then.",
            {"Retry-After": "10"},
        )

    async def stream() -> AsyncIterator[str]:
        seen = int(last) if last is not None and last.isdecimal() else -1
        quiet = 0.0
        yield "retry: 2000\n\n"
        now: Mapping[str, Any] = first
        metrics.watchers[token.id] += 1
        try:
            while not request.app.state.is_ending():
                if now["seq"] != seen:
                    seen, quiet = now["seq"], 0.0
                    yield f"id: {seen}\nevent: change\ndata: {json.dumps(now)}\n\n"
                elif quiet >= _KEEPALIVE:
                    quiet = 0.0
                    yield ": nothing new\n\n"
                await asyncio.sleep(POLL_INTERVAL)
                quiet += POLL_INTERVAL
                try:
                    now = await studies.poll(name)
                    await identify(request)
                except StoreError:
                    continue  # the store may come back
                except HTTPException:
                    break  # the token was revoked
        finally:
            metrics.watchers[token.id] -= 1

    return StreamingResponse(stream(), media_type="text/event-stream")
