"""Sequential halving over policies: a baseline where a number of samples is given.

The samples are spent in rounds, as many as it takes to leave one policy of all vertices of the
feasible set; in each the arms on which the policies that are left differ are sampled evenly, and
after it the better half of them is kept (Karnin, Koren and Somekh 2013, for arms).
"""

from __future__ import annotations

import math

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.projection import project_within_rows
from simplexplore.kernels.records import PULLS, Memory, Run, Setting, Table

ARM_VECTORS = 1  # policies left, and the pull after which the round ends
EDGE_VECTORS = 2  # by policy: whether it is left, and what it earns; there are more edges
TRACKING = "focused"
POLICIES = True

# Shares closer than this are the same.
_SAME = 1e-12


@kernel
def halve(setting: Setting, run: Run, memory: Memory) -> None:
    """Drop the worse half of the policies left, the last of equal ones first."""
    left, earned = memory.edges[0], memory.edges[1]
    count = setting.policies.shape[0]
    for i in range(count):
        earned[i] = 0.0
        for a in range(setting.size):
            earned[i] += setting.policies[i, a] * run.clipped[a]
    for _ in range(int(memory.arms[0, 0]) // 2):
        worst = 0
        least = math.inf
        for i in range(count):
            if left[i] != 0.0 and earned[i] <= least:
                least = earned[i]
                worst = i
        left[worst] = 0.0
        memory.arms[0, 0] -= 1.0


@kernel
def begin_round(setting: Setting, run: Run, memory: Memory) -> None:
    """When the round ends, and the allocation for it."""
    state, left = memory.arms[0], memory.edges[0]
    pulls = float(run.integers[PULLS])
    rounds = max(1.0, math.ceil(math.log2(state[0])))
    state[1] = pulls + (setting.budget - pulls) / rounds
    y, loose, price = memory.scratch[0], memory.scratch[1], memory.scratch[2]
    total = 0.0
    for a in range(setting.size):
        low, high = math.inf, -math.inf
        for i in range(setting.policies.shape[0]):
            if left[i] != 0.0:
                low = min(low, setting.policies[i, a])
                high = max(high, setting.policies[i, a])
        y[a] = 1.0 if high - low > _SAME else 0.0
        loose[a] = 1.0
        total += y[a]
    for a in range(setting.size):
        y[a] = y[a] / total if total > 0.0 else setting.inside[a]
        run.w[a] = y[a]
    if setting.anytime:
        project_within_rows(setting, y, loose, memory.rows, memory.system, price, run.w)


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Leave the allocation as it is until the round is over."""
    state, left = memory.arms[0], memory.edges[0]
    if state[0] == 0.0:
        state[0] = float(setting.policies.shape[0])
        for i in range(setting.policies.shape[0]):
            left[i] = 1.0
        begin_round(setting, run, memory)
    elif state[0] > 1.0 and run.integers[PULLS] >= state[1]:
        halve(setting, run, memory)
        begin_round(setting, run, memory)
