"""Where limits are measured: after LAGEX of Das and Basu (2024), a game with learned constraints.

Against the allocation so far one player finds the closest alternative: means and coefficients with
which the answer is wrong, limits included, as by Lagrange multipliers. The other one moves the
allocation towards the arms that tell most of that alternative, by one round for each sample;
samples follow the sum of all allocations. Their learner is AdaGrad, and their answers have no
tolerance. With limits that are known it is ctns.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.measured_answer import share
from simplexplore.kernels.measured_search import DISTANCE, ROWS_ALONE, search
from simplexplore.kernels.records import ANSWER, ARM, PULLS, TARGET
from simplexplore.kernels.tracking import exploration
from simplexplore.samplers.ctns import EDGE_STATE, TRACKING, allocate
from simplexplore.samplers.measured import early_arm, follow

__all__ = ["EDGE_STATE", "TRACKING", "allocate", "allocate_measured"]

FORGETTING = 2.0  # a later round weighs more


@njit
def allocate_measured(config, table, run, scratch):
    """Play one round, and write the next arm into run.integers[ARM]."""
    arm = early_arm(config, run)
    if arm < 0:
        measured, work = config.measured, scratch.measured
        pulls, count = float(run.integers[PULLS]), config.useful_arms.size
        for k in range(count):  # counts of samples, as many as there are
            a = config.useful_arms[k]
            work.n[a] = 0.9 * pulls * run.w[a] + 0.1 * pulls / count
        mode = DISTANCE if run.integers[TARGET] == ANSWER else ROWS_ALONE
        search(measured, run, work, work.n, run.answer, mode, -1.0, math.inf, run.closest)
        share(measured, run, work, work.n, work.shares)
        for a in range(measured.size):
            run.w[a] += (work.shares[a] - run.w[a]) * min(1.0, FORGETTING / pulls)
        arm = follow(config, run, exploration(count, pulls, 0.5))
    run.integers[ARM] = arm
