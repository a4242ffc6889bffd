"""A sampler of one's own: sample as if the comparison with the least evidence were the only one.

Try: simplexplore simulate examples/star.toml --sampler examples/weakest_edge.py,uniform
The page "Write your own sampler" explains every line.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project_within_rows
from simplexplore.kernels.records import VERTEX

ARM_VECTORS = 0  # vectors over arms to remember from step to step
EDGE_VECTORS = 0  # vectors over edges to remember
TRACKING = "cumulative"


@njit
def allocate(setting, table, run, memory):
    """Write the next allocation into run.w."""
    vertex = run.integers[VERTEX]  # the policy that looks best now
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]

    # Its edge with the least evidence.
    weakest = first
    for edge in range(first, last):
        if run.value[edge - first] < run.value[weakest - first]:
            weakest = edge

    # For that edge alone, arm a deserves samples in proportion to sigma_a |v_a|.
    wanted = memory.scratch[0]
    for a in range(setting.size):
        wanted[a] = 0.0
    total = 0.0
    for k in range(table.first_entry[weakest], table.first_entry[weakest + 1]):
        a = table.arm[k]
        wanted[a] = math.sqrt(setting.variance[a]) * abs(table.v[k])
        total += wanted[a]
    for a in range(setting.size):
        wanted[a] /= total

    if not setting.anytime:
        for a in range(setting.size):
            run.w[a] = wanted[a]
        return
    # Anytime, the allocation must satisfy the constraints: the closest one that does.
    ones, price = memory.scratch[1], memory.scratch[2]
    for a in range(setting.size):
        ones[a] = 1.0
    project_within_rows(setting, wanted, ones, memory.rows, memory.system, price, run.w)
