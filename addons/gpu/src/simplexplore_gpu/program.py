"""Runs on a GPU: the same kernels, compiled by numba-cuda, one thread for one run at a time.

Machine code is kept on disk beside that of the processor (kernels/cache.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
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

from simplexplore.files import write_whole
from simplexplore.kernels import (
    exponential,
    maximin,
    projection,
    search,
    tilt,
    tilt_mixture,
    unknown_variance,
)
from simplexplore.kernels.cache import cache_folder
from simplexplore.kernels.functions import SIGNATURES
from simplexplore.kernels.packed_record import ARRAYS, fields
from simplexplore.kernels.records import EdgeTable, RunConfig, RunState, Scratch, SimulationBatch

from .queue import simulate_queue
from .records import SMALL, DeviceRecord, address_of, attached, device_function, word_at

Words = npt.NDArray[np.int64]

# Long functions: the compiler would take them into every caller, for minutes.
LONG = {
    exponential.edge_information,
    maximin.answer_within_rows,
    projection.project,
    search.look_at,
    search.meet,
    unknown_variance.edge_evidence,
    tilt.descend,
    tilt_mixture.log_evidence,
    tilt.tilt_evidence,
}

# Threads of a block, and blocks for each multiprocessor: more make no difference on an H200.
THREADS = 128
BLOCKS = 6

# Registers of a thread: with more there are fewer threads, with fewer more is moved about.
REGISTERS = 80

# Changes with every file here.
_FILES = sorted(Path(__file__).parent.glob("*.py"))
_OWN_CODE = hashlib.sha256(b"".join(file.read_bytes() for file in _FILES)).hexdigest()

# Words that a thread may have to itself.
MOST = 32768

# Words of a setting and a table that all threads of a block share, in its fast memory.
SHARED = 2560


class Packed:
    """Records as one piece of memory: blocks of words (packed_record.py), and arrays.

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
        self._words += [0] * words_of(label)
        for (name, (annotation, place)), value in zip(fields(label).items(), record, strict=False):
            here = first + place
            if annotation in ARRAYS:
                self._places.append((here, value, label == "RunState" and name in SMALL))
                self._words[here + 1 : here + 1 + value.ndim] = value.shape
            elif annotation == "float":
                self._words[here] = int(np.float64(value).view(np.int64))
            elif annotation in ("int", "bool"):
                self._words[here] = int(value)
            elif annotation not in SIGNATURES:
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
    config, table, run, scratch : RunConfig, EdgeTable, RunState, Scratch
        What is the same whenever it is called: functions, shapes, whole numbers and flags.
    code : str
        Changes with everything else that the machine code depends on.
    """

    def __init__(
        self, config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, code: str
    ) -> None:
        self._device = Device()
        self._device.set_current()
        arch = f"sm_{self._device.arch}"
        folder = cache_folder(f"{code} {_OWN_CODE} {version('numba-cuda')} {arch}")
        kept = folder and folder / f"gpu-{key_of(config, table, run, scratch)}"
        if kept and kept.exists():
            symbol, _, machine_code = kept.read_bytes().partition(b"\n")
        else:
            capability = tuple(self._device.compute_capability)
            name, ptx = assembly(config, table, run, scratch, capability)
            options = ProgramOptions(arch=arch, max_register_count=REGISTERS)
            machine_code = bytes(Program(ptx, "ptx", options=options).compile("cubin").code)
            symbol = name.encode()
            if kept:
                write_whole(kept, symbol + b"\n" + machine_code)
        self._kernel = ObjectCode.from_cubin(machine_code).get_kernel(symbol.decode())

    def __call__(self, config: RunConfig, table: EdgeTable, job: SimulationBatch) -> None:
        """Make the runs of a job; results are in its arrays."""
        packed = [Packed(record, apart=False) for record in (config, table, job)]
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


def words_of(label: str) -> int:
    """Words of a record's block."""
    annotation, last = list(fields(label).values())[-1]
    return last + 1 + (ARRAYS[annotation][1] if annotation in ARRAYS else 0)


