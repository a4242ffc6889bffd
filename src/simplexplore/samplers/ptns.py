"""Projected Track-and-Stop, the paper's baseline: solve best arm, project where necessary."""

from __future__ import annotations

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.maximin import maximin, target_gap
from simplexplore.kernels.projection import project
from simplexplore.kernels.records import PULLS, EdgeTable, RunConfig, RunState, Scratch

ARM_STATE = 1  # the best-arm allocation
EDGE_STATE = 1
PAIRS = True
TRACKING = "cumulative"


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """The best-arm allocation at the empirical means, projected onto the allocation set.

    Arms that no feasible policy uses are never played, so they are not among the rivals.
    """
    arms = config.useful_arms
    best = arms[0]
    for k in range(1, arms.size):
        if run.clipped_mean[arms[k]] > run.clipped_mean[best]:
            best = arms[k]
    w = run.arm_state[0]
    if w[arms[0]] == 0.0:
        for k in range(arms.size):
            w[arms[k]] = 1.0 / arms.size
    tolerance = target_gap(float(run.integers[PULLS]))
    maximin(config, config.pairs, run, scratch, best, False, tolerance, w)
    if not config.anytime:
        for a in range(config.size):
            run.w[a] = w[a]
        return
    loose, price = scratch.arms[0], scratch.arms[1]
    for a in range(config.size):
        loose[a] = 1.0
    project(config.shares, run.duals, w, loose, price, run.w)
