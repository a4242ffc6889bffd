"""Numbers that floats cannot hold are errors, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from simplexplore.errors import NotConvergedError


@contextmanager
def trap_float_errors() -> Iterator[None]:
    """Raise `NotConvergedError` where a computation leaves the range of floats."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError as error:
        raise NotConvergedError(
            f"floats cannot hold what the bound needs ({error}): some numbers of the problem are "
            "too large, too small or too far apart; choose units in which means and noise are "
            "near 1."
        ) from error
