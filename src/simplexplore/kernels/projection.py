"""The point of the allocation set that is closest in a diagonal metric."""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .linear import solve_positive
from .records import AllocationConstraints, Duals, Vector
from .rows import (
    DULL,
    free_rows,
    moves,
    price_arms,
    restore_feasibility,
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
    limits: AllocationConstraints, y: Vector, loose: Vector, x: Vector, price: Vector, w: Vector
) -> float:
    """w = y - loose price between floor and cap, at multipliers x; returns twice the dual value."""
    price_arms(limits, x, price)
    value = 0.0
    for a in range(limits.size):
        asked = y[a] - loose[a] * price[a]
        w[a] = min(max(asked, limits.lower[a]), limits.upper[a])
        value -= w[a] * (2.0 * asked - w[a]) / loose[a]
    for i in range(limits.b.size):
        value -= 2.0 * limits.b[i] * x[i]
    return value


@kernel
def newton_step(
    limits: AllocationConstraints, duals: Duals, loose: Vector, w: Vector, count: int, dull: float
) -> None:
    """The step of the free rows' multipliers to where the arms that move with them now agree.

    Arms at a floor or a cap count as `dull`: with 0 the step is Newton's, with more it stays
    finite where nothing else moves.
    """
    step, free, system = duals.step, duals.free, duals.system
    largest = 0.0
    for p in range(count):
        step[p] = duals.residual[free[p]]
        for q in range(p + 1):
            entry = 0.0
            for a in range(limits.size):
                give = loose[a] if moves(limits, w, a) else dull * loose[a]
                if give > 0.0:
                    entry += limits.A[free[p], a] * limits.A[free[q], a] * give
            system[p, q] = entry
        largest = max(largest, system[p, p])
    if largest > 0.0:  # else no arm has a share, and the residuals themselves will do
        solve_positive(system, count, step)


@kernel
def climb(
    limits: AllocationConstraints,
    duals: Duals,
    y: Vector,
    loose: Vector,
    count: int,
    price: Vector,
    w: Vector,
) -> None:
    """Go as far along a step as the dual value rises; no multiplier may turn negative.

    The slope falls along the way. Where shares do not change, it is level for long: lengths
    are searched by their logarithm.
    """
    x, step, trial, free = duals.x, duals.step, duals.trial, duals.free
    m = limits.inequalities
    farthest = math.inf
    for p in range(count):
        i = free[p]
        if i < m and step[p] < 0.0:
            farthest = min(farthest, -x[i] / step[p])
    low, high = 0.0, farthest
    length = min(1.0, farthest)
    for _ in range(60):
        for i in range(limits.b.size):
            trial[i] = x[i]
        for p in range(count):
            trial[free[p]] += length * step[p]
        projected_at(limits, y, loose, trial, price, w)
        slope = 0.0
        for p in range(count):
            slope += step[p] * row_value(limits, free[p], w)
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
        i = free[p]
        x[i] += low * step[p]
        if i < m and ((low == farthest and x[i] < 1e-14 * abs(low * step[p])) or x[i] < 0.0):
            x[i] = 0.0


@kernel
def project(
    limits: AllocationConstraints, duals: Duals, y: Vector, loose: Vector, price: Vector, w: Vector
) -> bool:
    """w = argmin of sum (w - y)^2 / loose over the set.

    Projected semismooth Newton on the dual, which has as many dimensions as rows; warm from
    the last multipliers. Far from the solution, where few arms have a share, its step may
    fail: then only rows that may move with it do, as far as it pays. Returns whether it
    converged; if not, w is a point inside.
    """
    x, step, trial, free = duals.x, duals.step, duals.trial, duals.free
    m, rows = limits.inequalities, limits.b.size
    dull = DULL if limits.limited else 0.0
    rounding = 1.0  # of rows, in units of the last digits
    for a in range(limits.size):
        rounding = max(rounding, abs(y[a]))
    value = projected_at(limits, y, loose, x, price, w)
    worst = math.inf
    for _ in range(60):
        count = free_rows(limits, duals, w)
        worst = worst_of(duals, count)
        if worst < 1e-12 * rounding:
            return True
        newton_step(limits, duals, loose, w, count, 0.0)
        length = 1.0
        moved = False
        for _ in range(4):
            promise = step_along(limits, duals, count, length)
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
            newton_step(limits, duals, loose, w, count, dull)
            kept = 0
            for p in range(count):
                i = free[p]
                if i < m and x[i] == 0.0 and step[p] < 0.0:
                    held += 1
                else:
                    free[kept] = i
                    kept += 1
            count = kept
        climb(limits, duals, y, loose, count, price, w)
        value = projected_at(limits, y, loose, x, price, w)
    if worst < 1e-4:
        # Shares that give way easily beside ones that hardly do leave rounding in the rows.
        restore_feasibility(limits, duals, w)
        return True
    for i in range(rows):
        x[i] = 0.0
    for a in range(limits.size):
        w[a] = limits.max_slack[a]
    return False
