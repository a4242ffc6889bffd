"""What the paths take from a request: roles, open studies, the study's name, the request's key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Query, Request
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from simplexplore.errors import SettingError
from simplexplore.protocol import KEY_HEADER

from .access import needs
from .connected_work import ConnectedWork
from .open_studies import OpenStudies
from .tokens import Token
from .worker_threads import WorkerThreads

# A little shorter than keys in the journal, where the number of a reward may be added.
_LONGEST_KEY = 190


async def _threads(request: Request) -> WorkerThreads:
    threads: WorkerThreads = request.app.state.threads
    return threads


async def _processes(request: Request) -> ConnectedWork:
    return ConnectedWork(request.app.state.processes, request)


async def _studies(request: Request) -> OpenStudies:
    studies: OpenStudies = request.app.state.studies
    return studies


async def _study_name(name: str) -> str:
    return study_name(name)


def study_name(name: str) -> str:
    """A study's name, out of a path that was left as it was sent."""
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise HTTPException(404, "the study's name in the path is not UTF-8.") from None


_KeyText = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        min_length=1,
        max_length=2000,
        pattern=r"^[\x21-\x7e]+$",
        description="Names the request: sent again under the same key, it happens once. "
        "Percent-encoded if it is not plain text.",
    ),
]
check_key_text: Callable[[object], str | None] = TypeAdapter(_KeyText).validate_python


async def _request_key(text: _KeyText = None) -> str | None:
    return request_key(text)


def request_key(text: str | None) -> str | None:
    """The key of a request, decoded."""
    try:
        key = None if text is None else unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SettingError(f"{KEY_HEADER}: the percent-encoded text is not UTF-8.") from None
    if key is not None and ("\0" in key or len(key) > _LONGEST_KEY):
        raise SettingError(f"{KEY_HEADER}: a key has at most {_LONGEST_KEY} characters, none NUL.")
    return key


Reader = Annotated[Token, Depends(needs("read"))]
Runner = Annotated[Token, Depends(needs("run"))]
Admin = Annotated[Token, Depends(needs("admin"))]
Threads = Annotated[WorkerThreads, Depends(_threads)]
Processes = Annotated[ConnectedWork, Depends(_processes)]
Studies = Annotated[OpenStudies, Depends(_studies)]
Name = Annotated[str, Depends(_study_name)]
Key = Annotated[str | None, Depends(_request_key)]
After = Annotated[int, Query(ge=0, lt=2**62, description="Only what follows this event.")]
