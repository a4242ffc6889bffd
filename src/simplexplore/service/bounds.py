"""How hard a problem is, before a study is made of it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from . import heavy_work, models
from .access import CheckedRoute
from .dependencies import Processes, Runner
from .responses import JsonResponse

router = APIRouter(route_class=CheckedRoute)


@router.post("/v1/bound", response_model=models.Planned)
async def bound(processes: Processes, body: models.Plan, token: Runner) -> Response:
    """Read a problem file, and say how hard the problem is if the means are as given."""
    found = await processes.run(token.id, heavy_work.bound, body.problem, body.delta, body.means)
    return JsonResponse(found)
