"""What a run with measured limits knows: its records, the evidence, and what it would take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.simplices import simplices
from simplexplore.kernels import measured_episode as episode
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.cache import code_of
from simplexplore.kernels.lists import Lists
from simplexplore.kernels.measured_answer import row_distance, row_evidence
from simplexplore.kernels.measured_records import (
    AIM,
    ANSWER,
    INFEASIBLE,
    NOTHING,
    PULLS,
    WARM,
    MeasuredRun,
    MeasuredSetting,
    MeasuredWork,
)
from simplexplore.kernels.measured_search import (
    DISTANCE,
    EVIDENCE,
    EVIDENCE_OF_ROWS,
    ROWS_ALONE,
    search,
)

from .compile import MeasuredProgram
from .evidence import most_lacking
from .measured_arrays import levels, make_run, make_setting, make_work
from .plan import Plan
from .regret import Regret

Array = npt.NDArray[np.float64]
_Found = TypeVar("_Found")

# Evidence that is as good as infinite.
_MOST = 700.0


class MeasuredEvidence:
    """What an engine works on, and what can be said of it.

    Attributes
    ----------
    plan : Plan
    pending : (K,) array
        Pulls in flight by arm (live studies).
    is_enough : bool
        Whether the evidence was enough after the last event folded.
    """

    is_ours = True
    has_moments = True
    bets = None

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.polytope = Polytope(plan.problem)
        self._faces = simplices(self.polytope, len(plan.problem.measured))
        self._setting = make_setting(plan, self._faces)
        self._make_room()

    def _make_room(self) -> None:
        self._run, self._work = make_run(self._setting), make_work(self._setting)
        self._program = MeasuredProgram()
        self._stopwatch = self._program.stopwatch()
        self._blocks: list[Block] | None = None
        self._lists, self._is_listed = Lists(), False
        self._known: dict[str, tuple[tuple[object, ...], Any]] = {}
        self.pending: Array = np.zeros(self._setting.size)
        self.is_enough = False

    def twin(self) -> Self:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(type(self))
        other.plan, other.polytope, other._faces = self.plan, self.polytope, self._faces
        other._setting = self._setting
        other._make_room()
        return other

    @property
    def run(self) -> MeasuredRun:
        """The run's arrays: read them, do not write."""
        return self._run

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self._run.integers[PULLS])

    @property
    def policy(self) -> Array:
        """The recommended policy; NaN where there is none."""
        return self._run.answer if self.has_answer else np.full(self._setting.size, math.nan)

    @property
    def is_warm(self) -> bool:
        """Whether every arm in play has rewards enough to look at answers."""
        return bool(self._run.integers[WARM])

    @property
    def has_answer(self) -> bool:
        """Whether there is a policy to recommend."""
        return bool(self._run.integers[AIM] == ANSWER)

    @property
    def is_infeasible(self) -> bool:
        """Whether it looks as if no policy kept the limits; once stopped, whether that is so."""
        return bool(self._run.integers[AIM] == INFEASIBLE)

    @property
    def handed_out(self) -> Array:
        """Pulls by arm: answered, in flight, and expired."""
        return np.asarray(self._run.n + self.pending + self._run.given_up)

    @property
    def excess_bound(self) -> float | None:
        """Pulls by which samples may exceed known constraints; None if they need not keep them."""
        return 0.0 if self._setting.is_guarded else None

    @property
    def squares(self) -> Array | None:
        """Squared deviations of rewards from their means, where sigma is unknown."""
        return self._run.squares[0, :-1] if self._setting.unknown[0] else None

    def may_play(self, arm: int) -> bool:
        """Whether some policy uses the arm."""
        return arm in self._setting.first_arms

    # ------------------------------------------------------------------ state

    def _kept(self) -> dict[str, npt.NDArray[np.generic]]:
        """Every array that the future depends on, by name; not copies."""
        arrays = {f"run.{name}": array for name, array in self._run._asdict().items()}
        return {**arrays, "pending": self.pending}

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that `restore` needs to go on, bit for bit, in another engine of the same plan."""
        return {name: array.copy() for name, array in self._kept().items()}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on from a `state`; a ValueError says that it is of another plan."""
        kept = self._kept()
        if {name: array.shape for name, array in kept.items()} != {
            name: array.shape for name, array in state.items()
        }:
            raise ValueError("the state does not fit this plan")
        for name, array in kept.items():
            array[...] = state[name]

    @property
    def fingerprint(self) -> str:
        """Changes whenever the kernels do: a state is of use to the same code only."""
        return code_of()

    # ------------------------------------------------------------------ evidence

    def evidence(self) -> tuple[Array, Array]:
        """Logarithms of e-values and the levels that they must reach.

        For each measured row that the answer keeps its limit, then that no competitor is better;
        where no policy seems feasible only that none is.
        """
        return self._remembered("evidence", self._evidence_now)

    def _remembered(self, name: str, make: Callable[[], _Found]) -> _Found:
        """What takes long and is wanted often, as long as nothing has changed."""
        run = self._run
        seen = [run.n, run.mean, run.measured, run.answer, run.integers[AIM : AIM + 1]]
        key = (self.plan.delta, *(array.tobytes() for array in seen))
        if name not in self._known or self._known[name][0] != key:
            self._known[name] = key, make()
        found: _Found = self._known[name][1]
        return found

    def _evidence_now(self) -> tuple[Array, Array]:
        setting, run, work = self._setting, self._run, self._work
        row_level, value_level = levels(self.plan.delta, setting.rows)
        if self.is_infeasible:
            rows, mode = 0, EVIDENCE_OF_ROWS
        else:
            rows, mode = setting.rows, EVIDENCE
        found = np.zeros(rows + 1)
        if run.integers[AIM] != NOTHING:
            given = (run.n, run.answer, mode, -math.inf, math.inf, work.found)
            with np.errstate(all="ignore"):
                found[:rows] = [row_evidence(setting, run, work, i) for i in range(rows)]
                found[rows] = search(setting, run, work, *given)
        # Where no competitor is left there is nothing to doubt.
        return np.clip(found, 0.0, _MOST), np.array([row_level] * rows + [value_level])

    def planned(self) -> tuple[float, float]:
        """Time of what the run works for if the means are as they look, and samples it would take.

        The time is that of the present answer, in units of cost, at an allocation found by the
        game of `ctns`: no less than with the best one, and close to it.
        """
        return self._remembered("planned", self._planned_now)

    def _planned_now(self) -> tuple[float, float]:
        run, setting = self._run, self._setting
        if run.integers[AIM] == NOTHING:
            return math.inf, math.inf
        even = setting._replace(row_need=1.0, value_need=1.0)
        times = []
        for one in (even, setting):
            copy, work = make_run(setting), make_work(setting)
            for array, kept in zip(copy, run, strict=True):
                array[...] = kept
            with np.errstate(all="ignore"):
                episode.solve(one, copy, work)
                far = self._least_distance(one, copy, work)
            spent = float(copy.w @ setting.costs) if one is even else 1.0
            times.append(float(self.pulls * spent / far) if far > 0 else math.inf)
        return times[0], times[1]

    def _least_distance(
        self, setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork
    ) -> float:
        """Of alternatives to what a run works for, over what is needed, as `solve` left it."""
        answered = run.integers[AIM] == ANSWER
        mode = DISTANCE if answered else ROWS_ALONE
        found = search(setting, run, work, work.n, run.answer, mode, -1.0, math.inf, run.closest)
        far = [found / setting.value_need]
        if answered:
            far += [
                row_distance(setting, run, work.n, run.answer, i) / setting.row_need
                for i in range(setting.rows)
            ]
        return min(far)

    def directions(self) -> Array:
        """From the answer to the competitor that is hardest to rule out (1, K)."""
        return (self._run.closest - self._run.answer)[None, :]

    def weakest(self) -> tuple[float, float]:
        """How much evidence there is of what lacks most, and how much is needed."""
        return most_lacking(*self.evidence())

    def surplus(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough."""
        found, needed = self.weakest()
        return found - needed

    def worst_use(self, row: int) -> float | None:
        """The most that all pulls handed out can use of a limit on average, if they must keep it.

        As the user measures it: with a limit from below it is the least.
        """
        pulls = self.handed_out
        if not (self._setting.is_guarded and pulls.any()):
            return None
        used = pulls > 0
        mean = float(pulls[used] @ self._run.upper[row, used] / pulls.sum())
        return self.plan.problem.measured[row].sign * mean

    def regret(self) -> Regret:
        """How much more another policy can earn: nothing is said here beside epsilon."""
        return Regret(math.inf)
