"""Files of functions to compile, ours and users': how they are run, and what they define."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import re
import sys
import sysconfig
import threading
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from simplexplore.errors import SettingError
from simplexplore.kernels.kernel import kernel

HERE = Path(__file__).parent

_RUNNING = threading.Lock()

# What numba says of an array or list that would have to be made.
_MADE = ("Only accept returning of array passed", "NRT required", "_allocate(")


def is_ours(path: Path) -> bool:
    """Whether a file is part of the program."""
    return HERE in path.parents


def module_of(path: Path) -> types.ModuleType:
    """A sampler or threshold file, run as Python runs any; once for each text it has."""
    try:
        if is_ours(path):
            return importlib.import_module(f"{__package__}.{path.stem}")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SettingError(f"{path.name} is not a text file in UTF-8.") from None
    except OSError as error:
        raise SettingError(f"cannot read {error.filename or path}: {error.strerror}.") from None
    with _RUNNING:
        return _run(path, text)


@cache
def _run(path: Path, text: str) -> types.ModuleType:
    name = f"own_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # numba looks there
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise SettingError(f"{path.name}{place}: {error.msg}.") from None
    except Exception as error:
        raise SettingError(f"{path.name}: {type(error).__name__}: {error}.") from error
    for name, value in list(vars(module).items()):
        function = getattr(value, "py_func", value)  # numba's njit keeps it there
        if isinstance(function, types.FunctionType) and (
            function is not value or function.__code__.co_filename == str(path)
        ):
            setattr(module, name, kernel(function))
    return module


def own_text(function: Callable[..., Any]) -> str:
    """The text of the user's file that a function is from, and of files that it imports.

    Empty for ours. What is installed is taken to stay as it is.
    """
    if not function.__module__.startswith("own_"):
        return ""
    waiting: list[Any] = [function.__globals__]
    files: dict[str, str] = {}
    while waiting:
        names = waiting.pop()
        file = str(names.get("__file__", ""))
        if file in files or not _is_users(file):
            continue
        files[file] = Path(file).read_text(encoding="utf-8")
        for value in names.values():
            home = value if isinstance(value, types.ModuleType) else _module_of(value)
            if home is not None:
                waiting.append(vars(home))
    return "\0".join(files.values())


def _module_of(value: Any) -> types.ModuleType | None:
    return sys.modules.get(str(getattr(value, "__module__", "")))


def _is_users(file: str) -> bool:
    """Whether a file is neither ours nor installed."""
    # The environment itself is no such place: people put one into the folder of their files.
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    installed = (HERE.parent, *(Path(sysconfig.get_path(name)) for name in names))
    path = Path(file)
    return path.suffix == ".py" and not any(place in path.parents for place in installed)


def explained(error: Exception, name: str) -> SettingError:
    """What numba says about a sampler or threshold, in one line that names the trouble."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    # The kind of rewards is part of a record's type; its name says enough.
    text = re.sub(r"\b(\w+)\[(?:gaussian|exponential|unknown_variance)\]", r"\1", text)
    lines = text.splitlines()
    reasons = [line.strip() for line in lines if not line.startswith("Failed in ")]
    reason = next((line for line in reasons if line), type(error).__name__).rstrip(":.")
    # Numba points at a line of source with a caret below it.
    pointed = [before.strip() for before, line in itertools.pairwise(lines) if line.strip() == "^"]
    place = f", at '{pointed[0]}'" if pointed else ""
    hint = ""
    if any(sign in text for sign in _MADE):
        reason = "it makes an array, a list or another object of Python's"
        hint = " Compiled code makes none: use scratch.arms."
    return SettingError(f"{name} does not compile: {reason}{place}.{hint}")
