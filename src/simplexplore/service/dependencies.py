"""What paths have in common: errors, roles, open studies, names, keys, answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Annotated, Any, get_type_hints
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import AfterValidator, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from simplexplore.errors import SettingError
from simplexplore.protocol import KEY_HEADER, PROBLEM_TYPE
from simplexplore.report.json_text import to_json

from .access import CheckedRoute, Needs
from .study_cache import StudyCache
from .tokens import Token

# A little shorter than keys in the journal, where the number of a reward may be added.
_LONGEST_KEY = 190


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


class JsonResponse(Response):
    """JSON in which an infinite number is 1e999, as on the command line."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return json.dumps(content, allow_nan=False).encode()
        except ValueError:
            return to_json(content).encode()


def new_router(route_class: type[CheckedRoute] = CheckedRoute) -> APIRouter:
    """A router whose paths check the token before they read a body."""
    return APIRouter(responses=_ERRORS, route_class=route_class)


async def _run_apart(request: Request) -> Callable[..., Awaitable[Any]]:
    return partial(request.app.state.processes.run, request=request)


async def _studies(request: Request) -> StudyCache:
    studies: StudyCache = request.app.state.studies
    return studies


def _study_name(name: str) -> str:
    """A study's name, out of a path that was left as it was sent."""
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise HTTPException(404, "the study's name in the path is not UTF-8.") from None


def _request_key(text: str | None) -> str | None:
    """The key of a request, decoded."""
    try:
        key = None if text is None else unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SettingError(f"{KEY_HEADER}: the percent-encoded text is not UTF-8.") from None
    if key is not None and ("\0" in key or len(key) > _LONGEST_KEY):
        raise SettingError(f"{KEY_HEADER}: a key has at most {_LONGEST_KEY} characters, none NUL.")
    return key


Reader = Annotated[Token, Depends(Needs("read"))]
Runner = Annotated[Token, Depends(Needs("run"))]
Admin = Annotated[Token, Depends(Needs("admin"))]
# `Processes.run` for as long as the client waits.
RunApart = Annotated[Callable[..., Awaitable[Any]], Depends(_run_apart)]
Studies = Annotated[StudyCache, Depends(_studies)]
Name = Annotated[str, AfterValidator(_study_name)]
Key = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        min_length=1,
        max_length=2000,
        pattern=r"^[\x21-\x7e]+$",
        description="Names the request: sent again under the same key, it happens once. "
        "Percent-encoded if it is not plain text.",
    ),
    AfterValidator(_request_key),
]
After = Annotated[int, Query(ge=0, lt=2**62, description="Only what follows this event.")]

_read_key: Callable[[object], str | None] = TypeAdapter(Key).validate_python


class QuickRoute(CheckedRoute):
    """A path of many small requests, of a study, with a body and a key.

    What the framework would find out by calling dependencies is taken from the request here, which
    takes a third of the time. A request that is not plainly right is left to the framework, which
    says what is wrong with it.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        (needs,) = self.needs()
        model = get_type_hints(self.endpoint)["body"]

        async def quick(request: Request) -> Response:
            token = await needs.check(request)
            try:
                body = model.model_validate_json(await request.body())
                key = _read_key(request.headers.get(KEY_HEADER))
            except ValidationError:
                return await handle(request)
            name = _study_name(request.path_params["name"])
            studies = request.app.state.studies
            response: Response = await self.endpoint(studies, name, body, token, key)
            return response

        return quick
