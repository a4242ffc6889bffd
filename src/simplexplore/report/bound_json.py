"""Bounds as plain data, with what the program itself would take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from simplexplore.exploration.expected_samples import expected_samples

if TYPE_CHECKING:
    from simplexplore.bound.result import Bound


def bound_to_dict(bound: Bound) -> dict[str, Any]:
    """`Bound.to_dict`, each scenario with `expected_samples`: None where there is no number."""
    found: dict[str, Any] = bound.to_dict()
    for name, scenario in found["scenarios"].items():
        expected = expected_samples(bound, name)
        scenario["expected_samples"] = expected if expected is None or expected < math.inf else None
    return found
