"""A fixed allocation: uniform, projected where exploration must satisfy the constraints.

The oracle is the same with the optimal allocation, which is given to it.
"""

from __future__ import annotations

from numba import njit

ARM_VECTORS = 0
EDGE_VECTORS = 0
TRACKING = "sampled"


@njit
def allocate(setting, table, run, memory):
    """Leave the allocation as it was set at the start."""
