"""Serving: a web server around the application, limits on its connections, and a quiet end."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
from collections.abc import Callable

import uvicorn

from simplexplore.errors import SettingError
from simplexplore.study.database import retried
from simplexplore.study.store import Store

from .access import is_loopback
from .app import make_app
from .guard import Door
from .logs import log, log_to_stderr
from .tokens import TokenCache

try:
    import resource
except ImportError:  # not on this platform: it has no such limit
    resource = None  # type: ignore[assignment]

# Connections at a time, and the files that the store, pages and processes need beside them.
_MAX_CONNECTIONS, _OTHER_FILES = 1_000, 160

# Seconds after which a thread that computes lets another one run. Python's own 5 ms are long
# against a request: answers that are ready would wait for them several times.
_SWITCH_INTERVAL = 0.0005

# Seconds that requests under way have left when the server is told to stop.
_GRACE = 20


def serve(
    url: str,
    host: str,
    port: int,
    announce: Callable[[str], None],
) -> None:
    """Serve a store until a signal ends it; `announce` gets the address once it is open."""
    log_to_stderr()
    store = retried(lambda: Store(url))  # a database may be started at the same time
    if not is_loopback(host) and TokenCache(store).is_open():
        raise SettingError(
            f"--host {host}: other machines could reach the service, and its store has no tokens. "
            "Make one first with 'simplexplore token create', or serve 127.0.0.1 only."
        )
    door = Door(_max_connections())
    listener = _listen(host, port)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # of processes for heavy work: each has a core
    app = make_app(store)
    config = uvicorn.Config(
        door.watched(app),
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=60,  # longer than the door lets connections be idle
        timeout_graceful_shutdown=_GRACE,
    )
    config.load()
    config.http_protocol_class = door.guarded(config.http_protocol_class)  # type: ignore[assignment]
    server = uvicorn.Server(config)
    app.state.is_ending = lambda: server.should_exit
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    gc.freeze()  # what is loaded stays: to look at it again and again takes a tenth of a second
    log("ready", url=address, store=store.name)
    announce(address)  # whoever connects now is served as soon as the application has started
    # Ctrl-C is how a server is meant to be ended.
    with listener, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


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


def _max_connections() -> int:
    """How many connections this process has files for; its limit is raised as far as it may."""
    if not hasattr(resource, "getrlimit"):
        return _MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    if soft <= _OTHER_FILES:
        raise SettingError(
            f"this process may open {soft} files, and needs {_OTHER_FILES} beside its connections; "
            "raise the limit ('ulimit -n')."
        )
    return min(_MAX_CONNECTIONS, soft - _OTHER_FILES)
