"""Answers as JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from simplexplore.report.json_text import to_json

_to_json = json.JSONEncoder(allow_nan=False).encode


class JsonResponse(Response):
    """JSON in which an infinite number is 1e999, as on the command line."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_bytes(content)


def to_bytes(content: Any) -> bytes:
    """The body of an answer."""
    try:
        return _to_json(content).encode()
    except ValueError:
        return to_json(content).encode()
