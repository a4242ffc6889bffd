"""Constraints that cannot hold together, as few as can be found."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from simplexplore.errors import InfeasibleError, Place
from simplexplore.problem.constraint import format_constraint
from simplexplore.problem.problem import EXPLORATION, Problem

from .standard_form import StandardForm

# A conflict smaller than an irreducible one is looked for among this many subsets, and fewer
# where each takes longer: times arms and constraints, no more than this. Among more than a few
# constraints it begins with limits that conflict by themselves.
MAX_CONFLICT_SUBSETS = 3000
MAX_CONFLICT_WORK = 200_000
FEW_CONSTRAINTS = 50


def smallest_conflict(problem: Problem) -> list[int]:
    """Constraints that cannot hold together, as few as can be found.

    Where all are limits on single arms, the fewest are known. Otherwise deleting one after the
    other leaves an irreducible conflict; then all smaller subsets are tried, as many as a stated
    budget allows.
    """
    form = StandardForm(problem)
    if len(form.general) == 1:  # the total is the only row
        return form.conflicting_limits()

    def feasible(chosen: Sequence[int]) -> bool:
        subset = [problem.constraints[k] for k in chosen]
        return StandardForm(problem.replace(constraints=subset)).start is not None

    def delete(some: Sequence[int], conflict: list[int]) -> list[int]:
        """The conflict without those of some that it does not need, from the first on."""
        rest = [k for k in conflict if k not in some]
        if not feasible(rest):
            return rest
        if len(some) == 1:
            return conflict
        half = len(some) // 2
        return delete(some[half:], delete(some[:half], conflict))

    everything = range(len(problem.constraints))
    conflict = []
    if len(everything) > FEW_CONSTRAINTS:
        conflict = form.conflicting_limits()
    conflict = conflict or delete(everything, list(everything))
    smaller = itertools.chain.from_iterable(
        itertools.combinations(everything, count) for count in range(1, len(conflict))
    )
    tries = min(MAX_CONFLICT_SUBSETS, MAX_CONFLICT_WORK // (problem.size + len(everything)))
    for subset in itertools.islice(smaller, tries):
        if not feasible(subset):
            return list(subset)
    return conflict


def conflict_of(problem: Problem, table: str) -> InfeasibleError:
    """Name constraints that cannot hold together."""
    conflict = smallest_conflict(problem)
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
        place=Place(field=f"{table}.{problem.names[conflict[0]]}"),
    )
