"""Logs of the service: one JSON object per line, without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from urllib.parse import unquote

LOGGER = logging.getLogger("simplexplore.service")

# A token's text, wherever and however somebody has put it by mistake.
_SECRET = re.compile(r"(sx_[0-9a-f]{8}_)[\w-]+", re.IGNORECASE)

_to_json = json.JSONEncoder(default=str).encode


class _Lines(logging.Formatter):
    """A record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        shown = {
            name: _redacted(value) if isinstance(value, str) else value
            for name, value in line.items()
        }
        return _SECRET.sub(r"\1...", _to_json(shown))


def _redacted(text: str) -> str:
    """A text as it is, or decoded if that shows a secret, which is left out."""
    plain = text
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    return _SECRET.sub(r"\1...", plain) if _SECRET.search(plain) else text


def log(event: str, level: int = logging.INFO, **fields: object) -> None:
    """Write a line."""
    LOGGER.log(level, event, extra={"fields": fields})


def log_failure(error: Exception, request: str) -> None:
    """Write down where the program failed."""
    LOGGER.error("failed", exc_info=error, extra={"fields": {"id": request}})


def log_to_stderr() -> None:
    """Send our lines and the web server's to standard error."""
    logging.raiseExceptions = False  # where nobody reads them any more, lines are lost
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (("simplexplore.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
