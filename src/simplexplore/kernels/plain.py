"""Compiling with numba's public interface alone; see pipeline.py for what is better."""

from __future__ import annotations

import types as python
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import types
from numba.extending import typeof_impl

from .kernel import options
from .record_types import signature_of


@cache
def _part(function: Callable[..., Any]) -> Any:
    return numba.njit(error_model="numpy", **(options(function) or {}))(function)


def _type_of_function(function: Callable[..., Any], _: Any) -> types.Type | None:
    """Kernels are ordinary functions; compiled code may call them."""
    return None if options(function) is None else types.Dispatcher(_part(function))


_MADE: list[Any] = []  # numba frees the code of what nobody holds


def compiled(function: Callable[..., Any], form: str, kind: str) -> int:
    """The address of a unit's machine code."""
    # Not when this file is imported: pipeline.py has a way of its own.
    typeof_impl.register(python.FunctionType, _type_of_function)
    arguments, result = signature_of(form, kind)
    made = numba.cfunc(result(*arguments), nopython=True, error_model="numpy", nogil=True)
    _MADE.append(made(function))
    return int(_MADE[-1].address)
