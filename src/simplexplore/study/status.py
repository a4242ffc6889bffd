"""What a live study knows now, as typed plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import NotConvergedError, SettingError
from simplexplore.exploration.confidence import (
    AnytimeConfidence,
    anytime_confidence,
    edges_at,
)
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.forecast import Forecast, samples_to_go
from simplexplore.exploration.intervals import known_means
from simplexplore.exploration.limits import promise
from simplexplore.exploration.measured_status import measured_status
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.families import Gaussian
from simplexplore.problem.messages import policy_in_words
from simplexplore.problem.problem import EXPLORATION

from .state import State
from .status_records import (
    ArmStatus,
    ConstraintStatus,
    DecisionStatus,
    HeldReward,
    MeasuredArm,
    MeasuredLimit,
    StateStatus,
)

Array = npt.NDArray[np.float64]

INTERVALS = (
    "with probability 1 - delta all intervals hold, for all arms and at every moment (mixtures "
    "of tilts)"
)


def status_of(state: State) -> StateStatus:
    """Everything that a state says."""
    engine = state.deciding_engine
    plan, run = engine.plan, engine.run
    problem = plan.problem
    low, means, high = known_means(engine)
    policy = engine.policy if engine.has_answer else None
    valued = None if problem.question else policy
    known = None
    if engine.has_answer or engine.is_infeasible:
        known = _plan(engine, is_over=state.answer is not None)
    bound = None if known is None else known.bound
    moment = anytime_confidence(engine)
    edges = edges_at(engine, moment) if engine.has_answer else None
    progress, left, ends = _progress(state, engine, known, moment)
    most = engine.workspace.excess_bound
    own = problem.exploration if plan.scenario == EXPLORATION else ()
    found: StateStatus = {
        "state": state.name,
        "seq": state.seq,
        "scenario": plan.scenario,
        "sampler": plan.sampler.name,
        "threshold": plan.threshold.name,
        "proven": plan.is_proven,
        "delta": plan.delta,
        "epsilon": problem.epsilon,
        "stop_when": problem.stop_when.to_dict() if problem.stop_when else None,
        "asked": state.asked,
        "rewards": state.rewards,
        "late": state.totals["late"],
        "elsewhere": state.totals["elsewhere"],
        "batches": state.totals["batch"],
        "expired": state.totals["expired"],
        "pending": len(state.pending),
        "policy": None if policy is None else policy.tolist(),
        "policy_in_words": None
        if policy is None
        else engine.answer or policy_in_words(policy, problem.arms),
        "value": None if valued is None else float(means @ valued),
        "value_interval": None if valued is None else _value_interval(valued, low, high),
        "intervals": INTERVALS,
        "arms": _arms(state, engine, policy, bound, means, low, high),
        "edges": edges,
        "constraints": _constraints(state, problem.constraints, policy),
        "exploration": _constraints(state, own, None),
        "excess_bound": None if most is None else _finite(most),
        "confidence": None if moment is None else moment.confidence,
        "regret_bound": None if moment is None else _finite(moment.regret_bound),
        "progress": progress,
        "characteristic_time": None if bound is None else _finite(bound.characteristic_time),
        "to_go": _whole(left),
        "to_go_range": None if ends is None else [math.floor(ends[0]), _whole(ends[1])],
        "answer": state.answer,
        "decision": _decision(state, engine),
        "voided": state.totals["voided"],
        "held": _held(state),
        "withdrawn": state.announced.withdrawn,
        "withdrawn_in_words": state.withdrawn_in_words,
    }
    if problem.question:
        found["question"] = problem.question.to_dict()
    if problem.measured:
        found["measured"] = _measured(engine)
        found["infeasible"] = engine.is_infeasible
        if plan.scenario != "end-of-time":
            found["promise"] = promise(problem, problem.delta)
    if problem.has_costs:
        found["cost"] = float(engine.assigned @ problem.costs)
        # Samples to come cost what simulated ones do, or what those so far did.
        each = float(run.n @ problem.costs / max(engine.pulls, 1))
        if known is not None and known.to_go is not None and known.to_go.samples < math.inf:
            each = known.to_go.cost / max(known.to_go.samples, 1.0)
        found["cost_to_go"] = _finite(left * each) if left else 0.0
        found["cost_to_go_range"] = ends and [_finite(end * each) if end else 0.0 for end in ends]
    return found


def _held(state: State) -> list[HeldReward]:
    arms = state.engine.plan.problem.arms
    found: list[HeldReward] = []
    for seq, one in state.held.items():
        known: HeldReward = {"arm": arms[one.arm], "reward": one.reward, "usual": [*one.usual]}
        found.append({"event": seq, **known} if one.pull is None else {"pull": one.pull, **known})
    return found


def _decision(state: State, engine: Engine) -> DecisionStatus | None:
    if state.decision is None:
        return None
    after, at, answer, _ = state.decision
    statistic, threshold = answer["statistic"], answer["threshold"]
    is_promised = engine.plan.problem.stop_when is None and not answer.get("by_hand")
    if statistic < threshold and engine.plan.has_e_values and is_promised:
        # All other policies were ruled out together, before every comparison had evidence enough
        # of its own: what there was of that.
        threshold = -math.log(engine.plan.delta_of_rule)
        statistic = threshold + engine.evidence.confidence_margin()
    return {
        "at": at,
        "seq": after,
        "samples": answer["rewards"],
        "statistic": statistic,
        "threshold": threshold,
        "delta": answer["delta"],
        "later": state.rewards - answer["rewards"],
    }


class _Plan(NamedTuple):
    """How hard the problem is if the empirical means are the true ones."""

    bound: Bound | None  # None where limits are measured, or there is none
    to_go: Forecast | None  # None where another goal ends the run, it is over, or large


def _plan(engine: Engine, *, is_over: bool) -> _Plan:
    """The plan at the empirical means."""
    plan = engine.plan
    to_go = None if plan.problem.stop_when or is_over else samples_to_go(engine)
    if plan.problem.measured:
        return _Plan(None, to_go)
    rewards = plan.problem.rewards
    try:
        means = rewards.strictly_inside(engine.run.clipped_mean)
        problem = plan.problem
        if isinstance(rewards, Gaussian) and not rewards.knows_sigma:
            learned = engine.run.variance[0]
            seen = np.sqrt(np.where(learned > 0, learned, 1.0))
            problem = problem.replace(rewards=replace(rewards, sigma_guess=tuple(seen.tolist())))
        bound = lower_bound(problem, rewards.from_unit(means), plan.delta)
    except (NotConvergedError, SettingError):  # floats do not hold it, or no formula does
        return _Plan(None, to_go)
    return _Plan(bound, to_go)


def _arms(
    state: State,
    engine: Engine,
    policy: Array | None,
    bound: Bound | None,
    means: Array,
    low: Array,
    high: Array,
) -> list[ArmStatus]:
    run, now = engine.run, state.engine
    later = now.run.n - run.n
    sums = now.run.n * engine.plan.problem.rewards.from_unit(now.run.mean[0]) - run.n * means
    found: list[ArmStatus] = [
        {
            "arm": arm,
            "rewards": int(run.n[a]),
            "pending": int(now.workspace.pending[a]),
            "share": float(run.n[a] / max(engine.pulls, 1)),
            "target": float(run.target[a]),
            "optimal_share": None if bound is None else float(bound.allocation[a]),
            "policy": None if policy is None else float(policy[a]),
            "mean": float(means[a]) if run.n[a] else None,
            "low": _finite(low[a]),
            "high": _finite(high[a]),
            "later": int(later[a]),
            "later_mean": float(sums[a] / later[a]) if later[a] else None,
        }
        for a, arm in enumerate(engine.plan.problem.arms)
    ]
    for one, sigma in zip(found, _sigmas_seen(engine), strict=False):
        one["sigma"] = _finite(sigma)
    return found


def _sigmas_seen(engine: Engine) -> Array:
    """Empirical standard deviations, infinite without two rewards; none where sigma is known."""
    if engine.plan.problem.rewards.knows_sigma:
        return np.zeros(0)
    squares = engine.run.squares[0, :-1]
    free = np.maximum(engine.run.n - 1.0, 0.0)
    seen = np.divide(squares, free, out=np.full(len(free), np.inf), where=free > 0)
    return np.asarray(np.sqrt(seen))


def _measured(engine: Engine) -> list[MeasuredLimit]:
    arms, counts = engine.plan.problem.arms, engine.run.n
    found: list[MeasuredLimit] = []
    for row in measured_status(engine):
        seen = counts > 0
        total = float(counts[seen] @ row.means[seen])
        known: list[MeasuredArm] = [
            {
                "arm": arm,
                "mean": _finite(row.means[a]),
                "low": _finite(row.low[a]),
                "high": _finite(row.high[a]),
            }
            for a, arm in enumerate(arms)
        ]
        ends = None
        if row.value_low is not None and row.value_high is not None:
            ends = [_finite(row.value_low), _finite(row.value_high)]
        found.append(
            {
                "name": row.name,
                "limit": row.limit,
                "tolerance": row.tolerance,
                "value": row.value,
                "value_interval": ends,
                "p_value": row.p_value,
                "explored": total / engine.pulls if engine.pulls else None,
                "arms": known,
            }
        )
        if row.worst is not None:
            found[-1]["explored_worst"] = _finite(row.worst)
    return found


def _constraints(
    state: State, rows: Sequence[Constraint], policy: Array | None
) -> list[ConstraintStatus]:
    engine = state.engine
    kept = engine.plan.problem.limits_on_samples(engine.plan.scenario)
    handed = engine.assigned
    pulls = float(handed.sum())

    def excess(row: Constraint) -> float:
        used, scale = float(row.coefficients @ handed), float(np.abs(row.coefficients).max())
        above = max(used - pulls * row.upper, pulls * row.lower - used, 0.0)
        return above / scale if above > 1e-6 * scale else 0.0

    return [
        {
            "name": row.name,
            "lower": _finite(row.lower),
            "upper": _finite(row.upper),
            "explored": float(row.coefficients @ handed / pulls) if pulls else None,
            "excess": excess(row) if any(row is one for one in kept) else None,
            "policy": None if policy is None else float(row.coefficients @ policy),
        }
        for row in rows
    ]


def _progress(
    state: State, engine: Engine, known: _Plan | None, moment: AnytimeConfidence | None
) -> tuple[float | None, float, tuple[float, float] | None]:
    """Which share of the evidence there is, how many samples are missing, and the range of that."""
    if known is None:
        return None, math.inf, None
    goal = engine.plan.problem.stop_when
    if state.answer is not None:
        return 1.0, 0.0, (0.0, 0.0)
    if goal is not None and goal.budget is not None:
        rest = float(max(goal.budget - state.engine.pulls, 0))
        return 1 - rest / goal.budget, rest, (rest, rest)
    if goal is not None and goal.regret is not None and moment is not None:
        more = moment.regret.more(goal.regret)
        return 1 / (1 + more), max(1.0, more * state.engine.pulls), None
    statistic, threshold = engine.evidence.weakest()
    progress, found = min(1.0, statistic / threshold), known.to_go
    if found is None or math.isinf(found.low):
        return progress, math.inf, None
    return progress, max(1.0, found.samples), (found.low, found.high)


def _value_interval(policy: Array, low: Array, high: Array) -> list[float | None]:
    """Ends for the value of a policy, chosen from the data or not: all means hold together."""
    used = policy > 0
    return [_finite(float(policy[used] @ low[used])), _finite(float(policy[used] @ high[used]))]


def _finite(value: float) -> float | None:
    """A number, or None where there is no limit."""
    return float(value) if math.isfinite(value) else None


def _whole(value: float) -> int | None:
    return math.ceil(value) if math.isfinite(value) else None
