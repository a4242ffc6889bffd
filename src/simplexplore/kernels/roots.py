"""The one rule by which every root is found (docs/theory/characteristic_time.md)."""

from __future__ import annotations

import math

from .kernel import inlined

# Guesses closer to each other than this, relatively, are the same.
RESOLUTION = 1e-15


@inlined
def next_guess(
    x: float, excess: float, before: float, steep: float, low: float, high: float
) -> tuple[float, float]:
    """The next guess x > 0 of the root of a falling function, and what its excess has to halve.

    Newton's step if it stays inside the bracket and the last one halved the excess; else the
    middle, or four times x while no upper end is known. So every two evaluations halve the
    excess or the bracket: the search ends whatever the function, without a count.

    Parameters
    ----------
    x, excess, steep : float
        The last guess, the function there, and how fast it falls.
    before : float
        What this function returned with x; infinity at first.
    low, high : float
        The root lies between them; x is one of them.
    """
    if steep > 0.0 and abs(excess) <= 0.5 * before:
        least = RESOLUTION * x  # shorter steps would creep towards an end, not cross the root
        step = excess / steep
        following = x + (max(step, least) if excess > 0.0 else min(step, -least))
        if following > low and following < high:
            return following, abs(excess)
    return (0.5 * (low + high) if high < math.inf else 4.0 * x), math.inf


@inlined
def is_closed(low: float, high: float) -> bool:
    """Whether no guess is left between the ends of a bracket."""
    return not high - low > 2.0 * RESOLUTION * high and high < math.inf
