"""Information for Gaussian rewards whose standard deviations nobody knows.

Samplers use empirical variances. What stops a run is a normal-inverse-gamma mixture that is
shifted towards the alternative, of several scales; its least value over all standard deviations
is a cubic's root. Over means it is not convex, yet has a single minimum, so that cells bound it
from below without trusting any search. Definitions and proofs: docs/theory/unknown_sigma.md.
"""

from __future__ import annotations

import math

from .kernel import inlined, kernel, long
from .records import PULLS, VERTEX, WARM, Matrix, Memory, Run, Setting, Table

# Log-gamma is ours: Python's and the compiler's differ in the last digits, and runs must not.
_SERIES_FROM = 12.0
_HALF_LOG_TWO_PI = 0.9189385332046728


@kernel
def log_gamma(x: float) -> float:
    """Log of the gamma function at x > 0, by Stirling's series."""
    product = 1.0
    while x < _SERIES_FROM:
        product *= x
        x += 1.0
    z = 1.0 / (x * x)
    series = z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z * (1.0 / 1188.0 - z * (691.0 / 360360.0))))
    series = (1.0 / 12.0 - z * (1.0 / 360.0 - series)) / x
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_TWO_PI + series - math.log(product)


# An arm's mixture: shifts of 1, 1/3, 1/9, ... standard deviations, each sharp to SHARPNESS of
# itself, the prior of a variance worth 2 PRIOR times as many samples as that of its mean. The last
# one has no shift and hardly any prior: for arms with few rewards and far from the others.
SCALES = 6
RATIO = 3.0
SHARPNESS = 0.7
PRIOR = 2.0
WIDE = 0.5
WIDE_PRIOR = 0.25

# Multipliers at which arms are split where one of them cannot be: so many, so far apart.
TANGENTS = 7
_APART = 1.3

# What cells may lose, by arm, in nats, where no more is needed, and what they must gain; and how
# many there may be on one side.
_LOSS = 0.01
_LEAST_LOSS = 1e-5
_MOST_CELLS = 400

ROUNDING = 2.0**-44

# Less than this below the largest, a summand is left out.
_NEGLIGIBLE = 40.0

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


@inlined
def floor_of_variance(mean: float) -> float:
    """Less variance than this is rounding."""
    return 1e-20 * mean * mean + 1e-60


@kernel
def learn(setting: Setting, run: Run, arm: int, before: float, after: float) -> None:
    """Take in a reward's deviations from the arm's mean before and after it.

    Samplers see the arm's sum of squares and one more of what is usual, so that equal rewards at
    the start do not pass for no variance at all; or what is usual, where all have the same.
    """
    total = setting.size
    run.squares[arm] += before * after
    run.squares[total] += before * after
    usual = run.squares[total] / run.integers[PULLS]
    first, last = arm, arm + 1
    if setting.pooled or run.integers[WARM] == 0:  # what is usual still changes
        first, last = 0, setting.size
    for a in range(first, last):
        if run.n[a] > 0.0:
            seen = usual if setting.pooled else (run.squares[a] + usual) / run.n[a]
            run.variance[a] = max(seen, floor_of_variance(run.mean[a]))


@inlined
def at_closest(
    setting: Setting, table: Table, run: Run, edge: int, gap: float, spread: float
) -> float:
    """Student's evidence at the alternative that is closest if variances were known."""
    if not gap > 0.0:
        return 0.0
    total = 0.0
    if setting.pooled:
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            total += run.n[table.arm[k]]
        return 0.5 * total * math.log1p(gap * gap / (spread * total))
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        n = run.n[a]
        y = gap / spread * table.v[k] / n
        total += 0.5 * n * math.log1p(y * y * run.variance[a])
    return total


@kernel
def gap_and_spread(table: Table, run: Run, edge: int) -> tuple[float, float]:
    """The loss of an edge by the empirical means, and its variance."""
    gap = table.offset[edge]
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        gap += table.v[k] * run.clipped[a]
        spread += run.variance[a] * table.v[k] * table.v[k] / run.n[a]
    return gap, spread


