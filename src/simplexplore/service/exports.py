"""All pulls of a study, as a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from . import heavy_work
from .access import CheckedRoute
from .dependencies import Name, Processes, Reader, Studies

router = APIRouter(prefix="/v1/studies", route_class=CheckedRoute)

_MEDIA_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
_SCHEMAS = {
    "csv": {"type": "string"},
    "json": {"type": "object"},
    "parquet": {"type": "string", "format": "binary"},
}


@router.get(
    "/{name}/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "All pulls with their rewards.",
            "content": {_MEDIA_TYPES[form]: {"schema": _SCHEMAS[form]} for form in _SCHEMAS},
        }
    },
)
async def export(
    processes: Processes,
    studies: Studies,
    name: Name,
    token: Reader,
    form: Annotated[Literal["csv", "json", "parquet"], Query(alias="format")] = "csv",
) -> Response:
    """All pulls with their rewards, as a file."""
    folder = tempfile.TemporaryDirectory(prefix="simplexplore-")
    path = Path(folder.name, f"study.{form}")
    try:
        await processes.run(token.id, heavy_work.export, studies.where, name, str(path))
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        filename=f"{name}.{form}",
        media_type=_MEDIA_TYPES[form],
        background=BackgroundTask(folder.cleanup),
    )
