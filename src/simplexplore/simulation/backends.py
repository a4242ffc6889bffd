"""Where runs are made: threads of this process, any executor, or a GPU.

Blocks of numbered runs go out and come back in any order; results do not depend on who made them.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from hashlib import sha256
from queue import Empty, SimpleQueue
from typing import Protocol

from simplexplore.errors import SettingError
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.engines import ExplorationEngine, engine_of
from simplexplore.exploration.gpu import GpuEngine
from simplexplore.exploration.seeding import streams

from .blocks import Block, Work, make_block, make_seeded

DEVICES = ("cpu", "gpu")

# Runs per call of compiled code: long enough to hide the call, short enough to report
# progress and to be interrupted.
BLOCK_SECONDS = 0.25
MAX_BLOCK = 2_000

# Elsewhere a block takes a message there and one back.
REMOTE_SECONDS = 2.0
MAX_REMOTE_BLOCK = 20_000

# Blocks that wait at an executor which does not say how many workers it has.
OUTSTANDING = 256

# A GPU's threads wait for the longest run of a block, so that blocks are large there.
GPU_SECONDS = 4.0
FIRST_GPU_BLOCK = 2_048
LEAST_GPU_BLOCK = 131_072


class Backend(Protocol):
    """A place where runs are made."""

    def blocks(self, work: Work, runs: int) -> Iterator[Block]:
        """Runs 0 to runs - 1. Ctrl-C ends it early, with what is done."""


def backend_of(device: str, executor: Executor | None, workers: int | None) -> Backend:
    """The place that a user asked for."""
    if device not in DEVICES:
        raise SettingError(f"device must be 'cpu' or 'gpu'; got {device!r}.")
    if device == "gpu":
        if executor is not None:
            raise SettingError("device='gpu' is this machine's GPU; leave executor out.")
        return Gpu()
    return Threads(workers or os.cpu_count() or 1) if executor is None else Remote(executor)


class Threads:
    """Threads of this process: compiled code runs without the interpreter's lock."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def blocks(self, work: Work, runs: int) -> Iterator[Block]:
        """See `Backend`."""
        engines = Engines(work)
        engines.first.compile()
        pool = ThreadPoolExecutor(max_workers=self._workers)

        def submit(start: int, stop: int) -> Future[Block]:
            return pool.submit(engines.make, start, stop)

        most = min(MAX_BLOCK, max(1, runs // (4 * self._workers)))
        try:
            yield from _spread(submit, runs, 2 * self._workers, BLOCK_SECONDS, most)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class Remote:
    """Any `concurrent.futures.Executor`: other processes, or a cluster's machines."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def blocks(self, work: Work, runs: int) -> Iterator[Block]:
        """See `Backend`."""
        packed = pickle.dumps(work)
        name = sha256(packed).hexdigest()

        def submit(start: int, stop: int) -> Future[Block]:
            return self._executor.submit(_block_elsewhere, name, packed, start, stop)

        known = getattr(self._executor, "_max_workers", None)
        outstanding = 2 * known if isinstance(known, int) else OUTSTANDING
        most = min(MAX_REMOTE_BLOCK, max(1, runs // (2 * outstanding)))
        try:
            yield from _spread(submit, runs, outstanding, REMOTE_SECONDS, most)
        except BrokenExecutor as error:
            raise SettingError(
                f"the executor is broken ({error}): a worker has died, and it starts no other. "
                "A Dask cluster does."
            ) from error


class Gpu:
    """The GPU of this machine: one thread for each run."""

    def blocks(self, work: Work, runs: int) -> Iterator[Block]:
        """See `Backend`."""
        if work.plan.problem.measured:
            raise SettingError("a GPU cannot run samplers that learn limits; use device='cpu'.")
        engine = GpuEngine(Engine(work.plan))
        engine.compile()
        start, size = 0, FIRST_GPU_BLOCK
        # The streams of a block are seeded while the GPU is busy with the one before.
        with ThreadPoolExecutor(max_workers=1) as pool:
            ahead = pool.submit(streams, work.seed, range(min(size, runs)))
            try:
                while start < runs:
                    began = time.perf_counter()
                    seeds = ahead.result()
                    stop = start + len(seeds)
                    size = max(LEAST_GPU_BLOCK, size)
                    ahead = pool.submit(streams, work.seed, range(stop, min(stop + size, runs)))
                    block = make_seeded(engine, work, start, seeds, began)
                    yield block
                    start = stop
                    size = int(GPU_SECONDS * len(block.pulls) / block.seconds)
            except KeyboardInterrupt:
                return


class Engines:
    """Engines of one work, as many as there are threads that ask for one."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.first = engine_of(work.plan)
        self._idle: SimpleQueue[ExplorationEngine] = SimpleQueue()
        self._idle.put(self.first)

    def make(self, start: int, stop: int) -> Block:
        """Runs start to stop - 1, by an engine that is idle."""
        try:
            engine = self._idle.get_nowait()
        except Empty:
            engine = self.first.twin()
        block = make_block(engine, self.work, start, stop)
        self._idle.put(engine)
        return block


# In a worker of an executor: the engines of the last work that came.
_KEPT: dict[str, Engines] = {}


def _block_elsewhere(name: str, packed: bytes, start: int, stop: int) -> Block:
    engines = _KEPT.get(name)
    if engines is None:
        engines = Engines(pickle.loads(packed))  # our own work: an executor runs code anyway
        engines.first.compile()
        _KEPT.clear()
        _KEPT[name] = engines
    return engines.make(start, stop)


def _spread(
    submit: Callable[[int, int], Future[Block]],
    runs: int,
    outstanding: int,
    seconds: float,
    most: int,
) -> Iterator[Block]:
    """Hand out runs in blocks that take about so many seconds, as the last ones say.

    Run 0 comes alone and takes longer than others: it meets policies for the first time.
    """
    active: set[Future[Block]] = set()
    try:
        active.add(submit(0, 1))
        start, size = 1, 1
        while active:
            ready, active = wait(active, return_when=FIRST_COMPLETED)
            for future in ready:
                block = future.result()
                fitting = seconds * len(block.pulls) / max(block.seconds, 1e-6)
                size = int(min(most, max(1, fitting)))
                yield block
            while start < runs and len(active) < outstanding:
                stop = min(start + size, runs)
                active.add(submit(start, stop))
                start = stop
    except KeyboardInterrupt:
        # Blocks under way cannot be stopped; they are short, and what they find is kept.
        for future in [future for future in active if not future.cancel()]:
            yield future.result()
    finally:
        for future in active:
            future.cancel()
