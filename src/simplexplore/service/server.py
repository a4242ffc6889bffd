"""Serving: a socket, a web server around the application, and a quiet end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from simplexplore.errors import SettingError
from simplexplore.study.store import Store

from .access import is_loopback
from .app import make_app
from .direct_routes import DirectRequest, DirectRoutes
from .logs import log, log_to_stderr
from .tokens import TokenCache

# Seconds for the head of a request to arrive, and for an idle connection to be kept.
_HEAD_TIMEOUT = 20.0
_IDLE = 60

# Bytes of a request's head, and requests that a client sends ahead of answers.
_LONGEST_HEAD = 2**16
_MOST_AHEAD = 100

# Seconds after which a thread that computes lets another one run. Python's own 5 ms are long
# against a request: answers that are ready would wait for them several times.
_SWITCH_INTERVAL = 0.0005

# Seconds for which a request waits for its body before the framework waits for it.
_HOLD = 0.1

# Seconds that requests under way have left when the server is told to stop.
_GRACE = 20


def serve(
    url: str,
    host: str,
    port: int,
    announce: Callable[[str], None],
    *,
    webhooks_anywhere: bool = False,
) -> None:
    """Serve a store until a signal ends it; `announce` gets the address once it is open."""
    store = Store(url)
    if not is_loopback(host) and TokenCache(store).is_open():
        raise SettingError(
            f"--host {host}: other machines could reach the service, and its store has no tokens. "
            "Make one first with 'simplexplore token create', or serve 127.0.0.1 only."
        )
    listener = _listen(host, port)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    log_to_stderr()
    app = make_app(store, webhooks_anywhere=webhooks_anywhere)
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_GRACE,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"

    def ready() -> None:
        gc.freeze()  # what is loaded stays: to look at it again and again takes a tenth of a second
        log("ready", url=address, store=store.name)
        announce(address)

    # Ctrl-C is how a server is meant to be ended.
    with listener, contextlib.suppress(KeyboardInterrupt):
        _Server(config, app, ready).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, because asyncio sends small answers at once only if it is.
    listener = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise SettingError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}."
        ) from None
    return listener


class _Server(uvicorn.Server):
    """Tells when it is ready, and lets those who watch studies go when it has to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        log("stopping", signal=sig)
        studies = getattr(self._app.state, "studies", None)  # None if it has not begun yet
        if studies is not None:
            studies.closing.set()
        super().handle_exit(sig, frame)


class _Protocol(HttpToolsProtocol):
    """Hangs up on those whose request does not come to its end, in time or in few bytes."""

    _alarm: asyncio.TimerHandle | None = None
    _taken = 0  # bytes of a head, or of what may follow a body, that has not ended
    _held: DirectRequest | None = None  # waits for its body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._direct: DirectRoutes = self.config.app.state.direct  # type: ignore[union-attr]
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._taken += len(data)
        try:
            self._feed(data)
            if self._taken > _LONGEST_HEAD:
                raise httptools.HttpParserError("too long")
        except httptools.HttpParserError:
            message = "Invalid HTTP request received."
            self.logger.warning(message)
            self.send_400_response(message)
        self._watch()
        if self._held is not None:  # its body comes later
            self.loop.call_later(_HOLD, self._let_go, self._held)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            # Java's clients offer HTTP/2 with every request. It is read again without the offer.
            headers = [one for one in self.headers if one[0] != b"upgrade"]
            if len(headers) == len(self.headers):
                raise httptools.HttpParserError("CONNECT is for proxies") from None
            method, version = self.parser.get_method(), self.parser.get_http_version()
            lines = [b"%b %b HTTP/%b" % (method, self.url, version.encode())]
            lines += [b"%b: %b" % one for one in headers]
            self.parser = httptools.HttpRequestParser(self)
            self._feed(b"\r\n".join([*lines, b"", data[stop.args[0] :]]))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._let_go(self._held)
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self._taken = 0
        if self.parser.should_upgrade():
            return
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts != 1 and (hosts or self.parser.get_http_version() == "1.1"):
            raise ValueError("one host is named")  # of this the parser makes an error of its own
        if len(self.pipeline) >= _MOST_AHEAD:
            raise ValueError("too many requests are sent ahead of answers")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._taken = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._taken = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()
            if self._held is not None and self._held.cycle is self.cycle:
                self._begin(self._held)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._held = self._direct.find(cycle)
        if self._held is None:
            super()._start_asgi_task(cycle, app)
        elif not cycle.more_body:  # it was sent ahead
            self._begin(self._held)

    def _begin(self, request: DirectRequest) -> None:
        """Answer a request that is there whole: at once, or by the framework."""
        if request.begins(super()._start_asgi_task):
            self._held = None
        else:
            self._let_go(request)

    def _let_go(self, request: DirectRequest | None) -> None:
        """Leave a request to the framework if it is still held."""
        if request is not None and request is self._held:
            self._held = None
            super()._start_asgi_task(request.cycle, self.app)

    def _watch(self) -> None:
        if self._is_busy():
            self._stop_watching()
        elif self._alarm is None:
            self._alarm = self.loop.call_later(_HEAD_TIMEOUT, self._hang_up)

    def _stop_watching(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _hang_up(self) -> None:
        self._alarm = None
        if not self._is_busy():
            self.transport.close()

    def _is_busy(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete
