"""The rows of an allocation set, and Newton's method on their multipliers.

Both solvers within rows, for the best allocation and for the closest one, maximise a dual: each has
its own value and its own system. Multipliers, a step, where it leads, what rows lack and which
of them may move lie in `memory_rows`, in this order.
"""

from __future__ import annotations

from .kernel import inlined, kernel
from .linear import solve_positive
from .records import Limits, Matrix, Vector

# How much less a share at a floor or a cap moves than one between them.
DULL = 1e-5


@inlined
def price_arms(limits: Limits, x: Vector, price: Vector) -> None:
    """Prices that multipliers x of all rows set for each arm."""
    m = limits.limit.size
    for a in range(limits.size):
        price[a] = 0.0
    for i in range(m + limits.total.size):
        if x[i] != 0.0:
            if i < m:
                for a in range(limits.size):
                    price[a] += x[i] * limits.above[i, a]
            else:
                for a in range(limits.size):
                    price[a] += x[i] * limits.equal[i - m, a]


@inlined
def row_value(limits: Limits, i: int, w: Vector) -> float:
    """Row i at an allocation, less its bound."""
    m = limits.limit.size
    total = 0.0
    if i < m:
        for a in range(limits.size):
            total += limits.above[i, a] * w[a]
        return total - limits.limit[i]
    for a in range(limits.size):
        total += limits.equal[i - m, a] * w[a]
    return total - limits.total[i - m]


@inlined
def row_entry(limits: Limits, i: int, a: int) -> float:
    """Coefficient of an arm in row i, inequalities first."""
    m = limits.limit.size
    return limits.above[i, a] if i < m else limits.equal[i - m, a]


@inlined
def moves(limits: Limits, w: Vector, a: int) -> bool:
    """Whether a share would change with its price."""
    if limits.limited:
        return w[a] > limits.floor[a] and w[a] < limits.cap[a]
    return w[a] > 0.0


@kernel
def free_rows(limits: Limits, memory_rows: Matrix, w: Vector) -> int:
    """Find what each row lacks at w, and the rows whose multipliers may move; returns how many."""
    x, residual, free = memory_rows[0], memory_rows[3], memory_rows[4]
    m = limits.limit.size
    count = 0
    for i in range(m + limits.total.size):
        residual[i] = row_value(limits, i, w)
        if i >= m or x[i] > 0.0 or residual[i] > 0.0:
            free[count] = i
            count += 1
    return count


@kernel
def worst_of(memory_rows: Matrix, count: int) -> float:
    """What the worst of so many free rows lacks."""
    residual, free = memory_rows[3], memory_rows[4]
    worst = 0.0
    for p in range(count):
        worst = max(worst, abs(residual[int(free[p])]))
    return worst


@kernel
def step_along(limits: Limits, memory_rows: Matrix, count: int, length: float) -> float:
    """Go a part of the step of the free rows; returns what the slope promises for it.

    No multiplier of an inequality turns negative.
    """
    x, step, trial = memory_rows[0], memory_rows[1], memory_rows[2]
    residual, free = memory_rows[3], memory_rows[4]
    m = limits.limit.size
    for i in range(m + limits.total.size):
        trial[i] = x[i]
    promise = 0.0
    for p in range(count):
        i = int(free[p])
        trial[i] = x[i] + length * step[p]
        if i < m and trial[i] < 0.0:
            trial[i] = 0.0
        promise += residual[i] * (trial[i] - x[i])
    return promise


@kernel
def mend(limits: Limits, memory_rows: Matrix, system: Matrix, w: Vector) -> None:
    """Make an almost feasible allocation feasible: equalities first, then lean inwards."""
    step, deep = memory_rows[1], limits.deep
    m = limits.limit.size
    q = limits.total.size
    for i in range(q):
        step[i] = -row_value(limits, m + i, w)
        for j in range(i + 1):
            entry = 0.0
            for a in range(limits.size):
                if limits.floor[a] < limits.cap[a]:
                    entry += limits.equal[i, a] * limits.equal[j, a] * w[a]
            system[i, j] = entry
    solve_positive(system, q, step)
    for a in range(limits.size):
        if not limits.floor[a] < limits.cap[a]:
            continue
        factor = 1.0
        for i in range(q):
            factor += limits.equal[i, a] * step[i]
        w[a] = max(w[a] * factor, 0.0)
    lean = 0.0
    for i in range(m):
        excess = row_value(limits, i, w)
        if excess > 1e-14:
            lean = max(lean, excess / (excess - row_value(limits, i, deep)))
    if limits.limited:
        for a in range(limits.size):
            excess = max(w[a] - limits.cap[a], limits.floor[a] - w[a])
            if excess > 1e-14 and limits.floor[a] < limits.cap[a]:
                room = min(limits.cap[a] - deep[a], deep[a] - limits.floor[a])
                lean = max(lean, excess / (excess + room))
    if lean > 0.0:
        for a in range(limits.size):
            w[a] = (1.0 - lean) * w[a] + lean * deep[a]
