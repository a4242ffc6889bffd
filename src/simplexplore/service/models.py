"""Requests and answers as JSON: what the OpenAPI document describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from simplexplore import defaults
from simplexplore.protocol import MAX_BATCH
from simplexplore.study.pulls import Pull, Told
from simplexplore.study.records import Answer, EventRecord, HistoryPoint, StudySummary
from simplexplore.study.settings import DEFAULT_EXPIRY
from simplexplore.study.telling import Unlikely as _Unlikely
from simplexplore.tabular import read_number

# Longer problem files than this are not written by hand, and not typed into a form.
MAX_PROBLEM = 2**18

# Names in one reward: more than can be measured, so that it is said which ones are.
MAX_MEASURED = 100


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text must not contain the character NUL")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]
Number = Annotated[float, Field(strict=True)]


def _number(text: str) -> float:
    return read_number(text, "the number")


# A number, or what somebody typed for one.
Typed = Annotated[
    Number | Annotated[str, Field(max_length=100), AfterValidator(_number)],
    Field(description="A number, or a text with a decimal point or comma."),
]
ProblemFile = Annotated[
    Text,
    Field(
        max_length=MAX_PROBLEM,
        description="A problem file (TOML).",
        examples=['arms = ["a", "b"]\n\n[constraints]\ncap = "a <= 0.6"\n'],
    ),
]


Unlikely = Annotated[
    _Unlikely,
    Field(
        description="What becomes of rewards that look impossible. hold: recorded, and nothing is "
        "decided before they are confirmed or voided; ask: refused; accept: recorded."
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewStudy(_Request):
    """A study to start."""

    name: Text = Field(min_length=1, max_length=200)
    problem: ProblemFile
    sampler: str = Field(defaults.SAMPLER, max_length=100)
    delta: Number | None = Field(None, description="Instead of the problem file's.")
    scenario: str | None = Field(None, max_length=100, description="Instead of the file's.")
    threshold: str = Field(defaults.THRESHOLD, max_length=100)
    tracking: str | None = Field(None, max_length=100)
    seed: int = Field(0, ge=0, lt=2**63, strict=True)
    expire_after: Number | None = Field(
        DEFAULT_EXPIRY, description="Seconds until a pull expires; null for never."
    )


class Plan(_Request):
    """A problem whose bound is wanted, and how a study of it would be explored."""

    problem: ProblemFile
    delta: Number | None = None
    means: list[Number] | None = Field(None, max_length=MAX_BATCH)
    sampler: str = Field(defaults.SAMPLER, max_length=100)
    threshold: str = Field(defaults.THRESHOLD, max_length=100)


_Value = str | bool | int | float
_Entry = _Value | list[_Value | list[_Value]] | dict[str, _Value | list[_Value]]


class Draft(_Request):
    """What a problem file is to say."""

    document: dict[Text, _Entry | dict[str, _Entry]] = Field(
        description="Its settings, and its tables by name.",
        examples=[{"arms": ["a", "b"], "constraints": {"cap": "a <= 0.6"}}],
    )


class Ask(_Request):
    """A question: which arms to play next."""

    n: int = Field(1, ge=1, le=MAX_BATCH, strict=True, description="Pulls wanted.")
    by: Text | None = Field(
        None, max_length=50, description="Who makes them; otherwise what the token's note says."
    )


PullNames = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=MAX_BATCH)]


class Assignment(_Request):
    """Pending pulls, and who makes them from now on."""

    pulls: PullNames
    by: Text = Field(min_length=1, max_length=50)


class Release(_Request):
    """Pulls that were not made."""

    pulls: PullNames
    reason: Text = Field("not made", min_length=1, max_length=10_000)


class RewardToTell(_Request):
    """A reward: of a pull that was asked for, or of an arm that was played elsewhere."""

    reward: Typed | None = Field(None, description="A sum has none.")
    pull: str | None = Field(None, max_length=100, description="The id that asking gave.")
    arm: Text | None = Field(None, max_length=10_000, description="Instead of a pull.")
    key: Text | None = Field(
        None, min_length=1, max_length=200, description="Told twice under it, it counts once."
    )
    measured: dict[Text, Typed] | None = Field(
        None,
        max_length=MAX_MEASURED,
        description="Measurements of the pull by name, where limits are measured.",
        examples=[{"toxicity": 0.2}],
    )
    n: int | None = Field(None, strict=True, description="Of a sum: how many rewards.")
    mean: Typed | None = Field(None, description="Of Gaussian ones: their mean.")
    sd: Typed | None = Field(None, description="Their deviation, if sigma is unknown.")
    successes: int | None = Field(None, strict=True, description="Of Bernoulli ones.")
    total: int | None = Field(None, strict=True, description="Of Poisson ones.")


class Tell(_Request):
    """Rewards: all are taken in, or none."""

    rewards: list[RewardToTell] = Field(max_length=MAX_BATCH)
    unlikely: Unlikely = "hold"


class _RecordedReward(_Request):
    pull: str | None = Field(None, max_length=100, description="Whose reward it is.")
    event: int | None = Field(None, strict=True, description="Instead: its number in the journal.")


class Confirmation(_RecordedReward):
    """A reward that is meant although it looks impossible."""


class Note(_Request):
    """A remark for the journal."""

    text: Text = Field(min_length=1, max_length=10_000)


class Stop(_Request):
    """Why what is known is good enough."""

    reason: Text = Field(min_length=1, max_length=10_000)


class Void(_RecordedReward):
    """A reward to void."""

    reason: Text = Field(min_length=1, max_length=10_000)


class Import(_Request):
    """A CSV file: all its rewards are taken in, or none."""

    csv: Text = Field(
        description="Columns reward, and pull or arm, and key if there are keys; and one for each "
        "measured limit."
    )
    check: bool = Field(False, description="Only say what importing it would do.")
    unlikely: Unlikely = "hold"


class Nothing(_Request):
    """An empty object."""


class Extension(_Request):
    """A smaller delta."""

    delta: Number


class Pulls(BaseModel):
    """Pulls to make."""

    pulls: list[Pull]
    next: int | None = Field(None, description="What to send as 'after'; absent at the end.")


class ToldRewards(BaseModel):
    """How rewards were recorded."""

    rewards: list[Told]


class Studies(BaseModel):
    """Studies, the latest change first."""

    studies: list[StudySummary]
    next: str | None = Field(None, description="What to send as 'after'; absent at the end.")


class Events(BaseModel):
    """A piece of a journal."""

    events: list[EventRecord]


class History(BaseModel):
    """Statistic against threshold over time."""

    points: list[HistoryPoint]


class Extended(BaseModel):
    """A study that goes on, or has its answer already."""

    delta: float
    answer: Answer | None


class Verified(BaseModel):
    """Whether a replay of the journal gives the state in use."""

    sound: bool


class Setup(BaseModel):
    """The service: its version, what the caller may do, what a study can be made of."""

    version: str
    role: Literal["read", "run", "admin"]
    tokens: bool = Field(description="Whether tokens are in use.")
    samplers: list[str]
    sampler: str = Field(description="The default.")
    thresholds: list[str]
    threshold: str = Field(description="The default.")
    max_batch: int
    max_body: int


class Drafted(BaseModel):
    """A problem file, written but not checked."""

    problem: str


class Planned(BaseModel):
    """A problem, and how hard it is if its means are given."""

    document: dict[str, Any] = Field(description="What the file says: its settings and tables.")
    arms: list[str]
    constraints: list[str]
    measured: list[str] = Field([], description="Measured limits; absent without any.")
    family: str
    delta: float
    scenario: str
    title: str | None
    headline: str
    notes: list[str]
    bound: dict[str, Any] | None


class Problem(BaseModel):
    """An error, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    line: int | None = Field(None, description="Of a problem file.")