@kernel
def statistic(setting: Setting, table: Table, run: Run, edge: int) -> float:
    """The statistic of an edge of any table."""
    gap, spread = gap_and_spread(table, run, edge)
    return at_closest(setting, table, run, edge, gap, spread)


@kernel
def refresh_edge(setting: Setting, table: Table, run: Run, edge: int, e: int) -> None:
    """Recompute gap and statistic of an edge, the e-th of its vertex."""
    gap, spread = gap_and_spread(table, run, edge)
    run.gap[e] = gap
    run.spread[e] = spread
    run.value[e] = at_closest(setting, table, run, edge, gap, spread)


@kernel
def refresh(setting: Setting, table: Table, run: Run) -> None:
    """Recompute gaps and statistics of all edges of the vertex."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for edge in range(first, table.first_edge[vertex + 1]):
        refresh_edge(setting, table, run, edge, edge - first)


@kernel
def touch(setting: Setting, table: Table, run: Run, arm: int) -> None:
    """Update the edges that contain an arm with a new reward."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    for k in range(table.first_column[vertex, arm], table.first_column[vertex, arm + 1]):
        e = table.column_edge[k]
        refresh_edge(setting, table, run, first + e, e)


# ---------------------------------------------------------------------- one arm's mixture


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


# ---------------------------------------------------------------------- an edge


@kernel
def evaluate(work: Matrix, size: int) -> float:
    """The evidence at Y; values and slopes by arm are kept."""
    total = 0.0
    for i in range(size):
        work[VALUE, i], work[SLOPE, i] = mixture_of(work, i, work[Y, i])
        total += work[VALUE, i]
    return total


@kernel
def descend(work: Matrix, size: int, gap: float, enough: float) -> float:
    """Newton's method along the plane from the closest alternative; ends below what is enough.

    Curvatures are those of differences, and at least a small part of a known deviation's.
    """
    spread = 0.0
    for i in range(size):
        spread += work[COEFFICIENT, i] * work[COEFFICIENT, i] / work[N, i]
    for i in range(size):
        work[Y, i] = gap * work[COEFFICIENT, i] / (work[N, i] * spread)
    value = evaluate(work, size)
    for _ in range(6):
        if not value >= enough:
            return value
        along, across = 0.0, 0.0
        for i in range(size):
            y, n = work[Y, i], work[N, i]
            step = 1e-3 * (abs(y) + 1.0 / math.sqrt(n))
            _, further = mixture_of(work, i, y + step)
            bend = (further - work[SLOPE, i]) / step
            work[END, i] = max(bend, 0.05 * n / (1.0 + y * y))
            along += work[COEFFICIENT, i] * work[SLOPE, i] / work[END, i]
            across += work[COEFFICIENT, i] * work[COEFFICIENT, i] / work[END, i]
        gamma = along / across
        promise = 0.0
        for i in range(size):
            step = (gamma * work[COEFFICIENT, i] - work[SLOPE, i]) / work[END, i]
            promise -= work[SLOPE, i] * step
            work[END, i] = step
        if not promise > 1e-5:
            break
        length = 1.0
        found = math.inf
        for _ in range(8):
            for i in range(size):
                work[Y, i] += length * work[END, i]
            found = evaluate(work, size)
            if found < value:
                break
            for i in range(size):
                work[Y, i] -= length * work[END, i]
            length *= 0.3
        if not found < value:
            return evaluate(work, size)
        value = found
    return value


@kernel
def cells_above(work: Matrix, i: int, price: float, level: float, most: float) -> float:
    """How far above Y the i-th arm's mixture, less price y, is at least so much.

    On a cell from l to u it is at least that at l, less price u.
    """
    y = work[Y, i]
    for _ in range(_MOST_CELLS):
        if y >= most:
            return y
        value, _ = mixture_of(work, i, y)
        end = (value - level) / price
        if not end > y + _LEAST_LOSS / price:
            return y
        y = end
    return y


