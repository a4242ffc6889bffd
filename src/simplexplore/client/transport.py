"""Requests to a service: one connection pool, retries, and errors as they were raised there.

Everything that changes a study carries a key made before the first attempt: sent again after
a lost answer, it happens once.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import SplitResult, quote, urlsplit

from urllib3 import HTTPConnectionPool, Retry, connection_from_url
from urllib3.exceptions import HTTPError

from simplexplore.errors import ServiceError, SettingError, SimplexploreError
from simplexplore.protocol import KEY_HEADER, from_problem

# Seconds to wait for one answer: longer than the service waits for itself.
_TIMEOUT = 90.0

# Connections that are kept open: one for each thread that works at the same time, and no
# complaint about more of them.
_MAX_KEPT = 1000

# Seconds between attempts: the first pause, which then doubles, and the longest.
_PAUSE, _MAX_PAUSE = 0.05, 2.0

# Seconds for which anything is tried again at most: a day.
_MAX_RETRY = 86_400.0

# Statuses that say "not now".
_BUSY = (429, 502, 503, 504)

# Answers that never came, or broke off, in one call.
_MAX_LOST = 5


class Transport:
    """A way to a service. Threads may share it."""

    def __init__(self, url: str, token: str | None, retry_for: float) -> None:
        self._parts, self._address = _parse(url)
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
            raise SettingError("a token is one word, as 'simplexplore token create' printed it.")
        self.url = url.rstrip("/")
        self._token = token
        self._retries = _retries(retry_for)
        self._pool: HTTPConnectionPool | None = None
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections; a later call opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
    ) -> Any:
        """Send a request, again if need be, and return the answer or raise its error."""
        status, answer = self._send(method, path, body, key)
        if status == 204:
            return None
        if not 200 <= status < 300:
            raise _error(status, answer)
        try:
            return json.loads(answer)
        except ValueError:
            raise ServiceError("the service's answer is not JSON; is the address right?") from None

    def download(self, path: str) -> bytes:
        """The content of a file."""
        status, answer = self._send("GET", path, None, None)
        if status != 200:
            raise _error(status, answer)
        return answer

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, key: str | None
    ) -> tuple[int, bytes]:
        headers = {"Accept": "application/json"}
        content = None
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if method == "POST":
            headers["Content-Type"] = "application/json"
            headers[KEY_HEADER] = quote(key or secrets.token_hex(16))
            content = json.dumps(body, default=_plain).encode()
        target = f"{self._parts.path.rstrip('/')}/v1{path}"
        try:
            response = self._connections().urlopen(
                method, target, content, headers, redirect=False, timeout=_TIMEOUT
            )
        except HTTPError as error:
            raise ServiceError(f"{self.url} cannot be reached ({_words(error)}).") from None
        return response.status, response.data

    def _connections(self) -> HTTPConnectionPool:
        """The pool of this process: a fork must not use its parent's connections."""
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            pool = connection_from_url(self._address, maxsize=_MAX_KEPT, retries=self._retries)
            self._pool, self._pid = pool, os.getpid()
        return pool


def _retries(seconds: float) -> Retry:
    """Attempts for some seconds: whatever is sent again happens once."""
    total, pause, left = 0, _PAUSE, min(seconds, _MAX_RETRY)
    while left > 0:
        total, pause, left = total + 1, min(2 * pause, _MAX_PAUSE), left - pause
    return Retry(
        total,
        read=min(total, _MAX_LOST),
        other=0,  # a certificate does not get better
        allowed_methods=None,
        status_forcelist=_BUSY,
        backoff_factor=_PAUSE,
        backoff_max=_MAX_PAUSE,
        # Spread out, so that many workers do not come back at the same moment.
        backoff_jitter=_PAUSE,
        raise_on_status=False,
    )


def _parse(url: str) -> tuple[SplitResult, str]:
    """The parts of an address, and scheme, host and port as the name system knows them."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
        usable = parts.scheme in ("http", "https") and host and port != 0
    except ValueError:  # the port, or brackets
        usable = False
    if not usable:
        raise SettingError(
            f"{url!r} is not the address of a service; it looks like http://127.0.0.1:8080."
        )
    host = f"[{host}]" if ":" in host else host
    return parts, f"{parts.scheme}://{host}{'' if port is None else f':{port}'}"


def _words(error: HTTPError) -> str:
    """What the system said, under what the library makes of it."""
    cause: BaseException = getattr(error, "reason", None) or error
    told = next((one for one in cause.args if isinstance(one, BaseException)), None)
    cause = cause.__cause__ or told or cause
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python's."""
    if not hasattr(value, "item"):
        raise SettingError(f"{value!r} is not something that can be sent to a service.")
    return value.item()


def _error(status: int, answer: bytes) -> SimplexploreError:
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "type" not in document:
        return ServiceError(f"the service answered with status {status}; is the address right?")
    return from_problem(document)
