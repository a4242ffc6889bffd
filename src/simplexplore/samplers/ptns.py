"""Projected Track-and-Stop, the paper's baseline: solve best arm, project where necessary."""

from __future__ import annotations

from numba import njit

from simplexplore.kernels.maximin import maximin, worthwhile
from simplexplore.kernels.projection import project_within_rows
from simplexplore.kernels.records import PULLS

ARM_VECTORS = 1  # the best-arm allocation
EDGE_VECTORS = 1
PAIRS = True
TRACKING = "cumulative"


@njit
def allocate(setting, table, run, memory):
    """The best-arm allocation at the empirical means, projected onto the allocation set."""
    best = 0
    for a in range(1, setting.size):
        if run.clipped[a] > run.clipped[best]:
            best = a
    w = memory.arms[0]
    if w[0] == 0.0:
        for a in range(setting.size):
            w[a] = 1.0 / setting.size
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
