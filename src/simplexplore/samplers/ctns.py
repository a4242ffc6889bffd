"""Constrained Track-and-Stop (the paper's Algorithm 1): the optimal allocation at the means."""

from __future__ import annotations

from simplexplore.kernels import records
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.maximin import maximin, target_gap
from simplexplore.kernels.records import EdgeTable, RunConfig, RunState, Scratch

ARM_STATE = 0
EDGE_STATE = 1

# The sum of all allocations keeps early mistakes, which costs up to a fifth of the samples; within
# limits direct tracking may not end (docs/theory/tracking.md).
TRACKING = {"end-of-time": "direct", "anytime": "cumulative"}


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Solve the max-min problem at the empirical means, warm from the last solution."""
    vertex = run.integers[records.VERTEX]
    tolerance = target_gap(float(run.integers[records.PULLS]))
    maximin(config, table, run, scratch, vertex, config.anytime, tolerance, run.w)
