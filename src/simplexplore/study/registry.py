"""The studies of a store by name: entering a new one, and how far each of them is."""

from __future__ import annotations

import secrets
import tomllib
import zlib
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from sqlalchemy.engine import Row

from simplexplore.errors import ConflictError, SettingError, SimplexploreError
from simplexplore.problem.problem import Problem
from simplexplore.problem.stop_when import check_stop_when

from .events import from_json
from .records import StateName, StudySummary
from .schema import studies
from .settings import Settings
from .store import Store

# Seconds since 1970 beyond which no calendar goes.
_LATEST = 1e11


# What of a row is fixed when a study is made, and what it counts.
_FIXED = ("code", "created", "problem", "settings")
_COUNTS = ("head", "asked", "rewards", "pending")


def _checksum(fixed: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(fixed).encode())


def _is_count(given: object) -> bool:
    return type(given) is int and given >= 0


def _is_float(given: object) -> bool:
    return type(given) is float and abs(given) < _LATEST


# What a study's row may say.
_RIGHT: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_COUNTS, _is_count),
    "state": get_args(StateName).__contains__,
    **dict.fromkeys(("created", "changed", "delta"), _is_float),
    "progress": lambda given: given is None or (_is_float(given) and 0 <= given <= 1),
}

# What a list shows in place of what is damaged, other than 0.
_BLANK: dict[str, Any] = {"state": "running", "progress": None}


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
        fixed = (secrets.token_hex(3), float(store.clock()), problem.to_text(), settings.to_text())
        row = dict(zip(_FIXED, fixed, strict=True)) | dict.fromkeys(_COUNTS, 0)
        row |= {"name": name, "state": "running", "changed": row["created"]}
        row |= {"delta": problem.delta, "fixed": _checksum(fixed)}
        connection.execute(studies.insert().values(row))
    store.checkpoint()
    return store.find(name)


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


def find_damage(row: Mapping[str, Any]) -> str | None:
    """What is wrong with the row of a study, as far as one can tell from it."""
    if row["fixed"] != _checksum(tuple(row[name] for name in _FIXED)):
        return "checksum mismatch in its definition (problem or settings)"
    try:
        Settings.from_text(row["settings"])
    except (SimplexploreError, ValueError, TypeError, AttributeError):
        return "its settings cannot be read"
    for name, is_right in _RIGHT.items():
        if not is_right(row[name]):
            return f"its row says {name} = {row[name]!r}"
    if _answer(row) is None and row["state"] == "stopped":
        return "its answer cannot be read"
    if row.get("last", row["checksum"]) != row["checksum"]:
        return f"its row and event {row['head']}, the last one, do not agree"
    return None


def _answer(row: Mapping[str, Any]) -> Any:
    found = from_json(row["answer"])
    return found if isinstance(found, dict) else None


def _summary(row: Mapping[str, Any]) -> StudySummary:
    trouble = find_damage(row)
    settings = from_json(row["settings"])
    settings = settings if isinstance(settings, dict) else {}
    known = {
        name: row[name] if is_right(row[name]) else _BLANK.get(name, 0)
        for name, is_right in _RIGHT.items()
    }
    found = {"name": row["name"], **known, "answer": _answer(row)}
    found |= {name: str(settings.get(name, "")) for name in ("sampler", "threshold")}
    order = (name for name in StudySummary.__annotations__ if name in found)
    summary = cast(StudySummary, {name: found[name] for name in order})
    goal = _goal(str(row["problem"]))
    if goal:
        summary["stop_when"] = goal
        if "budget" in goal and summary["state"] != "stopped":
            summary["progress"] = min(1.0, summary["rewards"] / goal["budget"])
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


def check_name(name: str) -> None:
    """Raise `SettingError` unless a study can be called so."""
    if not 0 < len(name) <= 200 or name != name.strip() or not name.isprintable():
        raise SettingError(
            f"a study's name is one line of 1 to 200 characters, without spaces around it; got "
            f"{name!r}."
        )
    if name in (".", ".."):  # they mean something else in the address of a page
        raise SettingError(f"a study cannot be called {name!r}.")
