"""Which vertex to recommend: the best one at the empirical means, found along edges."""

from __future__ import annotations

from .information import refresh
from .kernel import kernel
from .records import GO_ON, MISSING_EDGE, UNKNOWN_VERTEX, VERTEX, Memory, Run, Setting, Table

# A walk never gets this long; rounding could make it go in circles.
MAX_MOVES = 100_000


@kernel
def recommend(setting: Setting, table: Table, run: Run, memory: Memory) -> int:
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
