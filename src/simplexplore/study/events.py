"""Events of a live study: what a journal is made of."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

# A pull is asked for; its reward arrives in time, or after it had expired; it expires; a pull
# was made elsewhere; delta gets smaller; the evidence was enough; a remark; a reward is struck
# out; no more pulls are given out for a while; the study is put aside; it goes on; its tags.
KINDS = (
    *("asked", "told", "late", "expired", "elsewhere", "extended", "stopped", "noted"),
    *("voided", "paused", "archived", "resumed", "tagged"),
)
REWARDED = ("told", "late", "elsewhere")

_OF_PULLS = ("asked", "told", "late", "expired")
_OF_ARMS = (*_OF_PULLS, "elsewhere")
# What the data of an event must hold, of which types.
_DATA: dict[str, dict[str, type]] = {
    "extended": {"delta": float, "before": float},
    "noted": {"text": str},
    "stopped": {
        "policy": list,
        "mix": dict,
        "value": float,
        "delta": float,
        "rewards": int,
        "statistic": float,
        "threshold": float,
    },
    # The number of the event that had the reward, and why.
    "voided": {"voids": int, "reason": str},
    "tagged": {"tags": list},
}
# Of a stop because no policy keeps the measured limits: there is none to name.
_INFEASIBLE = {
    name: kind for name, kind in _DATA["stopped"].items() if name not in ("policy", "value")
}
# Of a reward that takes the place of one that was struck out: the number of that event.
_REPLACING = {"replaces": int}


class Event(NamedTuple):
    """One line of the journal.

    ``seq`` counts from 1 without gaps; ``at`` is what the clock said, in seconds since 1970,
    and decides nothing; ``arm`` is a number; ``data`` holds what only one kind of event has:
    the answer of "stopped", delta and the one before it of "extended", the text of "noted", of
    rewards their measurements where limits are measured, and of "voided" what follows from it for
    the decision, see decision.py;
    ``checksum`` is that of the journal up to this event, see checksums.py.
    """

    kind: str
    pull: int | None = None
    arm: int | None = None
    reward: float | None = None
    key: str | None = None
    data: Mapping[str, Any] | None = None
    at: float = 0.0
    seq: int = 0
    checksum: int = 0


class EventError(Exception):
    """An event cannot be what was recorded, or cannot follow those before it."""

    def __init__(self, seq: object, fault: str) -> None:
        super().__init__(f"event {seq} {fault}")


def to_json(data: Mapping[str, Any] | str) -> str:
    """The data of an event, as stores hold it."""
    return data if isinstance(data, str) else json.dumps(data)


def from_json(text: str | None) -> Any:
    """Read what `to_json` wrote; what is no JSON stays as it is, for `check_event` to find."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return str(text)


def check_event(event: Event, arms: int, measured: Collection[str] = ()) -> None:
    """Raise `EventError` unless an event is whole: compiled code trusts in what it is given.

    `measured` names what every reward comes with.
    """
    kind = event.kind
    if kind not in KINDS:
        raise EventError(event.seq, f"is of an unknown kind: {kind!r}")
    if not _is_number(event.at):
        raise EventError(event.seq, f"has no time but {event.at!r}")
    if kind in _OF_PULLS:
        if type(event.pull) is not int or event.pull < 1:
            raise EventError(event.seq, f"names the pull {event.pull!r}; pulls count from 1")
    elif event.pull is not None:
        raise EventError(event.seq, f"({kind}) names the pull {event.pull!r}")
    if kind in _OF_ARMS:
        if type(event.arm) is not int or not 0 <= event.arm < arms:
            raise EventError(
                event.seq, f"names arm number {event.arm!r}; there are 0 to {arms - 1}"
            )
    elif event.arm is not None:
        raise EventError(event.seq, f"({kind}) names arm number {event.arm!r}")
    if kind in REWARDED:
        if not _is_number(event.reward):
            raise EventError(event.seq, f"has the reward {event.reward!r}, which is no number")
    elif event.reward is not None:
        raise EventError(event.seq, f"({kind}) has the reward {event.reward!r}")
    if not isinstance(event.key, str | None):
        raise EventError(event.seq, f"has the key {event.key!r}, which is no text")
    if kind in _DATA:
        _check_data(event, _DATA[kind], arms)
    elif kind in REWARDED and measured:
        _check_measurements(event, measured)
    elif kind in ("told", "late") and event.data is not None:
        _check_data(event, _REPLACING, arms)
    elif event.data is not None:
        raise EventError(event.seq, f"({kind}) has data: {event.data!r}")


def _check_measurements(event: Event, measured: Collection[str]) -> None:
    data = event.data if isinstance(event.data, Mapping) else {}
    values = data.get("measured")
    if (
        not isinstance(values, Mapping)
        or values.keys() != set(measured)
        or not all(map(_is_number, values.values()))
    ):
        raise EventError(event.seq, f"has the measurements {values!r}, not {', '.join(measured)}")
    if "replaces" in data and type(data["replaces"]) is not int:
        raise EventError(event.seq, f"({event.kind}) says replaces = {data['replaces']!r}")


def _check_data(event: Event, wanted: Mapping[str, type], arms: int) -> None:
    data = event.data if isinstance(event.data, Mapping) else {}
    if event.kind == "stopped" and data.get("infeasible") is True:
        wanted = _INFEASIBLE
    for name, kind in wanted.items():
        value = data.get(name)
        # Evidence may be infinite, and JSON makes whole numbers of some.
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise EventError(event.seq, f"({event.kind}) says {name} = {value!r}")
    decision = data.get("decision")
    if event.kind == "voided" and decision is not None:
        answer = decision.get("answer") if isinstance(decision, Mapping) else None
        if answer is None or type(decision.get("after")) is not int:
            raise EventError(event.seq, f"(voided) says decision = {decision!r}")
        stopped = event._replace(kind="stopped", data=answer)
        _check_data(stopped, _DATA["stopped"], arms)
    if not all(isinstance(tag, str) for tag in data.get("tags", ())):
        raise EventError(event.seq, f"has the tags {data['tags']!r}")
    policy = data.get("policy", [0.0] * arms) if wanted is not _INFEASIBLE else [0.0] * arms
    if len(policy) != arms or not all(map(_is_number, policy)):
        raise EventError(event.seq, f"has the policy {policy!r} for {arms} arms")


def _is_number(value: object) -> bool:
    return type(value) is float and math.isfinite(value)
