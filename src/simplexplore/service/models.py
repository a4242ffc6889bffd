"""Requests and answers as JSON: what the OpenAPI document describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from simplexplore import defaults
from simplexplore.protocol import MAX_BATCH
from simplexplore.study.settings import DEFAULT_EXPIRY
from simplexplore.study.webhooks import DEFAULT_STALL

# Longer problem files than this are not written by hand, and not typed into a form.
MAX_PROBLEM = 2**20

# Names in one reward: more than can be measured, so that it is said which ones are.
MAX_MEASURED = 100


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text must not contain the character NUL")
    return text


Text = Annotated[str, AfterValidator(_without_nul)]
Number = Annotated[float, Field(strict=True)]
ProblemFile = Annotated[
    Text,
    Field(
        max_length=MAX_PROBLEM,
        description="A problem file (TOML).",
        examples=['arms = ["a", "b"]\n\n[constraints]\ncap = "a <= 0.6"\n'],
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
    """A problem whose bound is wanted."""

    problem: ProblemFile
    delta: Number | None = None
    means: list[Number] | None = Field(None, max_length=MAX_BATCH)


class Ask(_Request):
    """A question: which arms to play next."""

    n: int = Field(1, ge=1, le=MAX_BATCH, strict=True, description="Pulls wanted.")


class RewardToTell(_Request):
    """A reward: of a pull that was asked for, or of an arm that was played elsewhere."""

    reward: Number
    pull: str | None = Field(None, max_length=100, description="The id that asking gave.")
    arm: Text | None = Field(None, max_length=10_000, description="Instead of a pull.")
    key: Text | None = Field(
        None, min_length=1, max_length=200, description="Told twice under it, it counts once."
    )
    measured: dict[Text, Number] | None = Field(
        None,
        max_length=MAX_MEASURED,
        description="Measurements of the pull by name, where limits are measured.",
        examples=[{"toxicity": 0.2}],
    )


class Tell(_Request):
    """Rewards: all are taken in, or none."""

    rewards: list[RewardToTell] = Field(max_length=MAX_BATCH)


class Note(_Request):
    """A remark for the journal."""

    text: Text = Field(min_length=1, max_length=10_000)


class Void(_Request):
    """A reward to strike out."""

    pull: str | None = Field(None, max_length=100, description="Whose reward it is.")
    event: int | None = Field(None, strict=True, description="Instead: its number in the journal.")
    reason: Text = Field(min_length=1, max_length=10_000)


class Tags(_Request):
    """All tags of a study."""

    tags: list[Annotated[Text, Field(max_length=100)]] = Field(max_length=100)


class Import(_Request):
    """A CSV file: all its rewards are taken in, or none."""

    csv: Text = Field(
        description="Columns reward, and pull or arm, and key if there are keys; and one for each "
        "measured limit."
    )
    check: bool = Field(False, description="Only say what importing it would do.")


class Imported(BaseModel):
    """Rows of a CSV file with their outcomes, and what is wrong with the others."""

    rows: list[dict[str, Any]]
    faults: list[dict[str, Any]]


class NewWebhook(_Request):
    """Where to say that a study stops or stalls."""

    url: Text = Field(max_length=2000, description="Empty for nowhere.")
    stall_after: Annotated[Number, Field(ge=1, le=1e9)] = Field(
        DEFAULT_STALL, description="Seconds without a reward while pulls are pending."
    )


class WebhookSet(BaseModel):
    """Where it is said, and why that could not be done the last time."""

    url: str
    stall_after: float
    trouble: str | None


class Nothing(_Request):
    """An empty object."""


class Extension(_Request):
    """A smaller delta."""

    delta: Number


class PullGiven(BaseModel):
    """A pull to make."""

    id: str
    arm: str
    at: float = Field(description="Seconds since 1970.")


class Pulls(BaseModel):
    """Pulls to make."""

    pulls: list[PullGiven]


class RewardTold(BaseModel):
    """How a reward was recorded."""

    pull: str | None
    arm: str
    reward: float
    outcome: Literal["told", "late", "elsewhere", "repeated"]
    stopped: bool


class Told(BaseModel):
    """How rewards were recorded."""

    rewards: list[RewardTold]


class Studies(BaseModel):
    """Studies, the latest change first."""

    studies: list[dict[str, Any]]
    next: str | None = Field(None, description="What to send as 'after'; absent at the end.")


class Events(BaseModel):
    """A piece of a journal."""

    events: list[dict[str, Any]]


class History(BaseModel):
    """Statistic against threshold over time."""

    points: list[dict[str, Any]]


class Extended(BaseModel):
    """A study that goes on, or has its answer already."""

    delta: float
    answer: dict[str, Any] | None


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


class Planned(BaseModel):
    """A problem, and how hard it is if its means are given."""

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
