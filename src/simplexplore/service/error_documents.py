"""Every error as a problem document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from simplexplore.errors import SimplexploreError, TooLargeError
from simplexplore.protocol import PROBLEM_TYPE, to_problem
from simplexplore.report.json_text import to_json


def add_error_handlers(app: FastAPI) -> None:
    """Let an application answer what a request can cause with a problem document."""
    app.add_exception_handler(SimplexploreError, _ours)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_request)
    app.add_exception_handler(ClientDisconnect, _gone)


def error_response(
    document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """A response that carries a problem document."""
    return Response(to_json(dict(document)), int(document["status"]), headers, PROBLEM_TYPE)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, SimplexploreError)
    document = to_problem(error)
    # Where the store is concerns only those who run the service.
    name = request.app.state.store_name
    for place in (name, str(Path(name.removeprefix("sqlite:///")).absolute())):
        document["detail"] = document["detail"].replace(place, "the store")
    headers = {"Retry-After": "1"} if document["status"] == 503 else None
    return error_response(document, headers)


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(http_error(error.status_code, error.detail), error.headers)


def http_error(status: int, detail: str) -> dict[str, Any]:
    """An error that HTTP itself has a name for."""
    if status == 413:
        return to_problem(TooLargeError(detail))
    name = "urn:simplexplore:access" if status in (401, 403) else "about:blank"
    # 499 is what servers write into their logs about clients that did not wait.
    title = "Client Closed Request" if status == 499 else HTTPStatus(status).phrase
    return {"type": name, "title": title, "status": status, "detail": detail}


async def _gone(_: Request, __: Exception) -> Response:
    return error_response(http_error(499, "the client went before its request was there."))


async def _of_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # What came is not repeated: it may be large, or a secret.
    found = [{"where": _place(one["loc"]), "message": one["msg"]} for one in error.errors()][:20]
    detail = "; ".join(f"{one['where']}: {one['message']}" for one in found)
    return error_response(
        {
            "type": "urn:simplexplore:setting",
            "title": "the request does not fit the interface",
            "status": 422,
            "detail": f"{detail}. /v1/openapi.json describes every request.",
            "errors": found,
        }
    )


def _place(parts: Sequence[str | int]) -> str:
    """Where in a request something is wrong; what reads a text there has no name of its own."""
    return ".".join(str(part) for part in parts if not str(part).startswith("function-after"))


def internal_error(request: str) -> dict[str, Any]:
    """The program failed: no detail of it leaves the machine."""
    return {
        "type": "urn:simplexplore:service",
        "title": "Internal Server Error",
        "status": 500,
        "detail": f"the service failed; its log says why, under the request's id ({request}).",
    }
