"""What defines an exploration, checked once: everything that explores starts from a `Plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from simplexplore import defaults
from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.errors import InfeasibleError, SettingError
from simplexplore.problem.problem import EXPLORATION, Problem, check_problem
from simplexplore.samplers import TRACKINGS, Sampler, find_sampler

from .limits import safety
from .stopping import Threshold, find_threshold


@dataclass(frozen=True)
class Plan:
    """What defines an exploration, apart from the random stream."""

    problem: Problem
    sampler: Sampler
    threshold: Threshold
    delta: float
    tracking: str | None = None
    allocation: tuple[float, ...] | None = None  # for samplers that must be given one
    bound: Bound | None = field(default=None, compare=False, repr=False)  # where means are known
    means: tuple[float, ...] | None = None  # true ones, of simulations

    def __post_init__(self) -> None:
        _check_supported(self.problem, self.sampler, self.threshold)
        if self.tracking is not None and self.tracking not in [*TRACKINGS]:
            raise SettingError(
                f"there is no tracking {self.tracking!r}. Known: {', '.join(TRACKINGS)}."
            )
        if self.problem.measured and self.tracking is not None:
            raise SettingError("tracking cannot be chosen where limits are measured; leave it out.")
        if self.problem.question and (self.sampler.pairs or self.sampler.policies):
            raise SettingError(
                f"the {self.sampler.name} sampler is for the best mix; choose another one for a "
                "question besides."
            )
        if self.sampler.needs_truth and self.allocation is None:
            raise SettingError(
                f"the {self.sampler.name} sampler must be given the optimal allocation: it "
                "exists in simulations only, where the means are known."
            )
        if self.problem.regret_goal and self.threshold.name != "tilt":
            raise SettingError(
                f"stop_when goes with the threshold 'tilt', which bounds the regret; "
                f"{self.threshold.name!r} does not."
            )

    def why_unused(self, arm: str) -> str:
        """Why no sample of an arm is of use, where none is."""
        question = self.problem.question
        if question is not None and arm == question.arm:
            return f"the mean of arm {arm!r} is known"
        return f"no feasible policy uses arm {arm!r}"

    @property
    def scenario(self) -> str:
        """Which limits samples keep."""
        return self.problem.scenario

    @property
    def delta_of_rule(self) -> float:
        """Delta for each rule that may end it: that the policy is the best, or good enough."""
        return self.delta / 2 if self.problem.regret_goal else self.delta

    @property
    def has_e_values(self) -> bool:
        """Whether confidence and regret can be told at every moment."""
        return self.threshold.function == "tilt"

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
    tracking: str | None = None,
    **changes: object,
) -> Plan:
    """A plan to explore a problem whose means are unknown.

    `changes` are fields of the problem (delta, epsilon, stop_when, scenario), its own where None.
    """
    problem = _changed(problem, changes)
    return Plan(
        problem=problem,
        sampler=find_sampler(sampler),
        threshold=find_threshold(threshold),
        delta=problem.delta,
        tracking=tracking,
    )


def prepare_simulation(
    problem: Problem,
    means: npt.ArrayLike | None,
    sampler: str,
    threshold: str,
    *,
    tracking: str | None = None,
    is_capped: bool = False,
    **changes: object,
) -> Plan:
    """A plan for an instance whose means are known, with its bound.

    A tied optimum, or one that takes longer than runs may, is refused unless `is_capped`: the
    user has said when to end.
    """
    chosen, rule = find_sampler(sampler), find_threshold(threshold)
    problem = _changed(problem, changes)
    _check_supported(problem, chosen, rule)  # before the bound, which takes longer
    given = problem.means if means is None else problem.check_means(means)
    true = None if given is None else tuple(given.tolist())
    bound = bound_if_feasible(problem, true)
    if bound and not (problem.measured or problem.stop_when or is_capped):
        if bound.ties and not problem.epsilon:
            raise SettingError(_tied(bound))
        if defaults.MAX_STEPS < bound.samples < math.inf and rule.file is None:
            raise SettingError(_endless(bound))
    return Plan(
        problem=problem,
        sampler=chosen,
        threshold=rule,
        delta=bound.delta if bound else problem.delta,
        tracking=tracking,
        allocation=tuple(bound.allocation.tolist()) if bound and chosen.needs_truth else None,
        bound=bound,
        means=true,
    )


@lru_cache(maxsize=2)  # samplers that are compared share their instance
def bound_if_feasible(
    problem: Problem, means: tuple[float, ...] | None, delta: float | None = None
) -> Bound | None:
    """The bound of an instance; None if no policy keeps its measured limits."""
    try:
        return lower_bound(problem, means, delta)
    except InfeasibleError:
        if not problem.measured:
            raise
        return None


def _changed(problem: Problem, changes: Mapping[str, object]) -> Problem:
    given = {name: value for name, value in changes.items() if value is not None}
    return check_problem(problem).replace(**given)


def _check_supported(problem: Problem, sampler: Sampler, threshold: Threshold) -> None:
    """Refuse what cannot be run with measured rows, or with an unknown sigma."""
    if problem.measured:
        _check_measured(problem, sampler, threshold)
        return
    is_for_known = threshold.file is None and threshold.name in ("kk21", "mixture")
    if is_for_known and not problem.rewards.knows_sigma:
        raise SettingError(
            f"the threshold {threshold.name!r} is for a known sigma; with an unknown one 'tilt' is "
            "proven."
        )


def _check_measured(problem: Problem, sampler: Sampler, threshold: Threshold) -> None:
    """Refuse what cannot be explored where limits are measured."""
    if sampler.allocate_measured is None:
        raise SettingError(
            f"the {sampler.name} sampler does not support measured limits; choose top-two, ctns or "
            "uniform, or a file that defines 'allocate_measured'."
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
    if bound.answer:
        return (
            f"the means lie on the border between the answer {bound.answer!r} and another one, so "
            "no number of samples finds it. Give max_steps (--max-steps) to simulate all the same."
        )

    def written(policy: npt.NDArray[np.float64]) -> str:
        arms = bound.problem.arms
        return " + ".join(f"{x:.4g} {arms[a]}" for a, x in enumerate(policy) if x > 0)

    policies = "\n".join(f"  {written(policy)}" for policy in (bound.policy, *bound.ties))
    return (
        f"the optimum is not unique, so no number of samples finds it. These policies tie:\n"
        f"{policies}\nGive epsilon > 0 (--epsilon), with which one of them is good enough, or "
        "max_steps (--max-steps) to simulate all the same."
    )
