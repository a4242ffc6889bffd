"""The rows of an allocation set, and Newton's method on their multipliers.

Both solvers within rows, for the best allocation and for the closest one, maximise a dual: each has
its own value and its own system.
"""

from __future__ import annotations

from .kernel import inlined, kernel
from .linear import solve_positive
from .records import AllocationConstraints, Duals, Vector

# How much less a share at a floor or a cap moves than one between them.
DULL = 1e-5


@inlined
def price_arms(limits: AllocationConstraints, x: Vector, price: Vector) -> None:
    """Prices that multipliers x of all rows set for each arm."""
    for a in range(limits.size):
        price[a] = 0.0
    for i in range(limits.b.size):
        if x[i] != 0.0:
            for a in range(limits.size):
                price[a] += x[i] * limits.A[i, a]


@inlined
def row_value(limits: AllocationConstraints, i: int, w: Vector) -> float:
    """Row i at an allocation, less its bound."""
    total = 0.0
    for a in range(limits.size):
        total += limits.A[i, a] * w[a]
    return total - limits.b[i]


@inlined
def moves(limits: AllocationConstraints, w: Vector, a: int) -> bool:
    """Whether a share would change with its price."""
    return w[a] > limits.lower[a] and w[a] < limits.upper[a]


@kernel
def free_rows(limits: AllocationConstraints, duals: Duals, w: Vector) -> int:
    """Find what each row lacks at w, and the rows whose multipliers may move; returns how many."""
    x, residual, free = duals.x, duals.residual, duals.free
    count = 0
    for i in range(limits.b.size):
        residual[i] = row_value(limits, i, w)
        if i >= limits.inequalities or x[i] > 0.0 or residual[i] > 0.0:
            free[count] = i
            count += 1
    return count


@kernel
def worst_of(duals: Duals, count: int) -> float:
    """What the worst of so many free rows lacks."""
    residual, free = duals.residual, duals.free
    worst = 0.0
    for p in range(count):
        worst = max(worst, abs(residual[free[p]]))
    return worst


@kernel
def step_along(limits: AllocationConstraints, duals: Duals, count: int, length: float) -> float:
    """Go a part of the step of the free rows; returns what the slope promises for it.

    No multiplier of an inequality turns negative.
    """
    x, step, trial = duals.x, duals.step, duals.trial
    residual, free = duals.residual, duals.free
    for i in range(limits.b.size):
        trial[i] = x[i]
    promise = 0.0
    for p in range(count):
        i = free[p]
        trial[i] = x[i] + length * step[p]
        if i < limits.inequalities and trial[i] < 0.0:
            trial[i] = 0.0
        promise += residual[i] * (trial[i] - x[i])
    return promise


@kernel
def restore_feasibility(limits: AllocationConstraints, duals: Duals, w: Vector) -> None:
    """Make an almost feasible allocation feasible: equalities first, then lean inwards."""
    step, system, slack = duals.step, duals.system, limits.max_slack
    m = limits.inequalities
    q = limits.b.size - m
    for i in range(q):
        step[i] = -row_value(limits, m + i, w)
        for j in range(i + 1):
            entry = 0.0
            for a in range(limits.size):
                if limits.lower[a] < limits.upper[a]:
                    entry += limits.A[m + i, a] * limits.A[m + j, a] * w[a]
            system[i, j] = entry
    solve_positive(system, q, step)
    for a in range(limits.size):
        if not limits.lower[a] < limits.upper[a]:
            continue
        factor = 1.0
        for i in range(q):
            factor += limits.A[m + i, a] * step[i]
        w[a] = max(w[a] * factor, 0.0)
    lean = 0.0
    for i in range(m):
        excess = row_value(limits, i, w)
        if excess > 1e-14:
            lean = max(lean, excess / (excess - row_value(limits, i, slack)))
    if limits.limited:
        for a in range(limits.size):
            excess = max(w[a] - limits.upper[a], limits.lower[a] - w[a])
            if excess > 1e-14 and limits.lower[a] < limits.upper[a]:
                room = min(limits.upper[a] - slack[a], slack[a] - limits.lower[a])
                lean = max(lean, excess / (excess + room))
    if lean > 0.0:
        for a in range(limits.size):
            w[a] = (1.0 - lean) * w[a] + lean * slack[a]
