"""Who asks, and what the token in the request allows."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from simplexplore.errors import AccessError

from .tokens import NOBODY, Token, TokenCache
from .worker_threads import WorkerThreads

_bearer = HTTPBearer(auto_error=False, description="A token that 'simplexplore token' made.")

# Names of this machine. A page of another site can point a name of its own to this machine,
# but it cannot make a browser send one of these.
_LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")

# What proxies add. One that uses our own name for others would let everybody in.
_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


def needs(role: str) -> Callable[[Request, Credentials], Awaitable[Token]]:
    """A dependency that lets only those pass who may do what a role may do."""

    async def check(request: Request, credentials: Credentials) -> Token:
        token = await identify(request, credentials.credentials if credentials else None)
        request.scope["token_id"] = token.id
        if not token.allows(role):
            raise HTTPException(
                403, f"this needs a token of the role {role!r}; yours has the role {token.role!r}."
            )
        return token

    return check


async def identify(request: Request, text: str | None) -> Token:
    """Whose token it is."""
    threads: WorkerThreads = request.app.state.threads
    tokens: TokenCache = request.app.state.tokens
    if text is None:
        is_open = tokens.remembers_open()
        if is_open is None:
            is_open = await threads.run(tokens.is_open)
        if not is_open:
            raise _unknown("this service wants a token: send the header Authorization: Bearer ...")
        if not _LOCAL.fullmatch(request.headers.get("host", "")):
            raise HTTPException(
                403,
                "without tokens, the service answers only to this machine's own names (localhost, "
                "127.0.0.1). Make a token with 'simplexplore token create'.",
            )
        if any(name in request.headers for name in _PROXIES):
            raise HTTPException(
                403,
                "without tokens, the service answers nobody who comes through a proxy. Make a "
                "token with 'simplexplore token create'.",
            )
        return NOBODY
    remembered = tokens.remembered(text)
    if remembered is not None:
        return remembered
    try:
        return await threads.run(lambda: tokens.look_up(text))
    except AccessError as error:
        raise _unknown(str(error)) from None


def _unknown(words: str) -> HTTPException:
    return HTTPException(401, words, {"WWW-Authenticate": "Bearer"})
