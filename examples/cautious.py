"""A stopping threshold of one's own: gk16 with twice as much on top of log(1 / delta).

Try: simplexplore simulate examples/star.toml --sampler top-two --threshold examples/cautious.py
"""

from __future__ import annotations

import math

from numba import njit

from simplexplore.kernels.records import PULLS


@njit
def reached(config, table, run, edge, statistic):
    """Whether one edge's evidence is enough; a run stops when all edges agree."""
    extra = math.log(1.0 + math.log(run.integers[PULLS]))
    return statistic >= -math.log(config.delta) + 2.0 * extra
