"""What every request passes: limits on its body, headers of the answer, a log line, a count."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from simplexplore.protocol import MAX_BODY

from .error_documents import error_response, http_error, internal_error
from .logs import log, log_failure
from .monitoring import Metrics

# Seconds for a request's body to arrive.
BODY_TIMEOUT = 20.0

# Nothing of another origin is loaded, and no script or style that stands in a page.
_HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}


class RequestMiddleware:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["started"] = time.perf_counter()
        scope["request_id"] = f"{random.getrandbits(64):016x}"
        # Paths are matched as they were sent and names decoded afterwards, so that a study's
        # name may contain a slash without meaning another path.
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        scope["path"] = raw.decode("latin-1")
        request = scope["request_id"].encode()
        headers = dict(scope["headers"])
        body = _Body(receive, headers)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = dict(message["headers"])
                if not body.is_complete:  # what is left of it must not be taken for a request
                    own[b"connection"] = b"close"
                found = {b"cache-control": b"no-store", **own, **_HEADERS, b"x-request-id": request}
                message["headers"] = [*found.items()]
            await send(message)

        self._metrics.in_progress += 1
        try:
            refused = _refusal(scope, headers)
            if refused is not None:
                await error_response(refused, {"Connection": "close"})(scope, receive, sending)
            else:
                await self._app(scope, body, sending)
        except Exception as error:
            log_failure(error, scope["request_id"])
            if status:  # half an answer is out
                raise
            await error_response(internal_error(scope["request_id"]))(scope, receive, sending)
        finally:
            self._metrics.in_progress -= 1
            self._note(scope, status)

    def _note(self, scope: Scope, status: int) -> None:
        """Count and log a request that was answered."""
        seconds = time.perf_counter() - scope["started"]
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.count(scope["method"], route, status, seconds)
        fields: dict[str, Any] = {
            "id": scope["request_id"],
            "method": scope["method"],
            "path": scope["path"][:300],
            "status": status,
            "ms": round(1000 * seconds, 1),
            "token": getattr(scope.get("token"), "id", None),
        }
        log("request", logging.ERROR if status >= 500 else logging.INFO, **fields)


def _refusal(scope: Scope, headers: Mapping[bytes, bytes]) -> dict[str, Any] | None:
    """Why a request is refused by its head alone."""
    hosts = sum(name == b"host" for name, _ in scope["headers"])
    if hosts > 1 or (hosts == 0 and scope["http_version"] == "1.1"):
        return http_error(400, "a request names one host, in one header Host.")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > MAX_BODY:
        return http_error(413, _TOO_LARGE)
    if scope["method"] == "POST" and (length != b"0" or b"transfer-encoding" in headers):
        # A page of another site can make a browser send other types, but not this one.
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        if kind != b"application/json":
            return http_error(415, "send JSON, with the header Content-Type: application/json.")
    return None


_TOO_LARGE = f"a body has at most {MAX_BODY:,} bytes; send it in several requests."


class _Body:
    """The body of a request, which has to be small and to arrive in time."""

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes]) -> None:
        self._receive = receive
        self._read = 0
        self._until: float | None = None
        length = headers.get(b"content-length", b"0")
        self.is_complete = length == b"0" and b"transfer-encoding" not in headers

    async def __call__(self) -> Message:
        if self.is_complete:  # what comes after it is the news that the client has gone
            return await self._receive()
        if self._until is None:  # the time until it is wanted is not the client's
            self._until = time.monotonic() + BODY_TIMEOUT
        try:
            async with asyncio.timeout(self._until - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                408, f"the body did not arrive within {BODY_TIMEOUT:g} s.", {"Connection": "close"}
            ) from None
        self._read += len(message.get("body", b""))
        if self._read > MAX_BODY:
            raise HTTPException(413, _TOO_LARGE, {"Connection": "close"})
        self.is_complete = not message.get("more_body", False)
        return message
