"""What studies say as typed plain data: the same for Python, command line, API and client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, cast

# Not that of `typing`: pydantic, with which the service describes these, wants this one
# before Python 3.12.
from typing_extensions import TypedDict

from simplexplore.errors import Place, SimplexploreError

from .events import Event
from .pulls import PullIds, Reward, place_in_words

StateName = Literal["running", "stopped", "paused", "archived"]


class SureSoFar(TypedDict, total=False):
    """Of an answer that came when the samples were spent: delta is not promised."""

    confidence: float
    regret_bound: float | None


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
    tags: NotRequired[list[str]]
    trouble: NotRequired[str]  # what is damaged; the rest may not be right then


class HistoryPoint(TypedDict):
    """Statistic against threshold after an event, for the comparison that is least settled."""

    seq: int
    at: float
    rewards: int
    statistic: float
    threshold: float
    policy: list[float] | None  # None while none seems to keep the measured limits
    counts: NotRequired[list[int]]  # rewards by arm; of older points they are not known
    # Low, mean and high by arm at every 10% more rewards, of up to 100 arms; None: unlimited.
    means: NotRequired[list[list[float | None]]]


class Decision(TypedDict):
    """When a study was decided, and on which evidence; later rewards do not change it."""

    at: float
    seq: int  # number of the event with which the evidence was enough
    samples: int
    statistic: float
    threshold: float
    delta: float
    later: int  # rewards that came after it


class CheckedRow(TypedDict):
    """A row of a CSV file, and what would become of it."""

    line: int | None
    pull: str | None
    arm: str | None
    reward: float
    key: str | None
    outcome: str
    measured: NotRequired[dict[str, float]]


class Fault(TypedDict):
    """What is wrong with a row."""

    line: int | None
    text: str


class CheckedFile(TypedDict):
    """What importing a CSV file would do: nothing, if there are faults."""

    rows: list[CheckedRow]
    faults: list[Fault]


def checked_file(
    rewards: Sequence[Reward],
    places: Sequence[Place],
    outcomes: Sequence[str | None],
    errors: Sequence[SimplexploreError],
) -> CheckedFile:
    """Rows that are right, and what is wrong with the others in the order of the file."""
    faults: list[Fault] = []
    for error in errors:
        place = error.place or Place()
        text = str(error).removesuffix(" Nothing was recorded.")
        faults.append({"line": place.line, "text": text.removeprefix(f"{place_in_words(place)}: ")})
    rows: list[CheckedRow] = []
    for one, place, outcome in zip(rewards, places, outcomes, strict=True):
        if outcome is None:
            continue
        rows.append(
            {
                "line": place.line,
                "pull": one.pull,
                "arm": one.arm,
                "reward": float(one.reward),
                "key": one.key,
                "outcome": outcome,
            }
        )
        if one.measured:
            rows[-1]["measured"] = dict(one.measured)
    return {"rows": rows, "faults": sorted(faults, key=lambda fault: fault["line"] or 0)}


class VoidDecision(TypedDict):
    """What was decided without a reward that was struck out."""

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
    # Of a note; of tags; of a reward that was struck out (the number of its event, and what is
    # decided without it), and of the one in its place; of an extension; of an answer.
    text: NotRequired[str]
    tags: NotRequired[list[str]]
    voids: NotRequired[int]
    reason: NotRequired[str]
    decision: NotRequired[VoidDecision | None]
    replaces: NotRequired[int]
    delta: NotRequired[float]
    before: NotRequired[float]
    policy: NotRequired[list[float] | None]
    mix: NotRequired[dict[str, float]]
    value: NotRequired[float | None]
    infeasible: NotRequired[bool]
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
