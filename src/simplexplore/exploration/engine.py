"""One way of exploring one problem: it drives the kernels and lets the vertex table grow.

Simulation, the in-memory explorer and live studies all drive an `Engine`; none of them has
exploration logic of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError
from simplexplore.geometry.question_polytope import QuestionPolytope
from simplexplore.kernels import episode, events, records
from simplexplore.kernels.compensated_mean import next_mean
from simplexplore.kernels.information import recompute_statistics
from simplexplore.kernels.student_statistic import learn
from simplexplore.problem.families import Bernoulli, Bounded
from simplexplore.problem.measured import measured_means
from simplexplore.problem.problem import Problem
from simplexplore.samplers import Sampler

from .evidence import Evidence
from .measured_evidence import RIGHT_ENDS, MeasuredEvidence, outcomes
from .plan import Plan
from .vertex_table import TargetTable, VertexTable
from .workspace import Workspace

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# By how much a user's allocation may miss the set.
_OFF = 1e-6

# Pulls between two looks at the clock.
_PIECE = 2_000


def streams(seed: int, runs: range) -> npt.NDArray[np.uint64]:
    """Random streams (runs, 2, 4) of numbered runs: one for rewards, one for choices.

    Each run has a child of numpy's seed sequence, as `SeedSequence(seed).spawn` makes them.
    """
    children = [np.random.SeedSequence(seed, spawn_key=(run,)) for run in runs]
    words = [child.generate_state(8, np.uint64) for child in children]
    return np.array(words, dtype=np.uint64).reshape(len(runs), 2, 4)


class SimulatedRuns(NamedTuple):
    """What became of runs.

    Ends are numbers of recommended vertices or answers, -1 for runs that were capped before every
    arm had a reward; where limits are measured they are sums of codes (measured_evidence.py).
    """

    pulls: Indices  # negative if capped
    ends: Indices
    counts: Array  # (runs, K) pulls by arm
    correct: npt.NDArray[np.bool_]  # whether the answer was right
    seconds: float  # that compiled code took for all of them


class Engine:
    """Exploration of one problem.

    Parameters
    ----------
    plan : Plan
    workspace : Workspace, optional
        Records for it; new ones unless given.

    Attributes
    ----------
    workspace : Workspace
        The records that kernels work on.
    evidence : Evidence or MeasuredEvidence
        What can be said of the run.
    is_enough : bool
        Whether the evidence was enough after the last event folded.
    """

    def __init__(self, plan: Plan, workspace: Workspace | None = None) -> None:
        self.workspace = workspace or Workspace(plan)
        self.evidence: Evidence | MeasuredEvidence
        if isinstance(self.workspace.table, TargetTable):
            self.evidence = MeasuredEvidence(self.workspace)
        else:
            self.evidence = Evidence(self.workspace)
        self.is_enough = False
        self._is_rehearsed = self.workspace.is_ours

    def clone(self) -> Self:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        return type(self)(self.plan, self.workspace.clone())

    # ------------------------------------------------------------------ what a run says

    @property
    def plan(self) -> Plan:
        """What is explored, and how."""
        return self.workspace.plan

    @property
    def run(self) -> records.RunState:
        """The run's arrays: read them, do not write."""
        return self.workspace.run

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self.run.integers[records.PULLS])

    @property
    def policy(self) -> Array:
        """The recommended policy; NaN where there is none that keeps measured limits."""
        table = self.workspace.table
        if not isinstance(table, TargetTable):
            return table.policy(int(self.run.integers[records.VERTEX]))
        return self.run.answer if self.has_answer else np.full(len(self.run.n), math.nan)

    @property
    def answer(self) -> str | None:
        """What is recommended, in the words of a question besides the best mix."""
        space = self.workspace
        if not (self.has_answer and isinstance(space.polytope, QuestionPolytope)):
            return None
        assert isinstance(space.table, VertexTable)
        return space.polytope.in_words(space.table.vertices[int(self.run.integers[records.VERTEX])])

    @property
    def has_answer(self) -> bool:
        """Whether there is a policy to recommend: every arm has the rewards that estimates need."""
        if self.plan.problem.measured:
            return bool(self.run.integers[records.TARGET] == records.ANSWER)
        return bool(self.run.integers[records.INITIALIZED])

    @property
    def is_infeasible(self) -> bool:
        """Whether it looks as if no policy kept measured limits; once stopped, whether that is so.

        Whether known constraints can hold together is known beforehand.
        """
        return bool(self.plan.problem.measured) and bool(
            self.run.integers[records.TARGET] == records.INFEASIBLE
        )

    @property
    def assigned(self) -> Array:
        """Pulls by arm: answered, in flight, and expired."""
        return np.asarray(self.run.n + self.workspace.pending + self.run.expired)

    def may_play(self, arm: int) -> bool:
        """Whether some feasible policy uses the arm."""
        return arm in self.workspace.config.useful_arms

    # ------------------------------------------------------------------ one run, step by step

    def reset(self, words: npt.NDArray[np.uint64]) -> None:
        """Start over with the random streams (2, 4) of a run; no arm is chosen yet."""
        episode.begin(*self.workspace.records[:3])
        self.run.rewards[:], self.run.choices[:] = words
        self.workspace.pending[:] = 0.0

    def begin(self, words: npt.NDArray[np.uint64]) -> int | None:
        """Start a run with its random streams (2, 4); returns the first arm."""
        self.reset(words)
        return self.advance()

    def observe(self, arm: int, reward: float, measured: Sequence[float] = ()) -> None:
        """Take in what a pull reported, in the user's coordinates; measurements by row."""
        reported = np.array([[reward, *measured]], dtype=float)
        self.run.reported[:] = _as_kernels_see(self.plan.problem, reported)[0]
        config, table, run, _ = self.workspace.records
        with np.errstate(all="ignore"):
            episode.observe(config, table, run, arm)

    def played(
        self, means: Array, noise: Array, words: npt.NDArray[np.uint64], max_steps: int
    ) -> Iterator[bool]:
        """A run as `simulate` makes it, pull by pull: whether it has stopped."""
        batch = self.make_batch(means, noise, words[None], max_steps)
        arm = self.begin(words)
        while arm is not None and self.pulls < max_steps:
            config, table, run, _ = self.workspace.records
            with np.errstate(all="ignore"):
                episode.play(config, table, run, batch)
            arm = self.advance()
            yield arm is None

    def advance(self) -> int | None:
        """Recommend, then the next arm, or None when the evidence is enough."""
        status = self._called("advance")
        _check_allocation(self.plan.sampler, self.workspace.config, self.run.w)
        return None if status == records.STOPPED else int(self.run.integers[records.ARM])

    def _called(
        self, entry: str, *arguments: Any, count: int = 1, deadline: float = math.inf
    ) -> int:
        """Call a loop until it is done; do what it comes back for, until a time of the thread."""
        while True:
            status = int(self.workspace.call(entry, *arguments, count=count))
            if status == records.UNKNOWN_VERTEX and time.thread_time() > deadline:
                return status
            if status == records.UNKNOWN_VERTEX:
                self.workspace.follow(
                    self.run.integers[records.MISSING_EDGE : records.MISSING_EDGE + 1]
                )
            elif status == records.UNKNOWN_REGRET:
                _look_at_regret(self)
            else:
                return status

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

        Rewards, and measurements (events, rows), are in the user's coordinates; `arms` of pulls
        that are asked for may be -1 and are filled in. Returns how many events were taken in:
        fewer than there are only if the evidence was enough after the last of them.
        """
        if measured is None:
            measured = np.zeros((len(kinds), self.workspace.config.channels - 1))
        given = records.EventBatch(
            pending=self.workspace.pending,
            kinds=kinds,
            arms=arms,
            rewards=_as_kernels_see(self.plan.problem, np.column_stack([rewards, measured])),
            progress=np.zeros(2, dtype=np.int64),
            until_stopped=until_stopped,
        )
        self.is_enough = self._called("fold", given, count=len(kinds)) == records.STOPPED
        return int(given.progress[0])

    def observe_sum(self, arm: int, n: int, mean: float, sd: float) -> None:
        """Take in n rewards of an arm made elsewhere by their mean and standard deviation.

        Nothing is judged yet. They take their share of the target along, as a pull does that
        comes back late.
        """
        config, table, run, _ = self.workspace.records
        family = self.plan.problem.rewards
        unit, spread = float(family.to_unit(mean)), sd / family.width
        with np.errstate(all="ignore"):
            events.rescale_target(config, run, self.workspace.pending, float(n))
            before, total = float(run.n[arm]), float(run.n[arm]) + n
            apart = unit - run.mean[0, arm]
            run.n[arm] = total
            run.integers[records.PULLS] += n
            run.mean[0, arm], run.compensation[0, arm] = next_mean(
                run.mean[0, arm], run.compensation[0, arm], unit, total / n
            )
            squares = spread * spread * (n - 1) + apart * apart * before * n / total
            if config.learns_variance:
                learn(config, run, 0, arm, squares, 1.0)
            run.clipped_mean[arm] = min(max(run.mean[0, arm], config.lowest), config.highest)
            if run.integers[records.INITIALIZED]:
                recompute_statistics(config, table, run)

    # ------------------------------------------------------------------ many runs

    def compile(self, loop: str = "simulate") -> None:
        """Compile a loop if it is not there, and use it from now on."""
        self.workspace.program.compile(loop)

    def simulate(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> SimulatedRuns:
        """Complete runs; see `make_batch`."""
        if not self._is_rehearsed:
            # As Python for some pulls, so that Python says what is wrong: compiled code would
            # write where nothing is, and where nothing may be written.
            few, rehearsal = len(self.workspace.config.useful_arms) * 4 + 20, self.clone()
            rehearsal.workspace.protect_records()
            for _ in rehearsal.played(means, noise, seeds[0], few):
                pass
            self._is_rehearsed = True
        self.compile()
        batch = self.make_batch(means, noise, seeds, max_steps)
        began = time.perf_counter()
        self._called("simulate", batch)
        seconds = time.perf_counter() - began
        _check_allocation(self.plan.sampler, self.workspace.config, self.run.w)
        return self.results_of(batch, means, seconds)

    def make_batch(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> records.SimulationBatch:
        """Runs with these true means of rewards, and deviations of theirs in unit coordinates.

        Means of measurements are the problem's own.
        """
        problem = self.plan.problem
        rows = problem.measured
        known = measured_means(rows, problem.arms) if rows else ()
        unit = np.array(problem.rewards.to_unit(means), dtype=float)
        signed = [row.signed(mean) for row, mean in zip(rows, known, strict=True)]
        spread = [np.array(noise, dtype=float), *(row.deviations(problem.size) for row in rows)]
        return _batch(problem, np.array([unit, *signed]), np.array(spread), seeds, max_steps)

    def results_of(
        self, batch: records.SimulationBatch, means: Array, seconds: float
    ) -> SimulatedRuns:
        """What became of the runs of a batch, by the true means of rewards."""
        config, table = self.workspace.config, self.workspace.table
        if isinstance(table, TargetTable):
            _, _, run, scratch = self.workspace.clone().records
            ends, right = outcomes(config, run, scratch, batch), RIGHT_ENDS
        else:
            ends = batch.vertices
            ends[(batch.counts[:, config.useful_arms] == 0).any(axis=1)] = -1
            right = table.right_answers(means, self.plan.problem.regret_goal)
        correct = np.isin(ends, list(right))
        return SimulatedRuns(batch.pulls, ends, batch.counts, correct, seconds)

    def go_on(
        self,
        means: Array,
        noise: Array,
        words: npt.NDArray[np.uint64],
        longest: int,
        deadline: float,
    ) -> bool:
        """Simulate the rest of the run at hand; whether it ends within so many pulls more.

        Means and standard deviations (channels, K) are as kernels see them. It is given up after a
        time of the thread.
        """
        self.run.rewards[:], self.run.choices[:] = words
        last = self.pulls + longest
        while self.pulls < last and time.thread_time() < deadline:
            cap = min(self.pulls + _PIECE, last)
            batch = _batch(self.plan.problem, means, noise, words[None], cap)
            batch.progress[1] = 1  # under way: it does not begin anew
            self.run.integers[records.CAPPED] = 0
            if self._called("simulate", batch, deadline=deadline) != records.STOPPED:
                return False
            if batch.pulls[0] >= 0:
                return True
        return False


def _batch(
    problem: Problem,
    means: Array,
    noise: Array,
    seeds: npt.NDArray[np.uint64],
    max_steps: int,
) -> records.SimulationBatch:
    """What simulated runs need, and room for their results.

    Parameters
    ----------
    means, noise : (channels, K) arrays
        True means and standard deviations of what pulls report, in unit coordinates.
    seeds : (runs, 2, 4) array
    max_steps : int
        Pulls after which a run is capped.
    """
    rows, count = problem.measured, len(seeds)
    ends = np.zeros((1 + len(rows), 2))
    if problem.rewards.code == Bernoulli.code:
        ends[0] = 0.0, 1.0
    for i, row in enumerate(rows, 1):
        if isinstance(row.noise, Bounded):
            ends[i] = np.sort(row.signed([row.noise.low, row.noise.high]))
            noise[i] = 1.0  # all at the two ends
    pulls, vertices, exceeded = np.zeros((3, count), dtype=np.int64)
    return records.SimulationBatch(
        means=means,
        noise=noise,
        ends=ends,
        cap=max_steps,
        seeds=np.ascontiguousarray(seeds),
        progress=np.zeros(2, dtype=np.int64),
        pulls=pulls,
        vertices=vertices,
        counts=np.zeros((count, problem.size)),
        answers=np.zeros((count, problem.size if rows else 0)),
        exceeded=exceeded,
    )


def _as_kernels_see(problem: Problem, reported: Array) -> Array:
    """Reports (pulls, channels) in unit coordinates, as of limits from above."""
    unit = np.array(problem.rewards.to_unit(reported[:, 0]), dtype=float)
    signed = [row.sign * reported[:, 1 + i] for i, row in enumerate(problem.measured)]
    return np.column_stack([unit, *signed])


def _look_at_regret(engine: Engine) -> None:
    """Say whether the regret is small enough, or when to look again."""
    limit, pulls = engine.plan.problem.regret_goal, engine.pulls
    assert limit is not None
    regret = engine.evidence.regret()
    again = pulls + 1 + int(pulls * regret.wait(limit))
    engine.run.integers[records.NEXT_CHECK] = -1 if regret.bound <= limit else again


def _check_allocation(sampler: Sampler, config: records.RunConfig, w: Array) -> None:
    """Raise `SettingError` if a sampler of the user's last wrote something else."""
    if sampler.is_ours:
        return
    shares = np.round(w, 6).tolist()
    if not (w.min() >= -_OFF and abs(w.sum() - 1) <= _OFF):
        raise SettingError(
            f"{sampler.file.name} left the allocation {shares} in run.w; shares must be "
            "nonnegative and sum to 1."
        )
    allowed = config.shares
    above, equal = np.split(allowed.A @ w - allowed.b, [allowed.inequalities])
    beyond = max((w - allowed.upper).max(), (allowed.lower - w).max())
    if max(above.max(initial=0.0), np.abs(equal).max(initial=0.0), beyond) > _OFF:
        raise SettingError(
            f"{sampler.file.name} left the allocation {shares} in run.w, which does not "
            "satisfy the constraints; kernels.projection.project finds the closest one that does."
        )
