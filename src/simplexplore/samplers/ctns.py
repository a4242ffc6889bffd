"""Constrained Track-and-Stop (the paper's Algorithm 1): the optimal allocation at the means."""

from __future__ import annotations

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.maximin import part_of_maximin, worthwhile
from simplexplore.kernels.records import AVERAGED, PULLS, VERTEX, Memory, Run, Setting, Table

ARM_VECTORS = 0
EDGE_VECTORS = 1
TRACKING = "cumulative"


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Solve the max-min problem at the empirical means, warm from the last solution."""
    if setting.tracking == AVERAGED and run.integers[PULLS] % 2 == 1:
        return  # an average can do with every other solution
    vertex = run.integers[VERTEX]
    tolerance = worthwhile(float(run.integers[PULLS]))
    part_of_maximin(setting, table, run, memory, vertex, setting.anytime, tolerance, run.w)
