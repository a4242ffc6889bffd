"""Evidence where standard deviations are unknown: an arm's mixture, its hull, and half-spaces.

An arm has a normal-inverse-gamma mixture that is shifted towards the alternative, of several
scales; the least value of each over all standard deviations is a cubic's root. Over means it grows
with the distance from a single minimum, but it is not convex. So on a cell of distances it is at
least what it is at the cell's near end, and the convex hull of such cells lies below it. The least
sum of hulls over a half-space is a concave problem in one multiplier, any of which gives a bound.
Definitions and proofs: docs/theory/unknown_sigma.md.
"""

from __future__ import annotations

import math

from .gamma import log_gamma
from .kernel import kernel
from .records import Hulls, RunConfig, RunState, Scratch, Vector
from .student_statistic import floor_of_variance

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
NEGLIGIBLE = 40.0

# Places in Hulls.arm: samples, where the mixture is least, what it is there, whether rewards are
# all the same. From SHIFT on there is one for each scale: its shift, what it weighs the mean by, Q
# without data, the exponent of Q, its constant, where its minimum is, and what it is.
N, LOWEST, LEAST, FLAT = range(4)
SHIFT, WEIGHT, SQUARE, SHAPE, BASE, LOWEST_OF, LEAST_OF = range(4, 4 + 7 * SCALES, SCALES)
PLACES = LEAST_OF + SCALES

# Hulls kept, and corners of one at most. How far a hull is below the mixture, in nats, where means
# are on the side of the shift; and on the other, where little depends on it.
SLOTS = 256
CORNERS = 160
LOSS = 0.01
LEFT = 0.04

# Evidence of few samples has an end. A hull stops where it hardly grows any more: where going as
# far again would add less than this part of what was gained since the least, and that is some.
FADES = 0.2
SOME = 1.0

# Halvings of an interval's end.
HALVINGS = 30

# Beyond its hull an arm alone has so much more than is needed. A longer hull would be lower: far
# out mixtures of few samples are concave.
SPARE = 1.0


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
def put_scale(arm: Vector, scale: int) -> None:
    """Make ready one scale of an arm: what does not depend on the hypothesis.

    Its single minimum over y is where x and p^2 have simple forms, or where y falls for ever.
    """
    n = arm[N]
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
    arm[SHIFT + scale], arm[WEIGHT + scale] = r, k
    arm[SQUARE + scale], arm[SHAPE + scale] = a0 + k * r * r, a
    arm[BASE + scale] = base
    arm[LOWEST_OF + scale], arm[LEAST_OF + scale] = lowest, least + base


@kernel
def log_scale(arm: Vector, scale: int, y: float) -> tuple[float, float]:
    """Least log of one scale of an arm over all deviations; and its slope.

    The mean is y empirical deviations below the empirical one, in the direction of the shift.
    """
    n, r, k = arm[N], arm[SHIFT + scale], arm[WEIGHT + scale]
    q2, a = arm[SQUARE + scale], arm[SHAPE + scale]
    q1, q0 = 2.0 * k * r * y, 0.5 * n + k * y * y
    value, p = least_over_deviations(n * (1.0 + y * y), q2, q1, q0, a)
    slope = p * (n * y * p - 2.0 * a * k * (y * p - r) / (q2 + (q0 * p - q1) * p))
    return value + arm[BASE + scale], slope


@kernel
def put_arm(arm: Vector, n: float, is_flat: bool) -> None:
    """Make ready an arm with so many samples, which may all be the same."""
    arm[N], arm[FLAT], arm[LOWEST] = n, 1.0 if is_flat else 0.0, math.inf
    for scale in range(SCALES):
        put_scale(arm, scale)
        arm[LOWEST] = min(arm[LOWEST], arm[LOWEST_OF + scale])
    arm[LEAST], _, _ = mixture_of(arm, arm[LOWEST])


