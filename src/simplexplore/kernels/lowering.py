"""From numba's intermediate language to LLVM's, in a third of numba's time.

For every x + y numba looks up, by trying all that there is, what type inference has found already;
it keeps on the stack what is used in more than one block; it puts an array together before it reads
a number of it; it counts the rounds of a loop before the first; it asks after every call whether
something was raised; and it says where variables end, which only matters to reference counting. All
of this is left out here.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils, lowering
from numba.core import ir as nodes
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from .record_types import WORD, Record, array_in, array_of

_OURS = __name__.partition(".")[0] + "."
_NUMBERS = (types.float64, types.int64, types.uint64)
_ORDER = {max: operator.gt, min: operator.lt}
_ARITHMETIC = {operator.add: "add", operator.sub: "sub", operator.mul: "mul"}
_COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
}
_ALIKE = ((types.float64,) * 2, (types.int64,) * 2)
_RANGE = types.range_state64_type
_LOOP = ("getiter", "iternext", "pair_first", "pair_second")


def is_ours(module: str) -> bool:
    """Whether a module is part of this package."""
    return module.startswith(_OURS)


def short_call(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The signature of max(x, y), min(x, y) and int(x); numba would compile functions for them."""
    name = getattr(function, "typing_key", None)
    if name in _ORDER and arguments in _ALIKE:
        return arguments[0](*arguments)
    is_int = name is int and arguments == (types.float64,)
    return types.int64(types.float64) if is_int else None


class _Array(NamedTuple):
    """An array that was not put together."""

    data: Any
    shape: list[Any]


class _Range(NamedTuple):
    """The numbers of a loop: where the next one lies, or which is the first; end, and step."""

    at: Any
    stop: Any
    step: int


class _Next(NamedTuple):
    """A number of a loop, and whether there is one."""

    pair_first: Any
    pair_second: Any


