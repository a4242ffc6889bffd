"""What a live study says of itself: the records of its status."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from simplexplore.exploration.confidence import Edge

from .health import HealthCheck
from .records import Answer, StateName


class ArmStatus(TypedDict):
    """What is known of an arm."""

    arm: str
    rewards: int
    pending: int
    share: float
    target: float
    optimal_share: float | None
    policy: float | None
    mean: float | None
    low: float | None
    high: float | None
    sigma: NotRequired[float | None]  # seen so far, where nobody knows it
    later: int  # rewards that came after the decision, and their mean
    later_mean: float | None


class ConstraintStatus(TypedDict):
    """How much of a constraint the samples and the policy use."""

    name: str
    lower: float | None
    upper: float | None
    explored: float | None  # over all pulls handed out
    excess: float | None  # pulls by which they exceed it, of the arm that uses it most
    policy: float | None


class MeasuredArm(TypedDict):
    """What is known of an arm's measurements."""

    arm: str
    mean: float | None
    low: float | None
    high: float | None


class MeasuredLimit(TypedDict):
    """A measured limit; see `MeasuredStatus`."""

    name: str
    limit: str
    tolerance: float
    value: float | None  # mean over the recommended policy, as estimated
    value_interval: list[float | None] | None  # where the true one lies, at every moment
    p_value: float | None  # that the policy misses the limit by more than its tolerance
    explored: float | None  # mean over the samples so far
    explored_worst: NotRequired[float | None]  # that the true one over all pulls can be: "anytime"
    arms: list[MeasuredArm]


class DecisionStatus(TypedDict):
    """When a study was decided, and on which evidence; later rewards do not change it."""

    at: float
    seq: int  # number of the event with which the evidence was enough
    samples: int
    statistic: float
    threshold: float
    delta: float
    later: int  # rewards that came after it


class HeldReward(TypedDict):
    """A reward that looks impossible, so that the study does not stop before it is confirmed."""

    pull: NotRequired[str]
    event: NotRequired[int]  # of a reward made elsewhere
    arm: str
    reward: float
    usual: list[float]


class StateStatus(TypedDict):
    """Everything that a state says.

    Until every arm has a reward there is no policy, no evidence and no estimate: None.
    """

    state: StateName
    seq: int
    scenario: str
    sampler: str
    threshold: str
    proven: bool
    delta: float
    epsilon: float
    stop_when: dict[str, float] | None
    asked: int
    rewards: int
    late: int
    elsewhere: int
    batches: int  # sums of many rewards, which `rewards` counts one by one
    expired: int
    pending: int
    policy: list[float] | None
    policy_in_words: str | None
    value: float | None
    value_interval: list[float | None] | None
    intervals: str
    arms: list[ArmStatus]
    edges: list[Edge] | None
    constraints: list[ConstraintStatus]
    exploration: list[ConstraintStatus]  # limits on samples, where they have some of their own
    measured: NotRequired[list[MeasuredLimit]]  # where limits are measured
    infeasible: NotRequired[bool]  # whether it looks as if no policy kept them
    question: NotRequired[dict[str, object]]  # what is asked instead of the best mix
    promise: NotRequired[str]  # what of them pulls keep: "anytime"
    excess_bound: float | None
    confidence: float | None
    regret_bound: float | None
    progress: float | None
    characteristic_time: float | None
    to_go: int | None
    to_go_range: list[int | None] | None  # four runs in five, about; None is no end
    cost: NotRequired[float]  # of all pulls handed out; with costs only
    cost_to_go: NotRequired[float | None]
    cost_to_go_range: NotRequired[list[float | None] | None]
    answer: Answer | None
    decision: DecisionStatus | None
    voided: int
    held: list[HeldReward]  # rewards that look impossible: nothing is decided before they are
    # confirmed or voided
    withdrawn: int  # answers that were taken back as rewards were voided
    withdrawn_in_words: str | None  # what that says of all answers
    answer_in_words: NotRequired[str]  # over HTTP, as is what follows
    words: NotRequired[dict[str, str]]  # sentences, by what they are about


class Status(StateStatus):
    """Everything there is to know about a study now."""

    name: str
    store: NotRequired[str]  # where it is concerns only those who run the service
    created: float
    now: float
    seed: int
    expire_after: float | None
    overdue: int
    health: list[HealthCheck]  # what could be wrong, and whether it looks so