@kernel
def mixture_of(arm: Vector, y: float) -> tuple[float, float, float]:
    """Log of an arm's mixture, its slope, and the largest one of a scale.

    Below a scale's minimum it is that, so it grows everywhere. An arm without variance counts as
    one with very little: closer to the mean than that, on the far side, nothing is known.
    """
    top = -math.inf
    total, slope, steepest = 0.0, 0.0, 0.0
    flat = y < 0.0 and arm[FLAT] != 0.0
    for scale in range(SCALES):
        value, steep = arm[LEAST_OF + scale], 0.0
        if y > arm[LOWEST_OF + scale] and not flat:
            found, steep = log_scale(arm, scale, y)
            value = max(value, found)
            steepest = max(steepest, steep)
        if value > top:
            rest = math.exp(top - value)
            total, slope = total * rest + 1.0, slope * rest + steep
            top = value
        elif value > top - NEGLIGIBLE:
            share = math.exp(value - top)
            total += share
            slope += share * steep
    return top + math.log(total), slope / total, steepest


@kernel
def reach_of_learned(arm: Vector, n: float, level: float) -> float:
    """Empirical deviations above which a mean is ruled out by so much evidence."""
    if n < 2.0:
        return math.inf
    put_arm(arm, n, False)
    low, high = 0.0, 1.0
    for _ in range(40):
        if mixture_of(arm, high)[0] >= level:
            break
        low, high = high, 2.0 * high
    else:
        return math.inf
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if mixture_of(arm, middle)[0] >= level:
            high = middle
        else:
            low = middle
    return high


@kernel
def push(hulls: Hulls, slot: int, count: int, y: float, value: float) -> int:
    """Add a corner to a hull, which loses those that are above it now; returns how many it has."""
    reach, grown = hulls.y, hulls.value
    while count > 1:
        last = (grown[slot, count - 1] - grown[slot, count - 2]) * (y - reach[slot, count - 1])
        if last < (value - grown[slot, count - 1]) * (
            reach[slot, count - 1] - reach[slot, count - 2]
        ):
            break
        count -= 1
    reach[slot, count] = y
    grown[slot, count] = value
    return count + 1


@kernel
def start_of(arm: Vector) -> float:
    """Where an arm's mixture has come down to its least, or nearly."""
    y = 0.0
    width = 1.0 / math.sqrt(arm[N])
    for _ in range(60):
        if mixture_of(arm, y)[0] <= arm[LEAST] + LEFT:
            break
        y -= width
        width *= 1.3
    return y


@kernel
def put_hull(hulls: Hulls, slot: int, n: float, is_flat: bool, reach: float) -> None:
    """The hull of an arm with so many samples, until its mixture has gained `reach`.

    Beyond its last corner the mixture is at least hulls.end[slot].
    """
    arm = hulls.arm
    put_arm(arm, n, is_flat)
    least = arm[LEAST]
    y = 0.0 if is_flat else start_of(arm)
    value, slope, steepest = mixture_of(arm, y)
    count = push(hulls, slot, 0, y, least)
    while y < 0.0 and count < CORNERS:
        y = min(y + 2.0 * LEFT / (slope + math.sqrt(slope * slope + 2.0 * n * LEFT)), 0.0)
        count = push(hulls, slot, count, y, value)
        value, slope, steepest = mixture_of(arm, y)
    start, bend = hulls.y[slot, 0], 1.125 * n
    for _ in range(2 * CORNERS):
        count = push(hulls, slot, count, y, value - LOSS)
        gained = value - least
        fades = gained > SOME and slope * (y - start) < FADES * gained
        if fades or gained >= reach or count == CORNERS:
            break
        width = math.sqrt(8.0 * LOSS / (bend + 0.25 * steepest * steepest))
        steepest += bend * width
        y += math.sqrt(8.0 * LOSS / (bend + 0.25 * steepest * steepest))
        value, slope, steepest = mixture_of(arm, y)
    hulls.samples[slot] = -n if is_flat else n
    hulls.reach[slot] = reach
    hulls.corners[slot] = count
    hulls.least[slot] = least
    hulls.end[slot] = value


@kernel
def slot_of(hulls: Hulls, taken: int, n: float, is_flat: bool, reach: float) -> int:
    """Where the hull of an arm with so many samples is; so many slots are taken by arms at hand."""
    samples = -n if is_flat else n
    slot = int(n) % hulls.samples.size
    i = 0
    while i < taken:
        if hulls.slot[i] == slot and hulls.samples[slot] != samples:
            slot = (slot + 1) % hulls.samples.size
            i = -1
        i += 1
    if hulls.samples[slot] != samples or hulls.reach[slot] != reach:
        put_hull(hulls, slot, n, is_flat, reach)
    return slot


