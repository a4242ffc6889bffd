"""Which vertex to recommend: the best one at the empirical means, found along edges."""

from __future__ import annotations

from numba import njit

from .gaussian import refresh
from .records import GO_ON, MISSING_EDGE, UNKNOWN_VERTEX, VERTEX

# A walk never gets this long; rounding could make it go in circles.
MAX_MOVES = 100_000


@njit
def unsettled(run, weakest):
    """Whether there is no evidence against some edge: it may even improve on the vertex."""
    return weakest >= 0 and run.value[weakest] <= 0.0


@njit
def recommend(setting, table, run, memory):
    """Walk along improving edges to the vertex that is best at the empirical means."""
    for _ in range(MAX_MOVES):
        vertex = run.integers[VERTEX]
        count = table.first_edge[vertex + 1] - table.first_edge[vertex]
        best = -1
        lowest = -1e-13 * run.scale[0]  # less is rounding
        for e in range(count):
            if run.gap[e] < lowest:
                lowest = run.gap[e]
                best = e
        if best < 0:
            return GO_ON
        edge = table.first_edge[vertex] + best
        if table.following[edge] < 0:
            run.integers[MISSING_EDGE] = edge
            return UNKNOWN_VERTEX
        run.integers[VERTEX] = table.following[edge]
        refresh(setting, table, run)
    return GO_ON
