"""What marks a function of compiled code.

A kernel is an ordinary function over records (records.py): loops over numbers, no objects, no
memory of its own, no exceptions. Called from Python it runs as Python, so that breakpoints,
coverage and uncompiled live studies need nothing special; native.py compiles it when a run is
long enough to pay for that, and a GPU's compiler takes it as it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_MARK = "__kernel__"
_LONG = "__long__"


def kernel(function: Function) -> Function:
    """Mark a function of compiled code."""
    setattr(function, _MARK, {})
    return function


def inlined(function: Function) -> Function:
    """Mark a short one that every caller takes in: a call would cost more than its work."""
    setattr(function, _MARK, {"forceinline": True})
    return function


def long(function: Function) -> Function:
    """Mark a long one: a GPU's compiler would take it into every caller, for minutes."""
    setattr(function, _LONG, True)
    return kernel(function)


def is_long(function: Callable[..., Any]) -> bool:
    """Whether a function is marked as a long one."""
    return getattr(function, _LONG, False)


def options(function: Callable[..., Any]) -> dict[str, bool] | None:
    """How to compile a function; None if it is not a kernel."""
    marked: dict[str, bool] | None = getattr(function, _MARK, None)
    return marked


def calls(function: Callable[..., Any]) -> set[str]:
    """Names of everything that a kernel, or one that it calls, uses: attributes too."""
    found: set[str] = set()
    waiting, seen = [function], {function}
    while waiting:
        one = waiting.pop()
        names = set(one.__code__.co_names)
        found |= names
        space = one.__globals__
        modules = [space[n] for n in names if isinstance(space.get(n), types.ModuleType)]
        for one_space in (space, *map(vars, modules)):
            for name in names:
                called = one_space.get(name)
                if isinstance(called, types.FunctionType) and called not in seen:
                    seen.add(called)
                    if options(called) is not None:
                        waiting.append(called)
    return found
