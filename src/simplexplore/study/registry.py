"""The studies of a store by name: entering a new one, and how far each of them is."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Row

from simplexplore.errors import ConflictError, SettingError
from simplexplore.problem.problem import Problem

from .records import StudySummary
from .settings import Settings
from .store import Store


def register(store: Store, name: str, problem: Problem, settings: Settings) -> Row[Any]:
    """Enter a study, or find the one that was entered under the same key; returns its row."""
    with store.writing() as connection:
        earlier = store.reserve(connection, name)
        if earlier is not None:
            if settings.key is None or Settings.from_text(earlier.settings) != settings:
                raise ConflictError(
                    f"there is a study {name!r} in {store.name} already; open it, or choose "
                    "another name."
                )
            if earlier.problem != problem.to_text():
                raise ConflictError(f"the key {settings.key!r} was used for another request.")
            return earlier
        store.create(
            connection,
            name=name,
            code=secrets.token_hex(3),
            created=store.clock(),
            problem=problem.to_text(),
            settings=settings.to_text(),
            delta=problem.delta,
        )
    store.flush()
    return find(store, name)


def find(store: Store, name: str) -> Row[Any]:
    """The row of a study."""
    with store.reading() as connection:
        return store.find(connection, name)


def summaries(
    store: Store, limit: int | None = None, after: tuple[float, str] | None = None
) -> list[StudySummary]:
    """How far studies are, the latest change first; see `Store.page`."""
    return [_summary(row, json.loads(row["settings"])) for row in store.page(limit, after)]


def _summary(row: Mapping[str, Any], settings: Mapping[str, Any]) -> StudySummary:
    return {
        "name": row["name"],
        "state": row["state"],
        "created": row["created"],
        "changed": row["changed"],
        "sampler": settings["sampler"],
        "threshold": settings["threshold"],
        "delta": row["delta"],
        "asked": row["asked"],
        "rewards": row["rewards"],
        "pending": row["pending"],
        "head": row["head"],
        "progress": _progress(row),
        "answer": json.loads(row["answer"]) if row["answer"] else None,
    }


def _progress(row: Mapping[str, Any]) -> float | None:
    """Which share of the evidence needed there is, by the last point of the history."""
    if row["state"] == "stopped":
        return 1.0
    if row["statistic"] is None:
        return None
    return float(min(1.0, row["statistic"] / row["threshold"]))


def check_name(name: str) -> None:
    """Raise `SettingError` unless a study can be called so."""
    if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
        raise SettingError(
            f"a study's name is one line of 1 to 200 characters, without spaces around it; got "
            f"{name!r}."
        )
    if name in (".", ".."):  # they mean something else in the address of a page
        raise SettingError(f"a study cannot be called {name!r}.")
