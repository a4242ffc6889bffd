"""One way of exploring one problem: it drives the kernels and lets the vertex table grow.

Simulation, the in-memory explorer and live studies all drive an `Engine`; none of them has
exploration logic of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError
from simplexplore.kernels import episode, events
from simplexplore.kernels.information import draw
from simplexplore.kernels.records import (
    ARM,
    GO_ON,
    LOOK,
    MISSING_EDGE,
    STOPPED,
    UNKNOWN_REGRET,
    UNKNOWN_VERTEX,
    WARM,
    Events,
    Job,
)

from .compile import PIECE, is_switched_off
from .evidence import Evidence
from .excess import excess_bound
from .vertex_table import AnswerTable, VertexTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# By how much a user's allocation may miss the set.
_OFF = 1e-6


class Engine(Evidence):
    """Exploration of one problem; see `Workspace` for its attributes."""

    # ------------------------------------------------------------------ one run, step by step

    def _is_answered(self, status: int) -> bool:
        """Do what a kernel came back for, if it is to be called again."""
        if status == UNKNOWN_VERTEX:
            self._meet(int(self.run.integers[MISSING_EDGE]))
        elif status == UNKNOWN_REGRET:
            self._look_at_regret()
        return status in (UNKNOWN_VERTEX, UNKNOWN_REGRET)

    def _look_at_regret(self) -> None:
        """Say whether the regret is small enough, or when to look again."""
        limit = self.plan.problem.regret_goal
        assert limit is not None
        regret = self.regret()
        pulls = self.pulls
        again = pulls + 1 + int(pulls * regret.wait(limit))
        self.run.integers[LOOK] = -1 if regret.bound <= limit else again

    def forget(self, words: npt.NDArray[np.uint64]) -> None:
        """Start over with the random streams (2, 4) of a run; no arm is chosen yet."""
        episode.begin(self._setting, *self._arrays)
        self.run.rewards[:], self.run.choices[:] = words
        self.pending[:] = 0.0

    def begin(self, words: npt.NDArray[np.uint64]) -> int | None:
        """Start a run with its random streams (2, 4); returns the first arm."""
        self.forget(words)
        return self.advance()

    def observe(self, arm: int, reward: float, measured: Sequence[float] = ()) -> None:
        """Take in a reward, in the user's coordinates; nothing is measured beside it."""
        table, run, _ = self._arrays
        unit = float(self.plan.problem.rewards.to_unit(reward))
        with self._stopwatch.running(), np.errstate(all="ignore"):
            episode.observe(self._setting, table, run, arm, unit)

    def play(self, arm: int, mean: float, noise: float) -> int | None:
        """Draw a reward as `simulate` does, in unit coordinates, take it in, and `advance`."""
        table, run, _ = self._arrays
        with self._stopwatch.running(), np.errstate(all="ignore"):
            reward = draw(self._setting, run, mean, noise)
            episode.observe(self._setting, table, run, arm, reward)
        return self.advance()

    def played(
        self, means: Array, noise: Array, words: npt.NDArray[np.uint64], max_steps: int
    ) -> Iterator[bool]:
        """A run as `simulate` makes it, pull by pull: whether it has stopped."""
        unit = self.plan.problem.rewards.to_unit(means)
        arm = self.begin(words)
        while arm is not None and self.pulls < max_steps:
            arm = self.play(arm, float(unit[arm]), float(noise[arm]))
            yield arm is None

    def advance(self) -> int | None:
        """Recommend, then the next arm, or None when the evidence is enough."""
        while True:
            # What is observed already needs neither arm nor reward.
            status = self._called("step", episode.step, 0, 0.0, True)
            if not self._is_answered(status):
                break
        self._check_allocation()
        return None if status == STOPPED else int(self.run.integers[ARM])

    def _check_allocation(self) -> None:
        """Raise `SettingError` if a sampler of the user's last wrote something else."""
        sampler, setting, w = self._sampler, self._setting, self.run.w
        if sampler.is_ours:
            return
        shares = np.round(w, 6).tolist()
        if not (w.min() >= -_OFF and abs(w.sum() - 1) <= _OFF):
            raise SettingError(
                f"{sampler.file.name} left the allocation {shares} in run.w; shares must be "
                "nonnegative and sum to 1."
            )
        above, equal = setting.above @ w - setting.limit, setting.equal @ w - setting.total
        beyond = max((w - setting.cap).max(), (setting.floor - w).max())
        if max(above.max(initial=0.0), np.abs(equal).max(initial=0.0), beyond) > _OFF:
            raise SettingError(
                f"{sampler.file.name} left the allocation {shares} in run.w, which does not "
                "satisfy the constraints; project_within_rows finds the closest one that does."
            )

    @cached_property
    def excess_bound(self) -> float | None:
        """Pulls by which limits on samples can be exceeded at most; None if there are none."""
        if self._allowed.is_simplex:
            return None
        return excess_bound(self._allowed, self._setting.room)

    @property
    def handed_out(self) -> Array:
        """Pulls by arm: answered, in flight, and expired."""
        return np.asarray(self.run.n + self.pending + self.run.given_up)

    def may_play(self, arm: int) -> bool:
        """Whether some feasible policy uses the arm."""
        return bool(self._setting.inside[arm] > 0)

    @property
    def bets(self) -> Array | None:
        """Sums of logarithms that `tilt` keeps of bounded rewards, by arm."""
        return self.run.bets if self._setting.betting else None

    @property
    def squares(self) -> Array | None:
        """Sums of squared deviations by arm where sigma is unknown."""
        return self.run.squares[:-1] if self._setting.learning else None

    @property
    def is_warm(self) -> bool:
        """Whether every arm in play has a reward."""
        return bool(self.run.integers[WARM])

    @property
    def has_answer(self) -> bool:
        """Whether there is a policy to recommend."""
        return self.is_warm

    @property
    def is_infeasible(self) -> bool:
        """Never: whether known constraints can hold together is known beforehand."""
        return False

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
        """Take in events of a live study; see kernels/events.py.

        Rewards are in the user's coordinates; `arms` of pulls that are asked for may be -1 and
        are filled in. Returns how many events were taken in: fewer than there are only
        if the evidence was enough after the last of them.
        """
        unit = np.array(self.plan.problem.rewards.to_unit(rewards), dtype=float)
        done, status = 0, GO_ON
        while done < len(kinds) and status != STOPPED:
            piece = slice(done, done + PIECE)
            given = self._room_for(len(kinds[piece]), until_stopped)
            given.kinds[:], given.arms[:], given.rewards[:] = kinds[piece], arms[piece], unit[piece]
            given.progress[:] = 0
            while self._is_answered(status := self._called("fold", events.fold_events, given)):
                given = given._replace(aside=np.zeros((3, len(self.run.gap))))
            arms[piece] = given.arms
            done += int(given.progress[0])
        self.is_enough = status == STOPPED
        return done

    def _room_for(self, count: int, until_stopped: bool) -> Events:
        """Arrays for events; the same as before if they fit, so that their block fits as well."""
        room, edges = self._room, len(self.run.gap)
        if (
            room is None
            or room.pending is not self.pending
            or (len(room.kinds), room.aside.shape[1]) != (count, edges)
            or room.until_stopped != until_stopped
        ):
            numbers = (np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))
            progress = np.zeros(2, dtype=np.int64)
            room = Events(
                self.pending,
                np.zeros((3, edges)),
                *numbers,
                np.zeros(count),
                progress,
                until_stopped,
            )
            self._room, self._room_block = room, None
        return room

    def foresee(self, events: int) -> None:
        """Get machine code ready if so many events are to come."""
        self._stopwatch.foresee(events)

    def tighten(self, delta: float) -> None:
        """Go on with another delta: thresholds change, evidence and allocation do not."""
        self.plan = replace(self.plan, delta=delta)
        self._make_setting()
        self._has_blocks = False
        self.run.integers[LOOK] = max(0, int(self.run.integers[LOOK]))

    # ------------------------------------------------------------------ many runs

    def simulate(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> tuple[Indices, Indices, Array]:
        """Complete runs: pulls (negative if capped), recommended vertices or answers, counts.

        A run that was capped before every arm had a reward recommends nothing, -1.
        """
        job = self.job(means, noise, seeds, max_steps)
        alone = -1  # the run that began with an empty table
        while True:
            table = self.table
            if not self._is_answered(self._simulated(job)):
                break
            if self.table is not table:
                self._keep_answers(table, job)
                if alone != job.progress[0]:  # runs before it must not matter: once more
                    alone, job.progress[1], self._emptied = int(job.progress[0]), 0, -1
                    self._empty()
        self._check_allocation()
        return self.finished(job)

    def _simulated(self, job: Job) -> int:
        if is_switched_off():
            with self._own_code(), np.errstate(all="ignore"):
                return episode.simulate_runs(self._setting, *self._arrays, job)
        self.compile()
        return int(self._natively("simulate", job))

    def _keep_answers(self, table: VertexTable | AnswerTable, job: Job) -> None:
        """Give what finished runs recommend numbers that outlast the table: -2, -3, ..."""
        assert isinstance(table, VertexTable)
        for n in range(int(job.progress[0])):
            if job.vertices[n] >= 0:
                self._former.append(table.vertices[job.vertices[n]])
                job.vertices[n] = -1 - len(self._former)

    def job(self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int) -> Job:
        """What simulated runs need, and room for their results."""
        count = len(seeds)
        return Job(
            means=np.array(self.plan.problem.rewards.to_unit(means), dtype=float),
            noise=np.array(noise, dtype=float),
            cap=max_steps,
            seeds=np.ascontiguousarray(seeds),
            progress=np.zeros(3, dtype=np.int64),
            pulls=np.zeros(count, dtype=np.int64),
            vertices=np.zeros(count, dtype=np.int64),
            counts=np.zeros((count, self._setting.size)),
        )

    def finished(self, job: Job) -> tuple[Indices, Indices, Array]:
        """Results of a job, as `simulate` returns them."""
        job.vertices[(job.counts[:, self._setting.first_arms] == 0).any(axis=1)] = -1
        return job.pulls, job.vertices, job.counts
