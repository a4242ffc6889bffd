"""What a live study knows now, as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import NotConvergedError
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.problem.spelling import policy_in_words

from .state import Journal

Array = npt.NDArray[np.float64]

INTERVALS = (
    "mixture martingales: with probability 1 - delta all intervals hold, for all arms and at "
    "every moment"
)


def status_of(journal: Journal) -> dict[str, Any]:
    """Everything that a state says.

    Until every arm has a reward there is no policy, no evidence and no estimate: None.
    """
    engine = journal.engine
    plan, run = engine.plan, engine.run
    problem = plan.problem
    means = problem.rewards.from_unit(run.mean)
    low, high = mean_intervals(problem, run.n, means, plan.delta)
    warm = engine.is_warm
    policy = engine.policy if warm else None
    bound = _plug_in(journal) if warm else None
    edges = _edges(journal) if warm else None
    told = max(engine.pulls, 1)
    status: dict[str, Any] = {
        "state": "running" if journal.answer is None else "stopped",
        "seq": journal.seq,
        "scenario": plan.scenario,
        "sampler": plan.sampler.name,
        "threshold": plan.threshold.name,
        "proven": plan.threshold.is_proven(problem.rewards.name),
        "delta": plan.delta,
        "epsilon": problem.epsilon,
        "asked": journal.asked,
        "rewards": journal.rewards,
        "late": journal.totals["late"],
        "elsewhere": journal.totals["elsewhere"],
        "expired": journal.totals["expired"],
        "pending": len(journal.flights),
        "policy": None if policy is None else policy.tolist(),
        "policy_in_words": None if policy is None else policy_in_words(policy, problem.arms),
        "value": None if policy is None else float(means @ policy),
        "value_interval": None if policy is None else _value_interval(policy, low, high),
        "intervals": INTERVALS,
        "arms": [
            {
                "arm": arm,
                "rewards": int(run.n[a]),
                "pending": int(engine.pending[a]),
                "share": float(run.n[a] / told),
                "target": float(run.target[a]),
                "optimal_share": None if bound is None else float(bound.allocation[a]),
                "policy": None if policy is None else float(policy[a]),
                "mean": float(means[a]) if run.n[a] else None,
                "low": _finite(low[a]),
                "high": _finite(high[a]),
            }
            for a, arm in enumerate(problem.arms)
        ],
        "edges": edges,
        "constraints": [
            {
                "name": name,
                "lower": _finite(lower),
                "upper": _finite(upper),
                "explored": float(row @ run.n / told) if engine.pulls else None,
                "policy": None if policy is None else float(row @ policy),
            }
            for name, row, lower, upper in zip(
                problem.names, problem.matrix, problem.lower, problem.upper, strict=True
            )
        ],
        "progress": None,
        "characteristic_time": None,
        "to_go": None,
        "answer": journal.answer,
    }
    if edges is not None and bound is not None:
        # The comparison that is least settled, as in the history.
        weakest = min(edges, key=lambda edge: float(edge["statistic"] - edge["threshold"]))
        missing = weakest["threshold"] - weakest["statistic"]
        status["progress"] = min(1.0, weakest["statistic"] / weakest["threshold"])
        status["characteristic_time"] = _finite(bound.characteristic_time)
        if journal.answer is not None:
            status["to_go"] = 0
        elif math.isfinite(bound.characteristic_time):
            # Each sample adds 1 / T to the least settled comparison if samples are well spent.
            status["to_go"] = math.ceil(max(0.0, missing) * bound.characteristic_time)
    return status


def _plug_in(journal: Journal) -> Bound | None:
    """How hard the problem is if the empirical means are the true ones."""
    engine = journal.engine
    problem = engine.plan.problem
    try:
        return lower_bound(
            problem, problem.rewards.from_unit(engine.run.clipped), engine.plan.delta
        )
    except NotConvergedError:
        return None


def _edges(journal: Journal) -> list[dict[str, Any]]:
    """Each comparison with a neighbouring policy: evidence, and how much is needed."""
    arms = journal.engine.plan.problem.arms
    return [
        {
            "direction": {
                arm: float(rate) for arm, rate in zip(arms, direction, strict=True) if rate
            },
            "statistic": float(statistic),
            "threshold": float(threshold),
        }
        for direction, statistic, threshold in zip(*journal.engine.evidence(), strict=True)
    ]


def _value_interval(policy: Array, low: Array, high: Array) -> list[float | None]:
    """Ends for the value of a policy, chosen from the data or not: all means hold together."""
    used = policy > 0
    return [_finite(float(policy[used] @ low[used])), _finite(float(policy[used] @ high[used]))]


def _finite(value: float) -> float | None:
    """A number, or None where there is no limit."""
    return float(value) if math.isfinite(value) else None
