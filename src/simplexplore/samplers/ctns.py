"""Constrained Track-and-Stop (the paper's Algorithm 1): the optimal allocation at the means."""

from __future__ import annotations

from numba import njit

from simplexplore.kernels.maximin import maximin
from simplexplore.kernels.records import VERTEX

ARM_VECTORS = 0
EDGE_VECTORS = 1
TRACKING = "cumulative"

# A certified gap this small moves no stopping time that could be measured.
TOLERANCE = 1e-3


@njit
def allocate(setting, table, run, memory):
    """Solve the max-min problem at the empirical means, warm from the last solution."""
    vertex = run.integers[VERTEX]
    maximin(setting, table, run, memory, vertex, setting.anytime, TOLERANCE, run.w)
