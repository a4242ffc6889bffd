"""Requests to a service: one connection pool, retries, and errors as they were raised there.

Everything that changes a study carries a key made before the first attempt: sent again after
a lost answer, it happens once.
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, Self
from urllib.parse import SplitResult, quote, urlsplit

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from simplexplore.errors import ServiceError, SettingError, SimplexploreError
from simplexplore.protocol import KEY_HEADER, from_problem

# Seconds to wait for one answer: longer than the service waits for itself.
_PATIENCE = 90.0

# Seconds after which a quiet connection is not trusted: the service, or something on the way,
# may have forgotten it.
_IDLE = 30.0

# Connections that are kept open: one for each thread that works at the same time, and no
# complaint about more of them.
_KEPT = 1000

# Statuses that say "not now".
_BUSY = (429, 502, 503, 504)


class Transport:
    """A way to a service. Threads may share it."""

    def __init__(self, url: str, token: str | None, retry_for: float) -> None:
        self._parts, self._host = _parse(url)
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
            raise SettingError("a token is one word, as 'simplexplore token create' printed it.")
        self.url = url.rstrip("/")
        self._token = token
        self._retry_for = retry_for
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
        into: BinaryIO | None = None,
    ) -> Any:
        """Send a request, again if need be, and return the answer or raise its error."""
        headers = {"Accept": "application/json"}
        content = None
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if method == "POST":
            headers["Content-Type"] = "application/json"
            headers[KEY_HEADER] = quote(key or secrets.token_hex(16))
            content = json.dumps(body, default=_plain).encode()
        failed: float | None = None  # since when
        pause = 0.05
        while True:
            try:
                status, waiting, answer = self._send(method, path, content, headers, into)
                if status not in _BUSY:
                    return _understood(status, answer)
                error = _error(status, answer)
            except HTTPError as wrapped:
                reason = _reason(wrapped)
                waiting = 0.0
                error = ServiceError(f"{self.url} cannot be reached ({_words(reason)}).")
                if isinstance(reason, ssl.SSLCertVerificationError):  # no time heals this
                    raise error from None
            now = time.monotonic()
            failed = now if failed is None else failed
            # Spread out, so that many workers do not come back at the same moment.
            nap = max(waiting, pause * random.uniform(0.5, 1.0))
            if now - failed + nap > self._retry_for:
                raise error
            time.sleep(nap)
            pause = min(2 * pause, 2.0)

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        into: BinaryIO | None,
    ) -> tuple[int, float, bytes]:
        """One attempt: status, seconds to wait before the next, and answer."""
        target = f"{self._parts.path.rstrip('/')}/v1{path}"
        # Read to its end, an answer gives its connection back to the pool; else it closes it.
        with self._connections().urlopen(
            method, target, content, dict(headers), preload_content=False
        ) as response:
            answer = b""
            if into is not None and response.status == 200:
                _write(response.stream(2**16), into)
            else:
                answer = response.read()
        waiting = response.headers.get("Retry-After", "0")
        return response.status, float(waiting) if waiting.isdecimal() else 0.0, answer

    def _connections(self) -> HTTPConnectionPool:
        """The pool of this process: a fork must not use its parent's connections."""
        pool = self._pool
        if pool is None or self._pid != os.getpid():
            # Retries are ours, because they go by time.
            options: dict[str, Any] = {"timeout": _PATIENCE, "maxsize": _KEPT, "retries": False}
            if self._parts.scheme == "https":
                options["ssl_context"] = ssl.create_default_context()
                pool = HTTPSConnectionPool(self._host, self._parts.port, **options)
                pool.ConnectionCls = _RecentHTTPSConnection
            else:
                pool = HTTPConnectionPool(self._host, self._parts.port, **options)
                pool.ConnectionCls = _RecentHTTPConnection
            self._pool, self._pid = pool, os.getpid()
        return pool


class _RecentHTTPConnection(HTTPConnection):
    """A connection that counts as lost after a quiet time."""

    _used = 0.0

    @property
    def is_connected(self) -> bool:
        return time.monotonic() - self._used < _IDLE and super().is_connected

    def getresponse(self) -> Any:
        self._used = time.monotonic()
        return super().getresponse()


class _RecentHTTPSConnection(_RecentHTTPConnection, HTTPSConnection):
    """The same, encrypted."""


def _parse(url: str) -> tuple[SplitResult, str]:
    """The parts of an address, and its host as the name system knows it."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        usable = parts.scheme in ("http", "https") and host and parts.port != 0
    except ValueError:  # the port, or brackets
        usable = False
    if not usable:
        raise SettingError(
            f"{url!r} is not the address of a service; it looks like http://127.0.0.1:8080."
        )
    return parts, host


def _reason(error: HTTPError) -> BaseException:
    """What the system said, under what the library makes of it."""
    told = next((one for one in error.args if isinstance(one, BaseException)), None)
    return error.__cause__ or told or error


def _words(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python's."""
    if not hasattr(value, "item"):
        raise SettingError(f"{value!r} is not something that can be sent to a service.")
    return value.item()


def _write(pieces: Iterable[bytes], file: BinaryIO) -> None:
    """Write an answer to a file, from its start."""
    file.seek(0)
    file.truncate()
    for piece in pieces:
        try:
            file.write(piece)
        except OSError as error:
            raise SettingError(
                f"{file.name}: cannot write it: {error.strerror or error}."
            ) from None


def _document(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        return None


def _understood(status: int, answer: bytes) -> Any:
    """The content of an answer; raises if it is an error."""
    if status == 204:
        return None
    if 200 <= status < 300:
        document = _document(answer) if answer else {}
        if document is None:
            raise ServiceError("the service's answer is not JSON; is the address right?")
        return document
    raise _error(status, answer)


def _error(status: int, answer: bytes) -> SimplexploreError:
    document = _document(answer)
    if not isinstance(document, dict) or "type" not in document:
        return ServiceError(f"the service answered with status {status}; is the address right?")
    return from_problem(document)
