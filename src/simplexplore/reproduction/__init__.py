"""The whole paper again: every figure and table, and how each claim fares."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from pathlib import Path
from typing import Any

from simplexplore.bound.bound import lower_bound
from simplexplore.bound.result import Bound
from simplexplore.exploration.plan import prepare_simulation
from simplexplore.problem.catalog import instance
from simplexplore.simulation.cells import Cells
from simplexplore.simulation.results import Results
from simplexplore.simulation.simulate import run_plan

from .criteria import SEED
from .part import THRESHOLD, Evidence, Job, Part
from .parts import PARTS, find_parts
from .report import chapter, write_report

__all__ = ["PARTS", "Part", "find_parts", "reproduce"]

# Told what is under way, runs done of it, and runs in all (0 if it has no runs).
Progress = Callable[[str, int, int], None]


def reproduce(
    parts: Sequence[Part],
    folder: Path,
    *,
    runs: int | None = None,
    workers: int | None = None,
    device: str = "cpu",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compute parts, or find them computed, and write the report.

    Parameters
    ----------
    parts : sequence of Part
        From `find_parts`. Others that are finished in the folder, with the same number of
        runs, appear in the report too.
    folder : Path
        For everything; it is made if necessary.
    runs : int, optional
        Runs of each sampler; default: as in the paper.
    workers : int, optional
        Threads or processes; default: all cores. Results do not depend on it.
    device, executor
        Where simulated runs are made, see `simulate`.
    """
    cells = Cells(folder)
    count = workers or os.cpu_count() or 1
    place: dict[str, Any] = {"workers": count, "device": device, "executor": executor}
    tell = progress or (lambda *_: None)
    wanted = [part for part in PARTS.values() if part in parts or _is_finished(part, cells, runs)]
    chapters = []
    for part in wanted:
        results = [_simulated(cells, part, job, runs, place, tell) for job in part.jobs]
        numbers: dict[str, Any] = {}
        if part.compute is not None:
            tell(part.name, 0, 0)
            own = part.runs(runs)
            make = partial(part.compute, count, **own)
            numbers = cells.numbers(part.name, {**part.settings, **own}, make)
        chapters.append(chapter(part, Evidence(results, numbers)))
    tell("report", 0, 0)
    return write_report(chapters, folder, runs)


def _is_finished(part: Part, cells: Cells, runs: int | None) -> bool:
    own = {**part.settings, **part.runs(runs)}
    whole = part.compute is None or cells.has(part.name, own)
    return whole and all(cells.has(job.name, job.settings(runs)) for job in part.jobs)


@cache
def _bound(name: str) -> Bound:
    """Of an instance: all samplers share it, and both scenarios."""
    return lower_bound(instance(name).problem)


def _simulated(
    cells: Cells, part: Part, job: Job, runs: int | None, place: dict[str, Any], tell: Progress
) -> Results:
    label = f"{part.name}, {job.sampler}, {job.scenario}"

    def make() -> Results:
        found = instance(job.instance)
        plan = prepare_simulation(
            found.problem,
            None,
            job.sampler,
            THRESHOLD,
            scenario=job.scenario,
            known=_bound(job.instance),
        )
        return run_plan(
            plan,
            runs=job.runs(runs),
            seed=SEED,
            noise=found.noise,
            **place,
            progress=lambda done, total: tell(label, done, total),
        )

    return cells.results(job.name, job.settings(runs), make)
