"""Numbered runs of one plan, in blocks that can be made anywhere and in any order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from simplexplore.exploration.plan import Plan
from simplexplore.exploration.seeding import streams

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Work:
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


@dataclass(frozen=True)
class Block:
    """Results of consecutive runs."""

    first: int
    pulls: Indices  # negative if capped
    correct: npt.NDArray[np.bool_]
    counts: Array
    seconds: float
    outcomes: Indices | None = None  # how they ended, where limits are measured


class Simulator(Protocol):
    """What makes runs: an engine, or one on a GPU."""

    def simulate(
        self, means: Array, noise: Array, seeds: npt.NDArray[np.uint64], max_steps: int
    ) -> tuple[Indices, Indices, Array]: ...

    def right_answers(self, means: Array) -> set[int]: ...


def make_block(engine: Simulator, work: Work, start: int, stop: int) -> Block:
    """Runs start to stop - 1."""
    began = time.perf_counter()
    return make_seeded(engine, work, start, streams(work.seed, range(start, stop)), began)


def make_seeded(
    engine: Simulator, work: Work, start: int, seeds: npt.NDArray[np.uint64], began: float
) -> Block:
    """Runs from start on, whose streams are there already."""
    pulls, vertices, counts = engine.simulate(work.means, work.noise, seeds, work.max_steps)
    seconds = time.perf_counter() - began
    right = np.isin(vertices, list(engine.right_answers(work.means)))
    outcomes = vertices if work.plan.problem.measured else None
    return Block(start, pulls, right, counts, seconds, outcomes)
