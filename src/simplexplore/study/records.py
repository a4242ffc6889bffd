"""What studies say as typed plain data: the same for Python, command line, API and client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, cast

# Not that of `typing`: pydantic, with which the service describes these, wants this one
# before Python 3.12.
from typing_extensions import TypedDict

from .events import Event
from .pulls import PullIds

RunningOrStopped = Literal["running", "stopped"]


class SureSoFar(TypedDict, total=False):
    """Of an answer that came when the samples were spent: delta is not promised."""

    confidence: float
    regret_bound: float | None


class Answer(SureSoFar):
    """What a study found, with the evidence for it."""

    policy: list[float]
    mix: dict[str, float]
    value: float
    delta: float
    rewards: int
    statistic: float
    threshold: float


class About(TypedDict):
    """What a study is: everything that was fixed when it was made."""

    name: str
    created: float
    problem: str
    sampler: str
    threshold: str
    tracking: str | None
    delta: float
    scenario: str
    seed: int
    expire_after: float | None


class StudySummary(TypedDict):
    """How far a study is, as a list of studies shows it."""

    name: str
    state: RunningOrStopped
    created: float
    changed: float
    sampler: str
    threshold: str
    delta: float
    asked: int
    rewards: int
    pending: int
    head: int
    progress: float | None
    answer: Answer | None
    trouble: NotRequired[str]  # what is damaged; the rest may not be right then


class HistoryPoint(TypedDict):
    """Statistic against threshold after an event, for the comparison that is least settled."""

    seq: int
    at: float
    rewards: int
    statistic: float
    threshold: float
    policy: list[float]


class EventRecord(TypedDict):
    """An event as others read it: arms by name, new pulls by id too."""

    seq: int
    at: float
    event: str
    number: NotRequired[int]
    pull: NotRequired[str]
    arm: NotRequired[str]
    reward: NotRequired[float]
    key: NotRequired[str]
    # Of a note; of an extension; of an answer.
    text: NotRequired[str]
    delta: NotRequired[float]
    before: NotRequired[float]
    policy: NotRequired[list[float]]
    mix: NotRequired[dict[str, float]]
    value: NotRequired[float]
    rewards: NotRequired[int]
    statistic: NotRequired[float]
    threshold: NotRequired[float]


def event_record(event: Event, ids: PullIds, arms: Sequence[str]) -> EventRecord:
    """An event of a study whose pulls have these ids."""
    record: EventRecord = {"seq": event.seq, "at": event.at, "event": event.kind}
    if event.pull is not None:
        record["number"] = event.pull
    if event.kind == "asked":
        assert event.pull is not None
        assert event.arm is not None
        record["pull"] = ids.write(event.pull, event.arm, event.at)
    if event.arm is not None:
        record["arm"] = arms[event.arm]
    if event.reward is not None:
        record["reward"] = event.reward
    if event.key is not None:
        record["key"] = event.key
    return cast(EventRecord, {**record, **(event.data or {})})
