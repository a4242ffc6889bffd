"""From numba's intermediate language to LLVM's, in half of numba's time.

For every x + y numba looks up, by trying all that there is, what type inference has found already;
it lays an array on the stack before it reads a number of it; and it says where variables end, which
only matters to reference counting. All of this is left out here.
"""

from __future__ import annotations

import operator
from typing import Any, ClassVar

from llvmlite import ir
from numba import types
from numba.core import cgutils, lowering
from numba.core import ir as nodes
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from .record_types import WORD, array_of

_OURS = __name__.partition(".")[0] + "."
_NUMBERS = (types.float64, types.int64, types.uint64)


def is_ours(module: str) -> bool:
    """Whether a module is part of this package."""
    return module.startswith(_OURS)


class _Lower(lowering.Lower):
    _known: ClassVar[dict[Any, Any]] = {}

    def lower_inst(self, inst: Any) -> Any:
        """A statement."""
        if not isinstance(inst, nodes.Assign):
            return super().lower_inst(inst)
        name = inst.target.name
        self.storevar(self.lower_assign(self.typeof(name), inst), name)
        return None

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
        result = self._operator(op, signature.args)(self.builder, given)
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """x[i], x[i, j] and rows of a matrix."""
        given = self._given((value, index), signature.args)
        found = self._place(*signature.args, *given)
        if found is None:
            result = self._operator(operator.getitem, signature.args)(self.builder, given)
        elif found[1]:
            result = array_of(self.context, self.builder, signature.return_type, *found)
        else:
            result = self.builder.load(found[0])
        return self.context.cast(self.builder, result, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """x[i] = y and x[i, j] = y."""
        given = self._given((target_var, index_var, value_var), signature.args)
        array, index, kind = signature.args
        found = self._place(array, index, *given[:2])
        if found is None or found[1]:
            return self._operator(operator.setitem, signature.args)(self.builder, given)
        value = self.context.cast(self.builder, given[2], kind, array.dtype)
        return self.builder.store(value, found[0])

    def _place(self, array: Any, index: Any, value: Any, at: Any) -> Any:
        """Address of a number or row of an array, and the row's shape; None for other indices."""
        several = isinstance(index, types.UniTuple)
        kinds = tuple(index) if several else (index,)
        if not isinstance(array, types.Array) or array.layout != "C" or len(kinds) > array.ndim:
            return None
        if array.dtype not in _NUMBERS or any(kind != types.int64 for kind in kinds):
            return None
        builder, layout = self.builder, self.context.data_model_manager[array]
        lengths = builder.extract_value(value, layout.get_field_position("shape"))
        shape = [builder.extract_value(lengths, d) for d in range(array.ndim)]
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
        data = builder.extract_value(value, layout.get_field_position("data"))
        return builder.gep(data, [offset]), shape[len(kinds) :]


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """Numba's pass, with the class above."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower
