"""The functions of a run, uncompiled and as machine code, and when to compile them.

Live studies and `Explorer` run the kernels uncompiled, which needs no compiler and gives the same
bits; a long one is compiled in the background. Simulations compile before they start.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from simplexplore.errors import SettingError
from simplexplore.kernels import (
    episode,
    events,
    maximin,
    measured_episode,
    projection,
    recommend_answer,
    recommend_vertex,
    search,
    thresholds,
    tilt,
)
from simplexplore.kernels.blocks import Block
from simplexplore.kernels.cache import code_of, lasts
from simplexplore.kernels.kernel import calls
from simplexplore.kernels.slots import Slots
from simplexplore.samplers.declarations import function_of, own_text

if TYPE_CHECKING:
    from simplexplore.kernels.native import Unit
    from simplexplore.problem.family import Family

# Who waits longer than this is told how long it will take.
PATIENCE = 2.0

# Events taken in between two looks at the clock.
PIECE = 256

# Seconds to compile on one machine, for the estimate, and those before the first of them: numba
# has to be read. Another machine takes longer or less, which shows while one waits.
_SECONDS = {
    "simulate_runs": 1.5,
    "simulate_measured": 1.3,
    "tilt": 1.2,
    "advance": 1.0,
    "fold_events": 0.9,
    "balance": 0.7,
    "surplus": 0.5,
    "gain_bound": 0.5,
    "evidence_of_edges": 0.4,
    "step": 0.4,
    "project": 0.4,
}
_SECONDS_OF_OTHERS = 0.15
_SECONDS_OF_NUMBA = 0.7

# What numba says of an array or list that would have to be made.
_MADE = ("Only accept returning of array passed", "NRT required", "_allocate(")

_FORM = {
    "allocate": "Allocate",
    "enough": "Enough",
    "reached": "Reached",
    "recommend": "Recommend",
    "balance": "Balance",
    "project": "Project",
}
_ENTRIES: dict[str, tuple[Callable[..., Any], str]] = {
    "simulate": (episode.simulate_runs, "Simulate"),
    "step": (episode.step, "Step"),
    "fold": (events.fold_events, "Fold"),
    "level": (events.level_of_edge, "Level"),
    "evidence": (tilt.evidence_of_edges, "Evidence"),
    "surplus": (search.surplus, "Surplus"),
    "gain": (search.gain_bound, "Gain"),
}


def kind_of(rewards: Family) -> str:
    """The kind of rewards that machine code is for: a key of `slots.KINDS`."""
    if not rewards.knows_sigma:
        return "learned"
    return "closed" if rewards.closed_form else "root"


class Program:
    """What a run calls: sampler, stopping rule, way to recommend, solvers, and the loops.

    Parameters
    ----------
    sampler, threshold : Path
        Files; a threshold of ours has none.
    rule : str
        The threshold's function.
    kind : str
        Of rewards: see `kind_of`.
    sticking, regretting, budgeted : bool
        Whether answers within epsilon are good enough; whether a small regret is; whether a
        number of samples ends it.
    """

    def __init__(
        self,
        sampler: Path,
        threshold: Path | None,
        rule: str,
        kind: str,
        sticking: bool,
        regretting: bool = False,
        budgeted: bool = False,
    ) -> None:
        self._made_with = (sampler, threshold, rule, kind, sticking, regretting, budgeted)
        self.kind = kind
        by_policy = search.within_regret if regretting else search.tilt
        by_edge = function_of(threshold, rule) if threshold else getattr(thresholds, rule, None)
        self.slots = Slots(
            allocate=function_of(sampler, "allocate"),
            enough=thresholds.all_spent
            if budgeted
            else thresholds.every_edge
            if by_edge
            else by_policy,
            reached=by_edge or thresholds.gk16,  # `tilt` asks policies, not edges one by one
            recommend=(recommend_answer if sticking else recommend_vertex).recommend,
            balance=maximin.balance,
            project=projection.project,
        )
        called = calls(self.slots.allocate) | calls(self.slots.recommend)
        self._used = {"allocate", "enough", "recommend"} | (called & {"balance", "project"})
        self._used |= {"reached"} if by_edge else set()
        self._behind: dict[str, threading.Thread] = {}
        self._ready: set[str] = set()
        self._read: set[str] = set()

    @property
    def code(self) -> str:
        """Changes with every file that a run's numbers depend on."""
        return code_of(own_text(self.slots.allocate), own_text(self.slots.reached))

    # ------------------------------------------------------------------ machine code

    def entry(self, name: str) -> Unit:
        """The machine code of a loop: "simulate", "step", "fold" or "level"."""
        return _unit(*_ENTRIES[name], self.kind)

    def bound(self, slot: str, function: Callable[..., Any]) -> Unit:
        """The machine code of a function in a slot."""
        # The projection is the same for all kinds of rewards.
        return _unit(function, _FORM[slot], "closed" if slot == "project" else self.kind)

    def address(self, slot: str, function: Callable[..., Any]) -> int:
        """Where compiled code finds a function; 0 if nothing of this run calls it."""
        return self.bound(slot, function).address if slot in self._used else 0

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for one run."""
        return Stopwatch(self._made_with)

    def block(self, record: Any, former: Block | None = None) -> Block:
        """A record for compiled code; a former block, if it says the same."""
        if former is not None and former.holds(record):
            return former
        self.stopwatch().skip_reading()
        return Block(record, self.address)

    def units(self, entry: str) -> list[Unit]:
        """All that a loop needs."""
        slots = self.slots._asdict().items()
        return [self.entry(entry), *(self.bound(k, f) for k, f in slots if k in self._used)]

    def is_ready(self, entry: str) -> bool:
        """Whether nothing has to be compiled for a loop."""
        if entry not in self._ready and all(unit.is_ready for unit in self.units(entry)):
            self._ready.add(entry)
        return entry in self._ready

    def compile(self, entry: str) -> None:
        """Read what a loop needs from disk, and compile what is not there."""
        if entry in self._read:  # simulations ask whenever they meet a policy
            return
        units = self.units(entry)
        with _announced([unit for unit in units if not unit.is_ready]):
            for unit in units:
                try:
                    unit.address  # noqa: B018  (reads or compiles it)
                except Exception as error:
                    if not own_text(unit.function):
                        raise
                    file = Path(unit.function.__code__.co_filename)
                    raise explained(error, file.name) from error
        self._read.add(entry)

    def compile_behind(self, entry: str) -> None:
        """Have it compiled by another process; `is_ready` tells when that is done."""
        if entry not in self._behind:
            thread = threading.Thread(target=self._compile_apart, args=(entry,), daemon=True)
            self._behind[entry] = thread
            thread.start()

    def _compile_apart(self, entry: str) -> None:
        if not lasts():
            return  # another process would compile for itself alone
        sampler, threshold, *rest = self._made_with
        _compile_apart([entry, str(sampler), threshold and str(threshold), *rest])


@cache
def _unit(function: Callable[..., Any], form: str, kind: str) -> Unit:
    from simplexplore.kernels.native import Unit

    return Unit(function, form, kind, code_of(own_text(function)))


class MeasuredProgram:
    """The same where limits are measured: one loop, and one step that it shares with live studies.

    All samplers are in it.
    """

    _thread: threading.Thread | None = None

    def stopwatch(self) -> Stopwatch:
        """A stopwatch for one run."""
        return Stopwatch(type(self))

    def unit(self, entry: str) -> Unit:
        """The machine code of "simulate" or "advance"."""
        if entry == "simulate":
            return _unit(measured_episode.simulate_measured, "SimulateMeasured", "closed")
        return _unit(measured_episode.advance, "AdvanceMeasured", "closed")

    def address(self, slot: str, function: Callable[..., Any]) -> int:
        """Where compiled code finds a function."""
        return self.unit(slot).address

    def compile(self, *entries: str) -> None:
        """Read what is needed from disk, and compile what is not there."""
        units = [self.unit(entry) for entry in entries]
        with _announced([unit for unit in units if not unit.is_ready]):
            for unit in units:
                unit.address  # noqa: B018  (reads or compiles it)

    def compile_behind(self) -> None:
        """Have a step compiled by another process."""
        if self._thread is None and lasts():
            self._thread = threading.Thread(target=_compile_apart, args=([],), daemon=True)
            self._thread.start()


def _compile_apart(arguments: list[Any]) -> None:
    with contextlib.suppress(OSError):
        subprocess.run(
            [sys.executable, "-m", __spec__.name, json.dumps(arguments)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextlib.contextmanager
def _announced(missing: list[Unit]) -> Iterator[None]:
    """Say on stderr how long it will take, if it takes long."""

    def seconds(units: list[Unit]) -> float:
        return sum(_SECONDS.get(unit.function.__name__, _SECONDS_OF_OTHERS) for unit in units)

    def say() -> None:
        left = [unit for unit in missing if not unit.is_ready]
        # They are made in their order: the first of these is perhaps half done.
        to_go = seconds(left) - 0.5 * seconds(left[:1])
        done = _SECONDS_OF_NUMBA + seconds(missing) - to_go
        more = max(1, round(to_go * PATIENCE / done))
        sys.stderr.write(f"compiling (once on this machine), about {more} s more ...\n")
        sys.stderr.flush()

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    if missing:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def explained(error: Exception, name: str) -> SettingError:
    """What numba says about a sampler or threshold, in one line that names the trouble."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    # The kind of rewards is part of a record's type; its name says enough.
    text = re.sub(r"\b(\w+)\[(?:closed|root|learned)\]", r"\1", text)
    lines = text.splitlines()
    reasons = [line.strip() for line in lines if not line.startswith("Failed in nopython")]
    reason = next((line for line in reasons if line), type(error).__name__).rstrip(":.")
    # Numba points at a line of source with a caret below it.
    pointed = [before.strip() for before, line in itertools.pairwise(lines) if line.strip() == "^"]
    place = f", at '{pointed[0]}'" if pointed else ""
    hint = ""
    if any(sign in text for sign in _MADE):
        hint = " Compiled code makes no arrays: use memory.scratch."
    return SettingError(f"{name} does not compile: {reason}{place}.{hint}")


