"""Records on a GPU: what `run.n[a]` means there, in the words of numba-cuda.

A record is known by its addresses. Its block of words (kernels/packed_record.py) holds numbers,
shapes, and where arrays lie counted from its base. Blocks are the same for all threads; what a
thread has to itself, a `RunState` and a `Scratch`, has its base in the thread's own memory. What is
known of a block when code is compiled is part of the record's type.

Arrays are not numba's own: those count an index from the end if it is negative, which takes half
of all instructions of a step, and which no kernel needs.
"""

from __future__ import annotations

import operator
import types as python
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils, types
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.cudaimpl import registry as lowering_registry
from numba.cuda.extending import core_models, intrinsic, register_model, typeof_impl
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

from simplexplore.kernels.functions import SIGNATURES
from simplexplore.kernels.kernel import options
from simplexplore.kernels.packed_record import ARRAYS, fields

from .queue import take

_WORD, _BYTE = ir.IntType(64), ir.IntType(8)

# The functions of a run by slot: part of a record's type, so that they are called directly.
Bound = tuple[tuple[str, Callable[..., Any]], ...]

# Arrays of a run of which kernels name single items only, never by a variable: apart from the
# others, so that the compiler can keep them in registers.
SMALL = ("integers", "rewards", "choices")


class DeviceArray(types.Type):
    """An array of a record, or a row of one."""

    def __init__(self, item: types.Type, dimensions: int) -> None:
        self.item, self.dimensions = item, dimensions
        super().__init__(name=f"DeviceArray({item}, {dimensions})")


class DeviceRecord(types.Type):
    """The type of a record.

    Parameters
    ----------
    label : str
        Its name in records.py.
    closed_form : bool
        The kind of rewards, so that branches on it are decided by the type.
    bound : tuple
        The functions of a run, by slot.
    words : tuple of int
        The words of all blocks, where they are known when code is compiled: shapes, places of
        arrays, whole numbers and flags are constants then, and branches on them go away.
    first : int
        Where this record's block begins among them.
    """

    def __init__(
        self,
        label: str,
        closed_form: bool,
        bound: Bound,
        words: tuple[int, ...] = (),
        first: int = 0,
    ) -> None:
        self.label, self.closed_form, self.bound = label, closed_form, bound
        self.words, self.first = words, first
        homes = " ".join(f"{f.__module__}.{f.__name__}" for _, f in bound)
        kind = "gaussian" if closed_form else "exponential"
        super().__init__(name=f"{label}[{kind} {homes} {hash(words):x} {first}]")

    def known(self, word: int) -> int | None:
        """The value of a word of this record's block, if it is known."""
        return self.words[self.first + word] if self.words else None

    def constant(self, name: str) -> bool | int | None:
        """The value of a whole number or flag, if it is known."""
        if name == "closed_form":
            return self.closed_form
        annotation, word = fields(self.label).get(name, ("", 0))
        value = self.known(word) if annotation in ("int", "bool") else None
        return bool(value) if annotation == "bool" and value is not None else value

    def place(self, name: str) -> tuple[types.Type, int] | None:
        """Type and first word of a field."""
        found = fields(self.label).get(name)
        if found is None:
            return None
        annotation, word = found
        if annotation in SIGNATURES:
            return device_function(dict(self.bound)[name])._numba_type_, word
        if annotation in ARRAYS:
            item, dimensions = ARRAYS[annotation]
            return DeviceArray(getattr(types, item), dimensions), word
        numbers = {"int": types.int64, "float": types.float64, "bool": types.boolean}
        if annotation in numbers:
            return numbers[annotation], word
        inner = self.first + (self.known(word) or 0) // 8
        return DeviceRecord(annotation, self.closed_form, self.bound, self.words, inner), word


# ---------------------------------------------------------------------- layout


@register_model(DeviceRecord)
class _RecordModel(core_models.StructModel):
    def __init__(self, manager: Any, kind: DeviceRecord) -> None:
        places = ("block", "base", "small")
        super().__init__(manager, kind, [(place, types.voidptr) for place in places])


