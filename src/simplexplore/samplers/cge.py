"""Constrained Game Explorer (the paper's Algorithm 2): AdaGrad against a best response."""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.gaussian import alternative, optimistic, respond
from simplexplore.kernels.projection import project_on_simplex, project_within_rows
from simplexplore.kernels.records import PULLS, VERTEX

ARM_VECTORS = 1  # sums of squared gains
EDGE_VECTORS = 0
TRACKING = "cumulative"

# AdaGrad's step, the same for all instances. 1 / sqrt(2) was taken over as it is from an
# earlier prototype; no other value was tried here.
STEP = 0.7071067811865476


@njit
def allocate(setting, table, run, memory):
    """Best response to the allocation, optimistic gains, one AdaGrad step."""
    w, squares = run.w, memory.arms[0]
    lam, loose, y, price = (
        memory.scratch[0],
        memory.scratch[1],
        memory.scratch[2],
        memory.scratch[3],
    )
    vertex = run.integers[VERTEX]
    for a in range(setting.size):
        price[a] = w[a] + 1e-12
    closest = -1
    least = math.inf
    for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
        value = respond(setting, table, run, edge, table.first_entry[edge], price)
        if value < least:
            least = value
            closest = edge
    alternative(setting, table, run, closest, price, lam)
    f = math.log(float(run.integers[PULLS]))
    for a in range(setting.size):
        gain = (
            optimistic(setting, run.clipped[a], run.n[a], lam[a], a, f) if run.n[a] > 0.0 else 0.0
        )
        squares[a] += gain * gain
        loose[a] = 1.0 / math.sqrt(squares[a] + 0.1)
        y[a] = w[a] + STEP * gain * loose[a]
    if setting.anytime:
        project_within_rows(setting, y, loose, memory.rows, memory.system, price, w)
    else:
        project_on_simplex(setting.size, y, loose, w)
