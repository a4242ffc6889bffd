"""What machines that watch over the service ask for: whether it works, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from simplexplore import __version__
from simplexplore.errors import SimplexploreError
from simplexplore.study.registry import summaries
from simplexplore.study.store import Store

from .access import CheckedRoute
from .dependencies import Reader, Studies, Threads
from .metrics import CONTENT_TYPE, MOST_STUDIES, Metrics
from .responses import JsonResponse

router = APIRouter(include_in_schema=False, route_class=CheckedRoute)


@router.get("/health")
async def health(threads: Threads, studies: Studies) -> Response:
    """Whether the service works, its store included. Open to everybody."""
    try:
        await threads.run("health", lambda: _reach(studies.store))
    except SimplexploreError:
        return JsonResponse({"status": "the store cannot be reached"}, 503)
    return JsonResponse({"status": "ok", "version": __version__})


def _reach(store: Store) -> None:
    with store.reading() as connection:
        connection.exec_driver_sql("SELECT 1")


@router.get("/metrics")
async def metrics(request: Request, threads: Threads, studies: Studies, token: Reader) -> Response:
    """Counts for Prometheus."""
    counted: Metrics = request.app.state.metrics

    def look() -> bytes:
        return counted.text(studies.store.totals(), summaries(studies.store, MOST_STUDIES))

    return Response(await threads.run(token.id, look), media_type=CONTENT_TYPE)