def size_of(run: RunState, scratch: Scratch) -> int:
    """Words that a thread needs to itself."""
    return Packed(run, scratch, apart=True).size


def _constants(record: Any, words: Sequence[int], first: int = 0) -> Iterator[int]:
    """All that is known of a record when code is compiled: its words but for floats."""
    label = type(record).__name__
    for (annotation, place), value in zip(fields(label).values(), record, strict=False):
        here = first + place
        if annotation in ARRAYS:
            yield from words[here : here + 1 + value.ndim]
        elif annotation in ("int", "bool"):
            yield words[here]
        elif annotation not in SIGNATURES and annotation != "float":
            yield from _constants(value, words, first + words[here] // 8)


def key_of(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> str:
    """Names the machine code of `simulate_queue` for these records."""
    functions = [f"{f.__module__}.{f.__name__}" for f in config.functions if f]
    fixed, own = Packed(config, apart=False), Packed(run, scratch, apart=True)
    known = [
        *_constants(config, fixed.known()),
        *_constants(table, Packed(table, apart=False).known()),
        *_constants(run, own.known(), own.first[0]),
        *_constants(scratch, own.known(), own.first[1]),
    ]
    text = f"{functions} {known}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def assembly(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    capability: tuple[int, int],
) -> tuple[str, str]:
    """Symbol and PTX of the function that every thread runs; needs no GPU.

    Parameters
    ----------
    config, table, run, scratch : RunConfig, EdgeTable, RunState, Scratch
        Functions, shapes, whole numbers and flags become part of it, nothing else.
    capability : (int, int)
        The GPU's compute capability.
    """
    bound = tuple(config.functions._asdict().items())
    fixed, own = Packed(config, apart=False), Packed(run, scratch, apart=True)
    known_table = Packed(table, apart=False)
    size, small = own.size, own.small
    wide, long = fixed.size, known_table.size
    is_shared = wide + long <= SHARED

    def kind(label: str, words: tuple[int, ...] = (), first: int = 0) -> Any:
        return attached(DeviceRecord(label, config.closed_form, bound, words, first))

    setting_at = kind("RunConfig", fixed.known())
    run_at, memory_at = (
        kind(label, own.known(), first)
        for label, first in zip(("RunState", "Scratch"), own.first, strict=True)
    )
    table_at, job_at = kind("EdgeTable", known_table.known()), kind("SimulationBatch")
    play = device_function(simulate_queue)

    def one_thread(config: int, table: int, job: int) -> None:
        if is_shared:
            setting_words = cuda.shared.array(wide, types.int64)
            table_words = cuda.shared.array(long, types.int64)
            for i in range(cuda.threadIdx.x, wide, cuda.blockDim.x):
                setting_words[i] = word_at(config, i)
            for i in range(cuda.threadIdx.x, long, cuda.blockDim.x):
                table_words[i] = word_at(table, i)
            cuda.syncthreads()
            config, table = address_of(setting_words), address_of(table_words)
        base = address_of(cuda.local.array(size, types.float64))
        kept = address_of(cuda.local.array(small, types.float64))
        play(
            setting_at(config, config, 0),
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
        code, changed = state.func_ir, False
        for block in code.blocks.values():
            for assign in block.find_insts(nodes.Assign):
                value = assign.value
                if not (isinstance(value, nodes.Expr) and value.op == "getattr"):
                    continue
                source = guard(get_definition, code, value.value)
                record = state.args[source.index] if isinstance(source, nodes.Arg) else None
                known = record.constant(value.attr) if isinstance(record, DeviceRecord) else None
                if known is not None:
                    assign.value = nodes.Const(known, assign.loc)
                    code._definitions[assign.target.name] = [assign.value]
                    changed = True
        return changed


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
        if function in LONG:
            made.library.get_function(made.fndesc.llvm_func_name).attributes.add("noinline")
        return made

    compiler.compile_cuda = dispatcher.compile_cuda = compiled
    compiler.CUDACompiler = _Compiler
    try:
        yield
    finally:
        compiler.compile_cuda = dispatcher.compile_cuda = usual
        compiler.CUDACompiler = usual_class
