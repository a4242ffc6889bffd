"""Records as lists: kernels that run uncompiled take half the time with these.

What an array gives out are objects of numpy's, and arithmetic with them is slow. Lists give out
Python's own numbers, and the same bits; except that Python raises an error where compiled code
goes on with an infinite number. Then nothing has happened yet, and arrays are taken instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from .records import Memory

# Events for which it pays to copy all arrays.
MANY = 64


class Numbers(list[Any]):
    """An array of one dimension."""

    __slots__ = ("size",)

    def __init__(self, numbers: list[Any]) -> None:
        super().__init__(numbers)
        self.size = len(numbers)


class Rows:
    """An array of two dimensions."""

    __slots__ = ("rows", "shape")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.rows = [Numbers(row) for row in array.tolist()]
        self.shape = array.shape

    def __getitem__(self, place: Any) -> Any:
        if type(place) is tuple:
            return self.rows[place[0]][place[1]]
        return self.rows[place]

    def __setitem__(self, place: tuple[int, int], number: float) -> None:
        self.rows[place[0]][place[1]] = number


@cache
def _like(record: type[Any]) -> type[Any]:
    """A class with the fields of a record, which are found faster in it than in a tuple."""
    return type(record.__name__, (), {"__slots__": record._fields})


def as_lists(value: Any, by_row: bool = False) -> Any:
    """A record with all that is in it; numbers and functions stay as they are.

    Kernels take whole rows of a sampler's memory. Of other matrices they take single numbers, and
    views give these out faster.
    """
    if isinstance(value, np.ndarray):
        if value.dtype == np.uint64:  # random streams rely on numpy's overflow
            return value.copy()
        if value.ndim == 1:
            return Numbers(value.tolist())
        return Rows(value) if by_row else value.copy().data
    if not isinstance(value, tuple):
        return value
    made = _like(type(value))()
    for field, content in _fields(value):
        setattr(made, field, as_lists(content, isinstance(value, Memory)))
    return made


def write_back(value: Any, lists: Any) -> None:
    """Put what lists hold into the arrays of the record that they were made of."""
    if isinstance(value, np.ndarray):
        if value.size:
            value[...] = lists.rows if isinstance(lists, Rows) else lists
    elif isinstance(value, tuple):
        for field, content in _fields(value):
            write_back(content, getattr(lists, field))


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    return zip(record._fields, record, strict=True)


class Lists:
    """Records as lists for one engine; those that never change are copied once."""

    def __init__(self) -> None:
        self._fixed: dict[type[Any], tuple[Any, Any]] = {}

    def fixed(self, record: Any) -> Any:
        """A record that kernels only read."""
        kept = self._fixed.get(type(record))
        if kept is None or kept[0] is not record:
            kept = self._fixed[type(record)] = record, as_lists(record)
        return kept[1]

    @contextmanager
    def of(self, *records: Any) -> Iterator[list[Any]]:
        """Records that kernels write: they get what is written unless an error comes of it."""
        lists = [as_lists(record) for record in records]
        yield lists
        for record, made in zip(records, lists, strict=True):
            write_back(record, made)
