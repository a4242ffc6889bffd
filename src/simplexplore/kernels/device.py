"""Runs on a GPU: the same kernels, compiled by numba-cuda, one thread for one run at a time.

Machine code is kept on disk beside that of the processor (cache.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from numba import cuda
from numba.cuda import compiler, dispatcher, types
from numba.cuda.core import ir as nodes
from numba.cuda.core.compiler_machinery import FunctionPass, register_pass
from numba.cuda.core.ir_utils import get_definition, guard
from numba.cuda.core.untyped_passes import RewriteSemanticConstants

from .blocks import ARRAYS, fields
from .cache import Shelf
from .device_records import Bound, DeviceRecord, address_of, attached, device_function
from .episode import simulate_queue
from .kernel import is_long
from .known_fields import put_in
from .records import Job, Memory, Run, Setting, Table
from .slots import FORMS

Words = npt.NDArray[np.int64]

# Threads of a block, and blocks for each multiprocessor: more make no difference on an H200.
THREADS = 128
BLOCKS = 6

# Words that a thread may have to itself. Code is compiled for each size, so there are few.
SIZES = (512, 4096, 32768)


class Packed:
    """Records as one piece of memory: blocks of words (blocks.py), and arrays.

    Addresses of arrays are counted from a base, those of inner blocks from the outer one.

    Parameters
    ----------
    records : NamedTuples
    apart : bool
        Whether arrays lie elsewhere, from 0 on; else they follow the blocks.
    """

    def __init__(self, *records: Any, apart: bool) -> None:
        self._words: list[int] = []
        self._places: list[tuple[int, npt.NDArray[Any]]] = []
        self.blocks = [8 * self._block(record) for record in records]  # first bytes
        self.apart = apart
        self.size = 0 if apart else len(self._words)  # of blocks and arrays, or arrays alone
        self._first: list[int] = []
        for place, array in self._places:
            self._words[place] = 8 * self.size
            self._first.append(self.size)
            self.size += array.size

    def _block(self, record: Any) -> int:
        """Write a record's block; returns its first word."""
        label = type(record).__name__
        first = len(self._words)
        self._words += [0] * fields(label)[""][1]
        for (annotation, place), value in zip(fields(label).values(), record, strict=False):
            here = first + place
            if annotation in ARRAYS:
                self._places.append((here, value))
                self._words[here + 1 : here + 1 + value.ndim] = value.shape
            elif annotation == "float":
                self._words[here] = int(np.float64(value).view(np.int64))
            elif annotation in ("int", "bool"):
                self._words[here] = int(value)
            elif annotation not in FORMS:
                self._words[here] = 8 * (self._block(value) - first)
        return first

    def words(self) -> Words:
        """The blocks, and the arrays unless they lie apart."""
        if self.apart:
            return np.array(self._words, dtype=np.int64)
        made = np.zeros(self.size, dtype=np.int64)
        made[: len(self._words)] = self._words
        for first, (_, array) in zip(self._first, self._places, strict=True):
            made[first : first + array.size] = array.reshape(-1).view(np.int64)
        return made

    def write_back(self, words: Any, *arrays: npt.NDArray[Any]) -> None:
        """Copy what a GPU left in its words into arrays of the records."""
        for first, (_, array) in zip(self._first, self._places, strict=True):
            if any(array is one for one in arrays):
                found = words[first : first + array.size].copy_to_host()
                array[...] = found.view(array.dtype).reshape(array.shape)


def size_of(run: Run, memory: Memory) -> int:
    """Words that a thread needs to itself."""
    return Packed(run, memory, apart=True).size


