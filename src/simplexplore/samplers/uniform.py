"""A fixed allocation: uniform, projected where exploration must satisfy the constraints.

The oracle is the same with the optimal allocation, which is given to it.
"""

from __future__ import annotations

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.records import Memory, Run, Setting, Table

ARM_VECTORS = 0
EDGE_VECTORS = 0
TRACKING = "sampled"


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Leave the allocation as it was set at the start."""
