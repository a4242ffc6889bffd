"""A fixed allocation: uniform, projected where exploration must satisfy the constraints.

The oracle is the same with the optimal allocation, which is given to it.
"""

from __future__ import annotations

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import EdgeTable, RunConfig, RunState, Scratch

ARM_STATE = 0
EDGE_STATE = 0
TRACKING = "sampled"


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Leave the allocation as it was set at the start."""
