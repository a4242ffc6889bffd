"""Evidence against an edge where each arm has an unknown standard deviation of its own.

What stops a run is the product of its arms' mixtures at the worst alternative. No search is trusted
for that: cells bound it from below. Definitions and proofs: docs/theory/unknown_sigma.md.
"""

from __future__ import annotations

import math

from .kernel import kernel, long
from .records import Matrix, Memory, Run, Setting, Table
from .student_mixture import (
    BEYOND,
    COEFFICIENT,
    END,
    IS_FLAT,
    LEAST,
    LEVEL,
    LOWEST,
    ROUNDING,
    SLOPE,
    TANGENTS,
    VALUE,
    N,
    Y,
    mixture_of,
    put_arm,
)
from .student_statistic import floor_of_variance

# Multipliers at which arms are split where one of them cannot be are so far apart.
_APART = 1.3

# What cells may lose, by arm, in nats, where no more is needed, and what they must gain; and how
# many there may be on one side.
_LOSS = 0.01
_LEAST_LOSS = 1e-5
_MOST_CELLS = 400


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
