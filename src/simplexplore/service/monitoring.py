"""What machines that watch over the service ask for: whether it works, and what it counts."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from starlette.responses import Response

from simplexplore import __version__
from simplexplore.errors import SimplexploreError
from simplexplore.study.registry import summaries
from simplexplore.study.store import Store

from .access import CheckedRoute
from .dependencies import JsonResponse, Reader, Studies

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Upper ends of the time classes, in seconds.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# Methods that are counted by name. Anybody can invent others.
_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")

# Studies that are counted one by one; the rest only in the totals.
_MAX_STUDIES = 500


router = APIRouter(include_in_schema=False, route_class=CheckedRoute)


class Metrics:
    """Requests of this process: how many, how long, how many at the moment."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # they say nothing
        to: dict[str, Any] = {"namespace": "simplexplore", "registry": CollectorRegistry()}
        self._registry = to["registry"]
        self.in_progress = 0
        # Open event streams by token.
        self.watchers: collections.Counter[str] = collections.Counter()
        Gauge("info", "The program's version.", ["version"], **to).labels(__version__).set(1)
        Gauge("start_time_seconds", "When this process started.", **to).set_to_current_time()
        under_way = Gauge("requests_in_progress", "Requests under way.", **to)
        under_way.set_function(lambda: self.in_progress)
        Gauge("watchers", "Open event streams.", **to).set_function(self.watchers.total)
        self._requests = Counter(
            "requests", "Requests answered.", ["method", "route", "status"], **to
        )
        self._seconds = Histogram(
            "request_seconds",
            "Time until a request was answered.",
            ["route"],
            buckets=_BUCKETS,
            **to,
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Add a request that was answered."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, totals: Mapping[str, int], studies: Sequence[Mapping[str, Any]]) -> bytes:
        """Everything counted, studies by state, and how far some are (as `Study.list` says it)."""
        to: dict[str, Any] = {"namespace": "simplexplore", "registry": CollectorRegistry()}
        by_state = Gauge("studies", "Studies in the store.", ["state"], **to)
        for state in ("running", "stopped", "paused", "archived"):
            by_state.labels(state).set(totals[state])
        kind: type[Counter | Gauge]
        for kind, name, field, words in (
            (Counter, "asked", "asked", "Pulls given out."),
            (Counter, "rewards", "rewards", "Rewards taken in."),
            (Gauge, "pending", "pending", "Pulls without a reward."),
            (Gauge, "progress", "progress", "Share of the evidence needed."),
            (Gauge, "changed_seconds", "changed", "Time of the last change."),
        ):
            family = kind(f"study_{name}", words, ["study"], **to)
            for one in studies:
                if one[field] is not None:
                    family.labels(one["name"]).inc(one[field])
        return generate_latest(self._registry) + generate_latest(to["registry"])


@router.get("/health")
async def health(studies: Studies) -> Response:
    """Whether the service works, its store included. Open to everybody."""
    try:
        await studies.threads.run("health", lambda: _reach(studies.store))
    except SimplexploreError:
        return JsonResponse({"status": "the store cannot be reached"}, 503)
    return JsonResponse({"status": "ok"})


def _reach(store: Store) -> None:
    with store.reading() as connection:
        connection.exec_driver_sql("SELECT 1")


@router.get("/metrics")
async def metrics(request: Request, studies: Studies, token: Reader) -> Response:
    """Counts for Prometheus."""
    counted: Metrics = request.app.state.metrics

    def look() -> bytes:
        return counted.text(studies.store.totals(), summaries(studies.store, _MAX_STUDIES))

    return Response(await studies.threads.run(token.id, look), media_type=_CONTENT_TYPE)
