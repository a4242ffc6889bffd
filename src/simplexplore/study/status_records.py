"""What a live study says of itself: the records of its status."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from .records import Answer, Decision, StateName


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


class EdgeStatus(TypedDict):
    """A comparison with a neighbouring policy: evidence, and how much is needed."""

    direction: dict[str, float]
    statistic: float
    threshold: float
    p_value: float | None


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
    expired: int
    pending: int
    policy: list[float] | None
    policy_in_words: str | None
    value: float | None
    value_interval: list[float | None] | None
    intervals: str
    arms: list[ArmStatus]
    edges: list[EdgeStatus] | None
    constraints: list[ConstraintStatus]
    exploration: list[ConstraintStatus]  # limits on samples, where they have some of their own
    measured: NotRequired[list[MeasuredLimit]]  # where limits are measured
    infeasible: NotRequired[bool]  # whether it looks as if no policy kept them
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
    decision: Decision | None
    voided: int
    tags: list[str]
    answer_in_words: NotRequired[str]  # over HTTP


class Status(StateStatus):
    """Everything there is to know about a study now."""

    name: str
    store: NotRequired[str]  # where it is concerns only those who run the service
    created: float
    now: float
    seed: int
    expire_after: float | None
    overdue: int
