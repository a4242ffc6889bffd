"""The studies of a store by name: entering a new one, and how far each of them is."""

from __future__ import annotations

import math
import secrets
import tomllib
from collections.abc import Mapping
from typing import Any, get_args

from sqlalchemy.engine import Row

from simplexplore.errors import ConflictError, SettingError, SimplexploreError
from simplexplore.problem.problem import Problem
from simplexplore.problem.stop_when import check_stop_when

from .checksums import of_study
from .events import from_json
from .records import StateName, StudySummary
from .settings import Settings
from .store import Store

# Seconds since 1970 beyond which no calendar goes.
_LATEST = 1e11


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
            created=float(store.clock()),
            problem=problem.to_text(),
            settings=settings.to_text(),
            delta=problem.delta,
        )
    store.flush()
    return find(store, name)


def is_taken(store: Store, name: str) -> bool:
    """Whether there is a study of that name, once everybody who was making one is done."""
    with store.writing() as connection:
        return store.reserve(connection, name) is not None


def find(store: Store, name: str) -> Row[Any]:
    """The row of a study."""
    with store.reading() as connection:
        return store.find(connection, name)


def summaries(
    store: Store,
    limit: int | None = None,
    after: tuple[float, str] | None = None,
    *,
    archived: bool = False,
) -> list[StudySummary]:
    """How far studies are, the latest change first; see `Store.page`.

    One that is damaged does not hide the others.
    """
    return [_summary(row) for row in store.page(limit, after, archived=archived)]


def trouble_of(row: Mapping[str, Any]) -> str | None:
    """What is wrong with the row of a study, as far as one can tell from it."""
    fixed = [row[name] for name in ("code", "created", "problem", "settings")]
    if row["fixed"] != of_study(*fixed):
        return "what it was made with (problem or settings) is not what was recorded"
    try:
        Settings.from_text(row["settings"])
    except (SimplexploreError, ValueError, TypeError, AttributeError):
        return "its settings cannot be read"
    for name in ("head", "asked", "rewards", "pending"):
        if type(row[name]) is not int or row[name] < 0:
            return f"its row says {name} = {row[name]!r}"
    if row["state"] not in get_args(StateName):
        return f"its row says state = {row['state']!r}"
    for name in ("created", "changed", "delta"):
        if type(row[name]) is not float or not abs(row[name]) < _LATEST:
            return f"its row says {name} = {row[name]!r}"
    progress = row.get("progress", None)
    if progress is not None and not (type(progress) is float and 0 <= progress <= 1):
        return f"its row says progress = {progress!r}"
    if _answer(row) is None and row["state"] == "stopped":
        return "its answer cannot be read"
    if row.get("last", row["checksum"]) != row["checksum"]:
        return f"its row and event {row['head']}, the last one, do not agree"
    return None


def _answer(row: Mapping[str, Any]) -> Any:
    found = from_json(row["answer"])
    return found if isinstance(found, dict) else None


def _summary(row: Mapping[str, Any]) -> StudySummary:
    trouble = trouble_of(row)
    settings = from_json(row["settings"])
    settings = settings if isinstance(settings, dict) else {}
    summary: StudySummary = {
        "name": row["name"],
        "state": row["state"] if row["state"] in get_args(StateName) else "running",
        "created": _number(row["created"]),
        "changed": _number(row["changed"]),
        "sampler": str(settings.get("sampler", "")),
        "threshold": str(settings.get("threshold", "")),
        "delta": _number(row["delta"]),
        "asked": int(_number(row["asked"])),
        "rewards": int(_number(row["rewards"])),
        "pending": int(_number(row["pending"])),
        "head": int(_number(row["head"])),
        "progress": row["progress"],
        "answer": _answer(row),
    }
    goal = _goal(str(row["problem"]))
    if goal:
        summary["stop_when"] = goal
        if "budget" in goal and summary["state"] != "stopped":
            summary["progress"] = min(1.0, summary["rewards"] / goal["budget"])
    tags = from_json(row["tags"])
    if isinstance(tags, list):
        summary["tags"] = [str(tag) for tag in tags]
    if trouble is not None:
        summary["trouble"] = f"damaged: {trouble}. Put back a copy of the store."
    return summary


def _goal(problem: str) -> dict[str, float]:
    """What ends a study early, by its problem file."""
    if "stop_when" not in problem:  # reading a file with very many arms takes a while
        return {}
    try:
        found = check_stop_when(tomllib.loads(problem).get("stop_when"))
    except (SimplexploreError, ValueError):
        return {}
    return {} if found is None else found.to_dict()


def _number(value: object) -> float:
    """A number as it is; what is none, as nothing: its study is in trouble."""
    return value if isinstance(value, int | float) and math.isfinite(value) else 0


def check_name(name: str) -> None:
    """Raise `SettingError` unless a study can be called so."""
    if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
        raise SettingError(
            f"a study's name is one line of 1 to 200 characters, without spaces around it; got "
            f"{name!r}."
        )
    if name in (".", ".."):  # they mean something else in the address of a page
        raise SettingError(f"a study cannot be called {name!r}.")
