"""Kernels as machine code: compiled once on a machine, kept on disk, called by address.

A `Unit` is a kernel with everything that it calls. Reading one back takes llvmlite alone, a few
milliseconds; numba is imported when something has to be compiled (pipeline.py).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import binding as llvm

from .cache import Shelf
from .slots import FORMS

_LOADING = threading.Lock()

_CTYPES: dict[str, Any] = {
    "int": ctypes.c_int64,
    "float": ctypes.c_double,
    "bool": ctypes.c_bool,
    "None": None,
}


class Unit:
    """A function that is compiled apart from its callers.

    Parameters
    ----------
    function : kernel
    form : str
        What it takes and returns: a key of `slots.FORMS`.
    kind : str
        Which kind of rewards it is for: a key of `slots.KINDS`.
    code : str
        Changes with everything that the machine code depends on.
    """

    def __init__(self, function: Callable[..., Any], form: str, kind: str, code: str) -> None:
        self.function, self.form, self.kind = function, form, kind
        home = function.__module__.rpartition(".")[2]
        self.name = f"{home}.{function.__name__}-{kind}"
        self._shelf = Shelf(code, _target())
        self._entry: Callable[..., Any] | None = None
        self._address = 0

    @property
    def is_ready(self) -> bool:
        """Whether it is in memory or on disk: nothing has to be compiled."""
        return self._address != 0 or self._shelf.holds(self.name)

    @property
    def address(self) -> int:
        """Where its machine code lies; read from disk, or compiled, when first asked for."""
        if not self._address:
            self._address = self._read() or self._made_once()
        return self._address

    def _made_once(self) -> int:
        with self._shelf.locked(self.name):
            # Another thread or process may have made it meanwhile.
            return self._read() or self._make()

    def _read(self) -> int:
        made = self._shelf.read(self.name)
        return _load(*made) if made else 0

    def _make(self) -> int:
        made = _compiler()(self.function, self.form, self.kind)
        if isinstance(made, int):  # numba keeps it
            return made
        self._shelf.write(self.name, *made)
        return _load(*made)

    @property
    def entry(self) -> Callable[..., Any]:
        """For calls from Python: records are given by the addresses of their blocks."""
        if self._entry is None:
            *arguments, result = (_CTYPES.get(name, ctypes.c_void_p) for name in FORMS[self.form])
            self._entry = ctypes.CFUNCTYPE(result, *arguments)(self.address)
        return self._entry


def _compiler() -> Callable[..., tuple[str, bytes] | int]:
    try:
        from .pipeline import compiled
    except ImportError:  # another numba
        from . import plain

        return plain.compiled
    return compiled


@cache
def _engine() -> llvm.ExecutionEngine:
    """What links machine code to the libraries of this process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _load(symbol: str, code: bytes) -> int:
    if b"numba_" in code:  # of one's own, where a power may fail: it calls functions of numba's
        _compiler()
    with _LOADING:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


@cache
def _target() -> str:
    """The processor: machine code for one may not run on another."""
    features = llvm.get_host_cpu_features().flatten()
    return " ".join([llvm.get_process_triple(), llvm.get_host_cpu_name(), features])
