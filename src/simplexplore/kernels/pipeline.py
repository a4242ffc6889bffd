"""Compiling with numba beyond its public interface, and why.

Numba optimises every function with all that it calls, and then again in each of its callers. Here
a kernel is left as it is until the unit that it is part of is optimised, once, as a whole, and
branches on the kind of rewards are decided before types are inferred: all samplers together
compile in a third of the time. What is found about types is remembered, and LLVM's code is written
by lowering.py: again almost half of it. The machine code is kept on disk by us.

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
from numba.core import ir as nodes
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import build_definitions, get_definition, guard
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg
from numba.extending import typeof_impl
from numba.np import linalg

from .collector import without_collector
from .kernel import options
from .known_fields import put_in
from .lowering import KernelLowering, is_ours, short_call
from .record_types import WORD, Record, signature_of

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

    def finalize(self) -> None:
        for module in _modules_of(self):
            self._final_module.link_in(module, preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and not function.name.startswith("cfunc."):
                function.linkage = "internal"
        self._optimize_final_module()
        self._finalize_final_module()

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
    """Put in the kind of rewards, which a record's type says; branches on it go away."""

    _name = "known_fields"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        def definition(function: Any, variable: Any) -> Any:
            return guard(get_definition, function, variable)

        return put_in(state.func_ir, state.args, nodes, definition, Record)


class _Interpreter(Interpreter):
    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Look for what needs rewriting: `with`, stars and dicts, of which ours have none."""
        if is_ours(self.func_id.modname):
            return func_ir
        return super().post_process(peepholes, func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class _TranslateByteCode(untyped_passes.TranslateByteCode):
    """Numba's, with the class above."""

    _name = "kernel_bytecode"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = _Interpreter(state.func_id).interpret(state.bc)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Processing(untyped_passes.IRProcessing):
    """Numba's, without looking how long variables live: nothing is to be freed."""

    _name = "kernel_processing"

    def run_pass(self, state: Any) -> bool:
        if state.func_ir.is_generator:
            return bool(super().run_pass(state))
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        state.func_ir.generator_info = None
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _ReconstructSSA(untyped_passes.ReconstructSSA):
    """The same."""

    _name = "kernel_ssa"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = reconstruct_ssa(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _StripPhis(typed_passes.PreLowerStripPhis):
    """The same."""

    _name = "kernel_strip_phis"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


_OURS = {
    untyped_passes.IRProcessing: _Processing,
    typed_passes.NativeLowering: KernelLowering,
    typed_passes.PreLowerStripPhis: _StripPhis,
    untyped_passes.ReconstructSSA: _ReconstructSSA,
    untyped_passes.TranslateByteCode: _TranslateByteCode,
}

# Passes for what no kernel has: closures, with blocks, literal types, array expressions. They find
# nothing and take a sixth of numba's time.
_IDLE = frozenset(
    {
        untyped_passes.FindLiterallyCalls,
        untyped_passes.GenericRewrites,
        untyped_passes.InlineClosureLikes,
        untyped_passes.InlineInlinables,
        untyped_passes.LiteralPropagationSubPipelinePass,
        untyped_passes.LiteralUnroll,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.RewriteDynamicRaises,
        untyped_passes.WithLifting,
        typed_passes.DumpParforDiagnostics,
        typed_passes.InlineOverloads,
        typed_passes.IRLegalization,
        typed_passes.NopythonRewrites,
    }
)


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
        library.enable_object_caching()
        targetctx = targetctx.subtarget(refresh=_Remembered.refresh)
        super().__init__(_Remembered(typingctx), targetctx, library, *rest)

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_OURS.get(one, one), what) for one, what in passes.passes if one not in _IDLE
        ]
        passes.add_pass_after(_KnownFields, untyped_passes.RewriteSemanticConstants)
        passes.finalize()
        return [passes]


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
    return made.native_name, made._library._get_compiled_object()