def is_switched_off() -> bool:
    """Whether nothing is to be compiled: numba's own switch, for debugging."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Stopwatch:
    """Says when uncompiled work has taken so long that machine code pays.

    Parameters
    ----------
    program : hashable, optional
        Runs of one program in one process count together: a service has many short ones.
    """

    _together: ClassVar[defaultdict[Any, float]] = defaultdict(float)

    # About what it takes to read machine code from disk, and to compile it: at worst twice the
    # time of whoever knew beforehand.
    LONG = 0.2
    ENOUGH = 4.0
    # What an event takes uncompiled when many come together (kernels/lists.py).
    EVENT = 4e-5

    def __init__(self, program: Any = None) -> None:
        self.seconds = 0.0
        self._program = program
        self._foreseen = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of some work."""
        began = time.perf_counter()
        try:
            yield
        finally:
            taken = time.perf_counter() - began
            self.seconds += taken
            if self._program is not None:
                self._together[self._program] += taken

    def skip_reading(self) -> None:
        """Machine code has been read: from now on it pays at once."""
        enough = math.nextafter(self.LONG, math.inf)
        self._together[self._program] = max(self._together[self._program], enough)

    def skip(self) -> None:
        """Do not wait: machine code is there, or worth its time."""
        self.seconds = math.inf

    def foresee(self, events: int) -> None:
        """Do not wait either if so many events are to come that machine code will pay.

        Fewer than take as long as compiling would only compete with it for the processor.
        """
        self._foreseen = self.EVENT * events

    @property
    def is_long(self) -> bool:
        """Whether it is time to use machine code if there is some."""
        return self._spent > self.LONG

    @property
    def is_up(self) -> bool:
        """Whether it is time to compile."""
        return self._spent > self.ENOUGH

    @property
    def _spent(self) -> float:
        return max(self.seconds, self._foreseen, self._together[self._program])


def main() -> None:
    """Compile in a process of its own what another one asked for."""
    arguments = json.loads(sys.argv[1])
    if not arguments:
        MeasuredProgram().compile("advance")
        return
    entry, sampler, threshold, *rest = arguments
    Program(Path(sampler), threshold and Path(threshold), *rest).compile(entry)


if __name__ == "__main__":
    main()
