"""Paths of many small requests, past the general machinery of the framework.

Taking a request apart by the description of its path costs more than deciding it. One that is
plainly right goes to the function of its path at once. The others are left to the framework as
they came, and it says what is wrong with them: there is no rule here.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import get_type_hints

from fastapi import Request
from pydantic import BaseModel
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simplexplore.protocol import KEY_HEADER

from .access import CheckedRoute, admit
from .dependencies import check_key_text, request_key, study_name


class DirectRoutes:
    """Middleware that calls the functions of some paths.

    They take the open studies, a study's name, a body, a token and a key.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[CheckedRoute]) -> None:
        self._app = app
        self._routes = [(route, get_type_hints(route.endpoint)["body"]) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope.get("root_path"):
            for route, model in self._routes:
                found = route.path_regex.match(scope["path"])
                if found is not None and scope["method"] in (route.methods or ()):
                    scope["route"] = route
                    body = _Body(receive)
                    answer = await self._answer(route, found["name"], model, Request(scope), body)
                    await answer(scope, body.again, send)
                    return
        await self._app(scope, receive, send)

    async def _answer(
        self, route: CheckedRoute, name: str, model: type[BaseModel], request: Request, body: _Body
    ) -> ASGIApp:
        """What answers a request: a response, an error, or the framework."""
        try:
            for role in route.roles:
                await admit(request, role)
            content = await body.read()
            try:
                given = {
                    "name": await study_name(name),
                    "body": model.model_validate(json.loads(content)),
                    "key": await request_key(check_key_text(request.headers.get(KEY_HEADER))),
                }
            except Exception:
                return self._app
            response: ASGIApp = await route.endpoint(
                studies=request.app.state.studies, token=request.scope["token"], **given
            )
            return response
        except Exception as error:
            return ExceptionMiddleware(_raising(error), request.app.exception_handlers)


class _Body:
    """The body of a request, to be read twice if need be."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: deque[Message] = deque()

    async def read(self) -> bytes:
        """All of it; nothing if the client has gone."""
        while True:
            message = await self._receive()
            self._read.append(message)
            if message["type"] != "http.request":
                return b""
            if not message.get("more_body", False):
                return b"".join(one.get("body", b"") for one in self._read)

    async def again(self) -> Message:
        return self._read.popleft() if self._read else await self._receive()


def _raising(error: Exception) -> ASGIApp:
    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise error

    return fail
