"""Compiling with numba beyond its public interface, and why.

Numba optimises every function with all that it calls, and then again in each of its callers. Here
a kernel is left as it is until the unit that it is part of is optimised, once, as a whole, and
branches on the kind of rewards are decided before types are inferred: all samplers together
compile in a third of the time. What is found about types is remembered, frontend.py finds them
without what only other code needs, and lowering.py writes LLVM's code: again half of it. The
machine code is kept on disk by us.

If numba changes so that this cannot be imported, plain.py does the same through public functions:
slower to compile, not kept on disk, the same results.
"""

from __future__ import annotations

import types as python
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, typed_passes, untyped_passes
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import typeof_impl
from numba.np import linalg

from .collector import without_collector
from .frontend import KernelFrontend, put_in_known
from .kernel import options
from .lowering import KernelLowering, is_ours, short_call
from .record_types import WORD, signature_of

# Kernels own no memory, so reference counting (which costs more than the arithmetic) is off.
# Python never calls a part: what it would need to do so would double the time to compile it.
_OPTIONS = {"error_model": "numpy", "_nrt": False}
_PART = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True} | _OPTIONS
_WHOLE = {"nogil": True} | _OPTIONS

cpu_target.target_context  # noqa: B018  (lets code that is read back find numba's functions)


class _Library(JITCodeLibrary):
    def add_ir_module(self, module: Any) -> None:
        """Take in code as it is: numba would optimise every function by itself first."""
        _describe_blocks(module)
        text = cgutils.normalize_ir_text(str(module))
        self._final_module.link_in(llvm.parse_assembly(text))


class _Part(_Library):
    """Code that is only ever part of other code: left as it is, to be optimised there."""

    def finalize(self) -> None:
        self._finalized = True

    def alone(self) -> Any:
        """Its module without what it calls."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Its module with all that it calls, for code that is compiled by numba itself."""
        module = self.alone().clone()
        for called in _modules_of(self):
            module.link_in(called, preserve=True)
        return module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Kernels raise nothing, so they need no objects of Python's."""


def _modules_of(library: Any) -> list[Any]:
    """Modules of all that a library calls, each once, whoever calls it."""
    waiting, found = list(library._linking_libraries), {}
    while waiting:
        part = waiting.pop()
        if part not in found:
            is_part = isinstance(part, _Part)
            found[part] = part.alone() if is_part else part._get_module_for_linking()
            waiting += part._linking_libraries
    return list(found.values())


class _Whole(_Library):
    """A unit's code: all but its entry is its own, to be inlined and dropped at will."""

    machine_code = b""

    def finalize(self) -> None:
        for module in _modules_of(self):
            self._final_module.link_in(module, preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and not function.name.startswith("cfunc."):
                function.linkage = "internal"
        self._optimize_final_module()
        self.machine_code = self._codegen._tm.emit_object(self._final_module)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Numba would put it into memory; native.py does that."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        """Optimise once, and lightly.

        Numba would do it twice and as much as it can. Loops over a few arms gain nothing by being
        unrolled or made of vectors, and steps take as long as ever, at a third of the time. Those
        over the scales of tilt.py gain a tenth by vectors.
        """
        tuning = llvm.create_pipeline_tuning_options(speed_level=1)
        tuning.loop_interleaving = tuning.loop_unrolling = tuning.slp_vectorization = False
        tuning.loop_vectorization = any("tilt_arm" in f.name for f in self._final_module.functions)
        builder = llvm.create_pass_builder(self._codegen._tm, tuning)
        builder.getModulePassManager().run(self._final_module, builder)


def _describe_blocks(module: Any) -> None:
    """Say of arguments that are blocks how long they are: they may be read ahead."""
    for function in module.functions:
        for argument in function.args:
            pointee = getattr(argument.type, "pointee", None)
            if isinstance(pointee, ir.ArrayType) and pointee.element == WORD:
                argument.attributes.dereferenceable = 8 * pointee.count


@register_pass(mutates_CFG=False, analysis_only=False)
class _KnownFields(FunctionPass):
    """For functions that are not ours, what `KernelFrontend` does too."""

    _name = "known_fields"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        return put_in_known(state)


class _Remembered:
    """Numba's typing context, which would look for the type of every x + y by trying them all."""

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def _asked(self, asked: Any, method: str, *arguments: Any) -> Any:
        if asked not in self.known:
            found = getattr(self._context, method)(*arguments)
            if found is None:
                return None
            self.known[asked] = found
        return self.known[asked]

    @staticmethod
    def refresh() -> None:
        """Look for what was declared lately: done once, by `_declare`."""

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        asked = (function, tuple(args), tuple(sorted(kws.items())))
        found = short_call(function, tuple(args))
        return found or self._asked(asked, "resolve_function_type", function, args, kws)

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        return self._asked((kind, name), "resolve_getattr", kind, name)

    def resolve_setitem(self, *types_of: Any) -> Any:
        return self._asked(types_of, "resolve_setitem", *types_of)

    def resolve_value_type(self, value: Any) -> Any:
        if isinstance(value, python.BuiltinFunctionType | type):
            return self._asked(value, "resolve_value_type", value)
        return self._context.resolve_value_type(value)


class _PartCompiler(CompilerBase):
    library = _Part

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = self.library(targetctx.codegen(), "kernel")
        targetctx = targetctx.subtarget(refresh=_Remembered.refresh)
        super().__init__(_Remembered(typingctx), targetctx, library, *rest)

    def define_pipelines(self) -> list[Any]:
        if is_ours(self.state.func_id.modname):
            return [_passes()]
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_KnownFields, untyped_passes.RewriteSemanticConstants)
        passes.passes = [
            (KernelLowering if one is typed_passes.NativeLowering else one, what)
            for one, what in passes.passes
        ]
        passes.finalize()
        return [passes]


@cache
def _passes() -> PassManager:
    """What is done with a kernel of ours."""
    passes = PassManager("kernel")
    for one in (KernelFrontend, KernelLowering, typed_passes.NoPythonBackend):
        passes.add_pass(one)
    passes.finalize()
    return passes


class _WholeCompiler(_PartCompiler):
    library = _Whole


class _Dispatcher(CPUDispatcher):
    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for numbers, not for the number 0, which type inference may try on its way."""
        return super().get_call_template(tuple(map(types.unliteral, args)), kws)


@cache
def _part(function: Callable[..., Any]) -> _Dispatcher:
    return _Dispatcher(function, {}, _PART | (options(function) or {}), _PartCompiler)


@typeof_impl.register(python.FunctionType)
def _type_of_function(function: Callable[..., Any], _: Any) -> types.Type | None:
    """Kernels are ordinary functions; compiled code may call them."""
    return None if options(function) is None else types.Dispatcher(_part(function))


def _declare() -> None:
    """Let numba know of all that compiled code may call.

    It would import all of scipy.linalg, only to see that it is there: as long as the rest.
    """
    there = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        for context in (cpu_target.typing_context, cpu_target.target_context):
            context.refresh()
    finally:
        linalg.ensure_blas = there


def compiled(function: Callable[..., Any], form: str, kind: str) -> tuple[str, bytes]:
    """Symbol and machine code of a unit."""
    types_of = signature_of(form, kind)
    made = CFunc(function, types_of, {}, _WHOLE, _WholeCompiler)
    with without_collector():
        _declare()
        made.compile()
    return made.native_name, made._library.machine_code
