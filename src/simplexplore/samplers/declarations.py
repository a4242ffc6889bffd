"""Files of functions to compile, ours and users': what they declare, and their functions."""

from __future__ import annotations
import __future__

import ast
import hashlib
import importlib
import math
import threading
import types
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simplexplore.errors import SettingError
from simplexplore.kernels import (
    costs,
    exponential,
    gaussian,
    information,
    maximin,
    projection,
    records,
    rng,
)
from simplexplore.kernels.kernel import kernel, options

HERE = Path(__file__).parent

# What a sampler file may declare, see samplers/__init__.py.
DECLARATIONS = (
    *("ARM_VECTORS", "EDGE_VECTORS", "TRACKING", "WITHIN_CONSTRAINTS", "PAIRS", "POLICIES"),
)

# What users' files may import. Machine code is filed under a hash of the file: numbers and
# functions from anywhere else could change without being noticed.
_OPEN = ("__future__", "math", "numba", "numpy", "simplexplore", "typing")
_SEEN = "compiled files see math, np, njit and the kernels' names alone"

# The text that a user's functions were made of, among the names that they see.
SOURCE = "__source__"

Definition = ast.FunctionDef | ast.Assign

# Python's parser counts its depth for all threads together, and fails with a SystemError if two of
# them use it (seen with 3.11). Ours take turns; others, such as whoever formats a traceback, do not
# ask, so that what failed for that reason is tried again, and a text is parsed once.
_PARSING = threading.Lock()
_TRIES = 5


def read(path: Path) -> str:
    """The text of a file; `SettingError` says why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SettingError(f"{path.name} is not a text file in UTF-8.") from None
    except OSError as error:
        raise SettingError(f"cannot read {path.name}: {error.strerror}.") from None


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; `SettingError` says what is wrong with it."""
    text = read(path)
    try:
        return _tree(text)
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise SettingError(f"{path.name}{place}: {error.msg}.") from None


@lru_cache(maxsize=64)
def _tree(text: str) -> ast.Module:
    with _PARSING:
        for _ in range(_TRIES - 1):
            with suppress(SystemError):
                return ast.parse(text)
        return ast.parse(text)


def definitions(path: Path) -> list[Definition]:
    """Functions and constants, in order; a constant's type is left out."""
    found: list[Definition] = []
    for node in parsed(path).body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            plain = ast.Assign([node.target], node.value)
            found.append(ast.copy_location(plain, node))
        elif isinstance(node, ast.FunctionDef | ast.Assign):
            found.append(node)
    return found


def mentioned(path: Path) -> frozenset[str]:
    """The names and attributes that a file uses, such as `maximin` and `memory.arms`."""
    return _mentioned(read(path))


@lru_cache(maxsize=64)  # every engine asks
def _mentioned(text: str) -> frozenset[str]:
    nodes = ast.walk(_tree(text))
    return frozenset(ast.unparse(n) for n in nodes if isinstance(n, ast.Name | ast.Attribute))


def defined(node: Definition) -> set[str]:
    """The names that a definition gives."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def is_ours(path: Path) -> bool:
    """Whether a file is part of the program."""
    return HERE in path.parents


def function_of(path: Path, name: str) -> Callable[..., Any]:
    """A function of a sampler or threshold file."""
    if is_ours(path):
        found = getattr(importlib.import_module(f"{__package__}.{path.stem}"), name)
    else:
        found = _own(path, read(path))[name]
    function: Callable[..., Any] = found
    return function


def own_text(function: Callable[..., Any]) -> str:
    """The text of the user's file that a function is from; empty for ours."""
    return str(function.__globals__.get(SOURCE, ""))


_OWN: dict[tuple[Path, str], dict[str, Any]] = {}


def _own(path: Path, text: str) -> dict[str, Any]:
    """The names of a user's file, whose functions are kernels; run once for each text it has."""
    if (path, text) not in _OWN:
        _check(path)
        _OWN[path, text] = _run(path, text)
    return _OWN[path, text]


def _check(path: Path) -> None:
    """Raise `SettingError` for what compiled files cannot hold."""
    for node in parsed(path).body:
        place = f"{path.name}, line {node.lineno}"
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            if name.partition(".")[0] not in _OPEN:
                raise SettingError(f"{place}: {name!r} cannot be imported; {_SEEN}.")
        if isinstance(node, ast.FunctionDef) and [
            ast.unparse(decorator) for decorator in node.decorator_list
        ] not in ([], ["njit"], ["kernel"]):
            raise SettingError(f"{place}: plain '@njit', and nothing else, must precede 'def'.")


def _run(path: Path, text: str) -> dict[str, Any]:
    module = types.ModuleType(f"own_{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    module.__file__ = str(path)
    space = vars(module)
    space |= offered() | {SOURCE: text}
    # Types are for the reader: they are not looked at.
    flags = __future__.annotations.compiler_flag
    with _PARSING:
        code = compile(text, str(path), "exec", flags=flags, dont_inherit=True)
    try:
        exec(code, space)  # a file of the user's own, given by name
    except Exception as error:
        hint = f"; {_SEEN}" if isinstance(error, NameError) else ""
        raise SettingError(f"{path.name}: {error}{hint}.") from error
    for name, value in list(space.items()):
        function = getattr(value, "py_func", value)  # numba's njit keeps it there
        if not isinstance(function, types.FunctionType):
            continue
        if function.__code__.co_filename == str(path):
            space[name] = kernel(function)
        elif function.__module__ in (gaussian.__name__, exponential.__name__):
            # Of the same name for every family: the one that looks which it is.
            space[name] = getattr(information, function.__name__, function)
    return space


def offered() -> dict[str, Any]:
    """What compiled files see without importing it."""
    names: dict[str, Any] = {"math": math, "np": np, "njit": kernel, "kernel": kernel}
    for module in (records, rng, maximin, projection, information, costs):
        names |= {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, int | float) or options(value) is not None
        }
    return names
