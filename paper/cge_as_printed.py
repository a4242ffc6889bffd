"""cge with the sign of its loss as printed: the allocation player descends what it should gain."""

from __future__ import annotations

import math

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import PULLS, EdgeTable, RunConfig, RunState, Scratch
from simplexplore.samplers.cge import STEP, play

ARM_STATE = 1


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """One round of the game."""
    play(config, table, run, scratch, math.log(float(run.integers[PULLS])), -STEP)
