"""LUCB of Kalyanakrishnan, Tewari, Auer and Stone (2012), on edges.

The challenger is the edge that could pay most, by the confidence intervals of its arms. Of its two
sides the one whose intervals are wider is sampled; their algorithm samples both arms in each round.
Where no edge could pay LUCB would stop; for thresholds that ask for more, edges are then ranked by
how many widths they lack. Rewards between 0 and 1 count as sub-Gaussian with variance 1/4.
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.projection import project
from simplexplore.kernels.records import GAUSSIAN, PULLS, VERTEX

TRACKING = "focused"


@njit
def width(config, run, level, k, table):
    """What the confidence interval of one arm of an edge adds."""
    a = table.arm[k]
    variance = config.variance[a] if config.family == GAUSSIAN else 0.25
    return abs(table.v[k]) * math.sqrt(2.0 * variance * level / run.n[a])


@njit
def allocate(config, table, run, scratch):
    """Sample the wider side of the edge that could pay most."""
    vertex = run.integers[VERTEX]
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    level = math.log((1.0 + math.log(float(run.integers[PULLS]))) / config.delta)
    challenger, most = first, -math.inf
    for edge in range(first, last):
        wide = 0.0
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            wide += width(config, run, level, k, table)
        could_pay = wide - run.gap[edge - first]
        score = could_pay if could_pay > 0.0 else could_pay / wide
        if score > most:
            challenger, most = edge, score
    begin, end = table.first_entry[challenger], table.first_entry[challenger + 1]
    above, below = 0.0, 0.0
    for k in range(begin, end):
        if table.v[k] > 0.0:
            above += width(config, run, level, k, table)
        else:
            below += width(config, run, level, k, table)
    wanted, ones, price = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    for a in range(config.size):
        wanted[a], ones[a] = 0.0, 1.0
    for k in range(begin, end):
        if (table.v[k] > 0.0) == (above >= below):
            wanted[table.arm[k]] = width(config, run, level, k, table) / max(above, below)
    for a in range(config.size):
        run.w[a] = wanted[a]
    if config.anytime:
        project(config.shares, run.duals, wanted, ones, price, run.w)