@kernel
def conjugate(hulls: Hulls, slot: int, price: float) -> tuple[float, float]:
    """The most of price y less a hull, and where."""
    reach, grown = hulls.y, hulls.value
    low, high = 0, hulls.corners[slot] - 1
    while low < high:
        middle = (low + high) // 2
        rise = grown[slot, middle + 1] - grown[slot, middle]
        if rise < price * (reach[slot, middle + 1] - reach[slot, middle]):
            low = middle + 1
        else:
            high = middle
    return price * reach[slot, low] - grown[slot, low], reach[slot, low]


@kernel
def dual(hulls: Hulls, size: int, gap: float, gamma: float) -> tuple[float, float]:
    """No more than the least over the half-space, for any multiplier; and its slope."""
    value, slope = gamma * gap, gap
    rounding = abs(value)
    for i in range(size):
        c = hulls.coefficient[i]
        most, y = conjugate(hulls, hulls.slot[i], gamma * c)
        value -= most
        slope -= c * y
        rounding += abs(gamma * c * y) + abs(most)
    return value - ROUNDING * rounding, slope


@kernel
def least_evidence(hulls: Hulls, size: int, gap: float) -> float:
    """No more than the sum of mixtures over all means that lose `gap`.

    So many arms have a hull each, and lose their coefficient for each empirical deviation. Either
    every arm is on its hull, where any multiplier gives a bound, or one is beyond it. Of an arm
    without a hull nothing is known.
    """
    least, scale = 0.0, 0.0
    beyond = math.inf
    for i in range(size):
        slot, c = hulls.slot[i], hulls.coefficient[i]
        if slot < 0:
            return -math.inf
        least += hulls.least[slot]
        if c > 0.0:
            beyond = min(beyond, hulls.end[slot] - hulls.least[slot])
            scale += c * c / abs(hulls.samples[slot])
    beyond += least
    if not scale > 0.0:
        return math.inf if gap > 0.0 else least
    best, slope = dual(hulls, size, gap, 0.0)
    if not slope > 0.0:
        return least
    best = least
    low, high = 0.0, slope / scale
    for _ in range(60):
        value, slope = dual(hulls, size, gap, high)
        best = max(best, value)
        if not slope > 0.0 or best >= beyond:
            break
        low = high
        high *= 2.0
    for _ in range(14):
        if best >= beyond:
            return beyond
        middle = 0.5 * (low + high)
        value, slope = dual(hulls, size, gap, middle)
        best = max(best, value)
        if slope > 0.0:
            low = middle
        else:
            high = middle
    return min(best, beyond)


@kernel
def edge_evidence(
    config: RunConfig, run: RunState, scratch: Scratch, least: float, enough: float
) -> float:
    """Log of the evidence that scratch.edge is no improvement: no more than its least, proven.

    Below `least` it may be more than that, but then both are below `least`. Not much more than
    what is enough is looked for, or than log_union if nothing is.
    """
    hulls, edge, size = scratch.hulls, scratch.edge, scratch.edge.first_entry[1]
    gap, spread = edge.offset[0], 0.0
    rounding = abs(gap)
    for i in range(size):
        arm, v = edge.arm[i], edge.v[i]
        n, mean = run.n[arm], run.mean[0, arm]
        if n < 2.0:
            return 0.0
        deviation = math.sqrt(max(run.squares[0, arm] / n, floor_of_variance(mean)))
        hulls.coefficient[i] = abs(v) * deviation
        spread += v * v * deviation * deviation / n
        gap += v * mean
        rounding += abs(v * mean)
    gap -= ROUNDING * rounding
    if not gap > 0.0:
        return 0.0
    # At the alternative that is closest if deviations were known; and the least of all mixtures.
    there, lowest = 0.0, 0.0
    for i in range(size):
        n = run.n[edge.arm[i]]
        put_arm(hulls.arm, n, False)
        there += mixture_of(hulls.arm, gap * hulls.coefficient[i] / (n * spread))[0]
        lowest += hulls.arm[LEAST]
    if there < least:
        return there
    needed = config.log_union if enough == math.inf else max(enough, config.log_union)
    reach = math.ceil(needed + SPARE - lowest)
    for i in range(size):
        arm = edge.arm[i]
        n = run.n[arm]
        is_flat = run.squares[0, arm] / n < floor_of_variance(run.mean[0, arm])
        hulls.slot[i] = slot_of(hulls, i, n, is_flat, reach)
    return min(there, least_evidence(hulls, size, gap))
