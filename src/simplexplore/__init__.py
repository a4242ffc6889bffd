"""Find the best mix of arms under linear constraints, with a stated confidence.

The public names are listed in ``__init__.pyi``, for type checkers and for us, and imported when
they are first used, so that ``import simplexplore`` costs almost nothing.
"""

import ast
from importlib import import_module
from pathlib import Path

__version__ = "0.1.0"


def _homes():
    """Where each public name is defined: (module, its name there)."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.asname: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


_HOMES = _homes()

__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604  (names, computed)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, there = _HOMES[name]
    value = globals()[name] = _member(f"{__name__}.{home}", there)
    return value


def _member(module, name):
    """Something that a module defines, or a module of a package."""
    found = import_module(module)
    return getattr(found, name) if hasattr(found, name) else import_module(f"{module}.{name}")


def __dir__():
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
