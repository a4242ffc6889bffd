"""The point of the allocation set that is closest in a diagonal metric."""

from __future__ import annotations

import math

from .kernel import inlined, kernel, long
from .linear import solve_positive
from .records import Limits, Matrix, Projection, Setting, Vector
from .rows import (
    DULL,
    free_rows,
    mend,
    moves,
    price_arms,
    row_entry,
    row_value,
    step_along,
    worst_of,
)


@kernel
def project_on_simplex(size: int, y: Vector, loose: Vector, w: Vector) -> None:
    """w = argmin of sum (w - y)^2 / loose over the simplex (Michelot's method)."""
    top = 0.0
    below = 0.0
    for a in range(size):
        top += y[a]
        below += loose[a]
    level = (top - 1.0) / below
    for _ in range(size + 1):
        top = 0.0
        below = 0.0
        for a in range(size):
            kept = 1.0 if y[a] - level * loose[a] > 0.0 else 0.0
            top += kept * y[a]
            below += kept * loose[a]
        following = (top - 1.0) / below
        if following <= level + 1e-15 * abs(level):
            level = following
            break
        level = following
    for a in range(size):
        w[a] = max(y[a] - level * loose[a], 0.0)


@inlined
def projected_at(
    limits: Limits, y: Vector, loose: Vector, x: Vector, price: Vector, w: Vector
) -> float:
    """w = y - loose price between floor and cap, at multipliers x; returns twice the dual value."""
    price_arms(limits, x, price)
    m = limits.limit.size
    value = 0.0
    for a in range(limits.size):
        if limits.limited:
            asked = y[a] - loose[a] * price[a]
            w[a] = min(max(asked, limits.floor[a]), limits.cap[a])
            value -= w[a] * (2.0 * asked - w[a]) / loose[a]
        elif limits.inside[a] > 0.0:
            w[a] = max(y[a] - loose[a] * price[a], 0.0)
            value -= w[a] * w[a] / loose[a]
        else:
            w[a] = 0.0
    for i in range(m):
        value -= 2.0 * limits.limit[i] * x[i]
    for i in range(limits.total.size):
        value -= 2.0 * limits.total[i] * x[m + i]
    return value


@kernel
def newton_step(
    limits: Limits,
    loose: Vector,
    w: Vector,
    residual: Vector,
    free: Vector,
    count: int,
    system: Matrix,
    step: Vector,
    dull: float,
) -> None:
    """The step of the free rows' multipliers to where the arms that move with them now agree.

    Arms at a floor or a cap count as `dull`: with 0 the step is Newton's, with more it stays
    finite where nothing else moves.
    """
    largest = 0.0
    for p in range(count):
        step[p] = residual[int(free[p])]
        for q in range(p + 1):
            entry = 0.0
            for a in range(limits.size):
                give = loose[a] if moves(limits, w, a) else dull * loose[a]
                if give > 0.0:
                    left = row_entry(limits, int(free[p]), a)
                    entry += left * row_entry(limits, int(free[q]), a) * give
            system[p, q] = entry
        largest = max(largest, system[p, p])
    if largest > 0.0:  # else no arm has a share, and the residuals themselves will do
        solve_positive(system, count, step)


