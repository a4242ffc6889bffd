"""The application: paths, errors, limits, put together over a store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from simplexplore import __version__
from simplexplore.study.store import Store

from . import api, models, monitoring, static_files, studies
from .direct_routes import DirectRoutes
from .error_documents import add_error_handlers
from .metrics import Metrics
from .middleware import RequestMiddleware
from .open_studies import OpenStudies
from .tokens import TokenCache
from .webhooks import Messenger
from .worker_processes import WorkerProcesses
from .worker_threads import WorkerThreads


def make_app(store: str | os.PathLike[str] | Store, *, webhooks_anywhere: bool = False) -> FastAPI:
    """An ASGI application over a store, for `simplexplore serve` or any other server.

    Webhooks reach the internet only, not the server's own network, unless they may go anywhere.
    """
    opened = store if isinstance(store, Store) else Store(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.threads = WorkerThreads()
        app.state.processes = WorkerProcesses()
        app.state.processes.warm_up()
        app.state.studies = OpenStudies(opened, app.state.threads, app.state.processes)
        messenger = Messenger(opened, private=webhooks_anywhere)
        yield
        app.state.studies.closing.set()
        await messenger.close()
        app.state.threads.close()
        app.state.processes.close()
        opened.close()

    app = FastAPI(
        title="simplexplore",
        version=__version__,
        description="Live studies: ask which arm to play and tell its reward.",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # these pages would be fetched from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # Metrics and logs are our own; looking for others' takes longer than counting.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.store_name = opened.name
    app.state.tokens = TokenCache(opened)
    app.state.metrics = Metrics()
    app.state.direct = DirectRoutes(app, studies.DIRECT)
    app.add_middleware(RequestMiddleware, metrics=app.state.metrics)  # the outermost one
    add_error_handlers(app)
    for part in (api, static_files, monitoring):
        app.include_router(part.router)
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
