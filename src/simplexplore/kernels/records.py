"""The arrays that compiled code works on, by name.

All memory is allocated in Python and passed in; kernels only read and write it. Edges of
all known vertices lie one after the other: edge e has entries ``first_entry[e]`` to
``first_entry[e + 1]``, each an arm and a coefficient of v = policy - direction, so that
v . mean is the edge's loss per unit. Where answers within epsilon are good enough (sticking.py), a
"vertex" is such an answer and its "edges" compare it with every policy that could be better:
v = answer - policy, and the loss counts from -epsilon, the edge's ``offset``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

# What a kernel returns.
GO_ON = 0
STOPPED = 1
UNKNOWN_VERTEX = 2
NOT_SOLVED = 3

# Events of a live study: a pull is asked for; its reward arrives, in time or after it was
# given up; it is given up; a pull was made elsewhere; a smaller delta needs a new judgement.
ASKED, TOLD, LATE, EXPIRED, ELSEWHERE, EXTENDED = range(6)

# Places in Run.integers.
PULLS, VERTEX, ARM, WARM, STATUS, MISSING_EDGE, CAPPED, ITERATIONS, LOOK = range(9)

# Families with a variance function of their own.
GAUSSIAN, BERNOULLI, POISSON = range(3)

# Tracking rules.
CUMULATIVE, AVERAGED, DIRECT, SAMPLED, FOCUSED = range(5)


class Table(NamedTuple):
    """Vertices seen so far, with their edges by edge and by arm."""

    first_edge: Indices  # (V + 1,)
    first_entry: Indices  # (E + 1,)
    arm: Indices
    v: Array
    offset: Array  # (E,) added to v . mean: epsilon for comparisons of answers, else 0
    following: Indices  # (E,) the vertex an edge leads to, or -1
    first_column: Indices  # (V, K + 1): entries of `column_edge` by arm
    column_edge: Indices  # edge, counted from the vertex's first
    column_v: Array
    root: Array  # (E,) multipliers of a run's last projections, over total weight


class Setting(NamedTuple):
    """What stays fixed during a run."""

    size: int
    family: int
    anytime: bool
    tracking: int
    delta: float
    least_level: float  # log(1 / delta), below every threshold
    log_union: float  # log(M / delta), M supports in the union bound
    variance: Array  # (K,) known variances; ones where the family has its own
    lowest: float  # empirical means are clipped to this range, in unit coordinates
    highest: float
    domain_low: float  # alternatives are clipped to this one
    domain_high: float
    above: Array  # rows A w <= b of the allocation set
    limit: Array
    equal: Array  # rows E w = f
    total: Array
    start: Array  # multipliers of all rows that give every arm the price 1
    inside: Array  # allocation in the set whose least share is largest
    deep: Array  # allocation strictly inside all rows
    first_arms: Indices  # arms to play once before anything else
    fixed: Array  # (K,) allocation of samplers that never change it
    levels: Array  # threshold constants by size of an edge's support
    pairs: Table  # edges of the best-arm problem, one vertex per arm (empty if unused)


class Run(NamedTuple):
    """What changes: everything needed to go on after an interruption."""

    n: Array  # (K,) pulls
    mean: Array  # (K,) empirical means, in unit coordinates
    clipped: Array  # (K,) the same within the range of means
    target: Array  # (K,) sum of the allocations tracked
    average: Array  # (K,) their average, late ones weighing more (averaged tracking)
    w: Array  # (K,) the allocation tracked now
    gap: Array  # by edge of the vertex: v . mean + offset
    spread: Array  # by edge: sum of variance v^2 / n (closed-form families)
    value: Array  # by edge: the statistic
    time: Array  # by edge: scratch
    gradient: Array  # by entry of the vertex: scratch for information per arm
    scale: Array  # (1,) size of the means: what counts as an improvement
    rate: Array  # by answer: information per sample at the last look (empty if unused)
    integers: Indices  # (9,)
    rewards: Words  # (4,) random stream of the environment
    choices: Words  # (4,) random stream of the sampler


class Memory(NamedTuple):
    """A sampler's own memory, set to zero at the start of a run."""

    arms: Array  # (a, K)
    edges: Array  # (b, E): by edge of the whole table
    rows: Array  # (c, number of rows)
    scratch: Array  # (d, K): nothing is kept there
    system: Array  # (rows, rows): scratch for small linear systems
