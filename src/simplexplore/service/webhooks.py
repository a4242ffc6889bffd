"""Saying elsewhere that a study stops or stalls: a POST to an address of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import urllib3
from fastapi import APIRouter
from starlette.responses import Response

from simplexplore import __version__
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.study import webhooks
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from simplexplore.study.webhooks import News, Webhook

from . import models
from .access import CheckedRoute
from .dependencies import Admin, Name, Studies, Threads
from .logs import log
from .responses import JsonResponse

router = APIRouter(prefix="/v1/studies", route_class=CheckedRoute)

# Seconds between looks; for an address to answer; before each attempt.
LOOK_INTERVAL = 5.0
TIMEOUT = 10.0
ATTEMPTS = (0.0, 5.0, 60.0)

# Deliveries at a time.
_THREADS = 4

# Addresses that stand for others, which may be those of a network of one's own.
_TRANSLATED = [ipaddress.ip_network(text) for text in ("64:ff9b::/96", "2002::/16")]


@router.get("/{name}/webhook", response_model=models.WebhookSet)
async def find(threads: Threads, studies: Studies, name: Name, token: Admin) -> Response:
    """Where it is said that a study stops or stalls."""
    found = await threads.run(token.id, lambda: webhooks.find(studies.store, name))
    return JsonResponse((found or Webhook("", webhooks.DEFAULT_STALL))._asdict())


@router.post("/{name}/webhook", status_code=204, response_class=Response)
async def put(
    threads: Threads, studies: Studies, name: Name, body: models.NewWebhook, token: Admin
) -> Response:
    """Say it at another address, or nowhere."""
    wanted = None
    if body.url:
        split_address(body.url)
        wanted = Webhook(body.url, body.stall_after)
    await threads.run(token.id, lambda: webhooks.put(studies.store, name, wanted))
    return Response(status_code=204)


def split_address(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path of an address that can be a webhook's."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port = parts = None
    if (
        parts is None
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username is not None
        or not url.isascii()
        or any(character.isspace() for character in url)
    ):
        raise SettingError(
            "a webhook is an address such as https://example.org/hook, without a user name."
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path


def is_public(address: str) -> bool:
    """Whether an address is of the internet, not of a network of one's own.

    Examples
    --------
    >>> [is_public(a) for a in ("93.184.216.34", "10.0.0.7", "127.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False, False]
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(found, "ipv4_mapped", None)
    if inner is not None:
        return is_public(str(inner))
    if any(found in network for network in _TRANSLATED if network.version == found.version):
        return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def deliver(url: str, content: dict[str, Any], *, private: bool = False) -> None:
    """POST once; `SettingError` says why it did not arrive.

    The name is looked up once and that address used, so that it cannot become another one after
    it was checked. Redirects are not followed.
    """
    scheme, host, port, path = split_address(url)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise SettingError(f"there is no host {host!r}.") from None
    addresses = [str(one[4][0]) for one in found]
    if not private and not all(map(is_public, addresses)):
        raise SettingError(
            f"{host!r} is in a network of the server's own, to which it sends nothing unless it "
            "was started with --webhooks-anywhere."
        )
    secure: dict[str, Any] = {}
    kind: Any = urllib3.HTTPConnectionPool
    if scheme == "https":
        kind, secure = urllib3.HTTPSConnectionPool, {"server_hostname": host}
        secure["assert_hostname"] = host
    shown = f"[{host}]" if ":" in host else host
    headers = {
        "Host": shown if port in (80, 443) else f"{shown}:{port}",
        "Content-Type": "application/json",
        "User-Agent": f"simplexplore/{__version__}",
    }
    try:
        with kind(addresses[0], port, timeout=TIMEOUT, retries=False, **secure) as pool:
            answer = pool.request(
                "POST",
                path,
                body=json.dumps(content).encode(),
                headers=headers,
                redirect=False,
                preload_content=False,  # whatever it says, nobody reads it
            )
            answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise SettingError(f"{host!r} could not be reached ({type(error).__name__}).") from None
    if not 200 <= answer.status < 300:
        raise SettingError(f"{host!r} answered with status {answer.status}.")


class Messenger:
    """Looks now and then whether there is something to say, and says it."""

    def __init__(self, store: Store, *, private: bool = False) -> None:
        self._store, self._private = store, private
        self._threads = ThreadPoolExecutor(_THREADS, "webhook")
        self._closing = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())
        self._saying: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Stop; what is on its way may not arrive."""
        self._closing.set()
        for task in (self._task, *self._saying):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Any, *arguments: Any, **more: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: work(*arguments, **more)
        )

    async def _run(self) -> None:
        while not self._closing.is_set():
            with suppress(SimplexploreError):  # the store may come back
                for one in await self._in_thread(webhooks.news, self._store):
                    if await self._in_thread(webhooks.claim, self._store, one):
                        task = asyncio.ensure_future(self._say(one))
                        self._saying.add(task)
                        task.add_done_callback(self._saying.discard)
            with anyio.move_on_after(LOOK_INTERVAL):
                await self._closing.wait()

    async def _say(self, one: News) -> None:
        if one.event == "running":  # only remembered
            return
        trouble = ""
        for wait in ATTEMPTS:
            await asyncio.sleep(wait)
            try:
                content = await self._in_thread(_content, self._store, one)
                await self._in_thread(deliver, one.url, content, private=self._private)
                log("webhook", study=one.name, about=one.event)
                return
            except SimplexploreError as error:
                trouble = str(error)
        log("webhook failed", study=one.name, about=one.event, reason=trouble)
        with suppress(SimplexploreError):
            await self._in_thread(webhooks.note_trouble, self._store, one, trouble)


def _content(store: Store, one: News) -> dict[str, Any]:
    words = "No reward has come for a while, and pulls are pending."
    if one.event == "stopped":
        words = Study.open(store, one.name).answer_in_words
    return {
        "study": one.name,
        "event": one.event,
        "at": store.clock(),
        "text": f"{one.name}: {words}",
    }
