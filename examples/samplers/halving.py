"""Sequential halving of Karnin, Koren and Somekh (2013), over policies.

The samples of a budget are spent in rounds, as many as it takes to leave one policy. In each the
arms on which the policies left differ are sampled evenly; then the better half of them is kept.
Without a budget the first round does not end.
"""

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import PULLS

ARM_STATE = 1  # policies left, and the pull after which the round ends
EDGE_STATE = 2  # by policy: whether it is gone, and what it earns; there are more edges
TRACKING = "focused"
POLICIES = True  # config.policies: all vertices


@njit
def halve(config, run):
    """Drop the worse half of the policies left, the last of equal ones first."""
    state, gone, earned = run.arm_state[0], run.edge_state[0], run.edge_state[1]
    for i in range(config.policies.shape[0]):
        earned[i] = 0.0
        for a in range(config.size):
            earned[i] += config.policies[i, a] * run.clipped_mean[a]
    for _ in range(int(state[0]) // 2):
        worst, least = 0, math.inf
        for i in range(config.policies.shape[0]):
            if gone[i] == 0.0 and earned[i] <= least:
                worst, least = i, earned[i]
        gone[worst], state[0] = 1.0, state[0] - 1.0


@njit
def allocate(config, table, run, scratch):
    """Leave the allocation as it is until the round is over."""
    state, gone, pulls = run.arm_state[0], run.edge_state[0], run.integers[PULLS]
    if state[0] == 0.0:
        state[0] = config.policies.shape[0]
    elif state[0] > 1.0 and pulls >= state[1]:
        halve(config, run)
    else:
        return
    rounds = max(1.0, math.ceil(math.log2(state[0])))
    state[1] = pulls + (config.budget - pulls) / rounds if config.budget > 0 else math.inf
    wanted, ones, price, total = scratch.arms[0], scratch.arms[1], scratch.arms[2], 0.0
    for a in range(config.size):
        low, high = math.inf, -math.inf
        for i in range(config.policies.shape[0]):
            if gone[i] == 0.0:
                low, high = min(low, config.policies[i, a]), max(high, config.policies[i, a])
        wanted[a], ones[a] = (1.0 if high - low > 1e-12 else 0.0), 1.0
        total += wanted[a]
    for a in range(config.size):
        wanted[a] = run.w[a] = wanted[a] / total if total > 0.0 else config.interior_allocation[a]
    if config.anytime:
        project(config.shares, run.duals, wanted, ones, price, run.w)
