"""Exploration of a problem with measured limits: what `Engine` is for problems without.

An answer need not be a vertex, and a run may also end with the finding that no policy keeps the
limits (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.simplices import simplices
from simplexplore.kernels import measured_episode as episode
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.cache import code_of
from simplexplore.kernels.measured_answer import (
    best_policy,
    row_distance,
    row_evidence,
    set_values,
)
from simplexplore.kernels.measured_records import (
    AIM,
    ANSWER,
    ARM,
    INFEASIBLE,
    LOOK,
    NOTHING,
    PULLS,
    WARM,
    MeasuredJob,
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
from simplexplore.kernels.records import (
    ASKED,
    ELSEWHERE,
    EXPIRED,
    EXTENDED,
    LATE,
    STOPPED,
    TOLD,
)
from simplexplore.problem.families import Bounded, Gaussian

from .compile import MeasuredProgram, Stopwatch, is_switched_off
from .measured_arrays import levels, make_run, make_setting, make_work
from .plan import Plan
from .regret import Regret

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
_Found = TypeVar("_Found")

# How a simulated run ended, as a sum: right; an answer that exceeds a limit by more than its
# tolerance; one that earns too little; nothing found; and whether it said that no policy is
# feasible, rightly or not; and whether samples that should keep the limits ever did not.
RIGHT, VIOLATES, SUBOPTIMAL, UNFINISHED, SAID_INFEASIBLE, WRONGLY, EXCEEDED = 0, 1, 2, 4, 8, 16, 32

# Evidence that is as good as infinite.
_MOST = 700.0

# What rounding may add to the use of a limit, or take from what is earned.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Truth:
    """What simulated answers are measured by.

    Attributes
    ----------
    means : (K,) array
        In unit coordinates.
    measured : (rows, K) array
        As of limits from above.
    value : float
        What the best feasible policy earns; -inf if none is feasible.
    """

    means: Array
    measured: Array
    value: float


class MeasuredEngine:
    """Exploration of one problem with measured limits.

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
        self._program, self._stopwatch = MeasuredProgram(), Stopwatch()
        self._blocks: list[Block] | None = None
        self._known: dict[str, tuple[tuple[object, ...], Any]] = {}
        self.pending: Array = np.zeros(self._setting.size)
        self.is_enough = False

    def twin(self) -> MeasuredEngine:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(MeasuredEngine)
        other.plan, other.polytope, other._faces = self.plan, self.polytope, self._faces
        other._setting = self._setting
        other._make_room()
        return other

    # ------------------------------------------------------------------ one run, step by step

    @property
    def run(self) -> MeasuredRun:
        """The run's arrays: read them, do not write."""
        return self._run

    def forget(self, words: npt.NDArray[np.uint64]) -> None:
        """Start over with the random streams (2, 4) of a run; no arm is chosen yet."""
        episode.begin(self._setting, self._run)
        self._run.rewards[:], self._run.choices[:] = words
        self.pending[:] = 0.0

    def begin(self, words: npt.NDArray[np.uint64]) -> int | None:
        """Start a run with its random streams (2, 4); returns the first arm."""
        self.forget(words)
        return self._chosen()

    def observe(self, arm: int, reward: float, measured: Sequence[float] = ()) -> None:
        """Take in a reward and its measurements, by row, in the user's coordinates."""
        unit = float(self.plan.problem.rewards.to_unit(reward))
        episode.observe(self._setting, self._run, arm, unit)
        for i, (row, value) in enumerate(zip(self.plan.problem.measured, measured, strict=True)):
            episode.observe_row(self._setting, self._run, arm, i, row.sign * float(value))

    def play(self, arm: int, job: MeasuredJob) -> int | None:
        """Draw reward and measurements as `simulate` does, take them in, and `advance`."""
        self._run.integers[ARM] = arm
        with np.errstate(all="ignore"):
            episode.play(self._setting, self._run, job)
        return self.advance()

    def played(
        self, means: Array, noise: Array, words: npt.NDArray[np.uint64], max_steps: int
    ) -> Iterator[bool]:
        """A run as `simulate` makes it, pull by pull: whether it has stopped."""
        job = self.job(means, noise, words[None], max_steps)
        arm = self.begin(words)
        while arm is not None and self.pulls < max_steps:
            arm = self.play(arm, job)
            yield arm is None

    def advance(self) -> int | None:
        """Look at the answer, then the next arm, or None when the evidence is enough."""
        status = self._advanced()
        return None if status == STOPPED else int(self._run.integers[ARM])

    def _advanced(self, *, judging: bool = True, choosing: bool = True) -> int:
        """Call the kernel as it is, or its machine code once that pays."""
        if self._stopwatch.is_long and not is_switched_off():
            unit = self._program.unit("advance")
            if unit.is_ready:
                if self._blocks is None:
                    self._blocks = self._as_blocks(self._setting, self._run, self._work)
                blocks = (block.address for block in self._blocks)
                return int(unit.entry(*blocks, judging, choosing))
            if self._stopwatch.is_up:
                self._program.compile_behind()
        with self._stopwatch.running(), np.errstate(all="ignore"):
            return episode.advance(self._setting, self._run, self._work, judging, choosing)

    def _as_blocks(self, *records: tuple[Any, ...]) -> list[Block]:
        return [Block(record, self._program.address) for record in records]

    def _chosen(self) -> int:
        self._advanced(judging=False)
        return int(self._run.integers[ARM])

    @property
    def excess_bound(self) -> float | None:
        """Pulls by which samples may exceed known constraints; None if they need not keep them."""
        return 0.0 if self._setting.is_guarded else None

    @property
    def squares(self) -> Array | None:
        """Squared deviations of rewards from their means, where sigma is unknown."""
        return self._run.squares[0, :-1] if self._setting.unknown[0] else None

    @property
    def handed_out(self) -> Array:
        """Pulls by arm: answered, in flight, and expired."""
        return np.asarray(self._run.n + self.pending + self._run.given_up)

    def may_play(self, arm: int) -> bool:
        """Whether some policy uses the arm."""
        return arm in self._setting.first_arms

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
    def policy(self) -> Array:
        """The recommended policy; NaN where there is none."""
        return self._run.answer if self.has_answer else np.full(self._setting.size, math.nan)

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self._run.integers[PULLS])

    # ------------------------------------------------------------------ live studies

    def fold(
        self,
        kinds: Indices,
        arms: Indices,
        rewards: Array,
        measured: Array | None = None,
        *,
        until_stopped: bool = False,
    ) -> int:
        """Take in events of a live study; see `Engine.fold` and kernels/events.py.

        `measured` holds the measurements (events, rows), in the user's coordinates.
        """
        if measured is None:
            measured = np.zeros((len(kinds), self._setting.rows))
        status = 0
        for i, kind in enumerate(kinds.tolist()):
            arm = int(arms[i])
            status = 0
            if kind == EXPIRED:
                self._weigh(-1.0)
                self.pending[arm] -= 1.0
                self._run.given_up[arm] += 1.0
            elif kind in (TOLD, LATE, ELSEWHERE, EXTENDED):
                if kind == TOLD:
                    self.pending[arm] -= 1.0
                elif kind == LATE:
                    self._weigh(1.0)
                    self._run.given_up[arm] -= 1.0
                if kind == EXTENDED:
                    self._run.integers[LOOK] = 0
                else:
                    self.observe(arm, float(rewards[i]), measured[i])
                status = self._advanced(choosing=False)
            if kind in (ASKED, ELSEWHERE):
                # A pull made elsewhere takes a turn too, though nobody follows the choice.
                chosen = self._chosen_in_flight()
                if kind == ASKED:
                    if arm < 0:
                        arm = arms[i] = chosen
                    self.pending[arm] += 1.0
            if status == STOPPED and until_stopped:
                self.is_enough = True
                return i + 1
        self.is_enough = status == STOPPED
        return len(kinds)

    def _chosen_in_flight(self) -> int:
        """Choose at the counts with pulls in flight; the observed counts come back unchanged."""
        away = int(self.pending.sum())
        if not away:
            return self._chosen()
        observed = self._run.n.copy()
        self._run.n[:] += self.pending
        self._run.integers[PULLS] += away
        arm = self._chosen()
        self._run.n[:] = observed
        self._run.integers[PULLS] -= away
        return arm

    def _weigh(self, change: float) -> None:
        """Let a pull that expires, or comes back, take its share of the target along."""
        mass = self._run.target.sum()
        if mass + change > 0:
            self._run.target[:] *= (mass + change) / mass if mass > 0 else 0.0

    def foresee(self, events: int) -> None:
        """Get machine code ready if so many events are to come."""
        self._stopwatch.foresee(events)

    def tighten(self, delta: float) -> None:
        """Go on with another delta: levels change, evidence and allocation do not."""
        self.plan = replace(self.plan, delta=delta)
        self._setting = make_setting(self.plan, self._faces)
        self._work, self._blocks = make_work(self._setting), None
        self._run.integers[LOOK] = 0

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

    def surplus(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough."""
        found, needed = self.evidence()
        return float((found - needed).min())

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

    # ------------------------------------------------------------------ many runs

    def compile(self) -> None:
        """Compile what simulated runs need, if it is not there."""
        if not is_switched_off():
            self._program.compile("advance", "simulate")

    def simulate(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> tuple[Indices, Indices, Array]:
        """Complete runs: pulls (negative if capped), how each ended, counts."""
        job = self.job(means, noise, seeds, max_steps)
        records = (self._setting, self._run, self._work, job)
        if is_switched_off():
            with np.errstate(all="ignore"):
                episode.simulate_measured(*records)
        else:
            self.compile()
            blocks = self._as_blocks(*records)
            self._program.unit("simulate").entry(*(block.address for block in blocks))
        return job.pulls, self.outcomes(means, job), job.counts

    def job(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> MeasuredJob:
        """What simulated runs need, and room for their results."""
        count, problem = len(seeds), self.plan.problem
        truth = self.truth(means)
        rows = problem.measured
        ends = np.zeros((1 + len(rows), 2))
        if not isinstance(problem.rewards, Gaussian):
            ends[0] = 0.0, 1.0
        spread = np.array([row.deviations(problem.size) for row in rows])
        for i, row in enumerate(rows):
            if isinstance(row.noise, Bounded):
                ends[1 + i] = np.sort(row.signed([row.noise.low, row.noise.high]))
                spread[i] = 1.0  # all at the two ends
        return MeasuredJob(
            means=truth.means,
            noise=np.array(noise, dtype=float),
            measured=truth.measured,
            spread=spread,
            ends=ends,
            cap=max_steps,
            seeds=np.ascontiguousarray(seeds),
            pulls=np.zeros(count, dtype=np.int64),
            aims=np.zeros(count, dtype=np.int64),
            exceeded=np.zeros(count, dtype=np.int64),
            answers=np.zeros((count, problem.size)),
            counts=np.zeros((count, problem.size)),
        )

    def truth(self, means: Array) -> Truth:
        """What is best at true means; those of measurements are the problem's own."""
        problem, setting, work = self.plan.problem, self._setting, make_work(self._setting)
        run = make_run(setting)
        run.mean[:] = problem.rewards.to_unit(means)
        known = problem.measured_means()
        for i, row in enumerate(problem.measured):
            run.measured[i] = row.signed(known[i])
        work.bounds[0] = setting.limit
        set_values(setting, run, work)
        return Truth(run.mean, run.measured, best_policy(setting, work, work.policy))

    def outcomes(self, means: Array, job: MeasuredJob) -> Indices:
        """How each run of a job ended: a sum of the codes above."""
        truth, setting = self.truth(means), self._setting
        is_feasible = truth.value > -math.inf
        used = job.answers @ truth.measured.T
        size = _ROUNDING * (1 + np.abs(truth.measured).max(initial=0.0))
        exceeds = (used > setting.limit + setting.tolerance + size).any(axis=1)
        least = truth.value - setting.epsilon - _ROUNDING * (1 + np.abs(truth.means).max())
        worse = job.answers @ truth.means < least
        answered, refused = job.aims == ANSWER, job.aims == INFEASIBLE
        return np.asarray(
            VIOLATES * (answered & exceeds)
            + SUBOPTIMAL * (answered & worse)
            + UNFINISHED * ~(answered | refused)
            + SAID_INFEASIBLE * refused
            + WRONGLY * (refused & is_feasible)
            + EXCEEDED * job.exceeded,
            dtype=np.int64,
        )

    def right_answers(self, means: Array) -> set[int]:
        """Ends of runs that are right."""
        return {RIGHT, SAID_INFEASIBLE, RIGHT + EXCEEDED, SAID_INFEASIBLE + EXCEEDED}
