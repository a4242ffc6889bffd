"""Compiling several samplers side by side, and saying in plain words why one does not compile."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from simplexplore.errors import SettingError
from simplexplore.kernels.build import Kernels, build
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.samplers import find_sampler

from .engine import Engine, Plan, streams
from .stopping import find_threshold

# A compiler takes a few hundred megabytes.
MAX_PROCESSES = 4


def compile_ahead(jobs: Sequence[tuple[str, str]], problem: Problem, threshold: str) -> None:
    """Compile what several (sampler, scenario) need and the cache lacks, side by side.

    Numba compiles one function at a time in each process. What does not compile is left for
    the run that needs it to complain about.
    """
    closed_form = isinstance(problem.rewards, Gaussian) and problem.rewards.domain is None
    answers = "recommend_answer" if problem.epsilon else "recommend_vertex"
    rule = find_threshold(threshold)
    missing: dict[Kernels, tuple[str, str]] = {}
    for name, scenario in jobs:
        file = find_sampler(name).in_scenario(scenario).file
        family = "gaussian" if closed_form else "exponential"
        module = build(file, family, rule.file, rule.function, answers)
        if not module.is_cached:
            missing.setdefault(module, (name, scenario))
    if len(missing) < 2 or (os.cpu_count() or 1) < 2:
        return  # each is compiled, and announced, where it is first used
    names = ", ".join(dict.fromkeys(name for name, _ in missing.values()))
    sys.stderr.write(f"compiling {names} (once on this machine) ...\n")
    sys.stderr.flush()
    count = min(len(missing), os.cpu_count() or 1, MAX_PROCESSES)
    # Ctrl-C reaches these processes too; they end without a word.
    quietly = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(count, get_context("spawn"), signal.signal, quietly) as pool:
        made = [
            pool.submit(_compile, name, scenario, closed_form, threshold, problem.epsilon)
            for name, scenario in missing.values()
        ]
        for module, future in zip(missing, made, strict=True):
            with contextlib.suppress(Exception):
                future.result()
                module.is_cached = True


def _compile(
    sampler: str, scenario: str, closed_form: bool, threshold: str, epsilon: float
) -> None:
    """Fill the cache: two steps on the smallest problem there is."""
    chosen = find_sampler(sampler)
    problem = Problem(2, rewards=Gaussian() if closed_form else Bernoulli(), epsilon=epsilon)
    plan = Plan(
        problem=problem,
        sampler=chosen,
        threshold=find_threshold(threshold),
        delta=problem.delta,
        scenario=scenario,
        allocation=(0.5, 0.5) if chosen.needs_truth else None,
    )
    means = problem.check_means([0.4, 0.6])
    Engine(plan).simulate(means, problem.rewards.sigmas(2), streams(0, range(1)), 2)


def explained(error: Exception, name: str) -> SettingError:
    """What numba says about a sampler or threshold, in one line that names the trouble."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    # Records are written out field by field; their names say enough.
    text = re.sub(r"array\([^()]*\)", "array", text)
    for record in ("Table", "Run", "Memory", "Setting"):
        text = re.sub(rf"{record}\([^()]*\)", record, text)
    lines = text.splitlines()
    reasons = [line.strip() for line in lines if not line.startswith("Failed in nopython")]
    reason = next((line for line in reasons if line), type(error).__name__).rstrip(":.")
    # Numba points at a line of source with a caret below it.
    pointed = [before.strip() for before, line in itertools.pairwise(lines) if line.strip() == "^"]
    place = f", at '{pointed[0]}'" if pointed else ""
    hint = ""
    if "Only accept returning of array passed" in text:
        hint = " Compiled code makes no arrays: use memory.scratch."
    return SettingError(f"{name} does not compile: {reason}{place}.{hint}")
