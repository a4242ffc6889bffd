"""Ours: the empirical best policy against its closest edge (THEORY 3, TopTwo-IDS-TCI).

The challenger is the edge with the least evidence, plus a logarithmic price on arms that
have hardly been tried, which is all the forced exploration it needs. Between the arms of
that edge, samples go where they inform most. Where exploration must satisfy the
constraints, information-directed shares have no meaning without the rows' prices: there
the target is the exact allocation within the set (ctns.py), tracked with a short memory.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.gaussian import respond
from simplexplore.kernels.records import VERTEX

ARM_VECTORS = 0
EDGE_VECTORS = 0
TRACKING = {"end-of-time": "focused", "anytime": "averaged"}
WITHIN_CONSTRAINTS = "ctns.py"


@njit
def allocate(setting, table, run, memory):
    """Share the next sample among the challenger's arms by what each would tell."""
    vertex = run.integers[VERTEX]
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
    base, end = table.first_entry[challenger], table.first_entry[challenger + 1]
    value = respond(setting, table, run, challenger, base, run.n)
    for a in range(setting.size):
        run.w[a] = 0.0
    for k in range(base, end):
        a = table.arm[k]
        # Tied means tell nothing yet: share evenly.
        run.w[a] = run.n[a] * run.gradient[k - base] / value if value > 0.0 else 1.0 / (end - base)