@kernel
def covers_below(work: Matrix, i: int, price: float, level: float) -> bool:
    """Whether below Y, too, the i-th arm's mixture, less price y, is at least so much.

    Widths are guessed by slopes and then checked.
    """
    y = work[Y, i]
    value, slope = work[VALUE, i], work[SLOPE, i]
    part = 1.0
    for _ in range(_MOST_CELLS):
        if work[LEAST, i] - price * y >= level:
            return True
        if slope > 0.0:
            lower = max(y - part * (value - price * y - level) / slope, work[LOWEST, i])
        else:
            lower = max(y - part * (1.0 + abs(y)), work[LOWEST, i])
        if not lower < y:
            return False
        found, steep = mixture_of(work, i, lower)
        if found - price * y >= level:
            y, value, slope = lower, found, steep
            part = 1.0
        else:
            part *= 0.5
    return False


@kernel
def others_at_least(
    work: Matrix, size: int, arm: int, need: float, gamma: float, tangents: int
) -> float:
    """No more than what all arms but one come to if their losses are to sum to what is needed.

    One of them has no less than an equal part; with two arms it is all of it. Or, for any
    multiplier, each is within its cells, and they say so, or one is beyond them.
    """
    total, more = 0.0, math.inf
    for i in range(size):
        if i != arm:
            total += work[LEAST, i]
            value, _ = mixture_of(work, i, need / ((size - 1) * work[COEFFICIENT, i]))
            more = min(more, value - work[LEAST, i])
    if size > 2:
        for tangent in range(tangents):
            within, beyond = gamma * need - total, math.inf
            for i in range(size):
                if i != arm:
                    within += work[LEVEL + tangent, i]
                    beyond = min(beyond, work[BEYOND + tangent, i] - work[LEAST, i])
            more = max(more, min(within, beyond))
            gamma *= _APART
    return total + more


@kernel
def reaches_beyond(
    work: Matrix,
    size: int,
    arm: int,
    start: float,
    gap: float,
    gamma: float,
    tangents: int,
    target: float,
) -> bool:
    """Whether the evidence is at least so much where one arm is beyond its cells.

    On a cell from l to u that arm has at least what it has at l, the others what u leaves them.
    """
    rest = 0.0
    for i in range(size):
        if i != arm:
            rest += work[LEAST, i]
    y = start
    value, _ = mixture_of(work, arm, y)
    width = 0.1 * abs(y) + 0.01
    for _ in range(_MOST_CELLS):
        if value + rest >= target:
            return True
        left = gap - work[COEFFICIENT, arm] * (y + width)
        if value + others_at_least(work, size, arm, left, gamma, tangents) >= target:
            y += width
            value, _ = mixture_of(work, arm, y)
            width *= 1.5
        else:
            width *= 0.5
            if width < 1e-5 * (1.0 + abs(y)):
                return False
    return False


@kernel
def put_cells(work: Matrix, i: int, gap: float, gamma: float, loss: float, tangent: int) -> bool:
    """Cells of an arm around Y for a multiplier of the plane; whether they cover all below Y."""
    price = gamma * work[COEFFICIENT, i]
    level = work[VALUE, i] - price * work[Y, i] - loss
    level -= ROUNDING * (abs(level) + abs(work[VALUE, i]))
    work[END, i] = cells_above(work, i, price, level, 2.0 * gap / work[COEFFICIENT, i])
    work[LEVEL + tangent, i] = level
    work[BEYOND + tangent, i], _ = mixture_of(work, i, work[END, i])
    return covers_below(work, i, price, level)


@kernel
def put_tangents(work: Matrix, size: int, arm: int, gap: float, gamma: float, loss: float) -> None:
    """Cells of all arms but one at several multipliers, each around what it makes the best."""
    for tangent in range(TANGENTS):
        for i in range(size):
            if i == arm:
                continue
            for _ in range(3):
                y, n = work[Y, i], work[N, i]
                step = 1e-3 * (abs(y) + 1.0 / math.sqrt(n))
                _, slope = mixture_of(work, i, y)
                _, further = mixture_of(work, i, y + step)
                bend = max((further - slope) / step, 0.05 * n / (1.0 + y * y))
                work[Y, i] = y + (gamma * work[COEFFICIENT, i] - slope) / bend
            work[VALUE, i], work[SLOPE, i] = mixture_of(work, i, work[Y, i])
            if not put_cells(work, i, gap, gamma, loss, tangent):
                work[LEVEL + tangent, i] = -math.inf
        gamma *= _APART