class DeviceProgram:
    """The machine code of `simulate_queue`.

    Parameters
    ----------
    setting : Setting
        Says which functions it calls.
    size : int
        Words of a thread.
    code : str
        Changes with everything that the machine code depends on.
    """

    def __init__(self, setting: Setting, size: int, code: str) -> None:
        self._bound = tuple(setting.slots._asdict().items())
        self._device = Device()
        self._device.set_current()
        shelf = Shelf(f"{code} {version('numba-cuda')}", self._device.arch)
        homes = "-".join(f"{f.__module__.rpartition('.')[2]}.{f.__name__}" for _, f in self._bound)
        name = f"gpu-{size}-{'closed' if setting.closed_form else 'root'}-{homes}"
        with shelf.locked(name):
            made = shelf.read(name)
            if made is None:
                capability = tuple(self._device.compute_capability)
                symbol, ptx = assembly(self._bound, setting.closed_form, size, capability)
                options = ProgramOptions(arch=f"sm_{self._device.arch}")
                made = symbol, bytes(Program(ptx, "ptx", options=options).compile("cubin").code)
                shelf.write(name, *made)
        symbol, machine_code = made
        self._kernel = ObjectCode.from_cubin(machine_code).get_kernel(symbol)

    def __call__(self, setting: Setting, table: Table, run: Run, memory: Memory, job: Job) -> None:
        """Make the runs of a job; results are in its arrays."""
        own, work = Packed(run, memory, apart=True), Packed(job, apart=False)
        shared = [Packed(record, apart=False) for record in (setting, table)]
        # They are kept until the GPU is done with them.
        held = [cuda.to_device(packed.words()) for packed in (*shared, own, work)]
        places = [array.__cuda_array_interface__["data"][0] for array in held]
        most = self._device.properties.multiprocessor_count * BLOCKS
        grid = min(most, -(-len(job.seeds) // THREADS))
        stream = self._device.default_stream
        launch(
            stream,
            LaunchConfig(grid=grid, block=THREADS),
            self._kernel,
            *(places[0], places[1], places[2], *own.blocks, places[3]),
        )
        stream.sync()
        work.write_back(held[3], job.pulls, job.vertices, job.counts)


def assembly(
    bound: Bound, closed_form: bool, size: int, capability: tuple[int, int]
) -> tuple[str, str]:
    """Symbol and PTX of the function that every thread runs; needs no GPU.

    Parameters
    ----------
    bound : tuple
        The functions of a run, by slot.
    closed_form : bool
        The kind of rewards.
    size : int
        Words of a thread.
    capability : (int, int)
        The GPU's compute capability.
    """

    def kind(label: str) -> Any:
        return attached(DeviceRecord(label, closed_form, bound))

    setting_at, table_at, run_at, memory_at, job_at = map(
        kind, ("Setting", "Table", "Run", "Memory", "Job")
    )
    play = device_function(simulate_queue)

    def one_thread(setting: int, table: int, own: int, run: int, memory: int, job: int) -> None:
        base = address_of(cuda.local.array(size, types.float64))
        play(
            setting_at(setting, setting),
            table_at(table, table),
            run_at(own + run, base),
            memory_at(own + memory, base),
            job_at(job, job),
        )

    with _our_compiler():
        ptx, _ = cuda.compile_ptx(one_thread, (types.int64,) * 6, device=False, cc=capability)
    entry = re.search(r"\.visible \.entry (\w+)\(", ptx)
    assert entry is not None
    return entry.group(1), ptx


@register_pass(mutates_CFG=False, analysis_only=False)
class _KnownFields(FunctionPass):
    """Put in the kind of rewards, which a record's type says; branches on it go away."""

    _name = "known_fields_on_device"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        def definition(function: Any, variable: Any) -> Any:
            return guard(get_definition, function, variable)

        return put_in(state.func_ir, state.args, nodes, definition, DeviceRecord)


class _Compiler(compiler.CUDACompiler):
    def define_pipelines(self) -> list[Any]:
        (passes,) = super().define_pipelines()
        passes.add_pass_after(_KnownFields, RewriteSemanticConstants)
        passes.finalize()
        return [passes]


@contextmanager
def _our_compiler() -> Iterator[None]:
    """Numba-cuda's compiler with one more pass, without contraction, and with long functions apart.

    Products and sums are rounded one by one, as on the processor. There are no options for these.
    """
    usual, usual_class = compiler.compile_cuda, compiler.CUDACompiler

    def compiled(function: Any, *args: Any, nvvm_options: Any = None, **kws: Any) -> Any:
        made = usual(function, *args, nvvm_options={**(nvvm_options or {}), "fma": 0}, **kws)
        if is_long(function):
            made.library.get_function(made.fndesc.llvm_func_name).attributes.add("noinline")
        return made

    compiler.compile_cuda = dispatcher.compile_cuda = compiled
    compiler.CUDACompiler = _Compiler
    try:
        yield
    finally:
        compiler.compile_cuda = dispatcher.compile_cuda = usual
        compiler.CUDACompiler = usual_class
