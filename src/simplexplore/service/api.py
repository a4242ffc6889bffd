"""What a service is and can do, and how hard a problem is before a study is made of it."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from simplexplore import __version__, defaults
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.protocol import MAX_BATCH, MAX_BODY
from simplexplore.samplers import SAMPLERS, find_sampler

from . import jobs, models
from .dependencies import JsonResponse, Reader, RunApart, Runner, new_router
from .tokens import LOCAL_ADMIN

router = new_router()


@router.get("/v1/setup", response_model=models.Setup)
async def setup(token: Reader) -> Response:
    """Say what the caller may do, and what a study can be made of."""
    return JsonResponse(
        {
            "version": __version__,
            "role": token.role,
            "tokens": token is not LOCAL_ADMIN,
            "samplers": [name for name in SAMPLERS if not find_sampler(name).needs_truth],
            "sampler": defaults.SAMPLER,
            "thresholds": list(THRESHOLDS),
            "threshold": defaults.THRESHOLD,
            "max_batch": MAX_BATCH,
            "max_body": MAX_BODY,
        }
    )


@router.get("/v1/openapi.json", include_in_schema=False)
async def openapi(request: Request, _token: Reader) -> Response:
    """Describe every request and its answers."""
    return JsonResponse(request.app.openapi())


@router.post("/v1/bound", response_model=models.Planned)
async def bound(run_apart: RunApart, body: models.Plan, token: Runner) -> Response:
    """Read a problem file, and say how hard the problem is if the means are as given.

    What a study of it would be refused for is refused here, in the same words.
    """
    found = await run_apart(token.id, jobs.bound, body.model_dump())
    return JsonResponse(found)


@router.post("/v1/problem", response_model=models.Drafted)
async def write(run_apart: RunApart, body: models.Draft, token: Runner) -> Response:
    """Write a problem file that says this; whether it makes sense, its bound says."""
    text = await run_apart(token.id, jobs.drafted, body.document)
    return JsonResponse({"problem": text})
