"""Ours: the empirical best policy against its closest edge (THEORY 3, TopTwo-IDS-TCI).

The challenger is the edge with the least evidence, plus a logarithmic price on arms that
have hardly been tried, which is all the forced exploration it needs. Between the arms of
that edge, samples go where they inform most. Where exploration must satisfy the
constraints, the information-directed shares have no meaning without the rows' prices, so
the target is the exact allocation within the set, tracked with a short memory.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.gaussian import respond
from simplexplore.kernels.maximin import maximin, worthwhile
from simplexplore.kernels.records import PULLS, VERTEX

ARM_VECTORS = 0
EDGE_VECTORS = 1
TRACKING = {"end-of-time": "focused", "anytime": "averaged"}


@njit
def allocate(setting, table, run, memory):
    """Put the whole allocation on the arm that the challenger needs most."""
    vertex = run.integers[VERTEX]
    if setting.anytime:
        tolerance = worthwhile(float(run.integers[PULLS]))
        maximin(setting, table, run, memory, vertex, True, tolerance, run.w)
        return
    first = table.first_edge[vertex]
    challenger = first
    least = math.inf
    for edge in range(first, table.first_edge[vertex + 1]):
        rarest = math.inf
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            rarest = min(rarest, run.n[table.arm[k]])
        score = run.value[edge - first] + math.log(rarest)
        if score < least:
            least = score
            challenger = edge
    base = table.first_entry[challenger]
    value = respond(setting, table, run, challenger, base, run.n)
    for a in range(setting.size):
        run.w[a] = 0.0
    if value > 0.0:
        for k in range(base, table.first_entry[challenger + 1]):
            a = table.arm[k]
            run.w[a] = run.n[a] * run.gradient[k - base] / value
    else:
        for k in range(base, table.first_entry[challenger + 1]):
            run.w[table.arm[k]] = 1.0 / (table.first_entry[challenger + 1] - base)
