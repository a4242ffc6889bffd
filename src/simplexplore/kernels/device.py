"""Runs on a GPU: the same kernels, compiled by numba-cuda, one thread for one run at a time.

Machine code is kept on disk beside that of the processor (cache.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
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
from .device_records import SMALL, DeviceRecord, address_of, attached, device_function, word_at
from .episode import simulate_queue
from .kernel import is_long
from .known_fields import put_in
from .records import Job, Memory, Run, Setting, Table
from .slots import FORMS

Words = npt.NDArray[np.int64]

# Threads of a block, and blocks for each multiprocessor: more make no difference on an H200.
THREADS = 128
BLOCKS = 6

# Registers of a thread: with more there are fewer threads, with fewer more is moved about.
REGISTERS = 80

# Words that a thread may have to itself.
MOST = 32768

# Words of a setting and a table that all threads of a block share, in its fast memory.
SHARED = 2560


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
        self._places: list[tuple[int, npt.NDArray[Any], bool]] = []
        self.first = [self._block(record) for record in records]  # words
        self.size = 0 if apart else len(self._words)  # of blocks and arrays, or arrays alone
        self._arrays_at: list[int] = []
        self.small = 0  # words of small arrays, which lie in a place of their own
        for place, array, is_small in self._places:
            if is_small:
                self._words[place] = 8 * self.small
                self.small += array.size
            else:
                self._words[place] = 8 * self.size
                self.size += array.size
            self._arrays_at.append(self._words[place] // 8)

    def _block(self, record: Any) -> int:
        """Write a record's block; returns its first word."""
        label = type(record).__name__
        first = len(self._words)
        self._words += [0] * fields(label)[""][1]
        for (name, (annotation, place)), value in zip(fields(label).items(), record, strict=False):
            here = first + place
            if annotation in ARRAYS:
                self._places.append((here, value, label == "Run" and name in SMALL))
                self._words[here + 1 : here + 1 + value.ndim] = value.shape
            elif annotation == "float":
                self._words[here] = int(np.float64(value).view(np.int64))
            elif annotation in ("int", "bool"):
                self._words[here] = int(value)
            elif annotation not in FORMS:
                self._words[here] = 8 * (self._block(value) - first)
        return first

    def known(self) -> tuple[int, ...]:
        """The words of the blocks."""
        return tuple(self._words)

    def words(self, until: npt.NDArray[Any] | None = None) -> Words:
        """The blocks and the arrays, all or those before a given one."""
        found = list(zip(self._arrays_at, (array for _, array, _ in self._places), strict=True))
        size = next((first for first, array in found if array is until), self.size)
        made = np.zeros(size, dtype=np.int64)
        made[: len(self._words)] = self._words
        for first, array in found:
            if first < size:
                made[first : first + array.size] = array.reshape(-1).view(np.int64)
        return made

    def write_back(self, words: Any, *arrays: npt.NDArray[Any]) -> None:
        """Copy what a GPU left in its words into arrays of the records."""
        for first, (_, array, _) in zip(self._arrays_at, self._places, strict=True):
            if any(array is one for one in arrays):
                flat = array.reshape(-1).view(np.int64)
                words[first : first + array.size].copy_to_host(flat)


