"""Files of functions to compile, ours and users', read without running them."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

from simplexplore.errors import SettingError

# What a sampler file may declare, see samplers/__init__.py.
DECLARATIONS = ("ARM_VECTORS", "EDGE_VECTORS", "TRACKING", "WITHIN_CONSTRAINTS", "PAIRS")

Definition = ast.FunctionDef | ast.Assign

# Python's parser counts its depth for all threads together, and fails if two of them use it
# (seen with 3.11).
_PARSING = threading.Lock()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; `SettingError` says what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
        with _PARSING:
            return ast.parse(text)
    except SyntaxError as error:
        place = f", line {error.lineno}" if error.lineno else ""
        raise SettingError(f"{path.name}{place}: {error.msg}.") from None
    except UnicodeDecodeError:
        raise SettingError(f"{path.name} is not a text file in UTF-8.") from None
    except OSError as error:
        raise SettingError(f"cannot read {path.name}: {error.strerror}.") from None


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


def defined(node: Definition) -> set[str]:
    """The names that a definition gives."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
