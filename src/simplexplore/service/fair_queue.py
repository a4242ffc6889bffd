"""Who is let in when: no client makes another wait."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

# Requests of one token that wait, and for how many seconds at most.
_LONGEST_QUEUE = 100
WAIT = 30.0


class FairQueue:
    """Lets some in at a time.

    Parameters
    ----------
    most : int
        At a time, of all tokens; half of it is kept for tokens that have nothing inside.
    share : int
        At a time, of one token.
    """

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, share
        self._inside: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, token: str, extra: int = 0) -> AsyncIterator[None]:
        """Enter and leave."""
        await self.enter(token, extra)
        try:
            yield
        finally:
            self.leave(token)

    @property
    def is_empty(self) -> bool:
        """Whether nobody is inside or waits."""
        return not self._inside.total() and not self._waiting

    async def enter(self, token: str, extra: int = 0) -> None:
        """Wait for one's turn; `extra` enlarges the token's share for what is quick."""
        if not self.enters(token, extra):
            await self._wait(token, self._share + extra)

    def enters(self, token: str, extra: int) -> bool:
        """Enter if one need not wait; says whether that was so."""
        is_free = self._is_free(token, self._share + extra)
        if is_free:
            self._inside[token] += 1
        return is_free

    def _is_free(self, token: str, share: int) -> bool:
        own, total = self._inside[token], self._inside.total()
        return total < self._most if not own else own < share and total < self._most // 2

    async def _wait(self, token: str, share: int) -> None:
        line = self._waiting.setdefault(token, deque())
        if len(line) >= _LONGEST_QUEUE:
            raise _busy()
        place = (share, asyncio.get_running_loop().create_future())
        line.append(place)
        try:
            await asyncio.wait_for(asyncio.shield(place[1]), WAIT)
        except BaseException as error:
            if place[1].done():  # let in at the last moment
                self.leave(token)
            else:
                line.remove(place)
                self._forget_if_empty(token)
            if isinstance(error, TimeoutError):
                raise _busy() from None
            raise

    def leave(self, token: str) -> None:
        """Let the next one in."""
        self._inside[token] -= 1
        if not self._inside[token]:
            del self._inside[token]
        # Those who have least inside come first; of these, those who have waited longest.
        for other in sorted(self._waiting, key=lambda one: self._inside[one]):
            line = self._waiting[other]
            for place in line:
                if self._is_free(other, place[0]):
                    line.remove(place)
                    self._inside[other] += 1
                    place[1].set_result(None)
                    self._waiting.move_to_end(other)
                    self._forget_if_empty(other)
                    return

    def _forget_if_empty(self, token: str) -> None:
        if not self._waiting.get(token, True):
            del self._waiting[token]


def _busy() -> HTTPException:
    return HTTPException(
        503,
        "this token has too much work in progress; wait until it is done, then try again.",
        {"Retry-After": "2"},
    )
