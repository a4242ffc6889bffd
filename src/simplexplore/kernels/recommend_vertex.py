"""Which vertex to recommend: the best one at the empirical means, found along edges."""

from __future__ import annotations

from . import records
from .information import recompute_statistics
from .kernel import kernel
from .records import EdgeTable, RunConfig, RunState, Scratch

# A walk never gets this long; rounding could make it go in circles.
MAX_MOVES = 100_000


@kernel
def recommend(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> int:
    """Walk along improving edges to the vertex that is best at the empirical means."""
    scale = 0.0
    for a in range(config.size):
        scale = max(scale, abs(run.clipped_mean[a]))
    for _ in range(MAX_MOVES):
        vertex = run.integers[records.VERTEX]
        count = table.first_edge[vertex + 1] - table.first_edge[vertex]
        best = -1
        lowest = -1e-13 * scale  # less is rounding
        for e in range(count):
            if run.gap[e] < lowest:
                lowest = run.gap[e]
                best = e
        if best < 0:
            return records.GO_ON
        edge = table.first_edge[vertex] + best
        if table.following[edge] < 0:
            run.integers[records.MISSING_EDGE] = edge
            return records.UNKNOWN_VERTEX
        run.integers[records.VERTEX] = table.following[edge]
        recompute_statistics(config, table, run)
    return records.GO_ON
