"""Who asks, and what the token in the request allows."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Annotated, Any

from fastapi import Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

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


class CheckedRoute(APIRoute):
    """A path whose body is read only after the token was found to allow what it does."""

    roles: list[str]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        self.roles = list(_roles_in(self.dependant))

        async def checked(request: Request) -> Response:
            for role in self.roles:
                await admit(request, role)
            return await handle(request)

        return checked


def needs(role: str) -> Callable[[Request, Credentials], Awaitable[Token]]:
    """A dependency that lets only those pass who may do what a role may do.

    Of a `CheckedRoute`: it has checked already when this is called.
    """

    async def admitted(request: Request, _: Credentials) -> Token:
        token: Token = request.scope["token"]
        return token

    admitted.role = role  # type: ignore[attr-defined]
    return admitted


def _roles_in(dependant: Dependant) -> Iterator[str]:
    """What the dependencies of a path need."""
    for inner in dependant.dependencies:
        role = getattr(inner.call, "role", None)
        if role is not None:
            yield role
        yield from _roles_in(inner)


async def admit(request: Request, role: str) -> None:
    """Let only those pass who may do what a role may do."""
    try:
        token = await identify(request)
        request.scope["token"] = token
        if not token.allows(role):
            raise HTTPException(
                403, f"this needs a token of the role {role!r}; yours has the role {token.role!r}."
            )
    except HTTPException as error:
        # What else there is of the request is not read.
        error.headers = {**(error.headers or {}), "Connection": "close"}
        raise


def remembered(request: HTTPConnection) -> Token | None:
    """Whose token a request has, if that is known without asking the store."""
    tokens: TokenCache = request.app.state.tokens
    text = _token_text(request)
    if text:
        return tokens.remembered(text)
    is_open = tokens.remembers_open()
    return None if is_open is None else _nobody(request, is_open)


async def identify(request: Request) -> Token:
    """Whose token a request has."""
    threads: WorkerThreads = request.app.state.threads
    tokens: TokenCache = request.app.state.tokens
    token = remembered(request)
    if token is not None:
        return token
    text = _token_text(request)
    if not text:
        return _nobody(request, await threads.run("access", tokens.is_open))
    try:
        return await threads.run("access", lambda: tokens.look_up(text))
    except AccessError as error:
        raise _unknown(str(error)) from None


def _token_text(request: HTTPConnection) -> str:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _nobody(request: HTTPConnection, is_open: bool) -> Token:
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
    return NOBODY


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
