"""The functions of a run, as Python or as machine code: one call, two ways.

Kernels are plain Python, and machine code made of them gives the same bits. Simulations are
compiled. What comes event by event (`Explorer`, live studies) runs as Python for the first
`MAX_PYTHON_EVENTS` events of a process, which needs no compiler, and as machine code from then on.
`NUMBA_DISABLE_JIT=1`, numba's own switch, keeps all of it Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from inspect import get_annotations
from pathlib import Path
from typing import Any

from simplexplore.kernels import (
    episode,
    events,
    measured_answer,
    measured_search,
    policy_search,
    recommend_answer,
    recommend_vertex,
    thresholds,
)
from simplexplore.kernels.cache import cache_folder, code_of
from simplexplore.kernels.functions import SIGNATURES, RunFunctions
from simplexplore.problem.problem import Problem
from simplexplore.samplers import Sampler
from simplexplore.samplers.own_file import explained, module_of, own_text

from .stopping import Threshold

# Events that a process takes in as Python. One that concerns more edges than `EDGES_PER_EVENT`
# counts for as many as it takes the time of.
MAX_PYTHON_EVENTS = 256
EDGES_PER_EVENT = 64

# What Python calls, by name.
ENTRIES: dict[str, Callable[..., Any]] = {
    "simulate": episode.simulate_runs,
    "advance": episode.advance,
    "fold": events.fold_events,
    "level": events.level_of_edge,
    "evidence": policy_search.evidence_of_edge,
    "confidence_margin": policy_search.confidence_margin,
    "gain": policy_search.gain_bound,
    "nearest": measured_search.closest_competitor,
}


def reward_kind(problem: Problem) -> str:
    """What pulls report, as machine code is made for it: a key of `functions.REWARD_KINDS`."""
    rewards = problem.rewards
    if problem.measured:
        return "measured"
    if not rewards.knows_sigma:
        return "unknown_variance"
    return "gaussian" if rewards.closed_form else "exponential"


class Program:
    """What runs of one kind call. All that are alike in a process share one: `program_of`.

    Parameters
    ----------
    functions : RunFunctions
    kind : str
        Of rewards, see `reward_kind`.
    most : float
        Events that it takes in as Python.
    """

    def __init__(self, functions: RunFunctions, kind: str, most: float = MAX_PYTHON_EVENTS) -> None:
        self.functions, self.kind, self._most = functions, kind, most
        self._own = "".join(map(own_text, filter(None, functions)))
        self._work = 0.0
        self._entries: dict[str, Callable[..., Any]] = {}

    @property
    def code(self) -> str:
        """Changes with every file that a run's numbers depend on."""
        return code_of(self._own)

    def is_native(self, entry: str, count: int, edges: int) -> bool:
        """Whether to run as machine code, with so many events more that concern so many edges."""
        if is_switched_off():
            return False
        self._work += count * max(1.0, edges / EDGES_PER_EVENT)
        return entry in self._entries or entry == "simulate" or self._work > self._most

    def entry(self, name: str) -> Callable[..., Any]:
        """The machine code of a loop; records are given by pointers to their words."""
        if name not in self._entries:
            for slot, function in self.functions._asdict().items():
                self.address(slot, function)
            self._entries[name] = _compiled(ENTRIES[name], name, self.kind).ctypes
        return self._entries[name]

    def compile(self, entry: str) -> None:
        """Have the machine code of a loop ready, and use it from now on, unless switched off."""
        if not is_switched_off():
            self.entry(entry)

    def address(self, name: str, function: Callable[..., Any] | None) -> int:
        """Where machine code finds a function of the run; 0 for one that it does not call."""
        return 0 if function is None else int(_compiled(function, name, self.kind).address)


def run_functions(sampler: Sampler, threshold: Threshold, problem: Problem) -> RunFunctions:
    """What a run of a problem binds, with a sampler's file and a threshold."""
    if problem.measured:
        assert sampler.allocate_measured is not None  # checked with the plan
        return RunFunctions(
            allocate=sampler.allocate_measured,
            enough=measured_answer.enough,
            reached=None,
            recommend=measured_answer.recommend,
        )
    by_policy = policy_search.within_regret if problem.regret_goal else policy_search.tilt
    home = module_of(threshold.file) if threshold.file else thresholds
    by_edge = getattr(home, threshold.function, None)
    enough = thresholds.every_edge if by_edge else by_policy
    return RunFunctions(
        allocate=module_of(sampler.file).allocate,
        enough=thresholds.all_spent if problem.budget else enough,
        reached=by_edge,  # `tilt` asks policies, not edges one by one
        recommend=(recommend_answer if problem.epsilon else recommend_vertex).recommend,
    )


@cache
def program_of(functions: RunFunctions, kind: str) -> Program:
    """The program of these functions: one in a process."""
    return Program(functions, kind)


@cache
def _compiled(function: Callable[..., Any], name: str, kind: str) -> Any:
    from simplexplore.kernels.native import compiled

    # A user's function need not have annotations.
    signature = SIGNATURES.get(name.capitalize()) or [*get_annotations(function).values()]
    own = own_text(function)
    folder = cache_folder(own)
    try:
        with suppress(Exception):  # what is kept there may be cut off; another error comes again
            return compiled(function, signature, kind, folder)
        return compiled(function, signature, kind, None)
    except Exception as error:
        if not own:
            raise
        raise explained(error, Path(function.__code__.co_filename).name) from error


def is_switched_off() -> bool:
    """Whether nothing is to be compiled: numba's own switch, for debugging."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
