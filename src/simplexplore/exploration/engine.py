"""One way of exploring one problem: it drives the kernels and lets the vertex table grow.

Simulation, the in-memory explorer and live studies all drive an `Engine`; none of them has
exploration logic of its own. Single steps and events run uncompiled until that takes long
(compile.py); simulated runs are compiled.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import ProblemError, SettingError, SimplexploreError, TooLargeError
from simplexplore.geometry.answers import Answers
from simplexplore.geometry.circuits import count_directions
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.kernels import episode, events
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.information import draw
from simplexplore.kernels.records import (
    ARM,
    GO_ON,
    LOOK,
    MISSING_EDGE,
    POLICIES,
    PULLS,
    STOPPED,
    UNKNOWN_REGRET,
    UNKNOWN_VERTEX,
    VERTEX,
    WARM,
    Events,
    Job,
    Memory,
    Run,
    Setting,
    Table,
)
from simplexplore.kernels.search import BEST, LOOKS, gain_bound, level_of_policy, surplus
from simplexplore.kernels.tilt import tilt_evidence
from simplexplore.problem.spelling import listed
from simplexplore.samplers.declarations import is_ours

from .arrays import first_pulls, fitted, make_setting, make_state, scenario_of_rule
from .compile import Program, Stopwatch, is_switched_off, kind_of
from .excess import excess_bound
from .plan import Plan
from .regret import Regret, largest_regret
from .vertex_table import AnswerTable, VertexTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# By how much a user's allocation may miss the set.
_OFF = 1e-6

# Arrays with a number for each edge, or entry of one.
_BY_EDGE = {f"run.{name}" for name in ("gap", "spread", "value", "time", "gradient", "root")} | {
    "memory.edges",
    "memory.looks",
}

# Numbers in the directions of a vertex's edges, if each of them is looked at, and edges that are
# listed where there are more.
MOST_NUMBERS = 50_000_000
MOST_LISTED = 256

# Events taken in between two looks at the clock.
_PIECE = 256


class Engine:
    """Exploration of one problem.

    Attributes
    ----------
    table : VertexTable or AnswerTable
        Policies met so far, or all answers within epsilon; number 0 is where a run starts.
    pending : (K,) array
        Pulls in flight by arm (live studies).
    is_enough : bool
        Whether the evidence was enough after the last event folded.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        problem = plan.problem
        if problem.measured:
            raise SettingError("measured limits are explored by an engine of their own.")
        self.polytope = Polytope(problem.replace(scenario=plan.scenario))
        if self.polytope.dimension == 0:
            raise ProblemError(
                "only one policy satisfies the constraints, so there is nothing to explore; "
                "'simplexplore bound' shows it."
            )
        self.table: VertexTable | AnswerTable
        if problem.epsilon:
            self.table = AnswerTable(Answers(self.polytope, problem.epsilon))
        else:
            # The start must not depend on any means: maximise nothing.
            start = self.polytope.optimal_vertex(np.zeros(problem.size))
            self.table = self._explored(VertexTable(self.polytope, start))
        self._allowed = AllocationSet.of(self.polytope, plan.scenario)
        self._check_samples()
        self._sampler = plan.sampler.in_scenario(scenario_of_rule(self._allowed))
        self._program = Program(
            self._sampler.file,
            plan.threshold.file,
            plan.threshold.function,
            kind_of(problem.rewards),
            bool(problem.epsilon),
            bool(problem.regret_goal),
            bool(problem.budget),
        )
        self._make_setting()
        self._forget_growth()

    def _check_samples(self) -> None:
        """Refuse limits that leave no samples to an arm that some policy uses."""
        starved = np.flatnonzero(self._allowed.in_play & ~(self._allowed.inside > 0))
        if len(starved):
            arms = listed(self.plan.problem.arms[a] for a in starved)
            raise ProblemError(
                f"the limits on exploration leave no samples to {arms}; samplers need some of "
                "every arm that a policy may use. 'simplexplore bound' says which limits they are."
            )
        count, budget = np.count_nonzero(self._allowed.in_play), self.plan.problem.budget
        each = first_pulls(self.plan.problem.rewards)
        if budget is not None and budget < each * count:
            needed = "one" if each == 1 else f"{each:g}"
            raise ProblemError(
                f"a budget of {budget} samples is too little: each of {count} arms needs {needed}."
            )

    def twin(self) -> Engine:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(Engine)
        other.plan, other.polytope = self.plan, self.polytope
        other._allowed = self._allowed
        other._sampler, other._program = self._sampler, self._program
        other.table, other._setting = self._explored(self.table.fresh()), self._setting
        other._forget_growth()
        return other

    def _explored(self, table: VertexTable | AnswerTable) -> VertexTable | AnswerTable:
        """The table with all vertices, where the sampler must know them."""
        if self.plan.sampler.policies and not (isinstance(table, VertexTable) and table.explore()):
            raise TooLargeError(
                f"there are too many policies for {self.plan.sampler.name}, which compares them "
                "all; choose another sampler."
            )
        return table

    def _make_setting(self) -> None:
        parts = self.polytope, self._allowed, self.table, self._program.slots
        self._setting = make_setting(self.plan, *parts)

    def _forget_growth(self) -> None:
        """Arrays for the vertices known now; what is added later is remembered in order."""
        self._followed: list[int] = []
        self._emptied = -1  # pulls when that was last done to the table
        self._former: list[Vertex] = []  # recommended by runs before that
        self._arrays = make_state(self.plan, self._sampler, self._setting, self.table)
        self._blocks: list[Block] = []
        self._has_blocks = False  # of the records as they are now
        self._room: Events | None = None  # for the events taken in last
        self._room_block: Block | None = None
        self._stopwatch = Stopwatch()
        self.pending: Array = np.zeros(self._setting.size)
        self.is_enough = False

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

    def _meet(self, edge: int) -> None:
        """Go on where an edge leads; from wide vertices straight to where the walk will end.

        That is the best vertex at the means of now. A table without room is emptied first.
        """
        assert isinstance(self.table, VertexTable)
        number = int(self.run.integers[VERTEX])
        here = self.table.vertices[number]
        if self.table.is_crowded and self._emptied != self.pulls:
            self._emptied = self.pulls
            self._empty(number)
            return
        if self.table.is_wide(number):
            best = self.polytope.optimal_vertex(self.run.clipped, here)
            if best.zero != here.zero:
                self._enter(self.polytope.canonical(best))
                return
        self._follow(edge)

    def _enter(self, vertex: Vertex, edges: Edges | None = None) -> None:
        """Recommend a vertex, new or known; the next judgement looks at all of its edges."""
        assert isinstance(self.table, VertexTable)
        known = len(self.table.vertices)
        number = self.table.add(vertex, edges)
        if number == known:
            self._grown([-1 - len(vertex.basis), *vertex.basis, len(vertex.capped), *vertex.capped])
        self.run.integers[VERTEX] = number
        self.run.integers[WARM] = 0

    def _empty(self, here: int = -1) -> None:
        """Forget all vertices but the first, and what is known of their edges.

        A run that goes on stays where it is.
        """
        former, before = self.table, self._kept()
        assert isinstance(former, VertexTable)
        self.table = former.fresh()
        self._followed, self._has_blocks = [], False
        self._arrays = make_state(self.plan, self._sampler, self._setting, self.table)
        if here >= 0:
            for name, array in self._kept().items():
                if name not in _BY_EDGE:
                    array[...] = before[name]
            self._enter(former.vertices[here], former.edges(here))

    def _follow(self, edge: int) -> None:
        self.table.follow(edge)
        self._grown([edge])

    def _grown(self, how: list[int]) -> None:
        """Make room for a vertex that was added, and remember how."""
        _, run, memory = self._arrays
        self._followed += how
        self._arrays = fitted(self.table.arrays(), self._setting.pairs, run, memory)
        self._has_blocks = False

    # ------------------------------------------------------------------ compiled or not

    def _natively(self, entry: str, *arguments: Any) -> Any:
        """Call the machine code of a loop."""
        if not self._has_blocks:
            records = (self._setting, *self._arrays)
            pairs = zip_longest(records, self._blocks)
            self._blocks = [self._program.block(record, former) for record, former in pairs]
            self._has_blocks = True
        given = [self._given(one) if isinstance(one, tuple) else one for one in arguments]
        places = [one.address if isinstance(one, Block) else one for one in self._blocks + given]
        return self._program.entry(entry).entry(*places)

    def _given(self, record: Any) -> Block:
        if record is not self._room:
            return self._program.block(record)
        if self._room_block is None:  # making one takes ten times as long as taking an event in
            self._room_block = self._program.block(record)
        return self._room_block

    def _called(self, entry: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a kernel as it is, or its machine code once that pays."""
        if self._is_heavy(entry, arguments):
            self._program.compile(entry)
            return self._natively(entry, *arguments)
        if self._stopwatch.is_long:
            if self._program.is_ready(entry):
                return self._natively(entry, *arguments)
            if self._stopwatch.is_up:
                self._program.compile_behind(entry)
        with self._stopwatch.running(), self._own_code(), np.errstate(all="ignore"):
            return function(self._setting, *self._arrays, *arguments)

    def _is_heavy(self, entry: str, arguments: tuple[Any, ...]) -> bool:
        """Whether a single call may take seconds uncompiled: programs without a closed form.

        Choosing among answers within epsilon solves one for each, once every arm has a reward.
        """
        setting = self._setting
        if entry == "level" or not setting.sticking or setting.closed_form or is_switched_off():
            return False
        arriving = len(arguments[0].kinds) if entry == "fold" else 0
        return self.pulls + arriving >= len(setting.first_arms)

    @contextmanager
    def _own_code(self) -> Iterator[None]:
        """Say where a user's own function failed."""
        files = {str(self._sampler.file), str(self.plan.threshold.file)}
        try:
            yield
        except SimplexploreError:
            raise
        except Exception as error:
            steps = traceback.extract_tb(error.__traceback__)
            place = next((step for step in reversed(steps) if step.filename in files), None)
            if place is None or self.is_ours:
                raise
            name = place.filename.rpartition("/")[2]
            raise SettingError(
                f"{name}, line {place.lineno}: {type(error).__name__}: {error}."
            ) from error

    @property
    def is_ours(self) -> bool:
        """Whether sampler and threshold are the program's own."""
        return self._sampler.is_ours and self.plan.threshold.file is None

    def compile(self) -> None:
        """Compile what simulated runs need, if it is not there."""
        if not is_switched_off():
            self._program.compile("simulate")
            if self.plan.problem.regret_goal:
                self._program.compile("gain")
                self._stopwatch.skip()

    # ------------------------------------------------------------------ one run, step by step

    @property
    def run(self) -> Run:
        """The run's arrays: read them, do not write."""
        return self._arrays[1]

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

    @property
    def policy(self) -> Array:
        """The recommended policy."""
        return self.table.policy(int(self.run.integers[VERTEX]))

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self.run.integers[PULLS])

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
            piece = slice(done, done + _PIECE)
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

    def tighten(self, delta: float) -> None:
        """Go on with another delta: thresholds change, evidence and allocation do not."""
        self.plan = replace(self.plan, delta=delta)
        self._make_setting()
        self._has_blocks = False
        self.run.integers[LOOK] = max(0, int(self.run.integers[LOOK]))

    @property
    def _edges(self) -> list[int]:
        """Edges of the recommended vertex, in the table; of very many the weakest."""
        table, run, _ = self._arrays
        vertex = int(run.integers[VERTEX])
        first, last = (int(x) for x in table.first_edge[vertex : vertex + 2])
        if self.knows_edges:
            return list(range(first, last))
        weakest = np.argsort(run.value[: last - first], kind="stable")[:MOST_LISTED]
        return [first + int(e) for e in np.sort(weakest)]

    @property
    def knows_edges(self) -> bool:
        """Whether the recommended vertex has few enough edges to look at each of them."""
        vertex, first = int(self.run.integers[VERTEX]), self._arrays[0].first_edge
        return int(first[vertex + 1] - first[vertex]) * self._setting.size <= MOST_NUMBERS

    def directions(self) -> Array:
        """Directions of the edges of the recommended vertex (E, K), as `evidence` lists them."""
        table, edges = self._arrays[0], self._edges
        found = np.zeros((len(edges), self._setting.size))
        for e, edge in enumerate(edges):
            entries = slice(table.first_entry[edge], table.first_entry[edge + 1])
            found[e, table.arm[entries]] = -table.v[entries]
        return found

    def evidence(self) -> tuple[Array, Array]:
        """Of each edge of the recommended vertex how much there is, and how much is needed.

        Statistics and their thresholds, or for `tilt` logarithms of e-values and their levels.
        Of very many edges those with the least statistics are listed (`knows_edges`).
        """
        table, run, memory = self._arrays
        edges, setting = self._edges, self._setting
        first = int(table.first_edge[run.integers[VERTEX]])
        found = run.value[np.array(edges, dtype=np.int64) - first]
        if not self.has_moments:
            levels = [self._called("level", events.level_of_edge, edge) for edge in edges]
            return found, np.array(levels)
        needed = setting.log_union
        if setting.rule == POLICIES:
            needed = level_of_policy(setting, table, int(run.integers[VERTEX]), 0.0)
        with self._untouched():
            for e, edge in enumerate(edges):
                given = (edge, float(found[e]), -math.inf, math.inf)
                value = self._called("evidence", tilt_evidence, *given)
                # What was there once counts; means out of reach leave nothing to doubt.
                value = max(value, memory.looks[BEST, edge], 0.0)
                found[e] = value if math.isfinite(value) else max(found[e], needed)
        return found, np.full(len(edges), needed)

    @property
    def has_moments(self) -> bool:
        """Whether `surplus` and `regret_bound` can be told: by e-values."""
        return self.plan.threshold.function == "tilt"

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        """Look at the evidence and leave no trace: the future must not depend on who looked."""
        before = self.state()
        try:
            yield
        finally:
            for name, array in self._kept().items():
                array[...] = before[name]

    def planned(self) -> tuple[float, float]:
        """Nothing is estimated here: `expected_samples` is better where no limit is measured."""
        return math.inf, math.inf

    def worst_use(self, row: int) -> float | None:
        """Nothing is measured."""
        return None

    def surplus(self) -> float:
        """log(delta / p): p is the least delta with which the evidence of now would be enough.

        Where the recommended policy has too many edges to look at, nothing is known.
        """
        if not self.knows_edges:
            return -math.inf
        with self._untouched():
            looks = self._arrays[2].looks
            best = looks[BEST::LOOKS].copy()
            looks[...] = 0.0  # every edge may be asked again
            looks[BEST::LOOKS] = best
            least = self._setting.log_policy + math.log(self.plan.delta_of_rule)
            return float(self._called("surplus", surplus, least))

    def gain_bounds(self) -> Array:
        """For each edge of the recommended vertex no less than its gain, in the user's unit.

        With probability 1 - delta they hold at every moment (docs/theory/stopping.md).
        """
        level = math.log(self._gain_union) - math.log(self.plan.delta_of_rule)
        with self._untouched():
            found = [self._called("gain", gain_bound, edge, level) for edge in self._edges]
        return np.array(found) * self.plan.problem.rewards.width

    def regret(self) -> Regret:
        """How much more than the recommended policy another can earn, in the user's unit.

        With probability 1 - delta no bound is ever too small (docs/theory/stopping.md).
        """
        if not self.knows_edges:
            return Regret(math.inf)
        gains, problem = self.gain_bounds(), self.plan.problem
        if isinstance(self.table, AnswerTable):
            # Comparisons are with whole policies; those left out are within epsilon anyway.
            return Regret(max(float(gains.max(initial=0.0)), problem.epsilon))
        directions, means = self.directions(), problem.rewards.from_unit(self.run.clipped)
        return largest_regret(problem, self.policy, directions, gains, -directions @ means)

    @cached_property
    def _gain_union(self) -> int:
        """Signed supports of edges in both orientations, or of comparisons with one vertex."""
        if isinstance(self.table, AnswerTable):
            return self.table.answers.signed_union
        return 2 * count_directions(self.polytope.form)

    def right_answers(self, means: Array) -> set[int]:
        """Numbers of the vertices or answers met so far that are good enough."""
        if isinstance(self.table, AnswerTable):
            return self.table.right_answers(means)
        goal = self.plan.problem.regret_goal
        if goal:
            return self.table.good_answers(means, goal, self._former)
        return self.table.right_answers(means, self._former)

    def _kept(self) -> dict[str, npt.NDArray[np.generic]]:
        """Every array that the future depends on, by name; not copies."""
        _, run, memory = self._arrays
        return {
            **{f"run.{name}": array for name, array in run._asdict().items()},
            "memory.arms": memory.arms,
            "memory.edges": memory.edges,
            "memory.rows": memory.rows,
            "memory.looks": memory.looks,
            "pending": self.pending,
        }

    def state(self) -> dict[str, npt.NDArray[np.generic]]:
        """All that `restore` needs to go on, bit for bit, in another engine of the same plan."""
        followed = np.array(self._followed, dtype=np.int64)
        return {name: array.copy() for name, array in self._kept().items()} | {"followed": followed}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on from a `state`; a ValueError says that it is of another plan."""
        if self._followed:
            raise ValueError("only a fresh engine can be restored")
        steps = iter(state["followed"].tolist())
        for edge in steps:
            if edge >= 0:
                self._follow(edge)
            else:
                basis = [next(steps) for _ in range(-1 - edge)]
                capped = [next(steps) for _ in range(next(steps))]
                self._enter(self.polytope.form.vertex(basis, capped))
        kept = self._kept()
        if {name: array.shape for name, array in kept.items()} != {
            name: array.shape for name, array in state.items() if name != "followed"
        }:
            raise ValueError("the state does not fit this plan")
        for name, array in kept.items():
            array[...] = state[name]

    @property
    def fingerprint(self) -> str:
        """Changes whenever the kernels do: a state is of use to the same code only."""
        return self._program.code

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

    @property
    def records(self) -> tuple[Setting, Table, Run, Memory]:
        """What kernels work on, for the vertices known now."""
        return (self._setting, *self._arrays)

    @property
    def known_edges(self) -> int:
        """Edges of the vertices known now."""
        return int(self._arrays[0].first_edge[-1])

    def follow(self, edges: Indices) -> None:
        """Add the vertices that edges of the table lead to."""
        for edge in edges.tolist():
            if self._arrays[0].following[edge] < 0:
                self._follow(edge)

    @property
    def own_files(self) -> list[Path]:
        """Files of the user's: a sampler, a threshold."""
        files = [self._sampler.file, self.plan.threshold.file]
        return [file for file in files if file is not None and not is_ours(file)]

    def _simulated(self, job: Job) -> int:
        if is_switched_off():
            with self._own_code(), np.errstate(all="ignore"):
                return episode.simulate_runs(self._setting, *self._arrays, job)
        self.compile()
        return int(self._natively("simulate", job))