@kernel
def reaches(
    work: Matrix, size: int, arm: int, gap: float, gamma: float, tangents: int, target: float
) -> bool:
    """Whether the evidence is at least so much, by the cells of one arm."""
    start = max(work[LOWEST, arm], -4.0 * gap / work[COEFFICIENT, arm])
    left = gap - work[COEFFICIENT, arm] * start
    if work[LEAST, arm] + others_at_least(work, size, arm, left, gamma, tangents) < target:
        return False
    return reaches_beyond(work, size, arm, start, gap, gamma, tangents, target)


@kernel
def within_cells(work: Matrix, size: int, gap: float, gamma: float, loss: float) -> float:
    """The least evidence where every arm stays within its cells, or -inf; they end at END.

    A multiplier of the plane splits the problem by arm.
    """
    bound = gamma * gap * (1.0 - ROUNDING)
    if not gamma > 0.0:
        return -math.inf
    for i in range(size):
        if not put_cells(work, i, gap, gamma, loss, 0):
            return -math.inf
        bound += work[LEVEL, i]
    return bound


@kernel
def certified(
    work: Matrix, size: int, gap: float, value: float, least: float, enough: float
) -> float:
    """No more than the least evidence over the half-space, from the point that was reached.

    Either every arm stays within its cells; or one is beyond them, and leaves less to the others.
    Cells are coarse where the evidence is more than enough. Below `least` nothing is looked for.
    """
    lowest = 0.0
    gamma, weight = 0.0, 0.0
    for i in range(size):
        if work[Y, i] < work[LOWEST, i]:  # cells need a mixture that grows
            work[Y, i] = work[LOWEST, i]
            work[VALUE, i], work[SLOPE, i] = mixture_of(work, i, work[Y, i])
        lowest += work[LEAST, i]
        gamma += work[SLOPE, i] / work[COEFFICIENT, i] * work[N, i]
        weight += work[N, i]
    gamma /= weight
    loss = max(0.5 * (value - enough) / size, _LOSS)
    bound = within_cells(work, size, gap, gamma, loss)
    is_split = bound > lowest and bound >= least
    tangents = 1
    rarest = 0
    if not is_split:
        bound = value - loss
        for i in range(size):
            if work[N, i] < work[N, rarest]:
                rarest = i
        if size > 2 and gamma > 0.0:
            tangents = TANGENTS
            for _ in range(TANGENTS // 2):
                gamma /= _APART
            put_tangents(work, size, rarest, gap, gamma, loss)
            bound -= size * loss
        else:
            tangents = 0
    bound = min(bound, value, enough)
    less = 0.0
    i = 0
    while i < size and bound > lowest and bound >= least:
        if is_split:
            found = reaches_beyond(work, size, i, work[END, i], gap, gamma, tangents, bound)
        else:
            found = reaches(work, size, rarest, gap, gamma, tangents, bound)
        if not found:
            less += 0.25
            bound -= less
        elif is_split:
            i += 1
        else:
            break
    if bound >= least:
        return max(bound, lowest)
    return max(min(bound, least - 1e-9), lowest)  # not proven, and too little


@long
def student_evidence(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    least: float,
    enough: float,
) -> float:
    """Log of the evidence that an edge is no improvement: no more than its least, proven.

    Below `least` it may be more than that, but then both are below `least`. From `enough` on no
    more is looked for.
    """
    work = memory.student
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    gap = table.offset[edge]
    rounding = abs(gap)
    for i in range(size):
        arm, v = table.arm[begin + i], table.v[begin + i]
        n, mean = run.n[arm], run.mean[arm]
        if n < 2.0:
            return 0.0
        seen, floor = run.squares[arm] / n, floor_of_variance(mean)
        work[N, i] = n
        work[COEFFICIENT, i] = abs(v) * math.sqrt(max(seen, floor))
        work[IS_FLAT, i] = 1.0 if seen < floor else 0.0
        gap += v * mean
        rounding += abs(v * mean)
    gap -= ROUNDING * rounding
    if not gap > 0.0:
        return 0.0
    for i in range(size):
        put_arm(work, i)
    value = descend(work, size, gap, least)
    if value >= least:
        value = certified(work, size, gap, value, least, enough)
    return value
