"""Measured limits as if they were known: what the best mix is if all is as guessed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simplexplore.errors import InfeasibleError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.measured import Measured
from simplexplore.problem.messages import policy_in_words
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational

Array = npt.NDArray[np.float64]


def with_known_limits(problem: Problem, means: Array) -> Problem:
    """The problem with its measured limits as constraints, their coefficients as guessed."""
    rows = list(problem.constraints)
    for row, mean in zip(problem.measured, means, strict=True):
        # Shares sum to one: what all arms have in common belongs to the limit.
        level = rational(row.level)
        above = [row.sign * float(rational(x) - level) for x in mean.tolist()]
        if any(above):
            rows.append(Constraint(row.name, np.array(above), upper=0.0))
    rewards = problem.rewards.with_known_variance()
    known = problem.replace(constraints=rows, measured=(), rewards=rewards)
    try:
        Polytope(known)
    except InfeasibleError:
        Polytope(problem.replace(measured=()))  # where that is why, it is said there
        raise _infeasible(problem, means) from None
    return known


def _infeasible(problem: Problem, means: Array) -> InfeasibleError:
    """Say that no mix keeps the measured limits, and what one could do at best."""
    known = Polytope(problem.replace(measured=()))
    words, names = [], []
    for row, mean in zip(problem.measured, means, strict=True):
        vertex = known.optimal_vertex(-row.signed(mean))
        reached = float(mean @ vertex.policy)
        if row.sign * reached > row.bound:
            least = "least" if row.sign > 0 else "most"
            mix = policy_in_words(vertex.policy, problem.arms)
            words.append(f"no mix keeps {_limit(row)}: the {least} is {reached:.6g}, with {mix}")
            names.append(row.name)
    if not words:
        names = [row.name for row in problem.measured]
        words = [f"no mix keeps {' and '.join(map(_limit, problem.measured))} together"]
    return InfeasibleError(
        f"with these means {'; '.join(words)}. Correct the means, or loosen a limit.", names
    )


def _limit(row: Measured) -> str:
    return f"{row.name} {row.limit}"
