"""Many small requests, past the framework: an answer in one call instead of forty.

Taking a request apart by the description of its path, and waiting for it in a task of its own,
costs several times as much as deciding it. One that is plainly right is begun as soon as its last
byte is there. All others are left to the framework as they came, and it says what is wrong with
them: there is no rule here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from simplexplore.protocol import KEY_HEADER
from simplexplore.study.group import Request

from .access import CheckedRoute, remembered
from .dependencies import check_key_text, request_key, study_name
from .middleware import RequestMiddleware, begin, note, refusal, with_headers
from .responses import JsonResponse, to_bytes
from .tokens import Token

_KEY = KEY_HEADER.lower().encode()

# What an answer begins with, after date and status: to be filled in with its length and id.
_HEAD = b"".join(
    b"%b: %b\r\n" % one
    for one in with_headers(
        [(b"content-length", b"%d"), (b"content-type", JsonResponse.media_type.encode())], b"%b"
    )
)


class DirectRoute(NamedTuple):
    """A path of small requests.

    Attributes
    ----------
    route : CheckedRoute
        As the framework knows it.
    model : type
        What the body has to be.
    request : function
        From body and key to what is asked of a study.
    content : function
        From the outcome to the answer.
    """

    route: CheckedRoute
    model: type[BaseModel]
    request: Callable[[Any, str | None], Request]
    content: Callable[[Any], dict[str, Any]]


class DirectRoutes:
    """Paths whose requests need not go through the framework."""

    def __init__(self, app: FastAPI, routes: Sequence[DirectRoute]) -> None:
        self._app, self._routes = app, routes

    def find(self, cycle: RequestResponseCycle) -> DirectRequest | None:
        """A request whose head is there, if that is plainly right and its body small."""
        scope: Any = cycle.scope
        path = scope["raw_path"].decode("latin-1")
        for direct in self._routes:
            found = direct.route.path_regex.match(path)
            if found is not None:
                break
        else:
            return None
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if (
            scope["method"] not in (direct.route.methods or ())
            or scope["root_path"]
            or len(headers) < len(scope["headers"])  # one is there twice
            or not (len(length) < 6 and length.isdigit())
            or int(length) >= HIGH_WATER_LIMIT  # more is not read until somebody wants it
            or refusal(scope["method"], headers) is not None
            or cycle.waiting_for_100_continue
        ):
            return None
        scope["app"] = self._app
        try:
            token = remembered(HTTPConnection(scope))
        except HTTPException:
            return None
        if token is None or not all(map(token.allows, direct.route.roles)):
            return None
        return DirectRequest(self._app, cycle, direct, token, found["name"], headers.get(_KEY))


class DirectRequest:
    """A request that is answered without the framework, unless something about it is odd."""

    __slots__ = ("_app", "_direct", "_key", "_name", "_start", "_token", "cycle")

    def __init__(
        self,
        app: FastAPI,
        cycle: RequestResponseCycle,
        direct: DirectRoute,
        token: Token,
        name: str,
        key: bytes | None,
    ) -> None:
        self._app, self.cycle, self._direct, self._token = app, cycle, direct, token
        self._name, self._key = name, key

    def begins(self, start: Callable[[RequestResponseCycle, Any], None]) -> bool:
        """Begin it, now that it is there whole; says whether it was begun.

        If it is refused later, an application that says so is started for it.
        """
        key, direct, state = self._key, self._direct, self._app.state
        try:
            request = direct.request(
                direct.model.model_validate(json.loads(self.cycle.body)),
                request_key(check_key_text(None if key is None else key.decode("latin-1"))),
            )
            name = study_name(self._name)
        except Exception:
            return False
        if (
            request.keys is None
            or self.cycle.flow.write_paused
            or not state.studies.commits(self._token.id, name, request, self._answer)
        ):
            return False
        scope: Any = self.cycle.scope
        begin(scope)
        scope["token"], scope["route"] = self._token, direct.route
        self._start = start
        state.metrics.in_progress += 1
        return True

    def _answer(self, outcome: Any) -> None:
        cycle, metrics = self.cycle, self._app.state.metrics
        metrics.in_progress -= 1
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            body = to_bytes(self._direct.content(outcome))
        except Exception as error:
            refusing = ExceptionMiddleware(_raising(error), self._app.exception_handlers)
            self._start(cycle, RequestMiddleware(refusing, metrics))
            return
        scope: Any = cycle.scope
        if not cycle.disconnected:
            _send(cycle, _HEAD % (len(body), scope["request_id"].encode()), body)
        note(metrics, scope, 200)


def _send(cycle: RequestResponseCycle, headers: bytes, body: bytes) -> None:
    """Send an answer as the web server itself does."""
    date = b"".join(b"%b: %b\r\n" % one for one in cycle.default_headers)
    close = b"" if cycle.keep_alive else b"connection: close\r\n"
    cycle.transport.write(b"".join((STATUS_LINE[200], date, headers, close, b"\r\n", body)))
    cycle.response_started = cycle.response_complete = True
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


def _raising(error: Exception) -> ASGIApp:
    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise error

    return fail
