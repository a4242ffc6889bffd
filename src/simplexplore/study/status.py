"""What a live study knows now, as typed plain data."""

from __future__ import annotations

import math
from typing import NotRequired

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import NotConvergedError
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.exploration.moment import Moment, moment_of
from simplexplore.problem.spelling import policy_in_words

from .records import Answer, RunningOrStopped
from .state import State

Array = npt.NDArray[np.float64]

INTERVALS = (
    "mixtures of tilts: with probability 1 - delta all intervals hold, for all arms and at "
    "every moment"
)


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
    explored: float | None
    policy: float | None


class StateStatus(TypedDict):
    """Everything that a state says.

    Until every arm has a reward there is no policy, no evidence and no estimate: None.
    """

    state: RunningOrStopped
    seq: int
    scenario: str
    sampler: str
    threshold: str
    proven: bool
    delta: float
    epsilon: float
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
    confidence: float | None
    regret_bound: float | None
    progress: float | None
    characteristic_time: float | None
    to_go: int | None
    answer: Answer | None
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


def status_of(state: State) -> StateStatus:
    """Everything that a state says."""
    engine = state.engine
    plan, run = engine.plan, engine.run
    problem = plan.problem
    means = problem.rewards.from_unit(run.mean)
    low, high = mean_intervals(problem, run.n, means, plan.delta, engine.bets)
    policy = engine.policy if engine.is_warm else None
    bound = _plug_in(state) if engine.is_warm else None
    moment = moment_of(engine)
    edges = _edges(state, moment) if engine.is_warm else None
    progress, to_go = _progress(state, edges, bound)
    return {
        "state": state.name,
        "seq": state.seq,
        "scenario": plan.scenario,
        "sampler": plan.sampler.name,
        "threshold": plan.threshold.name,
        "proven": plan.threshold.is_proven(problem.rewards.name),
        "delta": plan.delta,
        "epsilon": problem.epsilon,
        "asked": state.asked,
        "rewards": state.rewards,
        "late": state.totals["late"],
        "elsewhere": state.totals["elsewhere"],
        "expired": state.totals["expired"],
        "pending": len(state.pending),
        "policy": None if policy is None else policy.tolist(),
        "policy_in_words": None if policy is None else policy_in_words(policy, problem.arms),
        "value": None if policy is None else float(means @ policy),
        "value_interval": None if policy is None else _value_interval(policy, low, high),
        "intervals": INTERVALS,
        "arms": _arms(state, policy, bound, means, low, high),
        "edges": edges,
        "constraints": _constraints(state, policy),
        "confidence": None if moment is None else moment.confidence,
        "regret_bound": None if moment is None else _finite(moment.regret_bound),
        "progress": progress,
        "characteristic_time": None if bound is None else _finite(bound.characteristic_time),
        "to_go": to_go,
        "answer": state.answer,
    }


def _plug_in(state: State) -> Bound | None:
    """How hard the problem is if the empirical means are the true ones."""
    engine = state.engine
    problem = engine.plan.problem
    try:
        means = problem.rewards.strictly_inside(engine.run.clipped)
        return lower_bound(problem, problem.rewards.from_unit(means), engine.plan.delta)
    except NotConvergedError:
        return None


def _arms(
    state: State, policy: Array | None, bound: Bound | None, means: Array, low: Array, high: Array
) -> list[ArmStatus]:
    engine = state.engine
    run = engine.run
    return [
        {
            "arm": arm,
            "rewards": int(run.n[a]),
            "pending": int(engine.pending[a]),
            "share": float(run.n[a] / max(engine.pulls, 1)),
            "target": float(run.target[a]),
            "optimal_share": None if bound is None else float(bound.allocation[a]),
            "policy": None if policy is None else float(policy[a]),
            "mean": float(means[a]) if run.n[a] else None,
            "low": _finite(low[a]),
            "high": _finite(high[a]),
        }
        for a, arm in enumerate(engine.plan.problem.arms)
    ]


def _edges(state: State, moment: Moment | None) -> list[EdgeStatus]:
    engine = state.engine
    arms = engine.plan.problem.arms
    statistics, thresholds = engine.evidence()
    return [
        {
            "direction": {
                arm: float(rate) for arm, rate in zip(arms, direction, strict=True) if rate
            },
            "statistic": float(statistic),
            "threshold": float(threshold),
            # With `tilt` the statistic is the logarithm of an e-value.
            "p_value": None if moment is None else math.exp(-statistic),
        }
        for direction, statistic, threshold in zip(
            engine.directions(), statistics, thresholds, strict=True
        )
    ]


def _constraints(state: State, policy: Array | None) -> list[ConstraintStatus]:
    engine = state.engine
    problem = engine.plan.problem
    return [
        {
            "name": name,
            "lower": _finite(lower),
            "upper": _finite(upper),
            "explored": float(row @ engine.run.n / engine.pulls) if engine.pulls else None,
            "policy": None if policy is None else float(row @ policy),
        }
        for name, row, lower, upper in zip(
            problem.names, problem.matrix, problem.lower, problem.upper, strict=True
        )
    ]


def _progress(
    state: State, edges: list[EdgeStatus] | None, bound: Bound | None
) -> tuple[float | None, int | None]:
    """Which share of the evidence needed there is, and how many samples are missing."""
    if edges is None or bound is None:
        return None, None
    # The comparison that is least settled, as in the history.
    weakest = min(edges, key=lambda edge: edge["statistic"] - edge["threshold"])
    missing = weakest["threshold"] - weakest["statistic"]
    progress = min(1.0, weakest["statistic"] / weakest["threshold"])
    if state.answer is not None:
        return progress, 0
    if not math.isfinite(bound.characteristic_time):
        return progress, None
    # Each sample adds 1 / T to the least settled comparison if samples are well spent.
    return progress, math.ceil(max(0.0, missing) * bound.characteristic_time)


def _value_interval(policy: Array, low: Array, high: Array) -> list[float | None]:
    """Ends for the value of a policy, chosen from the data or not: all means hold together."""
    used = policy > 0
    return [_finite(float(policy[used] @ low[used])), _finite(float(policy[used] @ high[used]))]


def _finite(value: float) -> float | None:
    """A number, or None where there is no limit."""
    return float(value) if math.isfinite(value) else None
