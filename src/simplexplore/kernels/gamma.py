"""The gamma function."""

from __future__ import annotations

import math

from .kernel import kernel


@kernel
def log_gamma(x: float) -> float:
    """log Gamma(x) for x > 0: Stirling's series from 10 on, the recurrence below.

    Ours because the libraries of Python, compiled code and GPUs differ in the last digits.
    """
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (
        1.0 / 360.0
        - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0 - y * 691.0 / 360360.0)))
    )
    rest = (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series / x
    return rest - math.log(product)
