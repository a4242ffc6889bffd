"""`lower_bound`: of any problem, measured limits included.

Where limits are measured it makes a plan in place of a bound: what a run would work for at the
guessed means (measured_plan.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from simplexplore.bound import bound as of_known_limits
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.bound import in_samples
from simplexplore.bound.measured_result import Deciding, MeasuredPlan, PlannedScenario
from simplexplore.bound.result import Bound, ScenarioBound, UnidentifiableArm
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.measured import measured_means as means_of_rows
from simplexplore.problem.problem import Problem, check_problem

from .measured_plan import Planner, Solved
from .plan import prepare
from .workspace import Workspace

Array = npt.NDArray[np.float64]

# Alternatives that are farther than the closest by more than this part do not decide; competitors
# that differ by less are one.
CLOSE = 0.01


def lower_bound(
    problem: Problem,
    means: npt.ArrayLike | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    measured_means: Mapping[str, npt.ArrayLike] | None = None,
) -> Bound:
    """Optimal policy, characteristic time and the least number of samples.

    Parameters
    ----------
    problem : Problem
    means : sequence of float, optional
        The true (or guessed) mean of each arm; default: the problem's own guess.
    delta : float, optional
        Error probability; default: the problem's.
    epsilon : float, optional
        How much less than the best is good enough; default: the problem's. With epsilon > 0
        the scenarios are `RelaxedBound`, and all vertices are compared, not only neighbours.
    measured_means : mapping, optional
        From names of measured limits to the mean measurement of each arm; default: their own
        guesses. With measured limits a `MeasuredPlan` comes back: a plan, without a lower bound.

    Returns
    -------
    Bound
        With a certificate: `relative_gap` bounds the error of its characteristic time.

    Raises
    ------
    MeansError
        If there are no means, or they do not fit the problem.
    InfeasibleError
        If no policy satisfies all constraints; the message names those that conflict.
    SettingError
        If limits are measured and epsilon is 0.
    NotConvergedError
        If no certificate was found: some numbers are too far apart for floats.

    Examples
    --------
    >>> from simplexplore import Problem
    >>> bound = lower_bound(Problem(["a", "b"]), [1.0, 0.0], delta=0.1)
    >>> bound.policy.tolist(), round(bound.characteristic_time, 6)
    ([1.0, 0.0], 8.0)
    """
    base = of_known_limits.lower_bound(problem, means, delta, epsilon, measured_means)
    problem = check_problem(problem)
    if not problem.measured:
        return base
    measured = means_of_rows(problem.measured, problem.arms, measured_means)
    rows = zip(problem.measured, measured.tolist(), strict=True)
    guessed = tuple(replace(row, means=tuple(means)) for row, means in rows)
    epsilon = problem.epsilon if epsilon is None else epsilon
    return _planned(problem.replace(epsilon=epsilon, measured=guessed), base, measured)


def _planned(problem: Problem, base: Bound, measured: Array) -> MeasuredPlan:
    """A plan, beside the bound that holds if the limits are known."""
    prepare(problem, "top-two", "tilt")  # refuses what runs and studies refuse
    # Whether samples keep limits matters for shares of samples alone.
    free = problem.replace(scenario="end-of-time", exploration=(), stop_when=None, delta=base.delta)
    space = Workspace(prepare(free, "top-two", "tilt"))
    space.run.mean[0] = problem.rewards.to_unit(base.means)
    for i, row in enumerate(problem.measured):
        space.run.mean[1 + i] = row.signed(measured[i])
    known_constraints = Polytope(problem.replace(measured=()))
    planner = Planner(space, base.policy)
    scenarios: dict[str, ScenarioBound] = {}
    answers: list[Array] = []
    # Where an answer is quicker although samples keep limits, it is so without them.
    for name in (*problem.scenarios, problem.scenarios[0]):
        times = [one.characteristic_time for one in scenarios.values()]
        is_least = name in scenarios and times[0] <= min(times) * (1 + CLOSE)
        if name in base.failed or is_least:
            continue
        # Where samples keep the constraints, they keep the measured limits, too.
        polytope = base._polytope if name == "anytime" else known_constraints
        own = AllocationSet.of(polytope, name).as_rows()
        missed = np.flatnonzero(space.allowed.useful_arms & ~own.arms)
        solved = None if len(missed) else planner.best(own.in_spend(), answers)
        if solved is not None:
            answers.append(solved.answer)
        found = _scenario(
            problem,
            planner,
            solved or planner.unsolved(own.max_slack),
            known=base.scenarios[name].characteristic_time,
            missed=tuple(UnidentifiableArm(problem.arms[a], ()) for a in missed),
        )
        scenarios[name] = in_samples(found, own) if solved and problem.has_costs else found
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    fields |= {"problem": problem, "_corollaries": dict, "scenarios": scenarios}
    return MeasuredPlan(**fields, measured_means=measured)


def _scenario(
    problem: Problem,
    planner: Planner,
    solved: Solved,
    known: float,
    missed: tuple[UnidentifiableArm, ...],
) -> PlannedScenario:
    deciding: list[Deciding] = []
    time, gap, far = math.inf, 0.0, np.zeros(0)
    if solved.distance > 0:
        time, far = 1.0 / solved.distance, solved.known.distances(solved.answer, solved.spend)
        gap = solved.distance / solved.lower - 1.0 if solved.lower > 0 else math.inf
    for i in np.argsort(np.round(far * time, 6), kind="stable"):  # equal ones in their order
        rows = problem.measured
        rival = None if i < len(rows) else solved.known.competitors[i - len(rows)]
        others = [one.rival for one in deciding if one.rival is not None]
        is_new = rival is None or all(np.abs(rival - other).max() > CLOSE for other in others)
        if is_new and far[i] <= (1 + CLOSE) * far.min():
            deciding.append(Deciding(rows[i].name if rival is None else None, rival))
    return PlannedScenario(
        characteristic_time=time,
        allocation=solved.spend,
        lower_bound=math.nan,
        relative_gap=gap,
        closest_alternative=None,
        binding_edges=(),
        unique=True,
        unidentifiable=missed,
        answer=solved.answer,
        known_limits_time=known,
        deciding=tuple(deciding),
        _information=partial(planner.distance, solved.answer),
    )