@register_model(DeviceArray)
class _ArrayModel(core_models.StructModel):
    def __init__(self, manager: Any, kind: DeviceArray) -> None:
        shape = types.UniTuple(types.int64, kind.dimensions)
        super().__init__(manager, kind, [("data", types.CPointer(kind.item)), ("shape", shape)])


def _made(context: Any, builder: Any, kind: types.Type, *parts: Any) -> Any:
    value = ir.Constant(context.get_value_type(kind), None)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, part, i)
    return value


# ---------------------------------------------------------------------- fields


@typing_registry.register_attr
class _RecordFields(AttributeTemplate):
    key = DeviceRecord

    def generic_resolve(self, record: DeviceRecord, name: str) -> types.Type | None:
        found = record.place(name)
        return found and found[0]


@lowering_registry.lower_getattr_generic(DeviceRecord)
def _field(context: Any, builder: Any, record: DeviceRecord, value: Any, name: str) -> Any:
    """Read a field. Blocks do not change while a kernel runs, which the optimiser is told."""
    place = record.place(name)
    assert place is not None
    kind, first = place
    if name == "closed_form":
        return context.get_constant(types.boolean, record.closed_form)
    block, base, small = (builder.extract_value(value, i) for i in range(3))
    constant = builder.module.add_metadata([])

    def word(number: int, form: Any = _WORD) -> Any:
        value = record.known(first + number)
        if value is not None and isinstance(form, ir.IntType):
            return _WORD(value)
        offset = ir.IntType(32)(8 * (first + number))
        loaded = builder.load(builder.bitcast(builder.gep(block, [offset]), form.as_pointer()))
        loaded.set_metadata("invariant.load", constant)
        return loaded

    if isinstance(kind, DeviceArray):
        item = context.get_data_type(kind.item)
        where = small if record.label == "RunState" and name in SMALL else base
        data = builder.bitcast(builder.gep(where, [word(0)]), item.as_pointer())
        shape = ir.Constant(ir.ArrayType(_WORD, kind.dimensions), None)
        for d in range(kind.dimensions):
            shape = builder.insert_value(shape, word(1 + d), d)
        return _made(context, builder, kind, data, shape)
    if isinstance(kind, DeviceRecord):
        return _made(context, builder, kind, builder.gep(block, [word(0)]), base, small)
    if kind == types.boolean:
        return builder.icmp_unsigned("!=", word(0), _WORD(0))
    if isinstance(kind, types.Number):
        return word(0, context.get_value_type(kind))
    return context.get_dummy_value()  # a function


@typing_registry.register_attr
class _ArrayFields(AttributeTemplate):
    key = DeviceArray

    def resolve_size(self, array: DeviceArray) -> types.Type:
        return types.int64

    def resolve_shape(self, array: DeviceArray) -> types.Type:
        return types.UniTuple(types.int64, array.dimensions)


@lowering_registry.lower_getattr(DeviceArray, "shape")
def _shape(context: Any, builder: Any, array: DeviceArray, value: Any) -> Any:
    return builder.extract_value(value, 1)


@lowering_registry.lower_getattr(DeviceArray, "size")
def _size(context: Any, builder: Any, array: DeviceArray, value: Any) -> Any:
    count = builder.extract_value(value, [1, 0])
    for d in range(1, array.dimensions):
        count = builder.mul(count, builder.extract_value(value, [1, d]))
    return count


# ---------------------------------------------------------------------- items


def _indices(index: types.Type) -> list[types.Type] | None:
    """Types of the indices, if all are whole numbers."""
    given = list(index) if isinstance(index, types.BaseTuple) else [index]
    return given if all(isinstance(one, types.Integer) for one in given) else None


@typing_registry.register_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index = args
        if not isinstance(array, DeviceArray) or _indices(index) is None:
            return None
        left = array.dimensions - len(_indices(index) or ())
        if left == 0:
            return signature(array.item, array, index)
        return signature(DeviceArray(array.item, left), array, index) if left > 0 else None


