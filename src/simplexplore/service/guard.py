"""Limits on connections that a web server does not have: how many, how long idle, how large a head.

Stands between a socket and the server's protocol, and uses nothing of that but what every
`asyncio.Protocol` has; around the application it sees when requests begin and end.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from simplexplore.protocol import MAX_BODY

# Seconds that a connection may be idle, the time for a head to arrive included; bytes of a head.
MAX_IDLE = 20.0
MAX_HEAD = 2**16

# Bytes of one request with its chunk sizes and trailers, which no parser limits.
MAX_REQUEST = 2 * MAX_BODY

# Seconds for which an answer waits for a client that does not read it.
MAX_UNREAD = 60.0

_HEAD = re.compile(rb"[A-Z]+ [^\r\n]+ HTTP/1\.1\r\n")
_OFFER = re.compile(rb"\r\n(?:upgrade|http2-settings):[^\r\n]*", re.IGNORECASE)

# Of a client: host and port.
Address = tuple[str, int]


class Door:
    """The connections of a server.

    Parameters
    ----------
    most : int
        At a time. One more takes the place of the one that has been idle for the longest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._guards: dict[Address, Guard] = {}
        self._idle: OrderedDict[Address, Guard] = OrderedDict()  # the longest first

    def guarded(self, protocol: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.Protocol]:
        """What a server makes for each connection, guarded."""
        return lambda *arguments, **settings: Guard(protocol(*arguments, **settings), self)

    def watched(self, app: ASGIApp) -> ASGIApp:
        """An application that says when requests begin and end."""

        async def watched_app(scope: Scope, receive: Receive, send: Send) -> None:
            guard = self._guards.get(scope.get("client") or ("", 0))
            if guard is None:
                await app(scope, receive, send)
                return
            self._idle.pop(guard.address, None)
            guard.begin()
            try:
                await app(scope, receive, send)
            finally:
                if guard.end() and guard.address in self._guards:
                    self._idle[guard.address] = guard

        return watched_app

    def enter(self, guard: Guard) -> None:
        """Let a connection in; where all others are busy, it is closed."""
        self._guards[guard.address] = guard
        self._idle[guard.address] = guard
        if len(self._guards) > self._most:
            _, oldest = self._idle.popitem(last=False)
            # Its place is free at once: the system says later that it was closed.
            del self._guards[oldest.address]
            oldest.close()

    def leave(self, guard: Guard) -> None:
        """Forget a connection that was closed."""
        if self._guards.get(guard.address) is guard:
            del self._guards[guard.address]
            self._idle.pop(guard.address, None)


class Guard(asyncio.Protocol):
    """One connection."""

    def __init__(self, inner: asyncio.Protocol, door: Door) -> None:
        self._inner, self._door = inner, door
        self._requests = 0  # under way
        self._taken = 0  # bytes since the last request began or ended
        self._alarm: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self.address: Address = ("", 0)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.address = tuple(transport.get_extra_info("peername")[:2])
        self._inner.connection_made(transport)
        self._set_alarm()
        self._door.enter(self)

    def begin(self) -> None:
        """A request is under way."""
        self._requests += 1
        self._taken = 0
        _cancel(self._alarm)

    def end(self) -> bool:
        """One was answered; says whether none is left."""
        self._requests -= 1
        if self._requests == 0:
            self._taken = 0
            self._set_alarm()
        return self._requests == 0

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _set_alarm(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(MAX_IDLE, self.close)

    def data_received(self, data: bytes) -> None:
        if self._taken > (MAX_REQUEST if self._requests else MAX_HEAD):
            self.close()
            return
        # Java's clients offer HTTP/2 with every request, and parsers take the body for a part of
        # what would follow. Only a head is changed: whole, and where one begins.
        if not self._requests and not self._taken and b"h2c" in data and _HEAD.match(data):
            head, end, body = data.partition(b"\r\n\r\n")
            data = _OFFER.sub(b"", head) + end + body if end else data
        self._taken += len(data)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._alarm)
        _cancel(self._unread)
        self._door.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread = asyncio.get_running_loop().call_later(MAX_UNREAD, self._transport.abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        _cancel(self._unread)
        self._inner.resume_writing()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
