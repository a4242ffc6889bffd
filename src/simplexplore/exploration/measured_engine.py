"""Exploration of a problem with measured limits: what `Engine` is for problems without.

An answer need not be a vertex, and a run may also end with the finding that no policy keeps the
limits (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.kernels import measured_episode as episode
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.lists import MANY
from simplexplore.kernels.measured_answer import best_policy, set_values
from simplexplore.kernels.measured_records import ANSWER, ARM, INFEASIBLE, LOOK, PULLS, MeasuredJob
from simplexplore.kernels.records import (
    ASKED,
    ELSEWHERE,
    EXPIRED,
    EXTENDED,
    GO_ON,
    LATE,
    STOPPED,
    TOLD,
)
from simplexplore.problem.families import Bounded, Gaussian

from .compile import PIECE, is_switched_off
from .measured_arrays import make_run, make_setting, make_work
from .measured_evidence import MeasuredEvidence

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# How a simulated run ended, as a sum: right; an answer that exceeds a limit by more than its
# tolerance; one that earns too little; nothing found; and whether it said that no policy is
# feasible, rightly or not; and whether samples that should keep the limits ever did not.
RIGHT, VIOLATES, SUBOPTIMAL, UNFINISHED, SAID_INFEASIBLE, WRONGLY, EXCEEDED = 0, 1, 2, 4, 8, 16, 32

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


class MeasuredEngine(MeasuredEvidence):
    """Exploration of one problem with measured limits; see `MeasuredEvidence` for attributes."""

    # ------------------------------------------------------------------ one run, step by step

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
        problem = self.plan.problem
        signs = (row.sign for row in problem.measured)
        signed = [sign * float(value) for sign, value in zip(signs, measured, strict=True)]
        self._observe(arm, float(problem.rewards.to_unit(reward)), signed)

    def _observe(self, arm: int, reward: float, measured: Sequence[float]) -> None:
        """Take them in as kernels see them: in unit coordinates, and as of limits from above."""
        episode.observe(self._setting, self._run, arm, reward)
        for i, value in enumerate(measured):
            episode.observe_row(self._setting, self._run, arm, i, value)

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
        if self._is_native:
            if self._blocks is None:
                self._blocks = self._as_blocks(self._setting, self._run, self._work)
                self._stopwatch.skip_reading()
            blocks = (block.address for block in self._blocks)
            return int(self._program.unit("advance").entry(*blocks, judging, choosing))
        with self._stopwatch.running(), np.errstate(all="ignore"):
            return episode.advance(self._setting, self._run, self._work, judging, choosing)

    @property
    def _is_native(self) -> bool:
        """Whether machine code is there and pays; it is made when that would pay as well."""
        if self._is_listed or not self._stopwatch.is_long or is_switched_off():
            return False
        is_ready = self._program.unit("advance").is_ready
        if not is_ready and self._stopwatch.is_up:
            self._program.compile_behind()
        return is_ready

    @contextmanager
    def _in_lists(self) -> Iterator[None]:
        """Work on lists for a while; an error leaves the arrays as they were."""
        arrays = self._setting, self._run, self._work, self.pending
        with self._lists.of(self._run, self.pending) as (run, pending):
            # What is written into the scratch is of no use to anybody else.
            setting, work = (self._lists.fixed(one) for one in (self._setting, self._work))
            self._setting, self._run, self._work, self.pending = setting, run, work, pending
            self._is_listed = True
            try:
                yield
            finally:
                self._setting, self._run, self._work, self.pending = arrays
                self._is_listed = False

    def _as_blocks(self, *records: tuple[Any, ...]) -> list[Block]:
        return [Block(record, self._program.address) for record in records]

    def _chosen(self) -> int:
        self._advanced(judging=False)
        return int(self._run.integers[ARM])

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
        problem = self.plan.problem
        if measured is None:
            measured = np.zeros((len(kinds), self._setting.rows))
        signed = measured * np.array([row.sign for row in problem.measured])
        unit = np.array(problem.rewards.to_unit(rewards), dtype=float)
        done, status = 0, GO_ON
        while done < len(kinds) and not (status == STOPPED and until_stopped):
            piece = slice(done, done + PIECE)
            given = kinds[piece].tolist(), arms[piece], unit[piece].tolist(), signed[piece].tolist()
            taken = None
            if len(given[0]) >= MANY and not self._is_native:
                with suppress(ArithmeticError), self._in_lists():
                    taken = self._fold_piece(*given, until_stopped)
            count, status = taken or self._fold_piece(*given, until_stopped)
            done += count
        self.is_enough = status == STOPPED
        return done

    def _fold_piece(
        self,
        kinds: list[int],
        arms: Indices,
        rewards: list[float],
        measured: list[list[float]],
        until_stopped: bool,
    ) -> tuple[int, int]:
        """How many events were taken in, and what the last of them comes to."""
        status = GO_ON
        for i, kind in enumerate(kinds):
            arm = int(arms[i])
            status = GO_ON
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
                    self._observe(arm, rewards[i], measured[i])
                status = self._advanced(choosing=False)
            if kind in (ASKED, ELSEWHERE):
                # A pull made elsewhere takes a turn too, though nobody follows the choice.
                chosen = self._chosen_in_flight()
                if kind == ASKED:
                    if arm < 0:
                        arm = arms[i] = chosen
                    self.pending[arm] += 1.0
            if status == STOPPED and until_stopped:
                return i + 1, status
        return len(kinds), status

    def _chosen_in_flight(self) -> int:
        """Choose at the counts with pulls in flight; the observed counts come back unchanged."""
        away = int(sum(self.pending))
        if not away:
            return self._chosen()
        observed = list(self._run.n)
        self._run.n[:] = [n + p for n, p in zip(observed, self.pending, strict=True)]
        self._run.integers[PULLS] += away
        arm = self._chosen()
        self._run.n[:] = observed
        self._run.integers[PULLS] -= away
        return arm

    def _weigh(self, change: float) -> None:
        """Let a pull that expires, or comes back, take its share of the target along."""
        mass = float(np.sum(self._run.target))
        if mass + change > 0:
            more = (mass + change) / mass if mass > 0 else 0.0
            self._run.target[:] = [target * more for target in self._run.target]

    def foresee(self, events: int) -> None:
        """Get machine code ready if so many events are to come."""
        self._stopwatch.foresee(events)

    def tighten(self, delta: float) -> None:
        """Go on with another delta: levels change, evidence and allocation do not."""
        self.plan = replace(self.plan, delta=delta)
        self._setting = make_setting(self.plan, self._faces)
        self._work, self._blocks = make_work(self._setting), None
        self._run.integers[LOOK] = 0

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
