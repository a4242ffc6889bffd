"""cge with the f(t) of its proof, 3 log t + log log t, instead of log t."""

from __future__ import annotations

import math

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import PULLS, EdgeTable, RunConfig, RunState, Scratch
from simplexplore.samplers.cge import STEP, play

ARM_STATE = 1


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """One round of the game."""
    log = math.log(float(run.integers[PULLS]))
    play(config, table, run, scratch, 3.0 * log + math.log(max(log, 1.0)), STEP)
