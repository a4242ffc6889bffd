"""Fields of a record that its type knows, put in as constants before types are inferred.

The kind of rewards is one, so that branches on it go away and half of the code is never compiled;
on a GPU all whole numbers and flags of a setting are.
Numba and numba-cuda have each their own classes for the same things; both use this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def put_in(
    function: Any, arguments: Any, nodes: Any, definition: Callable[..., Any], record: Any
) -> bool:
    """Put in what is known; returns whether something changed.

    Parameters
    ----------
    function : FunctionIR
    arguments : sequence of types
    nodes : module
        Classes of the intermediate language.
    definition : function
        What a variable is defined as, or None if that is not known.
    record : class
        The class of records' types; its `constant` knows fields by name.
    """
    changed = False
    for block in function.blocks.values():
        for assign in block.find_insts(nodes.Assign):
            expression = assign.value
            is_one = isinstance(expression, nodes.Expr) and expression.op == "getattr"
            if not is_one:
                continue
            source = definition(function, expression.value)
            kind: Any = arguments[source.index] if isinstance(source, nodes.Arg) else None
            value = kind.constant(expression.attr) if isinstance(kind, record) else None
            if value is not None:
                assign.value = nodes.Const(value, assign.loc)
                function._definitions[assign.target.name] = [assign.value]
                changed = True
    return changed
