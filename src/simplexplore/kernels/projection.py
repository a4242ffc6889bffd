"""The point of the allocation set that is closest in a diagonal metric."""

from __future__ import annotations

from numba import njit

from .linear import solve_positive
from .maximin import price_arms, row_entry, row_value


@njit
def project_on_simplex(size, y, loose, w):
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
            if y[a] - level * loose[a] > 0.0:
                top += y[a]
                below += loose[a]
        following = (top - 1.0) / below
        if following <= level + 1e-15 * abs(level):
            level = following
            break
        level = following
    for a in range(size):
        w[a] = max(y[a] - level * loose[a], 0.0)


@njit
def projected_at(setting, y, loose, x, price, w):
    """w = (y - loose price)+ at multipliers x; returns twice the dual value."""
    price_arms(setting, x, price)
    m = setting.limit.size
    value = 0.0
    for a in range(setting.size):
        if setting.inside[a] > 0.0:
            w[a] = max(y[a] - loose[a] * price[a], 0.0)
            value -= w[a] * w[a] / loose[a]
        else:
            w[a] = 0.0
    for i in range(m):
        value -= 2.0 * setting.limit[i] * x[i]
    for i in range(setting.total.size):
        value -= 2.0 * setting.total[i] * x[m + i]
    return value


@njit
def project_within_rows(setting, y, loose, memory_rows, system, price, w):
    """w = argmin of sum (w - y)^2 / loose over the set.

    Projected semismooth Newton on the dual, which has as many dimensions as rows; warm from
    the last multipliers. A failing step is damped towards the gradient.
    """
    x, step, trial = memory_rows[0], memory_rows[1], memory_rows[2]
    residual, free = memory_rows[3], memory_rows[4]
    m = setting.limit.size
    rows = m + setting.total.size
    value = projected_at(setting, y, loose, x, price, w)
    damping = 1e-13
    for _ in range(100):
        count = 0
        worst = 0.0
        for i in range(rows):
            residual[i] = row_value(setting, i, w)
            if i >= m or x[i] > 0.0 or residual[i] > 0.0:
                free[count] = i
                count += 1
                worst = max(worst, abs(residual[i]))
        if worst < 1e-12:
            return True
        trace = 0.0
        for p in range(count):
            step[p] = residual[int(free[p])]
            for q in range(p + 1):
                entry = 0.0
                for a in range(setting.size):
                    if w[a] > 0.0:
                        left = row_entry(setting, int(free[p]), a)
                        entry += left * row_entry(setting, int(free[q]), a) * loose[a]
                system[p, q] = entry
            trace += system[p, p]
        for p in range(count):
            system[p, p] += damping * trace + 1e-300
        solve_positive(system, count, step)
        length = 1.0
        moved = False
        for _ in range(12):
            for i in range(rows):
                trial[i] = x[i]
            promise = 0.0
            for p in range(count):
                i = int(free[p])
                trial[i] = x[i] + length * step[p]
                if i < m and trial[i] < 0.0:
                    trial[i] = 0.0
                promise += residual[i] * (trial[i] - x[i])
            reached = projected_at(setting, y, loose, trial, price, w)
            if promise >= 0.0 and reached >= value + 2e-4 * promise - 1e-13 * abs(value):
                moved = True
                break
            length *= 0.4
        if moved:
            for i in range(rows):
                x[i] = trial[i]
            value = reached
            damping = max(1e-13, 0.1 * damping)
        else:
            damping = max(1e-6, 100.0 * damping)
            if damping > 1e8:
                break
            value = projected_at(setting, y, loose, x, price, w)
    projected_at(setting, y, loose, x, price, w)
    return False
