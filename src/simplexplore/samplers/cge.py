"""Constrained Game Explorer (the paper's Algorithm 2): AdaGrad against a best response."""

from __future__ import annotations

import math

from simplexplore.kernels.costs import to_shares, to_spend
from simplexplore.kernels.information import alternative, ucb_divergence
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.projection import project, project_on_simplex
from simplexplore.kernels.records import PULLS, EdgeTable, RunConfig, RunState, Scratch

ARM_STATE = 1  # sums of squared gains
EDGE_STATE = 0
TRACKING = "cumulative"

# AdaGrad's step, the same for all instances. Steps from 0.25 to 2.5 were tried once on the
# paper's six Gaussian instances and both scenarios (1000 runs each): the means move by less
# than their standard errors up to 1.5, and 1 had the least of them.
STEP = 1.0


@kernel
def play(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, f: float, step: float
) -> None:
    """Best response to the allocation, gains as optimistic as f, one AdaGrad step.

    Where samples cost, the step is taken in shares of what is spent.
    """
    w, squares = run.w, run.arm_state[0]
    lam, loose, y, price = (scratch.arms[0], scratch.arms[1], scratch.arms[2], scratch.arms[3])
    for a in range(config.size):
        price[a] = max(w[a], 1e-12)
    alternative(config, table, run, price, y, lam)
    for a in range(config.size):
        gain = 0.0
        if run.n[a] > 0.0:
            gain = ucb_divergence(config, run, a, lam[a], f)
        y[a] = gain / config.costs[a] if config.priced else gain
    to_spend(config, w)
    for a in range(config.size):
        squares[a] += y[a] * y[a]
        loose[a] = 1.0 / math.sqrt(squares[a] + 0.1)
        y[a] = w[a] + step * y[a] * loose[a]
    if config.anytime:
        project(config.spend, run.duals, y, loose, price, w)
    else:
        project_on_simplex(config.size, y, loose, w)
    to_shares(config, w)


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """One round of the game, with the f(t) = log t of the paper's experiments."""
    play(config, table, run, scratch, math.log(float(run.integers[PULLS])), STEP)
