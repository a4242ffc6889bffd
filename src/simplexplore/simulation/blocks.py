"""Numbered runs of one plan, in blocks: by threads, any executor, or a GPU (an add-on).

Blocks go out and come back in any order; results do not depend on who made them.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simplexplore.errors import SettingError
from simplexplore.exploration.engine import Engine, SimulatedRuns, streams
from simplexplore.exploration.plan import Plan

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

DEVICES = ("cpu", "gpu")

# Of one call of compiled code: long enough to hide the call, short enough to report progress and
# to be interrupted.
BLOCK_SECONDS = 0.25

# Elsewhere a block takes a message there and one back.
REMOTE_SECONDS = 2.0

# Seconds to wait for a scheduler.
PATIENCE = 10.0

# How often a block is made again whose worker has died, or whose machine has.
RETRIES = 5

# Blocks that wait at an executor which does not say how many workers it has.
OUTSTANDING = 256


@dataclass(frozen=True)
class SimulationTask:
    """All that runs depend on, but for their numbers.

    Attributes
    ----------
    plan : Plan
    means : (K,) array
        True ones.
    noise : (K,) array
        Standard deviations of the rewards drawn, in unit coordinates.
    seed, max_steps : int
    """

    plan: Plan
    means: Array
    noise: Array
    seed: int
    max_steps: int


class Block(NamedTuple):
    """Consecutive runs, the first of which has this number."""

    start: int
    runs: SimulatedRuns


def joined(blocks: Sequence[Block], size: int) -> tuple[Indices, SimulatedRuns]:
    """Numbers and results of the runs of all blocks, in order; of none, too."""
    no = np.zeros(0, dtype=np.int64)
    nothing = SimulatedRuns(no, no, np.zeros((0, size)), no.astype(bool), 0.0)
    blocks = [Block(0, nothing), *sorted(blocks, key=lambda block: block.start)]
    numbers = [block.start + np.arange(len(block.runs.pulls)) for block in blocks]
    *arrays, seconds = zip(*(block.runs for block in blocks), strict=True)
    runs = SimulatedRuns._make([*map(np.concatenate, arrays), sum(seconds)])
    return np.concatenate(numbers), runs


def make_blocks(
    task: SimulationTask, runs: int, device: str, executor: Executor | None, workers: int | None
) -> Iterator[Block]:
    """Runs 0 to runs - 1, where the user asked for. Ctrl-C ends it early, with what is done."""
    if device not in DEVICES:
        raise SettingError(f"device must be 'cpu' or 'gpu'; got {device!r}.")
    if device == "gpu":
        if executor is not None:
            raise SettingError("device='gpu' is this machine's GPU; leave executor out.")
        return _by_gpu(task, runs)
    if executor is not None:
        return _by_executor(task, runs, executor)
    return _by_threads(task, runs, workers or os.cpu_count() or 1)


def _by_gpu(task: SimulationTask, runs: int) -> Iterator[Block]:
    try:
        addon = import_module("simplexplore_gpu")
    except ModuleNotFoundError as error:
        if error.name != "simplexplore_gpu":
            raise
        raise SettingError(
            "device='gpu' needs the add-on simplexplore-gpu, which is not installed: run "
            "'pip install addons/gpu' in a copy of the repository, or leave device='gpu' out."
        ) from None
    blocks: Iterator[Block] = addon.blocks_by_gpu(task, runs)
    return blocks


def _by_threads(task: SimulationTask, runs: int, workers: int) -> Iterator[Block]:
    """By threads of this process: compiled code runs without the interpreter's lock."""
    engines = EnginePool(task)
    with ThreadPoolExecutor(workers) as threads:
        yield from _spread(threads, engines.make, runs, 2 * workers, BLOCK_SECONDS)


def _by_executor(task: SimulationTask, runs: int, executor: Executor) -> Iterator[Block]:
    """By other processes, or a cluster's machines."""
    make = partial(_make_elsewhere, pickle.dumps(task))
    known = getattr(executor, "_max_workers", None)
    outstanding = 2 * known if isinstance(known, int) else OUTSTANDING
    try:
        yield from _spread(executor, make, runs, outstanding, REMOTE_SECONDS)
    except BrokenExecutor as error:
        raise SettingError(
            f"the executor is broken ({error}): a worker has died, and it starts no other. "
            "A Dask cluster does."
        ) from error


class EnginePool:
    """Engines for one task, compiled: as many as there are threads that ask for one.

    The first is made with run 0, which comes alone, and not by the main thread: C code of numpy
    may lose a Ctrl-C that comes while it calls Python.
    """

    def __init__(self, task: SimulationTask) -> None:
        self._task = task
        self._first: Engine | None = None
        self._idle: SimpleQueue[Engine] = SimpleQueue()

    def make(self, start: int, stop: int) -> Block:
        """Runs start to stop - 1, by an engine that is idle."""
        task = self._task
        try:
            engine = self._idle.get_nowait()
        except Empty:
            if self._first is None:
                self._first = engine = Engine(task.plan)
            else:
                engine = self._first.clone()
        seeds = streams(task.seed, range(start, stop))
        runs = engine.simulate(task.means, task.noise, seeds, task.max_steps)
        self._idle.put(engine)
        return Block(start, runs)


@lru_cache(maxsize=1)
def _pool(packed: bytes) -> EnginePool:
    """In a worker of an executor: engines for the last task that came."""
    return EnginePool(pickle.loads(packed))  # our own task: an executor runs code anyway


def _make_elsewhere(packed: bytes, start: int, stop: int) -> Block:
    return _pool(packed).make(start, stop)


def _spread(
    executor: Executor,
    make: Callable[[int, int], Block],
    runs: int,
    outstanding: int,
    seconds: float,
) -> Iterator[Block]:
    """Hand out runs in blocks that take about so many seconds, as the last ones say.

    Run 0 comes alone and takes longer than others: it meets policies for the first time.
    """
    active: set[Future[Block]] = set()
    try:
        active.add(executor.submit(make, 0, 1))
        start, size, most = 1, 1, max(1, runs // (2 * outstanding))
        while active:
            ready, active = wait(active, return_when=FIRST_COMPLETED)
            for future in ready:
                block = future.result()
                fitting = seconds * len(block.runs.pulls) / max(block.runs.seconds, 1e-6)
                size = min(most, max(1, int(fitting)))
                yield block
            while start < runs and len(active) < outstanding:
                stop = min(start + size, runs)
                active.add(executor.submit(make, start, stop))
                start = stop
    except KeyboardInterrupt:
        # Blocks under way cannot be stopped; they are short, and what they find is kept.
        for future in [future for future in active if not future.cancel()]:
            yield future.result()
    finally:
        for future in active:
            future.cancel()


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler, as an executor for `simulate`.

    If a worker dies, others repeat its runs. Needs the extra ``cluster``.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://host:8786``.

    Yields
    ------
    concurrent.futures.Executor

    Examples
    --------
    >>> with sx.cluster("tcp://scheduler:8786") as executor:  # doctest: +SKIP
    ...     results = sx.simulate(problem, runs=1_000_000, executor=executor)
    """
    try:
        from distributed import Client
    except ImportError:
        raise SettingError(
            "a cluster needs Dask: pip install 'simplexplore[cluster]', here and on its workers."
        ) from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise SettingError(
            f"no Dask scheduler answers at {address!r} ({error}). 'dask scheduler' starts one, and "
            "prints its address."
        ) from None
    with client:
        yield client.get_executor(pure=False, retries=RETRIES)  # type: ignore[no-untyped-call]
