"""Simulated runs on a GPU.

A run that meets a vertex which is not in the table is left, the vertex is added here, and the run
is made again: it is a function of its random streams, so nothing is lost but its time.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError, TooLargeError
from simplexplore.exploration.engine import Array, Engine, SimulatedRuns
from simplexplore.kernels.records import EdgeTable, RunConfig, RunState, Scratch, SimulationBatch
from simplexplore.samplers.own_file import explained, is_ours

if TYPE_CHECKING:
    from .program import DeviceProgram

Launch = Callable[[RunConfig, EdgeTable, RunState, Scratch, SimulationBatch], None]

# Edges whose far ends are looked up before the first launch: a vertex that is missing has its runs
# made again, and a table that outgrows its room has code compiled anew.
AHEAD = 1024


class GpuEngine:
    """An engine whose simulated runs are made on a GPU.

    Parameters
    ----------
    engine : Engine
    launch : function, optional
        Makes the runs of a batch; default: on the GPU of this machine.
    """

    def __init__(self, engine: Engine, launch: Launch | None = None) -> None:
        self._engine = engine
        self._launch = launch or OnDevice(engine)
        if engine.plan.problem.regret_goal:
            raise SettingError(
                "stop_when = {regret = ...} needs a linear program now and then, which a GPU "
                "cannot solve; leave device='gpu' out."
            )
        self._look_ahead()

    def _look_ahead(self) -> None:
        engine = self._engine
        edge = 0
        while not engine.plan.problem.epsilon and edge < min(engine.workspace.known_edges, AHEAD):
            engine.workspace.follow(np.array([edge]))
            edge += 1

    def simulate(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> SimulatedRuns:
        """Complete runs; see `Engine.simulate`."""
        engine = self._engine
        began = time.perf_counter()
        whole = engine.make_batch(means, noise, seeds, max_steps)
        self._make(whole)
        while len(left := np.flatnonzero(whole.pulls == 0)):
            engine.workspace.follow(np.unique(whole.vertices[left]))
            batch = engine.make_batch(means, noise, seeds[left], max_steps)
            self._make(batch)
            for name in ("pulls", "vertices", "counts"):
                getattr(whole, name)[left] = getattr(batch, name)
        return engine.results_of(whole, means, time.perf_counter() - began)

    def _make(self, batch: SimulationBatch) -> None:
        try:
            self._launch(*self._engine.workspace.records, batch)
        except Exception as error:  # of the driver, which has one class for all it says
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise TooLargeError(
                "the GPU has not enough free memory for runs of this problem: other programs may "
                "be using it. Wait for them, or leave device='gpu' out."
            ) from error

    def compile(self) -> None:
        """Compile what runs need, for the table of now, if it is not there."""
        if isinstance(self._launch, OnDevice):
            self._launch.compile()


class OnDevice:
    """Launches batches on this machine's GPU; what it lacks is said in words."""

    def __init__(self, engine: Engine) -> None:
        try:
            from numba import cuda

            from . import program  # noqa: F401
        except ImportError as error:
            raise SettingError(
                "device='gpu' needs numba-cuda: pip install 'numba-cuda[cu13]' "
                f"({error.name or error} is missing)."
            ) from None
        if not cuda.is_available():  # type: ignore[no-untyped-call]
            raise SettingError(
                "device='gpu' finds no GPU: there is none, or its driver is missing. Check with "
                "'nvidia-smi', or leave device='gpu' out."
            )
        _check_own_files(engine)
        self._engine = engine
        self._programs: dict[str, DeviceProgram] = {}

    def __call__(
        self,
        config: RunConfig,
        table: EdgeTable,
        run: RunState,
        scratch: Scratch,
        batch: SimulationBatch,
    ) -> None:
        config, table, run, scratch = for_gpu(config, table, run, scratch)
        self._program(config, table, run, scratch)(config, table, batch)

    def compile(self) -> None:
        """Compile for the table of now."""
        self._program(*for_gpu(*self._engine.workspace.records))

    def _program(
        self, config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch
    ) -> DeviceProgram:
        from .program import MOST, DeviceProgram, key_of, size_of

        size = size_of(run, scratch)
        if size > MOST:
            raise TooLargeError(
                f"a run of this problem needs {8 * size / 1024:,.0f} KiB on the GPU; at most "
                f"{8 * MOST / 1024:,.0f} KiB are possible. Leave device='gpu' out."
            )
        key = key_of(config, table, run, scratch)
        if key not in self._programs:
            engine = self._engine
            try:
                made = DeviceProgram(config, table, run, scratch, engine.workspace.program.code)
            except Exception as error:
                if engine.workspace.is_ours:
                    raise
                raise explained(error, "a file of yours") from error
            self._programs[key] = made
        return self._programs[key]


# Sizes of arrays by edge or vertex of the whole table, by edge of one vertex, and by entry.
_BY_EDGE, _BY_OWN_EDGE, _BY_ENTRY = (64, 256, 4096), (64, 256, 1024, 4096), (256, 1024, 4096)

_BY_COLUMN = ("edge_state", "looks", "queue", "reach")  # along their second axis
_ROOMS = {
    **dict.fromkeys(("first_edge", "first_entry", "first_column", "offset", "following"), _BY_EDGE),
    **dict.fromkeys(("gap", "spread", "value", "time", "gradient"), _BY_OWN_EDGE),
    **dict.fromkeys(("arm", "v", "column_edge", "column_v", "root"), _BY_ENTRY),
    **dict.fromkeys(_BY_COLUMN, _BY_ENTRY),
}


def for_gpu(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch
) -> tuple[RunConfig, EdgeTable, RunState, Scratch]:
    """Records whose shapes seldom change as the table grows: code is compiled for given shapes.

    Of what belongs to a run the shapes alone matter; every thread has its own.
    """

    def roomy(record: Any) -> Any:
        made = {}
        for name in _ROOMS.keys() & set(record._fields):
            array = getattr(record, name)
            axis = 1 if name in _BY_COLUMN else 0
            length = array.shape[axis]
            padding = [(0, 0)] * array.ndim
            room = next((room for room in _ROOMS[name] if room >= length), length)
            padding[axis] = (0, room - length)
            made[name] = np.pad(array, padding, mode="edge" if length else "constant")
        return record._replace(**made)

    hulls = scratch.hulls
    few = 2 * len(hulls.slot)  # every thread has its own: those at hand will do
    kept = ("samples", "reach", "corners", "y", "value", "least", "end")
    hulls = hulls._replace(**{name: getattr(hulls, name)[:few] for name in kept})
    scratch = scratch._replace(hulls=hulls)
    return config, roomy(table), roomy(run), roomy(scratch)


def _check_own_files(engine: Engine) -> None:
    """Raise `SettingError` for what a user's file may do on a processor only."""
    sampler = engine.workspace.sampler
    for file in (sampler.file, engine.plan.threshold.file):
        if file is None or is_ours(file):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Subscript):
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                is_negative = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
                if is_negative or isinstance(part, ast.Slice):
                    raise SettingError(
                        f"{file.name}, line {node.lineno}: on a GPU arrays have neither negative "
                        "indices nor slices; write a loop, or count from the start."
                    )
