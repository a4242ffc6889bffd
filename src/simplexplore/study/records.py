"""What studies say as typed plain data: the same for Python, command line, API and client."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, cast

# Not that of `typing`: pydantic, with which the service describes these, wants this one
# before Python 3.12.
from typing_extensions import TypedDict

from .events import Event
from .settings import Definition

StateName = Literal["running", "stopped", "paused", "archived"]


class SureSoFar(TypedDict, total=False):
    """Of an answer that came when the samples were spent, or by hand: delta is not promised."""

    confidence: float | None
    regret_bound: float | None
    by_hand: bool  # whether somebody said that it is good enough, and why
    reason: str


class Answer(SureSoFar):
    """What a study found, with the evidence for it."""

    policy: list[float] | None  # None if no policy keeps the measured limits
    mix: dict[str, float]
    value: float | None
    delta: float
    rewards: int
    statistic: float
    threshold: float
    infeasible: NotRequired[bool]  # whether that is so; where limits are measured
    words: NotRequired[str]  # the answer to a question besides the best mix


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
    state: StateName
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
    stop_when: NotRequired[dict[str, float]]  # with a budget no delta is promised
    trouble: NotRequired[str]  # what is damaged; the rest may not be right then


class HistoryPoint(TypedDict):
    """Statistic against threshold after an event, for the comparison that is least settled."""

    seq: int
    at: float
    rewards: int
    statistic: float
    threshold: float
    policy: list[float] | None  # None while none seems to keep the measured limits
    counts: list[int]  # rewards by arm
    # Low, mean and high by arm at every 10% more rewards, of up to 100 arms; None: unlimited.
    means: NotRequired[list[list[float | None]]]


class CheckedRow(TypedDict):
    """A row of a CSV file, and what would become of it."""

    line: int | None
    pull: str | None
    arm: str | None
    reward: float
    key: str | None
    outcome: str
    measured: NotRequired[dict[str, float]]
    n: NotRequired[int]  # of many rewards, whose mean it is
    usual: NotRequired[list[float]]  # where rewards lie, if this one looks impossible


class Fault(TypedDict):
    """What is wrong with a row."""

    line: int | None
    text: str


class CheckedFile(TypedDict):
    """What importing a CSV file would do: nothing, if there are faults."""

    rows: list[CheckedRow]
    faults: list[Fault]


class VoidDecision(TypedDict):
    """What was decided without a reward that was voided."""

    after: int
    at: float
    answer: Answer


class EventRecord(TypedDict):
    """An event as others read it: arms by name, new pulls by id too."""

    seq: int
    at: float
    event: str
    number: NotRequired[int]
    pull: NotRequired[str]
    arm: NotRequired[str]
    reward: NotRequired[float]
    measured: NotRequired[dict[str, float]]
    key: NotRequired[str]
    # Of a note; of a reward that was voided (the number of its event, and what is
    # decided without it), and of the one in its place; of an extension; of an answer.
    text: NotRequired[str]
    voids: NotRequired[int]
    reason: NotRequired[str]
    decision: NotRequired[VoidDecision | None]
    replaces: NotRequired[int]
    by: NotRequired[str]  # of a pull asked for, and of pulls that were assigned, by number
    numbers: NotRequired[list[int]]
    # Of how many rewards it is the mean, and their deviation; what is usual, if it looks
    # impossible; the number of an event that is meant although it does.
    n: NotRequired[int]
    sd: NotRequired[float]
    held: NotRequired[dict[str, Any]]
    confirms: NotRequired[int]
    delta: NotRequired[float]
    before: NotRequired[float]
    policy: NotRequired[list[float] | None]
    mix: NotRequired[dict[str, float]]
    value: NotRequired[float | None]
    infeasible: NotRequired[bool]
    rewards: NotRequired[int]
    statistic: NotRequired[float]
    threshold: NotRequired[float]


def event_record(event: Event, made: Definition) -> EventRecord:
    """An event of a study."""
    record: EventRecord = {"seq": event.seq, "at": event.at, "event": event.kind}
    if event.pull is not None:
        record["number"] = event.pull
    if event.kind == "asked":
        assert event.pull is not None
        assert event.arm is not None
        record["pull"] = made.ids.write(event.pull, event.arm, event.at)
    if event.arm is not None:
        record["arm"] = made.plan.problem.arms[event.arm]
    if event.reward is not None:
        record["reward"] = event.reward
    if event.key is not None:
        record["key"] = event.key
    return cast(EventRecord, {**record, **(event.data or {})})
