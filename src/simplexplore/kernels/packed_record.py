"""Records as compiled code reads them: blocks of 64-bit words.

A record of fifty arrays handed over one by one would be four hundred arguments of every compiled
function; so addresses, lengths and numbers are written into one block, and compiled code is told
where the block lies. `run.n[a]` means the same on both sides.
"""

from __future__ import annotations

import ctypes
import inspect
import struct
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from . import functions, records

# Arrays by annotation: type of the numbers, dimensions.
ARRAYS: dict[str, tuple[str, int]] = {
    "Vector": ("float64", 1),
    "Matrix": ("float64", 2),
    "Indices": ("int64", 1),
    "IndexRows": ("int64", 2),
    "Words": ("uint64", 1),
    "Streams": ("uint64", 3),
}
_EXPECTED = {name: (np.dtype(kind), dimensions) for name, (kind, dimensions) in ARRAYS.items()}
_WORDS = ctypes.POINTER(ctypes.c_int64)

Record = TypeVar("Record")


@cache
def fields(label: str) -> dict[str, tuple[str, int]]:
    """Annotation and first word of each field of a record."""
    home = getattr(records, label, None) or getattr(functions, label)
    places, word = {}, 0
    for name, given in inspect.get_annotations(home).items():
        annotation = str(getattr(given, "__forward_arg__", given))
        places[name] = (annotation, word)
        word += 1 + (ARRAYS[annotation][1] if annotation in ARRAYS else 0)
    return places


def zeros(record: type[Record], **given: Any) -> Record:
    """A record of kernels/records.py: arrays of zeros of the shapes given, else empty.

    Fields that are not arrays are as given, else 0.
    """
    made = {}
    for name, (annotation, _) in fields(record.__name__).items():
        if annotation in ARRAYS:
            kind, dimensions = ARRAYS[annotation]
            made[name] = np.zeros(given.get(name, (0,) * dimensions), kind)
        else:
            made[name] = given.get(name, 0)
    return record(**made)


class PackedRecord:
    """A record as words; it keeps the record, and with it the arrays, alive.

    Parameters
    ----------
    record : NamedTuple
        One of records.py.
    address : function
        From a function of a run to where its machine code lies.
    """

    __slots__ = ("parts", "pointer", "record", "words")

    def __init__(self, record: Any, address: Callable[[str, Any], int]) -> None:
        self.record = record
        self.parts: list[PackedRecord] = []  # records that this one points to
        words: list[int] = []
        label = type(record).__name__
        for (name, (annotation, _)), value in zip(fields(label).items(), record, strict=True):
            if annotation in functions.SIGNATURES:
                words.append(address(name, value))
            else:
                words += self._words(annotation, value, address)
        self.words = np.array(words, dtype=np.int64)
        self.pointer = self.words.ctypes.data_as(_WORDS)

    def holds(self, record: Any) -> bool:
        """Whether a record has the same arrays, functions and numbers."""
        return record is self.record or all(
            one is other or (isinstance(one, int | float) and one == other)
            for one, other in zip(record, self.record, strict=True)
        )

    def _words(
        self, annotation: str, value: Any, address: Callable[[str, Any], int]
    ) -> Iterable[int]:
        if annotation in ARRAYS:
            kind, dimensions = _EXPECTED[annotation]
            if value.dtype != kind or value.ndim != dimensions or not value.flags.c_contiguous:
                raise TypeError(f"{value.dtype} {value.shape} is no {annotation}")
            return (value.__array_interface__["data"][0], *value.shape)
        if annotation == "float":
            return struct.unpack("<q", struct.pack("<d", value))
        if annotation in ("int", "bool"):
            return (int(value),)
        self.parts.append(PackedRecord(value, address))
        return (self.parts[-1].words.ctypes.data,)
