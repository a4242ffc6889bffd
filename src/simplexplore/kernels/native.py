"""Kernels as machine code, by numba, kept in numba's cache on disk.

Numba optimises every function with all that it calls, and then again in each of its callers. Here
a function is left as it is until the one that Python calls is optimised, once, with all of them
(`_Whole`), and branches on the kind of rewards are decided before types are inferred
(`_KnownFields`): compiling takes a third of the time.

This is the one file that uses what numba does not document.
"""

from __future__ import annotations

import gc
import sys
import threading
import types as python
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding as llvm
from llvmlite.ir import IntType
from numba import types
from numba.core import codegen, compiler, compiler_machinery, ir
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
)
from numba.np import arrayobj

try:
    import fcntl
except ImportError:  # not on this platform
    fcntl = None

from .functions import REWARD_KINDS, SIGNATURES
from .kernel import options
from .packed_record import ARRAYS, fields

_WORD, _INDEX = IntType(64), IntType(32)


class Record(types.CPointer):
    """The type of a record's block of words.

    The kind of rewards is part of it, so that branches on it can be decided by the type.
    """

    def __init__(self, label: str, kind: str) -> None:
        super().__init__(types.int64)
        self.label, self.kind = label, kind
        self.name = f"{label}[{kind}]"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two types the same."""
        return self.label, self.kind

    def field(self, name: str) -> tuple[types.Type, int]:
        """Type and first word of a field."""
        annotation, word = fields(self.label)[name]
        return type_of(annotation, self.kind), word

    def constant(self, name: str) -> int | None:
        """The value of a field that the type knows."""
        return REWARD_KINDS[self.kind].get(name) if self.label == "RunConfig" else None


@cache
def type_of(annotation: str, kind: str) -> types.Type:
    """The type that an annotation stands for."""
    if annotation in ARRAYS:
        name, dimensions = ARRAYS[annotation]
        return types.Array(getattr(types, name), dimensions, "C")
    if annotation in SIGNATURES:
        signature = signature_of(SIGNATURES[annotation], kind)
        return types.ExternalFunctionPointer(signature, get_pointer=None)
    numbers = {"int": types.int64, "float": types.float64, "bool": types.boolean}
    return numbers.get(annotation) or (
        types.void if annotation == "None" else Record(annotation, kind)
    )


def signature_of(annotations: Iterable[str], kind: str) -> Any:
    """Numba's signature of arguments and, last, the result."""
    *arguments, result = (type_of(name, kind) for name in annotations)
    return result(*arguments)


register_model(Record)(models.PointerModel)


@infer_getattr
class _RecordFields(AttributeTemplate):
    """Types of a record's fields."""

    key = Record

    def generic_resolve(self, record: Record, name: str) -> types.Type | None:
        return record.field(name)[0] if name in fields(record.label) else None


@lower_getattr_generic(Record)
def _field(context: Any, builder: Any, record: Record, block: Any, name: str) -> Any:
    """Read a field."""
    kind, first = record.field(name)
    if kind == types.boolean:
        return builder.icmp_unsigned("!=", _word(builder, block, first), _WORD(0))
    if not isinstance(kind, types.Array):
        return _word(builder, block, first, context.get_value_type(kind))
    data = _word(builder, block, first, context.get_data_type(kind.dtype).as_pointer())
    shape = [_word(builder, block, first + 1 + d) for d in range(kind.ndim)]
    return _array(context, builder, kind, data, shape)


def _word(builder: Any, block: Any, number: int, form: Any = _WORD) -> Any:
    """Read a word. Blocks do not change while compiled code runs, which the optimiser is told."""
    place = builder.bitcast(builder.gep(block, [_INDEX(number)]), form.as_pointer())
    value = builder.load(place)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _array(context: Any, builder: Any, kind: types.Array, data: Any, shape: list[Any]) -> Any:
    """An array of numbers of eight bytes as numba lays it out."""
    strides = [_WORD(8)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    array = arrayobj.make_array(kind)(context, builder)
    arrayobj.populate_array(array, data, shape, strides, _WORD(8), None)
    return array._getvalue()


# Kernels own no memory, so reference counting (which costs more than the arithmetic) is off.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_COMPILING = threading.Lock()


class _Part(codegen.JITCodeLibrary):
    """Code that is only ever part of other code: left as it is, to be optimised there."""

    def add_ir_module(self, module: Any) -> None:
        """Take in code as it is: numba would optimise every function by itself first."""
        text = str(module).encode().decode("latin-1")  # as llvmlite wants it
        self._final_module.link_in(llvm.parse_assembly(text))

    def finalize(self) -> None:
        self._finalized = True

    def parts(self) -> list[Any]:
        """Modules of all that it calls, each once, whoever calls it."""
        waiting, found = list(self._linking_libraries), {}
        while waiting:
            part = waiting.pop()
            if part not in found:
                is_ours = isinstance(part, _Part)
                found[part] = part._final_module if is_ours else part._get_module_for_linking()
                waiting += part._linking_libraries
        return list(found.values())

    def _get_module_for_linking(self) -> Any:
        """With all that it calls, for code of a user's that numba compiles by itself."""
        module = self._final_module.clone()
        for part in self.parts():
            module.link_in(part, preserve=True)
        return module

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Kernels raise nothing, so they need no objects of Python's."""


class _Whole(_Part):
    """A function that Python calls, with all that it calls: optimised once, and lightly.

    Loops over a few arms gain nothing by being unrolled or made of vectors; those over the scales
    of tilt.py gain a tenth by vectors.
    """

    codegen = codegen.JITCodeLibrary.codegen

    def finalize(self) -> None:
        for part in self.parts():
            self._final_module.link_in(part, preserve=True)
        self._linking_libraries.clear()
        for function in self._final_module.functions:
            if not function.is_declaration and not function.name.startswith("cfunc."):
                function.linkage = "internal"
        tuning = llvm.create_pipeline_tuning_options(speed_level=1)
        tuning.loop_interleaving = tuning.loop_unrolling = tuning.slp_vectorization = False
        tuning.loop_vectorization = any("tilt_arm" in f.name for f in self._final_module.functions)
        builder = llvm.create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)
        self._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        return codegen.JITCodeLibrary.get_pointer_to_function(self, name)

    def set_env(self, name: str, env: Any) -> None:
        codegen.JITCodeLibrary.set_env(self, name, env)


@compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _KnownFields(compiler_machinery.FunctionPass):
    """Put in fields that a record's type knows, so that branches on them are not compiled."""

    _name = "known_fields"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        code, changed = state.func_ir, False
        for block in code.blocks.values():
            for assign in block.find_insts(ir.Assign):
                value = assign.value
                if isinstance(value, ir.Global) and value.value is print:
                    raise numba.errors.UnsupportedError(
                        "machine code cannot print; take it out, or set NUMBA_DISABLE_JIT=1"
                    )
                if not (isinstance(value, ir.Expr) and value.op == "getattr"):
                    continue
                source = code.get_definition(value.value)
                record = state.args[source.index] if isinstance(source, ir.Arg) else None
                known = record.constant(value.attr) if isinstance(record, Record) else None
                if known is not None:
                    assign.value = ir.Const(known, assign.loc)
                    code._definitions[assign.target.name] = [assign.value]
                    changed = True
        return changed


# Of numba's passes those that kernels need: they have no objects, generators or array expressions.
_PASSES = (
    *("TranslateByteCode", "FixupArgs", "IRProcessing", "_KnownFields", "DeadBranchPrune"),
    *("ReconstructSSA", "NopythonTypeInference", "PreLowerStripPhis", "NativeLowering"),
    "NoPythonBackend",
)


class _PartCompiler(compiler.CompilerBase):
    library: type[_Part] = _Part

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = self.library(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *rest)

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        by_name = {one.__name__: one for one, _ in passes.passes}
        passes.add_pass_after(_KnownFields, by_name["IRProcessing"])
        passes.passes = [found for found in passes.passes if found[0].__name__ in _PASSES]
        passes.finalize()
        return [passes]


class _WholeCompiler(_PartCompiler):
    library = _Whole

    def define_pipelines(self) -> list[Any]:
        _announce()  # nothing was found on the disk
        return super().define_pipelines()


@cache
def _announce() -> None:
    sys.stderr.write("compiling, once on this machine ...\n")
    sys.stderr.flush()


@cache
def _part(function: Callable[..., Any]) -> Any:
    unneeded = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    wanted = _OPTIONS | unneeded | (options(function) or {})
    return numba.njit(pipeline_class=_PartCompiler, **wanted)(function)


class _Kernel(types.Dispatcher):
    """A kernel that is called: the same one whichever constants it is given."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, [types.unliteral(given) for given in args], kws)


register_model(_Kernel)(models.OpaqueModel)


@typeof_impl.register(python.FunctionType)
def _type_of_function(function: Callable[..., Any], _: Any) -> types.Type | None:
    """Kernels are ordinary functions; compiled code may call them."""
    return None if options(function) is None else _Kernel(_part(function))


def compiled(
    function: Callable[..., Any], signature: Iterable[str], kind: str, folder: Path | None
) -> Any:
    """A kernel as numba's `CFunc`: its `address`, and a function for Python, `ctypes`.

    Parameters
    ----------
    function : kernel
    signature : iterable of str
        Annotations of what it takes and, last, returns.
    kind : str
        Which kind of rewards it is for: a key of `functions.REWARD_KINDS`.
    folder : Path or None
        Where it is kept, if anywhere; another one for every state of the source.
    """
    make = numba.cfunc(
        signature_of(signature, kind),
        cache=folder is not None,
        pipeline_class=_WholeCompiler,
        nogil=True,
        **_OPTIONS,
    )
    config: Any = numba.config
    with _COMPILING, _alone(folder), _without_collector():
        elsewhere, config.CACHE_DIR = config.CACHE_DIR, str(folder or "")
        try:
            return make(function)
        finally:
            config.CACHE_DIR = elsewhere


@contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Two processes never compile the same thing at once: the second one reads it."""
    if folder is None or fcntl is None:
        yield
        return
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _without_collector() -> Iterator[None]:
    """Do not look for garbage meanwhile: compiling makes many objects, and few are garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