class DeviceProgram:
    """The machine code of `simulate_queue` for records of given shapes.

    Parameters
    ----------
    setting, table, run, memory : Setting, Table, Run, Memory
        What is the same whenever it is called: functions, shapes, whole numbers and flags.
    code : str
        Changes with everything else that the machine code depends on.
    """

    def __init__(self, setting: Setting, table: Table, run: Run, memory: Memory, code: str) -> None:
        self._device = Device()
        self._device.set_current()
        shelf = Shelf(f"{code} {version('numba-cuda')}", self._device.arch)
        name = f"gpu-{key_of(setting, table, run, memory)}"
        with shelf.locked(name):
            made = shelf.read(name)
            if made is None:
                capability = tuple(self._device.compute_capability)
                symbol, ptx = assembly(setting, table, run, memory, capability)
                options = ProgramOptions(
                    arch=f"sm_{self._device.arch}", max_register_count=REGISTERS
                )
                made = symbol, bytes(Program(ptx, "ptx", options=options).compile("cubin").code)
                shelf.write(name, *made)
        symbol, machine_code = made
        self._kernel = ObjectCode.from_cubin(machine_code).get_kernel(symbol)

    def __call__(self, setting: Setting, table: Table, job: Job) -> None:
        """Make the runs of a job; results are in its arrays."""
        packed = [Packed(record, apart=False) for record in (setting, table, job)]
        # They are kept until the GPU is done with them; results need not go there.
        held = [cuda.to_device(one.words()) for one in packed[:2]]
        held.append(cuda.device_array(packed[2].size, np.int64))
        given = packed[2].words(until=job.pulls)
        held[2][: len(given)].copy_to_device(given)
        places = [array.__cuda_array_interface__["data"][0] for array in held]
        most = self._device.properties.multiprocessor_count * BLOCKS
        grid = min(most, -(-len(job.seeds) // THREADS))
        stream = self._device.default_stream
        launch(stream, LaunchConfig(grid=grid, block=THREADS), self._kernel, *places)
        stream.sync()
        packed[2].write_back(held[2], job.pulls, job.vertices, job.counts)


def size_of(run: Run, memory: Memory) -> int:
    """Words that a thread needs to itself."""
    return Packed(run, memory, apart=True).size


def _constants(record: Any, words: Sequence[int], first: int = 0) -> Iterator[int]:
    """All that is known of a record when code is compiled: its words but for floats."""
    label = type(record).__name__
    for (annotation, place), value in zip(fields(label).values(), record, strict=False):
        here = first + place
        if annotation in ARRAYS:
            yield from words[here : here + 1 + value.ndim]
        elif annotation in ("int", "bool"):
            yield words[here]
        elif annotation not in FORMS and annotation != "float":
            yield from _constants(value, words, first + words[here] // 8)


def key_of(setting: Setting, table: Table, run: Run, memory: Memory) -> str:
    """Names the machine code of `simulate_queue` for these records."""
    functions = [f"{f.__module__}.{f.__name__}" for f in setting.slots]
    fixed, own = Packed(setting, apart=False), Packed(run, memory, apart=True)
    known = [
        *_constants(setting, fixed.known()),
        *_constants(table, Packed(table, apart=False).known()),
        *_constants(run, own.known(), own.first[0]),
        *_constants(memory, own.known(), own.first[1]),
    ]
    text = f"{functions} {known}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def assembly(
    setting: Setting, table: Table, run: Run, memory: Memory, capability: tuple[int, int]
) -> tuple[str, str]:
    """Symbol and PTX of the function that every thread runs; needs no GPU.

    Parameters
    ----------
    setting, table, run, memory : Setting, Table, Run, Memory
        Functions, shapes, whole numbers and flags become part of it, nothing else.
    capability : (int, int)
        The GPU's compute capability.
    """
    bound = tuple(setting.slots._asdict().items())
    fixed, own = Packed(setting, apart=False), Packed(run, memory, apart=True)
    known_table = Packed(table, apart=False)
    size, small = own.size, own.small
    wide, long = fixed.size, known_table.size
    is_shared = wide + long <= SHARED

    def kind(label: str, words: tuple[int, ...] = (), first: int = 0) -> Any:
        return attached(DeviceRecord(label, setting.closed_form, bound, words, first))

    setting_at = kind("Setting", fixed.known())
    run_at, memory_at = (
        kind(label, own.known(), first)
        for label, first in zip(("Run", "Memory"), own.first, strict=True)
    )
    table_at, job_at = kind("Table", known_table.known()), kind("Job")
    play = device_function(simulate_queue)

    def one_thread(setting: int, table: int, job: int) -> None:
        if is_shared:
            setting_words = cuda.shared.array(wide, types.int64)
            table_words = cuda.shared.array(long, types.int64)
            for i in range(cuda.threadIdx.x, wide, cuda.blockDim.x):
                setting_words[i] = word_at(setting, i)
            for i in range(cuda.threadIdx.x, long, cuda.blockDim.x):
                table_words[i] = word_at(table, i)
            cuda.syncthreads()
            setting, table = address_of(setting_words), address_of(table_words)
        base = address_of(cuda.local.array(size, types.float64))
        kept = address_of(cuda.local.array(small, types.float64))
        play(
            setting_at(setting, setting, 0),
            table_at(table, table, 0),
            run_at(0, base, kept),
            memory_at(0, base, 0),
            job_at(job, job, 0),
        )

    with _our_compiler():
        ptx, _ = cuda.compile_ptx(one_thread, (types.int64,) * 3, device=False, cc=capability)
    # Constant memory serves one address at a time; threads draw from different layers (rng.py).
    ptx = ptx.replace(".const", ".global")
    entry = re.search(r"\.visible \.entry (\w+)\(", ptx)
    assert entry is not None
    return entry.group(1), ptx


@register_pass(mutates_CFG=False, analysis_only=False)
class _KnownFields(FunctionPass):
    """Put in numbers and flags that a record's type says; branches on them go away."""

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
