"""Constrained Game Explorer (the paper's Algorithm 2): AdaGrad against a best response."""

from __future__ import annotations

import math

from simplexplore.kernels.costs import to_shares, to_spend
from simplexplore.kernels.information import alternative, optimistic
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.projection import project_on_simplex
from simplexplore.kernels.records import PULLS, Memory, Projection, Run, Setting, Table

ARM_VECTORS = 1  # sums of squared gains
EDGE_VECTORS = 0
TRACKING = "cumulative"

# AdaGrad's step, the same for all instances. Steps from 0.25 to 2.5 were tried once on the
# paper's six Gaussian instances and both scenarios (1000 runs each): the means move by less
# than their standard errors up to 1.5, and 1 had the least of them.
STEP = 1.0


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Best response to the allocation, optimistic gains, one AdaGrad step.

    Where samples cost, the step is taken in shares of what is spent.
    """
    w, squares = run.w, memory.arms[0]
    lam, loose, y, price = (
        memory.scratch[0],
        memory.scratch[1],
        memory.scratch[2],
        memory.scratch[3],
    )
    for a in range(setting.size):
        price[a] = max(w[a], 1e-12)
    alternative(setting, table, run, price, y, lam)
    f = math.log(float(run.integers[PULLS]))
    for a in range(setting.size):
        gain = 0.0
        if run.n[a] > 0.0:
            gain = optimistic(setting, run, a, lam[a], f)
        y[a] = gain / setting.costs[a] if setting.priced else gain
    to_spend(setting, w)
    for a in range(setting.size):
        squares[a] += y[a] * y[a]
        loose[a] = 1.0 / math.sqrt(squares[a] + 0.1)
        y[a] = w[a] + STEP * y[a] * loose[a]
    if setting.anytime:
        point = Projection(y, loose, memory.rows, memory.system, price, w)
        setting.slots.project(setting.spend, point)
    else:
        project_on_simplex(setting.size, y, loose, w)
    to_shares(setting, w)
