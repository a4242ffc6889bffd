"""ctns with the paper's tracking (Algorithm 1, line 4), in every scenario."""

from __future__ import annotations

from simplexplore.samplers.ctns import ARM_STATE, EDGE_STATE, allocate

__all__ = ["ARM_STATE", "EDGE_STATE", "TRACKING", "allocate"]

TRACKING = "cumulative"
