"""What defines an exploration, checked once: everything that explores starts from a `Plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import InfeasibleError, SettingError
from simplexplore.problem.problem import EXPLORATION, Problem, check_problem
from simplexplore.problem.spelling import listed
from simplexplore.problem.stop_when import StopWhen
from simplexplore.samplers import TRACKINGS, Sampler, find_sampler

from .measured_safety import safety
from .stopping import Threshold, find_threshold


@dataclass(frozen=True)
class Plan:
    """What defines an exploration, apart from the random stream."""

    problem: Problem
    sampler: Sampler
    threshold: Threshold
    delta: float
    scenario: str
    tracking: str | None = None
    allocation: tuple[float, ...] | None = None  # for samplers that must be given one
    bound: Bound | None = field(default=None, compare=False, repr=False)  # where means are known
    means: tuple[float, ...] | None = None  # true ones, of simulations with measured limits

    def __post_init__(self) -> None:
        _check_supported(self.problem, self.sampler, self.threshold)
        if self.tracking is not None and self.tracking not in TRACKINGS:
            raise SettingError(
                f"there is no tracking {self.tracking!r}. Known: {', '.join(TRACKINGS)}."
            )
        if self.problem.measured and self.tracking is not None:
            raise SettingError("tracking cannot be chosen where limits are measured; leave it out.")
        if self.sampler.needs_truth and self.allocation is None:
            raise SettingError(
                f"the {self.sampler.name} sampler must be given the optimal allocation: it "
                "exists in simulations only, where the means are known."
            )
        if self.sampler.needs_budget and self.problem.budget is None:
            raise SettingError(
                f"the {self.sampler.name} sampler needs to know how many samples there are: give a "
                "budget (--budget, or stop_when = {budget = N})."
            )
        if self.problem.regret_goal and self.threshold.name != "tilt":
            raise SettingError(
                f"stop_when goes with the threshold 'tilt', which bounds the regret; "
                f"{self.threshold.name!r} does not."
            )

    @property
    def delta_of_rule(self) -> float:
        """Delta for each rule that may end it: that the policy is the best, or good enough."""
        return self.delta / 2 if self.problem.regret_goal else self.delta

    @property
    def is_proven(self) -> bool:
        """Whether delta is a promise: not where a number of samples ends the exploration."""
        rewards = self.problem.rewards
        if not rewards.knows_sigma and self.threshold.name != "tilt":
            return False
        return self.problem.budget is None and self.threshold.is_proven(rewards.name)


def prepare(
    problem: Problem,
    sampler: str,
    threshold: str,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    stop_when: StopWhen | Mapping[str, float] | None = None,
    scenario: str | None = None,
    tracking: str | None = None,
) -> Plan:
    """A plan to explore a problem whose means are unknown.

    `delta`, `epsilon`, `stop_when` and `scenario` are the problem's own where they are not given.
    """
    problem = _changed(
        problem, delta=delta, epsilon=epsilon, stop_when=stop_when, scenario=scenario
    )
    return Plan(
        problem=problem,
        sampler=find_sampler(sampler),
        threshold=find_threshold(threshold),
        delta=problem.delta,
        scenario=problem.scenario,
        tracking=tracking,
    )


def prepare_simulation(
    problem: Problem,
    means: npt.ArrayLike | None,
    sampler: str,
    threshold: str,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    stop_when: StopWhen | Mapping[str, float] | None = None,
    scenario: str | None = None,
    tracking: str | None = None,
    is_capped: bool = False,
    known: Bound | None = None,
) -> Plan:
    """A plan for an instance whose means are known, with its bound.

    A tied optimum, or one that takes longer than runs may, is refused unless `is_capped`: the
    user has said when to end. `known` is the bound of the same problem and
    means in another scenario, where there is one: it holds for both.
    """
    chosen, rule = find_sampler(sampler), find_threshold(threshold)
    problem = _changed(problem, epsilon=epsilon, stop_when=stop_when, scenario=scenario)
    _check_supported(problem, chosen, rule)  # before the bound, which takes longer
    if problem.measured:
        problem = problem if delta is None else problem.replace(delta=delta)
        least = known or bound_if_feasible(problem, means, problem.delta)
        given = problem.means if means is None else problem.check_means(means)
        assert given is not None  # or there was no bound
        return Plan(
            problem=problem,
            sampler=chosen,
            threshold=rule,
            delta=problem.delta,
            scenario=problem.scenario,
            tracking=tracking,
            bound=least,
            means=tuple(given.tolist()),
        )
    bound = replace(known, problem=problem) if known else lower_bound(problem, means, delta)
    if not (problem.stop_when or is_capped):
        if bound.ties and not problem.epsilon:
            raise SettingError(_tied(bound))
        if defaults.MAX_STEPS < bound.samples < math.inf and rule.file is None:
            raise SettingError(_endless(bound))
    return Plan(
        problem=problem,
        sampler=chosen,
        threshold=rule,
        delta=bound.delta,
        scenario=problem.scenario,
        tracking=tracking,
        allocation=tuple(bound.allocation.tolist()) if chosen.needs_truth else None,
        bound=bound,
    )


def bound_if_feasible(problem: Problem, means: npt.ArrayLike | None, delta: float) -> Bound | None:
    """The bound of an instance; None if no policy keeps its measured limits."""
    try:
        return lower_bound(problem, means, delta)
    except InfeasibleError:
        if not problem.measured:
            raise
        return None


def _changed(problem: Problem, **changes: object) -> Problem:
    return check_problem(problem).replace(
        **{key: value for key, value in changes.items() if value is not None}
    )


def _check_supported(problem: Problem, sampler: Sampler, threshold: Threshold) -> None:
    """Refuse what cannot be run with measured rows, or with an unknown sigma."""
    if problem.measured:
        _check_measured(problem, sampler, threshold)
        return
    if problem.rewards.knows_sigma:
        return
    if threshold.name in ("kk21", "mixture") and threshold.file is None:
        raise SettingError(
            f"the threshold {threshold.name!r} is for a known sigma; with an unknown one 'tilt' is "
            "proven."
        )


# Those that have a form for measured limits.
_MEASURING_SAMPLERS = ("top-two", "ctns", "uniform")


def _check_measured(problem: Problem, sampler: Sampler, threshold: Threshold) -> None:
    """Refuse what cannot be explored where limits are measured."""
    if not (sampler.is_ours and sampler.name in _MEASURING_SAMPLERS):
        raise SettingError(
            f"the {sampler.name} sampler does not support measured limits; choose one of "
            f"{listed(_MEASURING_SAMPLERS)}."
        )
    if threshold.name != "tilt" or threshold.file is not None:
        raise SettingError(
            f"the threshold {threshold.name!r} does not support measured limits; use 'tilt'."
        )
    if problem.scenario == EXPLORATION:
        raise SettingError(
            "limits on exploration do not go with measured limits. In the scenario 'anytime' "
            "samples keep measured limits as far as these are known, in 'end-of-time' the answer "
            "does."
        )
    if problem.scenario == "anytime":
        safety(problem)
    if not problem.epsilon:
        raise SettingError(
            "measured limits need epsilon > 0: where one binds, no number of samples tells the "
            "best policy from others that earn a little less."
        )


def _endless(bound: Bound) -> str:
    least = "some" if bound.problem.has_costs else "at least"  # dearer ones may be fewer
    return (
        f"finding the answer takes {least} {bound.samples:,.0f} samples on average, and a run ends "
        f"at {defaults.MAX_STEPS:,}. Give epsilon > 0 (--epsilon), with which a policy that is "
        "nearly as good will do, a budget (--budget), or max_steps (--max-steps) to simulate all "
        "the same."
    )


def _tied(bound: Bound) -> str:
    def written(policy: npt.NDArray[np.float64]) -> str:
        arms = bound.problem.arms
        return " + ".join(f"{x:.4g} {arms[a]}" for a, x in enumerate(policy) if x > 0)

    policies = "\n".join(f"  {written(policy)}" for policy in (bound.policy, *bound.ties))
    return (
        f"the optimum is not unique, so no number of samples finds it. These policies tie:\n"
        f"{policies}\nGive epsilon > 0 (--epsilon), with which one of them is good enough, or "
        "max_steps (--max-steps) to simulate all the same."
    )
