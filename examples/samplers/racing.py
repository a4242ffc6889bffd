"""Racing (successive elimination) on edges, after Even-Dar, Mannor and Mansour (2002).

An edge is decided while its evidence exceeds log((1 + log t) / delta). Arms are sampled alike as
long as some edge that is not decided has them; with best-arm problems these are the arms that are
still in the race.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import PULLS, VERTEX

TRACKING = "cumulative"


@njit
def allocate(config, table, run, scratch):
    """Share the next sample evenly among the arms that are still in the race."""
    vertex = run.integers[VERTEX]
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    enough = math.log((1.0 + math.log(float(run.integers[PULLS]))) / config.delta)
    wanted, ones, price = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    for a in range(config.size):
        wanted[a], ones[a] = 0.0, 1.0
    left = 0.0
    for edge in range(first, last):
        if run.value[edge - first] < enough:
            for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
                left += 1.0 - wanted[table.arm[k]]
                wanted[table.arm[k]] = 1.0
    for a in range(config.size):
        wanted[a] = wanted[a] / left if left > 0.0 else config.interior_allocation[a]
        run.w[a] = wanted[a]
    if config.anytime:
        project(config.shares, run.duals, wanted, ones, price, run.w)
