"""The records that kernels work on, for one problem: how they are made, grow, are kept and given.

The table of vertices grows as a run meets them, and what is known of their edges grows with it.
program.py says what runs as Python and what as machine code.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import ProblemError, SettingError, SimplexploreError, TooLargeError
from simplexplore.geometry.epsilon_answers import Answers
from simplexplore.geometry.faces import simplices
from simplexplore.geometry.question_polytope import polytope_of
from simplexplore.kernels.packed_record import PackedRecord
from simplexplore.kernels.records import NEXT_CHECK, EdgeTable, RunConfig, RunState, Scratch
from simplexplore.problem.messages import listed

from .arrays import (
    COUNTING,
    State,
    Tables,
    first_pulls,
    fitted,
    make_config,
    make_scratch,
    make_state,
    scenario_of_rule,
)
from .limits import excess_bound
from .plan import Plan
from .program import ENTRIES, Program, program_of, reward_kind, run_functions
from .vertex_table import AnswerTable, TargetTable, VertexTable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[np.generic]]

# Fields of Run that are scratch: those who look at the evidence write there, too.
SCRATCH = {"time", "gradient", "reported", "duals"}


class Workspace:
    """What an engine works on.

    Parameters
    ----------
    plan : Plan
    table : VertexTable, optional
        Of another one whose problem has the same constraints: what it knows is known here.

    Attributes
    ----------
    plan : Plan
    sampler : Sampler
        With the file that limits on samples need.
    polytope : Polytope
        Of the known constraints.
    allowed : AllocationSet
        Allocations that samples may have.
    table : VertexTable, AnswerTable or TargetTable
        Policies met so far, or all answers within epsilon; number 0 is where a run starts.
    config : RunConfig
    arrays : (EdgeTable, RunState, Scratch)
        For the vertices known now.
    pending : (K,) array
        Pulls in flight by arm (live studies).
    """

    arrays: State

    def __init__(self, plan: Plan, table: VertexTable | None = None) -> None:
        self.plan = plan
        problem = plan.problem
        self.polytope = polytope_of(problem)
        self.table: Tables
        if problem.measured:
            self.table = TargetTable(problem.size, simplices(self.polytope, len(problem.measured)))
            # Samples that keep limits as far as these are known do so one by one.
            self.allowed = AllocationSet.of(self.polytope, "end-of-time")
        else:
            self.table = table or self._policies()
            self.allowed = AllocationSet.of(self.polytope, plan.scenario)
        self._check_samples()
        self.sampler = plan.sampler.in_scenario(scenario_of_rule(self.allowed))
        self._functions = run_functions(self.sampler, plan.threshold, problem)
        self.program = program_of(self._functions, reward_kind(problem))
        self._set_plan(plan)
        self._make_records()

    def _policies(self) -> VertexTable | AnswerTable:
        problem = self.plan.problem
        if self.polytope.dimension == 0:
            raise ProblemError(
                "only one policy satisfies the constraints, so there is nothing to explore; "
                "'simplexplore bound' shows it."
            )
        if problem.epsilon:
            return AnswerTable(Answers(self.polytope, problem.epsilon))
        # The start must not depend on any means: maximise nothing.
        start = self.polytope.optimal_vertex(np.zeros(problem.size))
        return self._explored(VertexTable(self.polytope, start))

    def _check_samples(self) -> None:
        """Refuse limits that leave no samples to an arm that some policy uses."""
        starved = np.flatnonzero(self.allowed.useful_arms & ~(self.allowed.interior_allocation > 0))
        if len(starved):
            arms = listed(self.plan.problem.arms[a] for a in starved)
            raise ProblemError(
                f"the limits on exploration leave no samples to {arms}; samplers need some of "
                "every arm that a policy may use. 'simplexplore bound' says which limits they are."
            )
        count, budget = np.count_nonzero(self.allowed.useful_arms), self.plan.problem.budget
        each = first_pulls(self.plan.problem)
        if budget is not None and budget < each * count:
            needed = "one" if each == 1 else f"{each:g}"
            raise ProblemError(
                f"a budget of {budget} samples is too little: each of {count} arms needs {needed}."
            )

    def clone(self) -> Self:
        """Another one for the same plan, for another thread: nothing that changes is shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        if isinstance(self.table, VertexTable):
            other.table = self._explored(self.table.fresh())
        other._make_records()
        return other

    def _explored(self, table: VertexTable) -> VertexTable:
        """The table with all vertices, where the sampler must know them."""
        if self.plan.sampler.policies and not table.explore():
            raise TooLargeError(
                f"there are too many policies for {self.plan.sampler.name}, which compares them "
                "all; choose another sampler."
            )
        return table

    def _set_plan(self, plan: Plan) -> None:
        self.plan = plan
        parts = self.polytope, self.allowed, self.table, self._functions
        self.config = make_config(plan, *parts)

    def set_delta(self, delta: float) -> None:
        """Go on with another delta: thresholds change, evidence and allocation do not."""
        self._set_plan(replace(self.plan, delta=delta))
        table, run, scratch = self.arrays
        look = max(0, int(run.integers[NEXT_CHECK]))
        if self.config.measuring:
            look = 0  # levels of answers have changed, and how far hulls reach
            self.arrays = table, run, scratch._replace(measured=make_scratch(self.config.measured))
        run.integers[NEXT_CHECK] = look

    def _make_records(self) -> None:
        """Arrays for the vertices known now; what is added later is remembered in order."""
        self._followed: list[int] = []
        self.arrays = make_state(self.plan, self.sampler, self.config, self.table)
        self._packed: dict[type[Any], PackedRecord] = {}
        self.pending: Array = np.zeros(self.config.size)

    @property
    def run(self) -> RunState:
        """The run's arrays: read them, do not write."""
        return self.arrays[1]

    @property
    def records(self) -> tuple[RunConfig, EdgeTable, RunState, Scratch]:
        """What kernels work on, for the vertices known now."""
        return (self.config, *self.arrays)

    @property
    def known_edges(self) -> int:
        """Edges of the vertices known now."""
        return int(self.arrays[0].first_edge[-1])

    @cached_property
    def excess_bound(self) -> float | None:
        """Pulls by which limits on samples can be exceeded at most; None if there are none."""
        if self.config.measuring:
            return 0.0 if self.config.measured.enforces_limits else None
        return excess_bound(self.allowed, self.config.allowed_excess)

    def protect_records(self) -> None:
        """Run as Python, where a sampler that writes what is not its own is a `ValueError`."""
        functions = self._functions

        def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
            arrays = [x for x in (*table, run.n, run.mean) if isinstance(x, np.ndarray)]
            for array in arrays:
                array.flags.writeable = False
            try:
                functions.allocate(config, table, run, scratch)
            finally:
                for array in arrays:
                    array.flags.writeable = True

        self.program = Program(functions, self.program.kind, math.inf)
        self.config = self.config._replace(functions=functions._replace(allocate=allocate))

    @property
    def is_ours(self) -> bool:
        """Whether sampler and threshold are the program's own."""
        return self.sampler.is_ours and self.plan.threshold.file is None

    # ------------------------------------------------------------------ growth

    def follow(self, edges: Indices) -> None:
        """Add the vertices that edges of the table lead to, where they are not known."""
        for edge in edges.tolist():
            if self.arrays[0].following[edge] < 0:
                assert isinstance(self.table, VertexTable)  # others never grow
                self.table.follow(edge)
                self._followed.append(edge)
                self._grow()

    def _grow(self) -> None:
        """Make room for what was added to the table."""
        _, run, scratch = self.arrays
        self.arrays = fitted(self.table.arrays, self.config.pairs, run, scratch)

    # ------------------------------------------------------------------ state

    def _kept(self) -> Arrays:
        """Every array that the future depends on, by name; not copies."""
        run = self.run._asdict()
        kept = {f"run.{name}": array for name, array in run.items() if name not in SCRATCH}
        return {**kept, "run.duals.x": self.run.duals.x, "pending": self.pending}

    def state(self) -> Arrays:
        """All that `restore` needs to go on, bit for bit, in another engine of the same plan."""
        followed = np.array(self._followed, dtype=np.int64)
        return {name: array.copy() for name, array in self._kept().items()} | {"followed": followed}

    def restore(self, state: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Go on from a `state`; a ValueError says that it is of another plan.

        Policies that were met since it was taken stay in the table, and change nothing.
        """
        if "followed" not in state:
            raise ValueError("the state does not fit this plan")
        followed = state["followed"].tolist()
        common = min(len(followed), len(self._followed))
        if self._followed[:common] != followed[:common]:
            raise ValueError("an engine that has met other policies cannot be restored")
        table = self.table
        is_counted = self.plan.threshold.function in COUNTING
        if is_counted and isinstance(table, VertexTable) and len(table.vertices) == 1:
            table.log_union()  # which explores the table; that of a clone was not yet
            self._grow()
        self.follow(np.array(followed[len(self._followed) :], dtype=np.int64))
        kept = self._kept()
        if kept.keys() != state.keys() - {"followed"}:
            raise ValueError("the state does not fit this plan")
        has_more = len(self._followed) > len(followed)
        for name, array in kept.items():
            if array.shape != state[name].shape and not has_more:
                raise ValueError("the state does not fit this plan")
            array[...] = 0
            array[tuple(map(slice, state[name].shape))] = state[name]

    # ------------------------------------------------------------------ calls

    def call(
        self,
        entry: str,
        *arguments: Any,
        count: int = 1,
        edges: int = 0,
        table: EdgeTable | None = None,
    ) -> Any:
        """Call a loop, as Python or as machine code (program.py).

        It has so many events, which concern so many edges. With another table than the run's only
        what asks for its edges one by one.
        """
        config, own, run, scratch = self.records
        given = config, own if table is None else table, run, scratch, *arguments
        with self._own_code():
            if not self.program.is_native(entry, count, edges or self.known_edges):
                with np.errstate(all="ignore"):
                    return ENTRIES[entry](*given)
            loop = self.program.entry(entry)
            return loop(*(self._pointer(one) if isinstance(one, tuple) else one for one in given))

    def _pointer(self, record: Any) -> Any:
        """The words of a record, packed anew only if it has changed."""
        packed = self._packed.get(type(record))
        if packed is None or not packed.holds(record):
            packed = self._packed[type(record)] = PackedRecord(record, self.program.address)
        return packed.pointer

    @contextmanager
    def _own_code(self) -> Iterator[None]:
        """Say where a user's own function failed."""
        files = {str(self.sampler.file), str(self.plan.threshold.file)}
        try:
            yield
        except SimplexploreError:
            raise
        except Exception as error:
            steps = traceback.extract_tb(error.__traceback__)
            place = next((step for step in reversed(steps) if step.filename in files), None)
            if place is None or self.is_ours:
                raise
            name, hint = place.filename.rpartition("/")[2], ""
            if "with size 0" in str(error):
                hint = " It is empty unless the file declares ARM_STATE, EDGE_STATE or POLICIES."
            raise SettingError(
                f"{name}, line {place.lineno}: {type(error).__name__}: {error}.{hint}"
            ) from error
