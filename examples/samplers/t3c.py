"""T3C of Shang, de Heide, Menard, Kaufmann and Valko (2020), over policies.

The leader is the best policy for means drawn from normal posteriors; the challenger is the policy
that the leader beats with the least evidence (transportation cost). With best-arm problems this is
their algorithm with beta = 1/2. Of rewards between 0 and 1 the variance is taken to be 1/4.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import GAUSSIAN
from simplexplore.kernels.rng import uniform

TRACKING = "focused"
POLICIES = True  # config.policies: all vertices


@njit
def allocate(config, table, run, scratch):
    """Draw a leader, find its challenger, sample a side."""
    drawn, wanted, spread = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    policies = config.policies
    for a in range(config.size):
        spread[a] = (config.variance[a] if config.family == GAUSSIAN else 0.25) / max(run.n[a], 1.0)
        far = math.sqrt(-2.0 * math.log(1.0 - uniform(run.choices)))
        normal = far * math.cos(2.0 * math.pi * uniform(run.choices))
        drawn[a] = run.clipped_mean[a] + normal * math.sqrt(spread[a])
    leader, most = 0, -math.inf
    for i in range(policies.shape[0]):
        value = 0.0
        for a in range(config.size):
            value += policies[i, a] * drawn[a]
        if value > most:
            leader, most = i, value
    challenger, least = leader, math.inf
    for i in range(policies.shape[0]):
        gap, noise = 0.0, 0.0
        for a in range(config.size):
            v = policies[leader, a] - policies[i, a]
            gap += v * run.clipped_mean[a]
            noise += v * v * spread[a]
        cost = max(gap, 0.0) ** 2 / (2.0 * noise) if noise > 0.0 else math.inf
        if cost < least:
            challenger, least = i, cost
    side = 1.0 if uniform(run.choices) < 0.5 else -1.0
    total = 0.0
    for a in range(config.size):
        v = side * (policies[leader, a] - policies[challenger, a])
        wanted[a] = math.sqrt(spread[a] * max(run.n[a], 1.0)) * max(0.0, v)
        total += wanted[a]
    for a in range(config.size):
        run.w[a] = wanted[a] / total if total > 0.0 else config.interior_allocation[a]
        drawn[a] = 1.0
        wanted[a] = run.w[a]
    if config.anytime:
        project(config.shares, run.duals, wanted, drawn, spread, run.w)
