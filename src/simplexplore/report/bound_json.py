"""Bounds as plain data, with what the program itself would take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.exploration.excess import excess_bound
from simplexplore.exploration.expected_samples import expected_samples

if TYPE_CHECKING:
    from simplexplore.bound.result import Bound


def bound_to_dict(bound: Bound) -> dict[str, Any]:
    """`Bound.to_dict`, each scenario with `expected_samples` and, of limits, `excess_bound`.

    With costs, `expected_cost` too. None where there is no number.
    """
    found: dict[str, Any] = bound.to_dict()
    for name, scenario in found["scenarios"].items():
        allowed = AllocationSet.of(bound._polytope, name)
        # No number of pulls is known by which a measured limit may be exceeded.
        learned = bound.problem.measured and name == "anytime"
        free = allowed.is_simplex or learned
        most = math.inf if free else excess_bound(allowed, bound.problem.room)
        scenario["excess_bound"] = most if most < math.inf else None
        expected = expected_samples(bound, name)
        expected = expected if expected is None or expected < math.inf else None
        scenario["expected_samples"] = expected
        if "cost_per_sample" in scenario:
            each = scenario["cost_per_sample"]
            scenario["expected_cost"] = None if expected is None else expected * each
    return found
