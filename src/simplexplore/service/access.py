"""Who asks, and what the token in the request allows."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from simplexplore.errors import AccessError

from .scheduling import Threads
from .tokens import LOCAL_ADMIN, Token, TokenCache

_bearer = HTTPBearer(auto_error=False, description="A token that 'simplexplore token' made.")

# Names of this machine. A page of another site can point a name of its own to this machine,
# but it cannot make a browser send one of these.
_LOCAL = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")

# What proxies add. One that uses our own name for others would let everybody in.
_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


class Needs:
    """A dependency: the token of a request, which allows what a role may do."""

    def __init__(self, role: str) -> None:
        self._role = role

    async def __call__(self, request: Request, _: Credentials) -> Token:
        token: Token = request.scope["token"]
        return token

    async def check(self, request: Request) -> Token:
        """Find out whose token it is; raises if the role is not for them."""
        token = await identify(request)
        request.scope["token"] = token  # for those who ask for it later, and for the log
        if not token.allows(self._role):
            raise HTTPException(
                403,
                f"this needs a token of the role {self._role!r}; yours has the role "
                f"{token.role!r}.",
            )
        return token


class CheckedRoute(APIRoute):
    """A path whose body is read only after the token was found to allow what it does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed = self.needs()

        async def checked(request: Request) -> Response:
            for needs in needed:
                await needs.check(request)
            return await handle(request)

        return checked

    def needs(self) -> list[Needs]:
        """What its parameters need."""
        calls = (one.call for one in self.dependant.dependencies)
        return [call for call in calls if isinstance(call, Needs)]


async def identify(request: HTTPConnection) -> Token:
    """Whose token a request has."""
    threads: Threads = request.app.state.threads
    tokens: TokenCache = request.app.state.tokens
    text = _token_text(request)
    if not text:
        is_open = tokens.cached_open()
        if is_open is None:
            is_open = await threads.run("access", tokens.is_open)
        return _local_admin(request, is_open)
    token = tokens.cached_token(text)
    if token is not None:
        return token
    try:
        return await threads.run("access", lambda: tokens.look_up(text))
    except AccessError as error:
        raise _unknown(str(error)) from None


def _token_text(request: HTTPConnection) -> str:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _local_admin(request: HTTPConnection, is_open: bool) -> Token:
    """Let those in who have no token, if they may."""
    if not is_open:
        raise _unknown("this service needs a token: send the header Authorization: Bearer ...")
    for is_foreign, words in (
        (_is_remote, "only to this machine"),
        (_is_misnamed, "only to this machine's own names (localhost, 127.0.0.1)"),
        (_is_forwarded, "nobody who comes through a proxy"),
        (_is_of_another_site, "no page of another site"),
    ):
        if is_foreign(request):
            raise HTTPException(
                403,
                f"without tokens, the service answers {words}. Make a token with "
                "'simplexplore token create'.",
            )
    return LOCAL_ADMIN


def _is_remote(request: HTTPConnection) -> bool:
    """Whether a request came over a network; what has no address did not."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_loopback(str(getattr(address, "ipv4_mapped", None) or address))


def _is_misnamed(request: HTTPConnection) -> bool:
    return not _LOCAL.fullmatch(request.headers.get("host", ""))


def _is_forwarded(request: HTTPConnection) -> bool:
    return any(name in request.headers for name in _PROXIES)


def _is_of_another_site(request: HTTPConnection) -> bool:
    """Whether a browser says that a page of another site sent the request."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        return True
    return request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unknown(words: str) -> HTTPException:
    return HTTPException(401, words, {"WWW-Authenticate": "Bearer"})
