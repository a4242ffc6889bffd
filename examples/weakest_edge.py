"""A sampler of one's own: sample as if the comparison with the least evidence were the only one.

Try: simplexplore simulate examples/star.toml --sampler examples/weakest_edge.py,uniform
The page "Write your own sampler" explains every line.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import VERTEX

ARM_STATE = 0  # vectors over arms to remember from step to step
EDGE_STATE = 0  # vectors over edges to remember
TRACKING = "cumulative"


@njit
def allocate(config, table, run, scratch):
    """Write the next allocation into run.w."""
    vertex = run.integers[VERTEX]  # the policy that looks best now
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]

    # Its edge with the least evidence.
    weakest = first
    for edge in range(first, last):
        if run.value[edge - first] < run.value[weakest - first]:
            weakest = edge

    # For that edge alone, arm a deserves samples in proportion to sigma_a |v_a|.
    wanted = scratch.arms[0]
    for a in range(config.size):
        wanted[a] = 0.0
    total = 0.0
    for k in range(table.first_entry[weakest], table.first_entry[weakest + 1]):
        a = table.arm[k]
        wanted[a] = math.sqrt(config.variance[a]) * abs(table.v[k])
        total += wanted[a]
    for a in range(config.size):
        wanted[a] /= total

    if not config.anytime:
        for a in range(config.size):
            run.w[a] = wanted[a]
        return
    # Anytime, the allocation must satisfy the constraints: the closest one that does.
    ones, price = scratch.arms[1], scratch.arms[2]
    for a in range(config.size):
        ones[a] = 1.0
    project(config.shares, run.duals, wanted, ones, price, run.w)
