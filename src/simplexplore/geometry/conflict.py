"""Constraints that cannot hold together, none of which can be spared."""

from __future__ import annotations

from collections.abc import Sequence

from simplexplore.errors import InfeasibleError, Location
from simplexplore.problem.constraint import format_constraint
from simplexplore.problem.problem import EXPLORATION, Problem

from .farkas import ConstraintSides
from .standard_form import StandardForm


def irreducible_conflict(problem: Problem) -> list[int]:
    """Constraints that cannot hold together; without any one of them the others can.

    What a proof needs, with each one dropped that the others conflict without.
    """
    sides = ConstraintSides(problem)

    def conflict(chosen: Sequence[int]) -> Sequence[int]:
        found = sides.proof(chosen)
        if found is None:  # floats are in doubt: fractions decide
            rest = problem.replace(constraints=[problem.constraints[k] for k in chosen])
            found = list(chosen) if StandardForm(rest).start is None else []
        return found

    kept = conflict(range(len(problem.constraints)))
    for k in list(kept):
        if k in kept and (fewer := conflict([other for other in kept if other != k])):
            kept = fewer
    return sorted(kept)


def conflict_of(problem: Problem, table: str) -> InfeasibleError:
    """Name constraints that cannot hold together."""
    conflict = irreducible_conflict(problem)
    lines = "\n".join(
        f"  {problem.names[k]}: {format_constraint(problem.constraints[k], problem.arms)}"
        for k in conflict
    )
    if len(conflict) == 1:
        these, advice = "this one cannot hold", "Relax it."
    else:
        these, advice = f"these {len(conflict)} cannot hold together", "Relax one of them."
    what = "no policy satisfies all constraints"
    if table == EXPLORATION:
        what = f"no allocation of samples satisfies all limits in [{EXPLORATION}]"
    return InfeasibleError(
        f"{what}. With shares that are at least 0 and sum to 1, {these}:\n{lines}\n{advice}",
        [problem.names[k] for k in conflict],
        place=Location(field=f"{table}.{problem.names[conflict[0]]}"),
    )
