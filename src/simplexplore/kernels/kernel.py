"""What marks a function of compiled code.

A kernel is an ordinary function over records (records.py): loops over numbers, no objects, no
memory of its own, no exceptions. Called from Python it runs as Python, so that breakpoints and
coverage need nothing special; native.py compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__kernel__"


def kernel(function: Function) -> Function:
    """Mark a function of compiled code."""
    setattr(function, _MARK, {})
    return function


def inlined(function: Function) -> Function:
    """Mark a short one that every caller takes in: a call would cost more than its work."""
    setattr(function, _MARK, {"forceinline": True})
    return function


def options(function: Callable[..., Any]) -> dict[str, bool] | None:
    """Numba's options for a function; None if it is not a kernel."""
    marked: dict[str, bool] | None = getattr(function, _MARK, None)
    return marked
