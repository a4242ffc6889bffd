"""Frank-Wolfe sampling of Wang, Tzeng and Proutiere (2021).

Samples move towards the answer of a small game at the shares so far: a player of arms gains the
derivative of an edge's information, a player of edges chooses among those whose information is
close to the least. Each answers the other's past (fictitious play). In the anytime scenario the
answer is projected on the constraints.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.information import edge_information
from simplexplore.kernels.projection import project
from simplexplore.kernels.records import PULLS, VERTEX

ROUNDS = 10


@njit
def allocate(config, table, run, scratch):
    """The answer of the game at the shares so far."""
    vertex, pulls = run.integers[VERTEX], float(run.integers[PULLS])
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    shares, gain, answer = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    for a in range(config.size):
        shares[a], gain[a], answer[a] = max(run.n[a], 0.5) / pulls, 0.0, 0.0
    near = math.inf
    for edge in range(first, last):
        near = min(near, run.value[edge - first])
    near += pulls**0.1 / config.size  # of counts: the paper's r_t = t^-0.9 / K of shares
    for _ in range(ROUNDS):
        worst, least = first, math.inf
        for edge in range(first, last):
            if run.value[edge - first] <= near:
                base = table.first_entry[edge]
                edge_information(config, table, run, edge, base, shares)
                value = 0.0
                for k in range(base, table.first_entry[edge + 1]):
                    value += run.gradient[k - base] * answer[table.arm[k]]
                if value < least:
                    worst, least = edge, value
        base, best = table.first_entry[worst], 0
        edge_information(config, table, run, worst, base, shares)
        for k in range(base, table.first_entry[worst + 1]):
            gain[table.arm[k]] += run.gradient[k - base]
        for a in range(config.size):
            if gain[a] > gain[best]:
                best = a
        answer[best] += 1.0 / ROUNDS
    for a in range(config.size):
        run.w[a], gain[a] = answer[a], 1.0
    if config.anytime:
        project(config.shares, run.duals, answer, gain, shares, run.w)
