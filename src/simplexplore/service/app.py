"""The application: paths, errors, limits, put together over a store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from simplexplore import __version__
from simplexplore.study.store import Store

from . import api, event_stream, models, monitoring, static_files, studies
from .error_documents import add_error_handlers
from .logs import log
from .middleware import RequestMiddleware
from .monitoring import Metrics
from .scheduling import Processes, Threads
from .study_cache import StudyCache
from .tokens import TokenCache

# In the order in which a path is looked for.
_ROUTERS = (
    studies.quick_router,
    *(part.router for part in (studies, api, event_stream, static_files, monitoring)),
)


def make_app(store: str | os.PathLike[str] | Store) -> FastAPI:
    """An ASGI application over a store, for `simplexplore serve` or any other server."""
    opened = store if isinstance(store, Store) else Store(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.threads = Threads()
        app.state.processes = Processes()
        app.state.studies = StudyCache(opened, app.state.threads, app.state.processes)
        warming_up = asyncio.create_task(app.state.processes.warm_up())
        yield
        log("stopping")
        app.state.threads.close()
        warming_up.cancel()
        await asyncio.gather(warming_up, return_exceptions=True)
        opened.close()

    app = FastAPI(
        title="simplexplore",
        version=__version__,
        description="Live studies: ask which arm to play and tell its reward.",
        openapi_url=None,  # ours needs a token
        docs_url=None,  # these pages would be fetched from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        routes=[route for router in _ROUTERS for route in router.routes],
        lifespan=lifespan,
        # Metrics and logs are our own; looking for others' takes longer than counting.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.store_name = opened.name
    app.state.tokens = TokenCache(opened)
    app.state.metrics = Metrics()
    app.state.is_ending = lambda: False  # whether those who watch studies have to go
    app.add_middleware(RequestMiddleware, metrics=app.state.metrics)  # the outermost one
    add_error_handlers(app)
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        document["components"]["schemas"]["Problem"] = models.Problem.model_json_schema()
        app.openapi_schema = document
    return app.openapi_schema
