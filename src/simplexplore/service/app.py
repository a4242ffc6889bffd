"""The application: paths, errors, limits, put together over a store."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

from simplexplore import __version__
from simplexplore.errors import SimplexploreError
from simplexplore.study.store import Store
from simplexplore.study.study import Study

from . import models
from .access import needs
from .api import Json, api
from .error_documents import answer_errors
from .metrics import CONTENT_TYPE, Metrics
from .middleware import Gate
from .open_studies import Desk
from .static_files import pages
from .tokens import Doorkeeper


def make_app(store: str | os.PathLike[str] | Store) -> FastAPI:
    """An ASGI application over a store, for `simplexplore serve` or any other server."""
    opened = store if isinstance(store, Store) else Store(store)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.desk = Desk(opened)
        yield
        app.state.desk.close()
        opened.close()

    app = FastAPI(
        title="simplexplore",
        version=__version__,
        description="Live studies: ask which arm to play, tell what came of it.",
        openapi_url="/v1/openapi.json",
        docs_url=None,  # these pages would be fetched from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.store_name = opened.name
    app.state.doorkeeper = Doorkeeper(opened)
    app.state.metrics = Metrics()
    app.add_middleware(Gate, metrics=app.state.metrics)
    answer_errors(app)
    app.include_router(api)
    app.include_router(pages)

    @app.get("/health", include_in_schema=False)
    async def health() -> Response:
        """Whether the service works, its store included. Open to everybody."""
        desk: Desk = app.state.desk
        try:
            await desk.run(_glimpse)
        except SimplexploreError:
            return Json({"status": "the store cannot be reached"}, 503)
        return Json({"status": "ok", "version": __version__})

    def _glimpse() -> None:
        with opened.reading() as connection:
            connection.exec_driver_sql("SELECT 1")

    @app.get("/metrics", include_in_schema=False, dependencies=[Depends(needs("read"))])
    async def metrics() -> Response:
        """Counts for Prometheus."""
        desk: Desk = app.state.desk
        text = app.state.metrics.text(await desk.run(lambda: Study.list(opened)))
        return Response(text, media_type=CONTENT_TYPE)

    def openapi() -> dict[str, object]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            schemas = document["components"]["schemas"]
            schemas["Problem"] = models.Problem.model_json_schema()
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    return app