@typing_registry.register_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        array, index, _ = args
        if not isinstance(array, DeviceArray):
            return None
        found = _indices(index)
        if found is None:  # everything at once: [:, :]
            return signature(types.none, array, index, array.item)
        if len(found) != array.dimensions:
            return None
        return signature(types.none, array, index, array.item)


def _place(builder: Any, array: DeviceArray, value: Any, index: types.Type, given: Any) -> Any:
    """The address of an item, or of the first one of a row."""
    kinds = _indices(index)
    assert kinds is not None
    many = isinstance(index, types.BaseTuple)
    numbers = [builder.extract_value(given, i) for i in range(len(kinds))] if many else [given]
    offset = None
    for d, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
        extend = builder.sext if kind.signed else builder.zext
        here = extend(number, _WORD) if kind.bitwidth < 64 else number
        offset = here if offset is None else builder.add(offset, here)
        if d + 1 < array.dimensions:
            offset = builder.mul(offset, builder.extract_value(value, [1, d + 1]))
    for d in range(len(kinds) + 1, array.dimensions):
        offset = builder.mul(offset, builder.extract_value(value, [1, d]))
    return builder.gep(builder.extract_value(value, 0), [offset])


@lowering_registry.lower(operator.getitem, DeviceArray, types.Any)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array, index = sig.args
    place = _place(builder, array, args[0], index, args[1])
    if not isinstance(sig.return_type, DeviceArray):
        return builder.load(place)
    row = sig.return_type
    shape = ir.Constant(ir.ArrayType(_WORD, row.dimensions), None)
    for d in range(row.dimensions):
        length = builder.extract_value(args[0], [1, array.dimensions - row.dimensions + d])
        shape = builder.insert_value(shape, length, d)
    return _made(context, builder, row, place, shape)


@lowering_registry.lower(operator.setitem, DeviceArray, types.Any, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array, index, kind = sig.args
    value = context.cast(builder, args[2], kind, array.item)
    if _indices(index) is None:
        data = builder.extract_value(args[0], 0)
        with cgutils.for_range(builder, _size(context, builder, array, args[0])) as loop:
            builder.store(value, builder.gep(data, [loop.index]))
    else:
        builder.store(value, _place(builder, array, args[0], index, args[1]))
    return context.get_dummy_value()


# ---------------------------------------------------------------------- functions


@intrinsic
def _take(_: Any, job: Any) -> Any:
    """What `queue.take` does, for many threads at once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        progress = _field(context, builder, sig.args[0], args[0], "progress")
        counter = builder.extract_value(progress, 0)
        return builder.atomic_rmw("add", counter, _WORD(1), "monotonic")

    return types.int64(job), generate


def _take_one(job: Any) -> int:
    return _take(job)


@cache
def device_function(function: Callable[..., Any]) -> Any:
    """A kernel as a function of a GPU."""
    made = _take_one if function is take else function
    return cuda.jit(device=True, **(options(function) or {}))(made)


@typeof_impl.register(python.FunctionType)
def _type_of_function(function: Callable[..., Any], _: Any) -> types.Type | None:
    """Kernels are ordinary functions; compiled code may call them."""
    return None if options(function) is None else device_function(function)._numba_type_


def attached(kind: DeviceRecord) -> Any:
    """A function of a GPU that makes a record from its addresses."""

    def attach(_: Any, block: Any, base: Any, small: Any) -> Any:
        def generate(context: Any, builder: Any, __: Any, given: Any) -> Any:
            places = [builder.inttoptr(address, _BYTE.as_pointer()) for address in given]
            return _made(context, builder, kind, *places)

        return kind(block, base, small), generate

    return intrinsic(attach)


@intrinsic
def address_of(_: Any, array: Any) -> Any:
    """Where an array lies."""

    def generate(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        made = context.make_array(sig.args[0])(context, builder, given[0])
        return builder.ptrtoint(made.data, _WORD)

    return types.int64(array), generate


@intrinsic
def word_at(_: Any, address: Any, number: Any) -> Any:
    """One of the words that begin at an address."""

    def generate(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        first = builder.inttoptr(given[0], _WORD.as_pointer())
        return builder.load(builder.gep(first, [given[1]]))

    return types.int64(address, number), generate
