"""What a live study knows now, as typed plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import NotConvergedError, SettingError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.engines import ExplorationEngine
from simplexplore.exploration.expected_samples import expected_samples
from simplexplore.exploration.intervals import known_means
from simplexplore.exploration.measured_engine import MeasuredEngine
from simplexplore.exploration.measured_safety import promise
from simplexplore.exploration.measured_status import measured_status
from simplexplore.exploration.moment import Moment, moment_of
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import EXPLORATION
from simplexplore.problem.spelling import policy_in_words

from .records import Decision
from .state import State
from .status_records import (
    ArmStatus,
    ConstraintStatus,
    EdgeStatus,
    MeasuredArm,
    MeasuredLimit,
    StateStatus,
)

Array = npt.NDArray[np.float64]

# One standard normal number in ten is larger.
TENTH = 1.2815515655446004

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
    known = _planned(state, engine) if isinstance(engine, Engine) and engine.is_warm else None
    bound = None if known is None else known.bound
    moment = moment_of(engine)
    edges = _edges(engine, moment) if engine.has_answer else None
    if isinstance(engine, MeasuredEngine):
        time, expected = engine.planned()
        progress, left, ends = _progress_of_measured(state, engine, expected)
    else:
        progress, left, ends = _progress(state, edges, known, moment)
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
        "expired": state.totals["expired"],
        "pending": len(state.pending),
        "policy": None if policy is None else policy.tolist(),
        "policy_in_words": None if policy is None else policy_in_words(policy, problem.arms),
        "value": None if policy is None else float(means @ policy),
        "value_interval": None if policy is None else _value_interval(policy, low, high),
        "intervals": INTERVALS,
        "arms": _arms(state, engine, policy, bound, means, low, high),
        "edges": edges,
        "constraints": _constraints(state, problem.constraints, policy),
        "exploration": _constraints(state, own, None),
        "excess_bound": None if engine.excess_bound is None else _finite(engine.excess_bound),
        "confidence": None if moment is None else moment.confidence,
        "regret_bound": None if moment is None else _finite(moment.regret_bound),
        "progress": progress,
        "characteristic_time": None if bound is None else _finite(bound.characteristic_time),
        "to_go": _whole(left),
        "to_go_range": None if ends is None else [math.floor(ends[0]), _whole(ends[1])],
        "answer": state.answer,
        "decision": _decision(state, engine),
        "voided": state.totals["voided"],
        "tags": state.tags,
    }
    if problem.measured:
        found["measured"] = _measured(engine)
        found["infeasible"] = engine.is_infeasible
        found["characteristic_time"] = _finite(time)
        if plan.scenario != "end-of-time":
            found["promise"] = promise(problem, problem.delta)
    if problem.has_costs:
        found["cost"] = float(engine.handed_out @ problem.costs)
        # Samples to come cost what those of the best allocation do.
        each = math.inf if bound is None else bound.scenarios[plan.scenario].cost_per_sample
        if problem.measured:
            each = float(run.n @ problem.costs / max(engine.pulls, 1))
        found["cost_to_go"] = _finite(left * each) if left else 0.0
        found["cost_to_go_range"] = ends and [_finite(end * each) if end else 0.0 for end in ends]
    return found


def _decision(state: State, engine: ExplorationEngine) -> Decision | None:
    if state.decision is None:
        return None
    after, at, answer, _ = state.decision
    statistic, threshold = answer["statistic"], answer["threshold"]
    if statistic < threshold and engine.has_moments and engine.plan.problem.stop_when is None:
        # All other policies were ruled out together, before every comparison had evidence enough
        # of its own: what there was of that.
        threshold = -math.log(engine.plan.delta_of_rule)
        statistic = threshold + engine.surplus()
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

    bound: Bound
    expected: float | None  # samples in all, where there is an estimate for sampler and threshold


# The last plan of each state, with the rewards and the delta that it was made for.
_plans: WeakKeyDictionary[State, tuple[tuple[int, float], _Plan | None]] = WeakKeyDictionary()


def _planned(state: State, engine: Engine) -> _Plan | None:
    """The plan at the empirical means; None if there is no bound."""
    made_for = engine.pulls, engine.plan.delta
    known = _plans.get(state)
    if known is None or known[0] != made_for:
        known = _plans[state] = made_for, _plan(engine)
    return known[1]


def _plan(engine: Engine) -> _Plan | None:
    plan = engine.plan
    rewards = plan.problem.rewards
    try:
        means = rewards.strictly_inside(engine.run.clipped)
        problem = plan.problem
        if isinstance(rewards, Gaussian) and not rewards.knows_sigma:
            learned = engine.run.variance
            seen = np.sqrt(np.where(learned > 0, learned, 1.0))
            if rewards.equal_sigma:  # of arms without rewards, too
                seen[:] = math.sqrt(learned.max()) or 1.0
            problem = problem.replace(rewards=replace(rewards, sigma_guess=tuple(seen.tolist())))
        bound = lower_bound(problem, rewards.from_unit(means), plan.delta)
    except (NotConvergedError, SettingError):  # floats do not hold it, or no formula does
        return None
    is_default = (plan.sampler.name, plan.threshold.name) == ("top-two", "tilt")
    is_default &= plan.problem.stop_when is None
    return _Plan(bound, expected_samples(bound, plan.scenario) if is_default else None)


def _arms(
    state: State,
    engine: ExplorationEngine,
    policy: Array | None,
    bound: Bound | None,
    means: Array,
    low: Array,
    high: Array,
) -> list[ArmStatus]:
    run, now = engine.run, state.engine
    later = now.run.n - run.n
    sums = now.run.n * engine.plan.problem.rewards.from_unit(now.run.mean) - run.n * means
    found: list[ArmStatus] = [
        {
            "arm": arm,
            "rewards": int(run.n[a]),
            "pending": int(now.pending[a]),
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


def _sigmas_seen(engine: ExplorationEngine) -> Array:
    """Empirical standard deviations, infinite without two rewards; none where sigma is known."""
    rewards, squares = engine.plan.problem.rewards, engine.squares
    if squares is None:
        return np.zeros(0)
    free = np.maximum(engine.run.n - 1.0, 0.0)
    if isinstance(rewards, Gaussian) and rewards.equal_sigma:
        squares, free = np.full(len(free), squares.sum()), np.full(len(free), free.sum())
    seen = np.divide(squares, free, out=np.full(len(free), np.inf), where=free > 0)
    return np.asarray(np.sqrt(seen))


def _edges(engine: ExplorationEngine, moment: Moment | None) -> list[EdgeStatus]:
    arms = engine.plan.problem.arms
    statistics, thresholds = engine.evidence()
    # Before them stands the evidence that measured limits are kept.
    rows = len(engine.plan.problem.measured)
    statistics, thresholds = statistics[rows:], thresholds[rows:]
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


def _measured(engine: ExplorationEngine) -> list[MeasuredLimit]:
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
    handed = engine.handed_out
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
    state: State, edges: list[EdgeStatus] | None, plan: _Plan | None, moment: Moment | None
) -> tuple[float | None, float, tuple[float, float] | None]:
    """Which share of the evidence there is, how many samples are missing, and the range of that."""
    if edges is None or plan is None:
        return None, math.inf, None
    # The comparison that is least settled, as in the history.
    weakest = min(edges, key=lambda edge: edge["statistic"] - edge["threshold"])
    statistic, threshold = max(0.0, weakest["statistic"]), weakest["threshold"]
    progress = min(1.0, weakest["statistic"] / threshold)
    goal = state.engine.plan.problem.stop_when
    if state.answer is not None:
        return 1.0, 0.0, (0.0, 0.0)
    if goal is not None and goal.budget is not None:
        rest = float(max(goal.budget - state.engine.pulls, 0))
        return 1 - rest / goal.budget, rest, (rest, rest)
    if goal is not None and goal.regret is not None and moment is not None:
        more = moment.regret.more(goal.regret)
        return 1 / (1 + more), max(1.0, more * state.engine.pulls), None
    if plan.expected is None:
        # What is spent adds 1 / T to the least settled comparison if it is well spent.
        scenario = plan.bound.scenarios[state.engine.plan.scenario]
        left = max(0.0, threshold - statistic) * scenario.characteristic_time
        left /= scenario.cost_per_sample
    else:
        left = max(1.0, (1 - progress) * plan.expected)
    if not math.isfinite(left):
        return progress, math.inf, None
    low, high = range_of_rest(statistic, threshold)
    return progress, left, (left * low, left * high)


def _progress_of_measured(
    state: State, engine: ExplorationEngine, expected: float
) -> tuple[float | None, float, tuple[float, float] | None]:
    """The same where limits are measured: evidence grows with samples, about as it did.

    Before there is any, samples expected at the means of now say how many are left.
    """
    if state.answer is not None:
        return 1.0, 0.0, (0.0, 0.0)
    if not (engine.has_answer or engine.is_infeasible):
        return None, math.inf, None
    statistic, threshold = engine.weakest()
    if statistic == 0.0:
        return 0.0, max(1.0, expected - engine.pulls), None
    low, high = range_of_rest(statistic, threshold)
    left = max(1.0, (threshold / statistic - 1.0) * engine.pulls)
    return min(1.0, statistic / threshold), left, (left * low, left * high)


def range_of_rest(statistic: float, threshold: float) -> tuple[float, float]:
    """Ends of the range of what is left, as multiples of what is expected.

    The square root x of twice the statistic is normal with deviation 1 about a mean that grows
    like the root of time, at a rate that x itself tells no better than that. When time has grown
    by the factor 1 + s^2, it is x sqrt(1 + s^2) + s z with z standard normal; the range is where
    that meets the threshold for the two z that one run in ten exceeds, each on its side.
    """
    if not 0 < statistic < threshold:
        return 0.0, math.inf if statistic <= 0 else 1.0
    x, level = math.sqrt(2 * statistic), math.sqrt(2 * threshold)
    apart = level * level - x * x

    def rest(z: float) -> float:
        speed = level * z + x * math.sqrt(apart + z * z)
        return (apart / speed) ** 2 if speed > 0 else math.inf

    return rest(TENTH) / rest(0.0), rest(-TENTH) / rest(0.0)


def _value_interval(policy: Array, low: Array, high: Array) -> list[float | None]:
    """Ends for the value of a policy, chosen from the data or not: all means hold together."""
    used = policy > 0
    return [_finite(float(policy[used] @ low[used])), _finite(float(policy[used] @ high[used]))]


def _finite(value: float) -> float | None:
    """A number, or None where there is no limit."""
    return float(value) if math.isfinite(value) else None


def _whole(value: float) -> int | None:
    return math.ceil(value) if math.isfinite(value) else None
