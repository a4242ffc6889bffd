"""The best way to spread samples, with a certificate.

Of several optimal allocations it is the canonical one, or any where arms are many (canonical.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .allocation_set import AllocationSet
from .canonical import leximin
from .certificate import Certificate, Program, time_and_error
from .information import Information
from .interior_point import solve

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Allocation:
    """An optimal allocation.

    Attributes
    ----------
    characteristic_time : float
        The largest time of w.
    certificate : Certificate
        How close it is to the least.
    unique : bool
        Whether it is the only optimal allocation.
    """

    characteristic_time: float
    certificate: Certificate
    unique: bool

    @property
    def w(self) -> Array:
        return self.certificate.allocation

    @property
    def relative_gap(self) -> float:
        return self.certificate.gap if (self.w >= 0).all() else np.inf

    @property
    def multipliers(self) -> Array:
        """Weights of the edges in the optimum; they sum to one."""
        return self.certificate.weights


def optimal_allocation(information: Information, allowed: AllocationSet) -> Allocation:
    """Minimise the largest 1 / D_e(w) over the allowed allocations."""
    program = Program(information, allowed)
    if program.has_one:
        w, unique = allowed.max_slack, True
        value = information.closest(w).value
        weights = (np.arange(program.count) == value.argmin()).astype(float)
        prices, equality_prices = np.zeros(len(allowed.b_ub)), np.zeros(len(allowed.b_eq))
    else:
        point = solve(program)
        weights = point.edge_weights(information.closest(point.w).value)
        scale = weights.sum() or 1.0
        weights, prices = weights / scale, point.duals[1][: len(allowed.b_ub)] / scale
        equality_prices = point.n / scale
        w, unique = leximin(program, point)
    proof = Certificate.of(program, w, weights, prices, equality_prices)
    return Allocation(time_and_error(program, w)[0], proof, unique)
