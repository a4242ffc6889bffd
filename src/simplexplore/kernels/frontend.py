"""From Python's bytecode to numba's intermediate language with types, in half of numba's time.

Numba takes twenty passes, each with a look at every statement, for what no kernel has: closures,
`with`, literal types, array expressions, variables of several types. It looks for warnings around
every statement, makes an error message of every value that cannot be part of a type, and goes
through all statements once more to see that nothing changes. All of this is left out here: a
variable of a kernel has one type, and kernels warn of nothing.
"""

from __future__ import annotations

import contextlib
from typing import Any

from numba import types
from numba.core import ir as nodes
from numba.core.analysis import dead_branch_prune
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.interpreter import Interpreter
from numba.core.ir_utils import get_definition, guard
from numba.core.transforms import canonicalize_cfg
from numba.core.typeinfer import TypeInferer

from .known_fields import put_in
from .record_types import Record


class _Interpreter(Interpreter):
    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Look for what needs rewriting: `with`, stars and dicts, of which kernels have none."""
        return func_ir


class _NoWarnings:
    @staticmethod
    def catch_warnings(filename: str, lineno: int) -> Any:  # noqa: ARG004
        """Look for warnings around a statement."""
        return contextlib.nullcontext()


class _Inferer(TypeInferer):
    _changed = False

    def typeof_const(self, inst: Any, target: Any, const: Any) -> None:
        """Take in a number, a word or None; a variable may become another one later."""
        fixed = const is not None and target.is_temp and types.maybe_literal(const)
        self.add_type(target.name, fixed or self.resolve_value_type(inst, const), loc=inst.loc)

    def typeof_global(self, inst: Any, target: Any, gvar: Any) -> None:
        """Take in what was defined outside of the function."""
        if isinstance(gvar.value, int | float):
            self.typeof_const(inst, target, gvar.value)
        elif callable(gvar.value):
            self.lock_type(target.name, self.resolve_value_type(inst, gvar.value), loc=inst.loc)
            self.assumed_immutables.add(inst)
        else:
            super().typeof_global(inst, target, gvar)

    def copy_type(self, src_var: str, dest_var: str, loc: Any) -> None:
        """Take in x = y."""
        kind = self.typevars[src_var].type
        if kind is not None:
            self.add_type(dest_var, types.unliteral(kind), loc)

    def add_type(self, var: str, tp: Any, loc: Any, unless_locked: bool = False) -> None:
        """Take in a type of a variable."""
        former = self.typevars[var].type
        super().add_type(var, tp, loc, unless_locked)
        self._changed |= former is not None and former != self.typevars[var].type

    def propagate_refined_type(self, updated_var: str, updated_type: Any) -> None:
        """Change the type of what a variable was made of, too: done for lists."""

    def propagate(self, raise_errors: bool = True) -> Any:
        """Find all types; where none changes once it is known, one round does."""
        self._changed = False
        failed = self.constraints.propagate(self)
        known = all(rule.get_call_signature() is not None for _, rule in self.calls)
        if known and not (failed or self._changed):
            return None
        return super().propagate(raise_errors)


def put_in_known(state: Any) -> bool:
    """Put in the kind of rewards, which a record's type says, so that branches on it go away."""

    def definition(function: Any, variable: Any) -> Any:
        return guard(get_definition, function, variable)

    return put_in(state.func_ir, state.args, nodes, definition, Record)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelFrontend(FunctionPass):
    """All that comes before LLVM's code is written."""

    _name = "kernel_frontend"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Translate, and infer types."""
        function = _Interpreter(state.func_id).interpret(state.bc)
        function.blocks = canonicalize_cfg(function.blocks)
        function.generator_info = None
        state.func_ir, state.nargs = function, function.arg_count
        put_in_known(state)
        dead_branch_prune(function, state.args)
        self._infer(state)
        return True

    @staticmethod
    def _infer(state: Any) -> None:
        inferer = _Inferer(state.typingctx, state.func_ir, _NoWarnings)
        calls = state.typingctx.callstack
        with calls.register(state.targetctx.target, inferer, state.func_id, state.args):
            names = state.func_ir.arg_names
            for index, (name, kind) in enumerate(zip(names, state.args, strict=True)):
                inferer.seed_argument(name, index, kind)
            if state.return_type is not None:
                inferer.seed_return(state.return_type)
            inferer.build_constraint()
            inferer.propagate()
            state.typemap, state.return_type, state.calltypes = inferer.unify()
