"""Projected Track-and-Stop, the paper's baseline: solve best arm, project where necessary."""

from __future__ import annotations

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.maximin import maximin, worthwhile
from simplexplore.kernels.projection import project_within_rows
from simplexplore.kernels.records import PULLS, Memory, Run, Setting, Table

ARM_VECTORS = 1  # the best-arm allocation
EDGE_VECTORS = 1
PAIRS = True
TRACKING = "cumulative"


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """The best-arm allocation at the empirical means, projected onto the allocation set.

    Arms that no feasible policy uses are never played, so they are not among the rivals.
    """
    arms = setting.first_arms
    best = arms[0]
    for k in range(1, arms.size):
        if run.clipped[arms[k]] > run.clipped[best]:
            best = arms[k]
    w = memory.arms[0]
    if w[arms[0]] == 0.0:
        for k in range(arms.size):
            w[arms[k]] = 1.0 / arms.size
    tolerance = worthwhile(float(run.integers[PULLS]))
    maximin(setting, setting.pairs, run, memory, best, False, tolerance, w)
    if not setting.anytime:
        for a in range(setting.size):
            run.w[a] = w[a]
        return
    loose, price = memory.scratch[0], memory.scratch[1]
    for a in range(setting.size):
        loose[a] = 1.0
    project_within_rows(setting, w, loose, memory.rows, memory.system, price, run.w)
