"""Logs of the service: one JSON object per line, without secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TextIO
from urllib.parse import unquote

LOGGER = logging.getLogger("simplexplore.service")

# A token's text, wherever and however somebody has put it by mistake.
_SECRET = re.compile(r"(sx_[0-9a-f]{8}_)[\w-]+", re.IGNORECASE)


_TO_JSON = json.JSONEncoder(default=str).encode


class _Lines(logging.Formatter):
    """A record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(getattr(record, "fields", {}))
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return _line(record.created, record.levelno, record.getMessage(), fields)


def _line(created: float, level: int, event: str, fields: Mapping[str, object]) -> str:
    second = int(created)
    line = {
        "time": f"{_second(second)}.{int(1000 * (created - second)):03d}+00:00",
        "level": logging.getLevelName(level).lower(),
        "event": event,
        **fields,
    }
    text = _TO_JSON(line)
    if "%" not in text and "sx_" not in text.lower():
        return text
    shown = {
        name: _redacted(value) if isinstance(value, str) else value for name, value in line.items()
    }
    return _SECRET.sub(r"\1...", _TO_JSON(shown))


@lru_cache(maxsize=1)
def _second(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%S}"


def _redacted(text: str) -> str:
    """A text as it is, or decoded if that shows a secret, which is left out."""
    plain = text
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    return _SECRET.sub(r"\1...", plain) if _SECRET.search(plain) else text


def log(event: str, level: int = logging.INFO, **fields: object) -> None:
    """Write a line."""
    if not LOGGER.isEnabledFor(level):
        return
    if len(LOGGER.handlers) == 1 and isinstance(LOGGER.handlers[0], _Together):
        # A record that nobody else sees would take longer than the line.
        LOGGER.handlers[0].add(_line(time.time(), level, event, fields))
        return
    # Who calls is not shown, so it is not looked for.
    LOGGER.handle(
        LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"fields": fields})
    )


def log_failure(error: Exception, request: str) -> None:
    """Write down where the program failed."""
    LOGGER.error("failed", exc_info=error, extra={"fields": {"id": request}})


class _Together(logging.StreamHandler[TextIO]):
    """Writes what comes in one turn of the event loop at once.

    A line of its own for each request would take as long as deciding it.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.add(self.format(record))
        except Exception:
            self.handleError(record)

    def add(self, line: str) -> None:
        """Write a line soon."""
        self._lines.append(line + self.terminator)
        try:
            if len(self._lines) == 1:
                asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:  # in another thread
            self.flush()

    def flush(self) -> None:
        # Where nobody reads them any more, they are lost.
        with self.lock or nullcontext(), suppress(OSError, ValueError):
            lines, self._lines = self._lines, []
            self.stream.write("".join(lines))
            self.stream.flush()


def log_to_stderr() -> None:
    """Send our lines and the web server's to standard error."""
    # Of these nothing is shown, so it is not looked for.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = _Together(sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (("simplexplore.service", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