class _Lower(lowering.Lower):
    _known: ClassVar[dict[Any, Any]] = {}

    def _find_singly_assigned_variable(self) -> None:
        """Variables that need no place on the stack: assigned once, before all that reads them."""
        blocks = self.func_ir.blocks
        homes: dict[str, int | None] = {}
        for label, block in blocks.items():
            for assign in block.find_insts(nodes.Assign):
                homes[assign.target.name] = None if assign.target.name in homes else label
        before = compute_cfg_from_blocks(blocks).dominators()
        for label, names in compute_use_defs(blocks).usemap.items():
            for name in names:  # assigned elsewhere
                home = homes.get(name)
                if home is None or not (home < label and home in before[label]):
                    homes[name] = None
        self._singly_assigned_vars = {name for name, home in homes.items() if home is not None}
        self._blk_local_varmap = {}

    def lower_block(self, block: Any) -> None:
        """A block. A kernel of ours makes no errors, so no messages are prepared for them."""
        if not is_ours(self.func_ir.func_id.modname):
            super().lower_block(block)
            return
        for inst in block.body:
            self.loc = inst.loc
            self.lower_inst(inst)

    def lower_inst(self, inst: Any) -> Any:
        """A statement."""
        if not isinstance(inst, nodes.Assign):
            return super().lower_inst(inst)
        name, value = inst.target.name, None
        if name in self._singly_assigned_vars:
            value = self._in_parts(inst.value, self.typeof(name))
        if value is None:
            value = self.lower_assign(self.typeof(name), inst)
        self.storevar(value, name)
        return None

    def _in_parts(self, value: Any, kind: Any) -> Any:
        """What need not be put together: an array, or what a loop goes through; else None."""
        if isinstance(value, nodes.Var):
            known = self._blk_local_varmap.get(value.name)
            return known if isinstance(known, _Array) else None
        if not isinstance(value, nodes.Expr):
            return None
        if isinstance(kind, types.Array):
            return self._array_in_parts(value)
        return self._loop_in_parts(value) if is_ours(self.func_ir.func_id.modname) else None

    def _array_in_parts(self, expr: Any) -> _Array | None:
        if expr.op == "getattr" and isinstance(self.typeof(expr.value.name), Record):
            record, block = self.typeof(expr.value.name), self.loadvar(expr.value.name)
            return _Array(*array_in(self.context, self.builder, record, block, expr.attr))
        if expr.op in ("getitem", "static_getitem"):
            index = expr.index if expr.op == "getitem" else expr.index_var
            found = index and self._place(expr.value, index, *self.fndesc.calltypes[expr].args)
            return _Array(*found) if found and found[1] else None
        return None

    def _loop_in_parts(self, expr: Any) -> Any:
        builder = self.builder
        if expr.op == "call" and self.fndesc.calltypes[expr].return_type is _RANGE:
            given = self._given(tuple(expr.args), self.fndesc.calltypes[expr].args)
            step = given.pop() if len(given) == 3 else WORD(1)
            start = given.pop(0) if len(given) == 2 else WORD(0)
            # Numba goes by the sign of a step that is not known.
            known = isinstance(step, ir.Constant)
            return _Range(start, given[0], step.constant) if known else None
        loop = self._blk_local_varmap.get(expr.value.name) if expr.op in _LOOP else None
        if expr.op == "getiter" and isinstance(loop, _Range):
            with builder.goto_entry_block():
                place = builder.alloca(WORD)
            builder.store(loop.at, place)
            return loop._replace(at=place)
        if expr.op == "iternext" and isinstance(loop, _Range):
            number = builder.load(loop.at)
            builder.store(builder.add(number, WORD(loop.step), flags=["nsw"]), loop.at)
            sign = "<" if loop.step > 0 else ">"
            return _Next(number, builder.icmp_signed(sign, number, loop.stop))
        return getattr(loop, expr.op) if isinstance(loop, _Next) else None

    def loadvar(self, name: str) -> Any:
        """The value of a variable."""
        value = self._blk_local_varmap.get(name)
        if isinstance(value, _Array):
            return array_of(self.context, self.builder, self.typeof(name), *value)
        return super().loadvar(name) if value is None else value

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Keep the value of a variable; on the stack only if several blocks use it."""
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.varmap[name])

    def alloca(self, name: str, kind: Any) -> Any:
        """Room for a variable."""
        return cgutils.alloca_once(self.builder, self.context.get_value_type(kind), name=name)

    def _operator(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What numba has for an operator and types."""
        asked = (function, arguments)
        if asked not in self._known:
            typing = self.context.typing_context
            operation = typing.resolve_value_type(function)
            self._known[asked] = operation, operation.get_call_type(typing, arguments, {})
        return self.context.get_function(*self._known[asked])

    def _given(self, variables: tuple[Any, ...], kinds: tuple[Any, ...]) -> list[Any]:
        """Values of variables as other types."""
        return [
            self.context.cast(self.builder, self.loadvar(one.name), self.typeof(one.name), kind)
            for one, kind in zip(variables, kinds, strict=True)
        ]

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """x + y and the like."""
        signature = self.fndesc.calltypes[expr]
        given = self._given((expr.lhs, expr.rhs), signature.args)
        result = self._simple(op, signature.args, given)
        if result is None:
            result = self._operator(op, signature.args)(self.builder, given)
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def _simple(self, op: Any, kinds: tuple[Any, ...], given: list[Any]) -> Any:
        """What is one instruction; else None."""
        if kinds not in _ALIKE:
            return None
        is_float = kinds[0] == types.float64
        if op in _ARITHMETIC:
            return getattr(self.builder, "f" * is_float + _ARITHMETIC[op])(*given)
        compare = self.builder.fcmp_ordered if is_float else self.builder.icmp_signed
        return compare(_COMPARISONS[op], *given) if op in _COMPARISONS else None

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """x[i], x[i, j] and rows of a matrix."""
        found = self._place(value, index, *signature.args)
        if found is None:
            given = self._given((value, index), signature.args)
            result = self._operator(operator.getitem, signature.args)(self.builder, given)
        elif found[1]:
            result = array_of(self.context, self.builder, signature.return_type, *found)
        else:
            result = self.builder.load(found[0])
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """x[i] = y and x[i, j] = y."""
        array, index, kind = signature.args
        found = self._place(target_var, index_var, array, index)
        if found is None or found[1]:
            given = self._given((target_var, index_var, value_var), signature.args)
            return self._operator(operator.setitem, signature.args)(self.builder, given)
        [value] = self._given((value_var,), (kind,))
        value = self.context.cast(self.builder, value, kind, array.dtype)
        return self.builder.store(value, found[0])

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        """f(x). Kernels of ours raise nothing, which is taken for granted."""
        if short_call(fnty, signature.args):
            given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
            return self._short_call(fnty.typing_key, signature, given)
        is_one = isinstance(fnty, types.Dispatcher) and is_ours(fnty.dispatcher.py_func.__module__)
        if not is_one:
            return super()._lower_call_normal(fnty, expr, signature)
        builder, context = self.builder, self.context
        made = fnty.dispatcher.get_compile_result(signature)
        self.library.add_linking_library(made.library)
        function = context.declare_function(self.module, made.fndesc)
        given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
        with builder.goto_entry_block():
            place = builder.alloca(function.args[0].type.pointee)
        packed = context.get_arg_packer(made.fndesc.argtypes).as_arguments(builder, given)
        builder.call(function, [place, builder.function.args[1], *packed])
        return context.get_returned_value(builder, made.fndesc.restype, builder.load(place))

    def _short_call(self, name: Any, signature: Any, given: list[Any]) -> Any:
        if name is int:
            return self.context.cast(self.builder, given[0], *signature.args, types.int64)
        # As Python does it: the first one, unless the second is larger (smaller).
        first, second = given
        is_beyond = self._simple(_ORDER[name], signature.args, [second, first])
        return self.builder.select(is_beyond, second, first)

    def _shaped(self, variable: Any, kind: Any) -> _Array:
        """Address and shape of an array."""
        known = self._blk_local_varmap.get(variable.name)
        if isinstance(known, _Array):
            return known
        value, layout = self.loadvar(variable.name), self.context.data_model_manager[kind]
        data = self.builder.extract_value(value, layout.get_field_position("data"))
        lengths = self.builder.extract_value(value, layout.get_field_position("shape"))
        return _Array(data, [self.builder.extract_value(lengths, d) for d in range(kind.ndim)])

    def _place(self, variable: Any, at_variable: Any, array: Any, index: Any) -> Any:
        """Address of a number or row of an array, and the row's shape; None for other indices."""
        several = isinstance(index, types.UniTuple)
        kinds = tuple(index) if several else (index,)
        if not isinstance(array, types.Array) or array.layout != "C" or len(kinds) > array.ndim:
            return None
        if array.dtype not in _NUMBERS or any(kind != types.int64 for kind in kinds):
            return None
        builder = self.builder
        data, shape = self._shaped(variable, array)
        [at] = self._given((at_variable,), (index,))
        offset = WORD(0)
        for d, length in enumerate(shape):
            offset = builder.mul(offset, length) if d else offset
            if d < len(kinds):
                place = builder.extract_value(at, d) if several else at
                # No index of ours counts from the end, and looking takes a tenth of a step.
                known = isinstance(place, ir.Constant) and place.constant >= 0
                if not (known or is_ours(self.func_ir.func_id.modname)):
                    below = builder.icmp_signed("<", place, WORD(0))
                    place = builder.select(below, builder.add(place, length), place)
                offset = builder.add(offset, place) if d else place
        return builder.gep(data, [offset]), shape[len(kinds) :]


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """Numba's pass, with the class above."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower
