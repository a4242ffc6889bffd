"""The dashboard: a few files of ours, held in memory. All data comes from /v1."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter(include_in_schema=False)


class _StaticFiles:
    """The files by name, with a tag each so that browsers ask only whether they changed."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[bytes, str, str]] = {}
        for file in (files(__package__) / "dashboard").iterdir():
            self._add(file.name, file.read_bytes())
        # All modules are fetched at once: a browser finds out what one imports only after it came.
        names = sorted(name for name in self._found if name.endswith(".js"))
        links = "".join(f'  <link rel="modulepreload" href="./assets/{name}">\n' for name in names)
        page = self._found["index.html"][0].replace(b"</head>", links.encode() + b"</head>")
        self._add("index.html", page)
        # Addresses are relative, since a proxy may serve us below a path; this is one level down.
        self._add("study.html", page.replace(b'"./', b'"../'))

    def _add(self, name: str, content: bytes) -> None:
        media_type = _MEDIA_TYPES.get(name[name.rfind(".") :])
        if media_type is not None:
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            self._found[name] = (content, media_type, tag)

    def answer(self, name: str, request: Request) -> Response:
        """A file, or the news that it is still the same."""
        if name not in self._found:
            raise HTTPException(404, "there is nothing here.")
        content, media_type, tag = self._found[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)


_files = _StaticFiles()


@router.get("/")
@router.get("/new")
@router.get("/compare")
async def page(request: Request) -> Response:
    """The page; its script shows what the address names."""
    return _files.answer("index.html", request)


@router.get("/studies/{name}")
async def study_page(request: Request) -> Response:
    """The page, for a study."""
    return _files.answer("study.html", request)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """What the page is made of."""
    return _files.answer(name, request)
