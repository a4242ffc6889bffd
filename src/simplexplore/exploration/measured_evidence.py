"""What a run with measured limits knows; and of simulated ones, how they ended by the truth."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from simplexplore.kernels import records
from simplexplore.kernels.measured_answer import best_policy, row_evidence, set_values
from simplexplore.kernels.measured_search import EVIDENCE, EVIDENCE_OF_ROWS, search

from .arrays import levels
from .evidence import Regret, most_lacking
from .workspace import Workspace

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# How a simulated run ended, as a sum: right; an answer that exceeds a limit by more than its
# tolerance; one that earns too little; nothing found; and whether it said that no policy is
# feasible, rightly or not; and whether samples that should keep the limits ever did not.
RIGHT, VIOLATES, SUBOPTIMAL, UNFINISHED, SAID_INFEASIBLE, WRONGLY, EXCEEDED = 0, 1, 2, 4, 8, 16, 32

# Ends of runs that are right.
RIGHT_ENDS = {RIGHT, SAID_INFEASIBLE, RIGHT + EXCEEDED, SAID_INFEASIBLE + EXCEEDED}

# What rounding may add to the use of a limit, or take from what is earned.
_ROUNDING = 1e-9

# Evidence that is as good as infinite.
_MAX_EVIDENCE = 700.0


class MeasuredEvidence:
    """What can be said of a run with measured limits; see `Evidence`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: tuple[tuple[object, ...], tuple[Array, Array]] | None = None

    def values(self) -> tuple[Array, Array]:
        """Logarithms of e-values and the levels that they must reach.

        For each measured row that the answer keeps its limit, then that no competitor is better;
        where no policy seems feasible only that none is. They take long, and are wanted often.
        """
        run = self._workspace.run
        seen = [run.n, run.mean, run.answer, run.integers[records.TARGET : records.TARGET + 1]]
        key = (self._workspace.plan.delta, *(array.tobytes() for array in seen))
        if self._known is None or self._known[0] != key:
            self._known = key, self._values()
        return self._known[1]

    def _values(self) -> tuple[Array, Array]:
        config, _, run, scratch = self._workspace.records
        limits, work = config.measured, scratch.measured
        row_level, value_level = levels(self._workspace.plan.delta, limits.rows)
        if run.integers[records.TARGET] == records.INFEASIBLE:
            rows, mode = 0, EVIDENCE_OF_ROWS
        else:
            rows, mode = limits.rows, EVIDENCE
        found = np.zeros(rows + 1)
        if run.integers[records.TARGET] != records.NONE:
            given = (run.n, run.answer, mode, -math.inf, math.inf, work.found)
            with np.errstate(all="ignore"):
                found[:rows] = [row_evidence(limits, run, work, i) for i in range(rows)]
                found[rows] = search(limits, run, work, *given)
        # Where no competitor is left there is nothing to doubt.
        return np.clip(found, 0.0, _MAX_EVIDENCE), np.array([row_level] * rows + [value_level])

    def directions(self) -> Array:
        """From the answer to the competitor that is hardest to rule out (1, K)."""
        run = self._workspace.run
        return (run.closest - run.answer)[None, :]

    def neighbours(self) -> Array:
        """That competitor (1, K)."""
        return np.asarray(self._workspace.run.answer + self.directions())

    def p_values(self, found: Array, _p: float) -> tuple[Array, None]:
        """p-values of "the neighbour is the best policy": the level is log(2 / delta)."""
        return 2.0 * np.exp(-found), None

    def weakest(self) -> tuple[float, float]:
        """How much evidence there is of what lacks most, and how much is needed."""
        return most_lacking(*self.values())

    def confidence_margin(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough."""
        found, needed = self.weakest()
        return found - needed

    def worst_use(self, row: int) -> float | None:
        """The most that all pulls handed out can use of a limit on average, if they must keep it.

        As the user measures it: with a limit from below it is the least.
        """
        space = self._workspace
        pulls = space.run.n + space.pending + space.run.expired
        if not (space.config.measured.enforces_limits and pulls.any()):
            return None
        used = pulls > 0
        mean = float(pulls[used] @ space.run.upper[row, used] / pulls.sum())
        return space.plan.problem.measured[row].sign * mean

    def regret(self) -> Regret:
        """How much more another policy can earn: nothing is said here beside epsilon."""
        return Regret(math.inf)


def outcomes(
    config: records.RunConfig,
    run: records.RunState,
    scratch: records.Scratch,
    batch: records.SimulationBatch,
) -> Indices:
    """How each run of a batch ended: a sum of the codes above.

    The records are written to: they are of no other use.
    """
    limits, work = config.measured, scratch.measured
    run.mean[...] = batch.means
    work.bounds[0] = limits.limit
    set_values(limits, run, work)
    best = float(best_policy(limits, work, work.policy))  # -inf if no policy is feasible
    means, measured = batch.means[0], batch.means[1:]
    used = batch.answers @ measured.T
    size = _ROUNDING * (1 + np.abs(measured).max(initial=0.0))
    exceeds = (used > limits.limit + limits.tolerance + size).any(axis=1)
    least = best - limits.epsilon - _ROUNDING * (1 + np.abs(means).max())
    worse = batch.answers @ means < least
    answered, refused = batch.vertices == records.ANSWER, batch.vertices == records.INFEASIBLE
    return np.asarray(
        VIOLATES * (answered & exceeds)
        + SUBOPTIMAL * (answered & worse)
        + UNFINISHED * ~(answered | refused)
        + SAID_INFEASIBLE * refused
        + WRONGLY * (refused & (best > -math.inf))
        + EXCEEDED * batch.exceeded,
        dtype=np.int64,
    )