@kernel
def climb(
    limits: Limits,
    y: Vector,
    loose: Vector,
    x: Vector,
    free: Vector,
    count: int,
    step: Vector,
    trial: Vector,
    price: Vector,
    w: Vector,
) -> None:
    """Go as far along a step as the dual value rises; no multiplier may turn negative.

    The slope falls along the way. Where shares do not change, it is level for long: lengths
    are searched by their logarithm.
    """
    m = limits.limit.size
    farthest = math.inf
    for p in range(count):
        i = int(free[p])
        if i < m and step[p] < 0.0:
            farthest = min(farthest, -x[i] / step[p])
    low, high = 0.0, farthest
    length = min(1.0, farthest)
    for _ in range(60):
        for i in range(m + limits.total.size):
            trial[i] = x[i]
        for p in range(count):
            trial[int(free[p])] += length * step[p]
        projected_at(limits, y, loose, trial, price, w)
        slope = 0.0
        for p in range(count):
            slope += step[p] * row_value(limits, int(free[p]), w)
        if slope >= 0.0:
            low = length
        else:
            high = length
        if high <= 1.5 * low:
            break
        if low == 0.0:
            length = 1e-3 * high
        elif high == math.inf:
            length = 1e3 * low
        else:
            length = math.sqrt(low * high)
    for p in range(count):
        i = int(free[p])
        x[i] += low * step[p]
        if i < m and ((low == farthest and x[i] < 1e-14 * abs(low * step[p])) or x[i] < 0.0):
            x[i] = 0.0


@long
def project(limits: Limits, point: Projection) -> bool:
    """w = argmin of sum (w - y)^2 / loose over the set.

    Projected semismooth Newton on the dual, which has as many dimensions as rows; warm from
    the last multipliers. Far from the solution, where few arms have a share, its step may
    fail: then only rows that may move with it do, as far as it pays. Returns whether it
    converged; if not, w is a point inside.
    """
    y, loose, price, w = point.y, point.loose, point.price, point.w
    memory_rows, system = point.rows, point.system
    x, step, trial = memory_rows[0], memory_rows[1], memory_rows[2]
    residual, free = memory_rows[3], memory_rows[4]
    m = limits.limit.size
    rows = m + limits.total.size
    dull = DULL if limits.limited else 0.0
    rounding = 1.0  # of rows, in units of the last digits
    for a in range(limits.size):
        rounding = max(rounding, abs(y[a]))
    value = projected_at(limits, y, loose, x, price, w)
    worst = math.inf
    for _ in range(60):
        count = free_rows(limits, memory_rows, w)
        worst = worst_of(memory_rows, count)
        if worst < 1e-12 * rounding:
            return True
        newton_step(limits, loose, w, residual, free, count, system, step, 0.0)
        length = 1.0
        moved = False
        for _ in range(4):
            promise = step_along(limits, memory_rows, count, length)
            reached = projected_at(limits, y, loose, trial, price, w)
            if promise >= 0.0 and reached >= value + 2e-4 * promise - 1e-13 * abs(value):
                moved = True
                break
            length *= 0.4
        if moved and limits.limited:
            # Where shares are at floors and caps, the slope may be as it was: then go farther.
            slope = 0.0
            for i in range(rows):
                slope += row_value(limits, i, w) * (trial[i] - x[i])
            moved = slope <= 0.5 * promise
        if moved:
            for i in range(rows):
                x[i] = trial[i]
            value = reached
            continue
        projected_at(limits, y, loose, x, price, w)
        held = count
        while held > 0:
            held = 0
            newton_step(limits, loose, w, residual, free, count, system, step, dull)
            kept = 0
            for p in range(count):
                i = int(free[p])
                if i < m and x[i] == 0.0 and step[p] < 0.0:
                    held += 1
                else:
                    free[kept] = i
                    kept += 1
            count = kept
        climb(limits, y, loose, x, free, count, step, trial, price, w)
        value = projected_at(limits, y, loose, x, price, w)
    if worst < 1e-4:
        # Shares that give way easily beside ones that hardly do leave rounding in the rows.
        mend(limits, memory_rows, system, w)
        return True
    for i in range(rows):
        x[i] = 0.0
    for a in range(limits.size):
        w[a] = limits.deep[a]
    return False


@kernel
def project_within_rows(
    setting: Setting,
    y: Vector,
    loose: Vector,
    memory_rows: Matrix,
    system: Matrix,
    price: Vector,
    w: Vector,
) -> bool:
    """`project` on the set of shares of samples, one array at a time."""
    return setting.slots.project(
        setting.shares, Projection(y, loose, memory_rows, system, price, w)
    )
