"""The paths below /v1, and the errors that each of them may answer with."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from simplexplore import __version__, defaults
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.protocol import MAX_BATCH, MAX_BODY, PROBLEM_TYPE
from simplexplore.samplers import SAMPLERS, find_sampler

from . import bounds, event_stream, exports, models, studies, webhooks
from .access import CheckedRoute
from .dependencies import Reader, Threads
from .responses import JsonResponse

_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": text,
        "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for code, text in (
        (400, "The body is not JSON."),
        (401, "No token, or one that is not known."),
        (403, "The token does not allow this."),
        (404, "There is no such study."),
        (408, "The body came too slowly."),
        (409, "The study has stopped, or something else is recorded already."),
        (413, "Too large."),
        (415, "The body is not sent as JSON."),
        (422, "Something in the request is wrong."),
        (503, "The store cannot be reached or is busy; try again."),
    )
}

# Each path is written whole where it is, since requests are counted by a path as it was written,
# without what including a router may put before it.
router = APIRouter(responses=_ERRORS, route_class=CheckedRoute)


@router.get("/v1/setup", response_model=models.Setup)
async def setup(request: Request, threads: Threads, token: Reader) -> Response:
    """Say what the caller may do, and what a study can be made of."""
    is_open = await threads.run(token.id, request.app.state.tokens.is_open)
    return JsonResponse(
        {
            "version": __version__,
            "role": token.role,
            "tokens": not is_open,
            "samplers": [name for name in SAMPLERS if not find_sampler(name).needs_truth],
            "sampler": defaults.SAMPLER,
            "thresholds": list(THRESHOLDS),
            "threshold": defaults.THRESHOLD,
            "max_batch": MAX_BATCH,
            "max_body": MAX_BODY,
        }
    )


for part in (bounds, studies, exports, event_stream, webhooks):
    router.include_router(part.router)
