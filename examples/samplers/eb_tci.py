"""EB-TCI of Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), on edges.

The leader is the policy that looks best (empirical best); the challenger is its edge with the least
evidence plus the logarithm of the samples of where the edge leads (transportation cost, improved).
The leader's side of the edge, or the challenger's, is sampled with probability one half. With
best-arm problems a side is an arm, and this is their algorithm with beta = 1/2.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import VERTEX
from simplexplore.kernels.rng import uniform

TRACKING = "focused"
BETA = 0.5


@njit
def sample_side(config, table, run, scratch, edge):
    """All of the next sample to the leader's side (v > 0) of an edge, or to the other one."""
    sign = 1.0 if uniform(run.choices) < BETA else -1.0
    wanted, ones, price = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    total = 0.0
    for a in range(config.size):
        wanted[a], ones[a] = 0.0, 1.0
    begin, end = table.first_entry[edge], table.first_entry[edge + 1]
    for k in range(begin, end):
        a, alone = table.arm[k], end - begin == 1  # an arm beside a threshold
        side = abs(table.v[k]) if alone else max(0.0, sign * table.v[k])
        wanted[a] = math.sqrt(config.variance[a]) * side
        total += wanted[a]
    for a in range(config.size):
        wanted[a] /= total
        run.w[a] = wanted[a]
    if config.anytime:
        project(config.shares, run.duals, wanted, ones, price, run.w)


@njit
def allocate(config, table, run, scratch):
    """Challenge the policy that looks best."""
    vertex = run.integers[VERTEX]
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    challenger, least = first, math.inf
    for edge in range(first, last):
        rarest = math.inf
        begin, end = table.first_entry[edge], table.first_entry[edge + 1]
        for k in range(begin, end):
            if table.v[k] < 0.0 or end - begin == 1:
                rarest = min(rarest, run.n[table.arm[k]])
        cost = run.value[edge - first] + math.log(rarest)
        if cost < least:
            challenger, least = edge, cost
    sample_side(config, table, run, scratch, challenger)
