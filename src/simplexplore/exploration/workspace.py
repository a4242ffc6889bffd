"""The records that kernels work on, for one problem, and how kernels are called.

The table of vertices grows as a run meets them, and what is known of their edges grows with it.
Single steps and events run uncompiled until that takes long (compile.py); simulated runs are
compiled.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import ProblemError, SettingError, SimplexploreError, TooLargeError
from simplexplore.geometry.answers import Answers
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.geometry.vertex import Vertex
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.lists import MANY, Lists
from simplexplore.kernels.records import PULLS, VERTEX, WARM, Events, Memory, Run, Setting, Table
from simplexplore.problem.spelling import listed
from simplexplore.samplers.declarations import is_ours

from .arrays import COUNTING, first_pulls, fitted, make_setting, make_state, scenario_of_rule
from .compile import Program, is_switched_off, kind_of
from .plan import Plan
from .vertex_table import LARGE, AnswerTable, VertexTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Arrays with a number for each edge, or entry of one.
_BY_EDGE = {f"run.{name}" for name in ("gap", "spread", "value", "time", "gradient", "root")} | {
    "memory.edges",
    "memory.looks",
}


class Workspace:
    """What an engine works on.

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

    def twin(self) -> Self:
        """Another engine for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(type(self))
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
        self._stopwatch = self._program.stopwatch()
        self._lists = Lists()
        self.pending: Array = np.zeros(self._setting.size)
        self.is_enough = False

    @property
    def run(self) -> Run:
        """The run's arrays: read them, do not write."""
        return self._arrays[1]

    @property
    def pulls(self) -> int:
        """Rewards taken in."""
        return int(self.run.integers[PULLS])

    @property
    def policy(self) -> Array:
        """The recommended policy."""
        return self.table.policy(int(self.run.integers[VERTEX]))

    @property
    def records(self) -> tuple[Setting, Table, Run, Memory]:
        """What kernels work on, for the vertices known now."""
        return (self._setting, *self._arrays)

    @property
    def known_edges(self) -> int:
        """Edges of the vertices known now."""
        return int(self._arrays[0].first_edge[-1])

    @property
    def known_vertices(self) -> int:
        """Vertices known now; 0 where answers are good enough."""
        return len(self.table.vertices) if isinstance(self.table, VertexTable) else 0

    @property
    def is_ours(self) -> bool:
        """Whether sampler and threshold are the program's own."""
        return self._sampler.is_ours and self.plan.threshold.file is None

    @property
    def own_files(self) -> list[Path]:
        """Files of the user's: a sampler, a threshold."""
        files = [self._sampler.file, self.plan.threshold.file]
        return [file for file in files if file is not None and not is_ours(file)]

    @property
    def fingerprint(self) -> str:
        """Changes whenever the kernels do: a state is of use to the same code only."""
        return self._program.code

    def right_answers(self, means: Array) -> set[int]:
        """Numbers of the vertices or answers met so far that are good enough."""
        if isinstance(self.table, AnswerTable):
            return self.table.right_answers(means)
        goal = self.plan.problem.regret_goal
        if goal:
            return self.table.good_answers(means, goal, self._former)
        return self.table.right_answers(means, self._former)

    # ------------------------------------------------------------------ growth

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
        self.table = former.emptied()
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

    def follow(self, edges: Indices) -> None:
        """Add the vertices that edges of the table lead to."""
        for edge in edges.tolist():
            if self._arrays[0].following[edge] < 0:
                self._follow(edge)

    def _grown(self, how: list[int]) -> None:
        """Make room for a vertex that was added, and remember how."""
        _, run, memory = self._arrays
        self._followed += how
        self._arrays = fitted(self.table.arrays(), self._setting.pairs, run, memory)
        self._has_blocks = False

    # ------------------------------------------------------------------ state

    def _kept(self) -> dict[str, npt.NDArray[np.generic]]:
        """Every array that the future depends on, by name; not copies.

        Arrays may have room for more edges than are known; nothing was written there.
        """
        table, run, memory = self._arrays
        known, pairs = self.known_edges, len(self._setting.pairs.following)
        return {
            **{f"run.{name}": array for name, array in run._asdict().items()},
            "run.root": run.root[: table.first_root + known],
            "memory.arms": memory.arms,
            "memory.edges": memory.edges[:, : max(known, pairs)],
            "memory.rows": memory.rows,
            "memory.looks": memory.looks[:, :known],
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
        if self.plan.threshold.function in COUNTING and self.known_vertices == 1:
            self.table.union_size()  # which explores the table; that of a twin was not yet
            self._grown([])
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

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        """Look at the evidence and leave no trace: the future must not depend on who looked."""
        before = self.state()
        try:
            yield
        finally:
            for name, array in self._kept().items():
                array[...] = before[name]

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
            many = entry == "fold" and self.is_ours and len(arguments[0].kinds) >= MANY
            if many and self.known_edges <= LARGE:  # there is room for many more edges beyond that
                with suppress(ArithmeticError):
                    return self._in_lists(function, *arguments)
            return function(self._setting, *self._arrays, *arguments)

    def _in_lists(self, function: Callable[..., Any], *arguments: Any) -> Any:
        table, *written = self._arrays
        with self._lists.of(*written, *arguments) as lists:
            return function(self._lists.fixed(self._setting), self._lists.fixed(table), *lists)

    def _is_heavy(self, entry: str, arguments: tuple[Any, ...]) -> bool:
        """Whether a single call may take seconds uncompiled: programs without a closed form.

        Choosing among answers within epsilon solves one for each, once every arm has a reward.
        So may calls about all of very many edges.
        """
        setting = self._setting
        solving = setting.sticking and not setting.closed_form and entry != "level"
        about_one = entry == "evidence" and arguments[0] == 1
        large = self.known_edges > LARGE and not about_one
        if not (solving or large) or is_switched_off():
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

    def compile(self) -> None:
        """Compile what simulated runs need, if it is not there."""
        if not is_switched_off():
            self._program.compile("simulate")
            if self.plan.problem.regret_goal:
                self._program.compile("gain")
                self._stopwatch.skip()
