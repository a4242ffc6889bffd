"""Blocks of runs, made on the GPU of this machine; see `simulation/blocks.py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from simplexplore.errors import SettingError
from simplexplore.exploration.engine import Engine, streams
from simplexplore.simulation.blocks import Block, SimulationTask

from .engine import GpuEngine

# A GPU's threads wait for the longest run of a block, so that blocks are large there.
GPU_SECONDS = 4.0
FIRST_GPU_BLOCK = 2_048
LEAST_GPU_BLOCK = 131_072


def blocks_by_gpu(task: SimulationTask, runs: int) -> Iterator[Block]:
    """Runs 0 to runs - 1, one thread for each; Ctrl-C ends it early, with what is done."""
    if task.plan.problem.measured:
        raise SettingError("a GPU cannot run samplers that learn limits; use device='cpu'.")
    engine = GpuEngine(Engine(task.plan))
    engine.compile()
    start, size = 0, FIRST_GPU_BLOCK
    # The streams of a block are seeded while the GPU is busy with the one before.
    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = pool.submit(streams, task.seed, range(min(size, runs)))
        try:
            while start < runs:
                seeds = ahead.result()
                stop = start + len(seeds)
                size = max(LEAST_GPU_BLOCK, size)
                ahead = pool.submit(streams, task.seed, range(stop, min(stop + size, runs)))
                made = engine.simulate(task.means, task.noise, seeds, task.max_steps)
                yield Block(start, made)
                start = stop
                size = int(GPU_SECONDS * len(seeds) / made.seconds)
        except KeyboardInterrupt:
            return
