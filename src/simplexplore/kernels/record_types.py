"""Records in compiled code: what `run.n[a]` means there, in numba's words.

A record is known by the address of its block of words (blocks.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_cast, lower_getattr_generic, models, register_model

from .blocks import ARRAYS, fields
from .slots import FORMS, KINDS

WORD, _INDEX = ir.IntType(64), ir.IntType(32)


class Record(types.Type):
    """The type of a record's block of words.

    The kind of rewards is part of it, so that branches on it can be decided by the type.
    """

    def __init__(self, label: str, kind: str) -> None:
        self.label, self.kind = label, kind
        super().__init__(name=f"{label}[{kind}]")

    @property
    def length(self) -> int:
        """Words in the block."""
        return fields(self.label)[""][1]

    @property
    def names(self) -> tuple[str, ...]:
        """Fields in order."""
        return tuple(fields(self.label))[:-1]

    def place(self, name: str) -> tuple[types.Type, int]:
        """Type and first word of a field."""
        annotation, word = fields(self.label)[name]
        return type_of(annotation, self.kind), word

    def constant(self, name: str) -> bool | None:
        """The value of a field that the type knows."""
        return KINDS[self.kind].get(name) if self.label == "Setting" else None

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Any:
        """A record that compiled code has made itself, see `_made_here`."""
        is_one = isinstance(other, types.BaseNamedTuple) and other.fields == self.names
        return Conversion.safe if is_one else None


@cache
def type_of(annotation: str, kind: str) -> types.Type:
    """The type that an annotation stands for."""
    if annotation in ARRAYS:
        name, dimensions = ARRAYS[annotation]
        return types.Array(getattr(types, name), dimensions, "C")
    if annotation in FORMS:
        *arguments, result = (type_of(name, kind) for name in FORMS[annotation])
        return types.ExternalFunctionPointer(result(*arguments), get_pointer=None)
    numbers = {"int": types.int64, "float": types.float64, "bool": types.boolean}
    return numbers.get(annotation) or (
        types.void if annotation == "None" else Record(annotation, kind)
    )


@register_model(Record)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Record) -> None:
        super().__init__(manager, kind, _block(kind).as_pointer())


def _block(kind: Record) -> ir.ArrayType:
    return ir.ArrayType(WORD, kind.length)


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = Record

    def generic_resolve(self, record: Record, name: str) -> types.Type | None:
        return record.place(name)[0] if name in record.names else None


@lower_getattr_generic(Record)
def _field(context: Any, builder: Any, record: Record, block: Any, name: str) -> Any:
    """Read a field."""
    kind, first = record.place(name)
    if isinstance(kind, types.Array):
        return array_of(context, builder, kind, *array_in(context, builder, record, block, name))
    if kind == types.boolean:
        return builder.icmp_unsigned("!=", _word(builder, block, first, WORD), WORD(0))
    return _word(builder, block, first, context.get_value_type(kind))


def _word(builder: Any, block: Any, number: int, form: Any) -> Any:
    """Read a word. Blocks do not change while compiled code runs, which the optimiser is told."""
    value = builder.load(builder.gep(block, [_INDEX(0), _INDEX(number)]), typ=form)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def array_in(
    context: Any, builder: Any, record: Record, block: Any, name: str
) -> tuple[Any, list[Any]]:
    """Address and shape of an array that is a field."""
    kind, first = record.place(name)
    item = context.get_data_type(kind.dtype)
    shape = [_word(builder, block, first + 1 + d, WORD) for d in range(kind.ndim)]
    return _word(builder, block, first, item.as_pointer()), shape


def array_of(context: Any, builder: Any, kind: types.Array, data: Any, shape: list[Any]) -> Any:
    """An array of numbers of eight bytes as numba lays it out, without a place on the stack."""
    strides = [WORD(8)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    count = shape[0]
    for length in shape[1:]:
        count = builder.mul(count, length, flags=["nsw"])
    layout = context.data_model_manager[kind]
    array = ir.Constant(layout.get_value_type(), None)
    parts = {
        "nitems": count,
        "itemsize": WORD(8),
        "data": data,
        "shape": cgutils.pack_array(builder, shape, WORD),
        "strides": cgutils.pack_array(builder, strides, WORD),
    }
    for place, part in parts.items():
        array = builder.insert_value(array, part, layout.get_field_position(place))
    return array


@lower_cast(types.BaseNamedTuple, Record)
def _made_here(context: Any, builder: Any, given: Any, record: Record, value: Any) -> Any:
    """A record of arrays that compiled code has made itself, put into a block on the stack."""
    with builder.goto_entry_block():
        block = builder.alloca(_block(record))
    for i, name in enumerate(record.names):
        kind, first = record.place(name)
        array = context.make_array(kind)(context, builder, builder.extract_value(value, i))
        shape = [builder.extract_value(array.shape, d) for d in range(kind.ndim)]
        for number, word in enumerate([builder.ptrtoint(array.data, WORD), *shape]):
            builder.store(word, builder.gep(block, [_INDEX(0), _INDEX(first + number)]))
    return block


def signature_of(form: str, kind: str) -> tuple[tuple[types.Type, ...], types.Type]:
    """Types of the arguments and of the result of a form."""
    *arguments, result = (type_of(name, kind) for name in FORMS[form])
    return tuple(arguments), result
