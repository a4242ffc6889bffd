"""One arm's evidence where its standard deviation is unknown.

A normal-inverse-gamma mixture that is shifted towards the alternative, of several scales; the
least value of each over all standard deviations is a cubic's root. Over means it is not convex,
yet has a single minimum. Definitions and proofs: docs/theory/unknown_sigma.md.
"""

from __future__ import annotations

import math

from .gamma import log_gamma
from .kernel import kernel
from .records import Matrix

# An arm's mixture: shifts of 1, 1/3, 1/9, ... standard deviations, each sharp to SHARPNESS of
# itself, the prior of a variance worth 2 PRIOR times as many samples as that of its mean. The last
# one has no shift and hardly any prior: for arms with few rewards and far from the others.
SCALES = 6
RATIO = 3.0
SHARPNESS = 0.7
PRIOR = 2.0
WIDE = 0.5
WIDE_PRIOR = 0.25

ROUNDING = 2.0**-44

# Less than this below the largest, a summand is left out.
_NEGLIGIBLE = 40.0

# Multipliers at which the cells of student.py split arms: rows for so many.
TANGENTS = 7

# Rows of `work`, by arm of an edge.
(
    N,
    COEFFICIENT,
    LOWEST,
    LEAST,
    Y,
    VALUE,
    SLOPE,
    END,
    IS_FLAT,
) = range(9)
# From these on there is one for each scale: its shift, what it weighs the mean by, Q without
# data, the exponent of Q, its constant, where its minimum is, and what it is.
SHIFT, WEIGHT, SQUARE, SHAPE, BASE, LOWEST_OF, LEAST_OF = range(9, 9 + 7 * SCALES, SCALES)
# From these on, one for each multiplier: the level that cells keep, the mixture where they end.
LEVEL = LEAST_OF + SCALES
BEYOND = LEVEL + TANGENTS
ROWS = BEYOND + TANGENTS


@kernel
def least_over_deviations(
    b: float, q2: float, q1: float, q0: float, a: float
) -> tuple[float, float]:
    """Least of b p^2 / 2 - a log(q2 - q1 p + q0 p^2) over p >= 0, and where.

    p is the empirical deviation over the hypothetical one. Inside, the least is at the largest
    root of a cubic, reached by Newton's method from above, where the cubic is convex.
    """
    end = -a * math.log(q2)  # p = 0
    third, second, first, zeroth = b * q0, -b * q1, b * q2 - 2.0 * a * q0, a * q1
    p = 0.0
    inside = second * second - 3.0 * third * first
    if first < 0.0 or q1 > 0.0:
        if not inside > 0.0:
            return end, 0.0
        low = (math.sqrt(inside) - second) / (3.0 * third)  # the cubic's own least
        value = ((third * low + second) * low + first) * low + zeroth
        if not (low > 0.0 and value < 0.0):
            return end, 0.0
        p = low + math.sqrt(-value / (3.0 * third * low + second))
    elif q1 < 0.0:
        p = math.exp(math.log(-zeroth / third) / 3.0)
    for _ in range(60):
        value = ((third * p + second) * p + first) * p + zeroth
        slope = (3.0 * third * p + 2.0 * second) * p + first
        if not (value > 0.0 and slope > 0.0):
            break
        lower = p - value / slope
        if not lower < p:
            break
        small = p - lower <= 1e-12 * p
        p = lower
        if small:
            break
    found = 0.5 * b * p * p - a * math.log(q2 + (q0 * p - q1) * p)
    return (found, p) if found < end else (end, 0.0)


@kernel
def scale_of(scale: int) -> tuple[float, float, float]:
    """A scale's shift, and how many samples its priors of mean and variance are worth."""
    if scale == SCALES - 1:
        return 0.0, WIDE, WIDE_PRIOR
    r = 1.0
    for _ in range(scale):
        r /= RATIO
    c = 1.0 / (SHARPNESS * SHARPNESS * r * r)
    return r, c, PRIOR * c


@kernel
def put_scale(work: Matrix, i: int, scale: int) -> None:
    """Make ready one scale of an arm: what does not depend on the hypothesis.

    Its single minimum over y is where x and p^2 have simple forms, or where y falls for ever.
    """
    n = work[N, i]
    r, c, a0 = scale_of(scale)
    a = a0 + 0.5 * n
    k = 0.5 * c * n / (n + c)
    gained, paid, prior = log_gamma(a), log_gamma(a0), a0 * math.log(a0)
    base = gained - paid + prior - 0.5 * math.log1p(n / c) - math.log(float(SCALES))
    size = abs(gained) + abs(paid) + abs(prior) + a * abs(math.log(a))
    base -= ROUNDING * (1.0 + size)  # what rounding could add
    square = 1.0 - c * (n + c) * r * r / (n * n)
    lowest = -math.inf
    if square > 0.0:
        x = -c * r / n
        lowest = x / math.sqrt(square)
        least = 0.5 * n * (square + x * x) - a * math.log(a)
    else:
        least, _ = least_over_deviations(n, a0 + k * r * r, -2.0 * k * r, k, a)
    work[SHIFT + scale, i], work[WEIGHT + scale, i] = r, k
    work[SQUARE + scale, i], work[SHAPE + scale, i] = a0 + k * r * r, a
    work[BASE + scale, i] = base
    work[LOWEST_OF + scale, i], work[LEAST_OF + scale, i] = lowest, least + base


@kernel
def log_scale(work: Matrix, i: int, scale: int, y: float) -> tuple[float, float]:
    """Least log of one scale of an arm over all deviations; and its slope.

    The mean is y empirical deviations below the empirical one, in the direction of the shift.
    """
    n, r, k = work[N, i], work[SHIFT + scale, i], work[WEIGHT + scale, i]
    q2, a = work[SQUARE + scale, i], work[SHAPE + scale, i]
    q1, q0 = 2.0 * k * r * y, 0.5 * n + k * y * y
    value, p = least_over_deviations(n * (1.0 + y * y), q2, q1, q0, a)
    slope = p * (n * y * p - 2.0 * a * k * (y * p - r) / (q2 + (q0 * p - q1) * p))
    return value + work[BASE + scale, i], slope


@kernel
def put_arm(work: Matrix, i: int) -> None:
    """Make ready an arm, N of which is known."""
    work[LOWEST, i] = math.inf
    for scale in range(SCALES):
        put_scale(work, i, scale)
        work[LOWEST, i] = min(work[LOWEST, i], work[LOWEST_OF + scale, i])
    work[LEAST, i], _ = mixture_of(work, i, work[LOWEST, i])


@kernel
def mixture_of(work: Matrix, i: int, y: float) -> tuple[float, float]:
    """Log of the mixture of an edge's i-th arm, and its slope; below a scale's minimum, that.

    So it grows everywhere. An arm without variance counts as one with very little: closer to the
    mean than that, on the far side, nothing is known.
    """
    top = -math.inf
    total, slope = 0.0, 0.0
    flat = y < 0.0 and work[IS_FLAT, i] != 0.0
    for scale in range(SCALES):
        value, steep = work[LEAST_OF + scale, i], 0.0
        if y > work[LOWEST_OF + scale, i] and not flat:
            found, steep = log_scale(work, i, scale, y)
            value = max(value, found)
        if value > top:
            rest = math.exp(top - value)
            total, slope = total * rest + 1.0, slope * rest + steep
            top = value
        elif value > top - _NEGLIGIBLE:
            share = math.exp(value - top)
            total += share
            slope += share * steep
    return top + math.log(total), slope / total
