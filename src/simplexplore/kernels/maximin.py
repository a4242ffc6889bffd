"""The allocation that maximises the least information, warm from the last step.

Multiplicative steps on weights of edges (docs/theory/characteristic_time.md): each edge's
weight is multiplied by its time, then the allocation answers the weighted edges as well as the
set allows. On the simplex the answer is w ~ sqrt(C); within rows it is sqrt(C / price), moved
between the arm's floor and cap, with the rows' prices found by Newton's method in as many
dimensions as there are rows. A certificate from the weights ends the iteration as soon as the
allocation is good enough.
"""

from __future__ import annotations

import math

from .costs import to_shares, to_spend
from .information import edge_information
from .kernel import inlined, kernel
from .linear import solve_positive
from .records import (
    AllocationConstraints,
    Duals,
    EdgeTable,
    MaximinState,
    RunConfig,
    RunState,
    Scratch,
    Vector,
)
from .rows import DULL, free_rows, moves, price_arms, restore_feasibility, step_along, worst_of

# Share of the inside that every warm start is given.
REVIVAL = 1e-6

# Steps before an allocation is used as it is, and the gap with which it is thrown away.
MAX_ITERATIONS = 300
HOPELESS = 1.0

# Less information than this per sample is a tie spoilt by rounding.
TIED = 1e-16


@inlined
def answered(limits: AllocationConstraints, asked: Vector, price: Vector, a: int) -> float:
    """The share that minimises asked / w + price w between an arm's floor and cap."""
    share = 0.0
    if price[a] > 0.0:
        share = math.sqrt(asked[a] / price[a])
    elif asked[a] > 0.0:
        share = limits.upper[a]
    return min(max(share, limits.lower[a]), limits.upper[a])


@kernel
def dual_value(limits: AllocationConstraints, asked: Vector, x: Vector, price: Vector) -> float:
    """Sum of the least asked / w + price w, less bounds . x; -inf where it falls for ever.

    Without limits on single arms these are 2 sqrt(asked price).
    """
    price_arms(limits, x, price)
    value = 0.0
    for a in range(limits.size):
        if limits.limited:
            share = answered(limits, asked, price, a)
            if share == math.inf:
                return -math.inf
            value += price[a] * share
            if asked[a] > 0.0:
                value += asked[a] / share
        elif asked[a] > 0.0:
            if not price[a] > 0.0:
                return -math.inf
            value += 2.0 * math.sqrt(asked[a] * price[a])
    for i in range(limits.b.size):
        value -= limits.b[i] * x[i]
    return value


@kernel
def answer_within_rows(
    limits: AllocationConstraints, asked: Vector, duals: Duals, price: Vector, w: Vector
) -> bool:
    """w = argmin of sum asked / w over the set: projected Newton on its dual, from the last.

    Multipliers of inequalities stay nonnegative. Returns whether it converged.
    """
    x, step, trial = duals.x, duals.step, duals.trial
    residual, free, system = duals.residual, duals.free, duals.system
    rows = limits.b.size
    value = dual_value(limits, asked, x, price)
    priced = False
    for i in range(rows):
        priced = priced or x[i] != 0.0
    if value == -math.inf or not priced:
        # Start from the total alone, whose price is the same for every arm.
        scale = 0.0
        for a in range(limits.size):
            scale += math.sqrt(asked[a])
        for i in range(rows):
            x[i] = scale * scale * limits.start[i]
        value = dual_value(limits, asked, x, price)
    before = math.inf
    for _ in range(60):
        dearest = 0.0
        for a in range(limits.size):
            w[a] = answered(limits, asked, price, a)
            dearest = max(dearest, abs(price[a]))
        count = free_rows(limits, duals, w)
        worst = worst_of(duals, count)
        # Prices near zero leave rounding in the rows; what is left is mended afterwards.
        if worst < 1e-10 or (worst < 1e-6 and worst > 0.5 * before):
            return True
        before = worst
        for p in range(count):
            step[p] = residual[free[p]]
            for q in range(p + 1):
                entry = 0.0
                for a in range(limits.size):
                    # Shares at a floor or a cap do not move; a little that they might keeps
                    # steps finite where no other does.
                    at_end = not moves(limits, w, a)
                    both = limits.A[free[p], a] * limits.A[free[q], a]
                    give = DULL * w[a] if at_end else w[a]
                    entry += both * give / (dearest if at_end else price[a])
                system[p, q] = 0.5 * entry
        solve_positive(system, count, step)
        length = 1.0
        moved = False
        for _ in range(40):
            promise = step_along(limits, duals, count, length)
            reached = dual_value(limits, asked, trial, price)
            if reached >= value + 1e-4 * promise - 1e-14 * abs(value) and reached > -math.inf:
                moved = True
                break
            length *= 0.4
        if not moved:
            break
        for i in range(rows):
            x[i] = trial[i]
        value = reached
    price_arms(limits, x, price)
    return False


@inlined
def spread_gain(
    config: RunConfig, table: EdgeTable, run: RunState, state: MaximinState, gain: Vector
) -> None:
    """Information per arm, by what is spent on it, that the weighted edges ask for."""
    first, last = table.first_edge[state.vertex], table.first_edge[state.vertex + 1]
    base = table.first_entry[first]
    for a in range(config.size):
        gain[a] = 0.0
    for edge in range(first, last):
        time = run.time[edge - first]
        weight = state.q[edge] * time * time
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            gain[table.arm[k]] += weight * run.gradient[k - base]
    if config.priced:
        for a in range(config.size):
            gain[a] /= config.costs[a]


@kernel
def most_between_limits(
    limits: AllocationConstraints, gain: Vector, price: Vector, share: Vector
) -> float:
    """The most of (gain - price) . w over shares between floor and cap that sum to 1.

    What the floors leave goes to the best arms first, each up to its cap.
    """
    value = 0.0
    left = 1.0
    for a in range(limits.size):
        share[a] = limits.lower[a]
        value += (gain[a] - price[a]) * share[a]
        left -= share[a]
    while left > 0.0:
        best = -1
        for a in range(limits.size):
            if share[a] < limits.upper[a] and (
                best < 0 or gain[a] - price[a] > gain[best] - price[best]
            ):
                best = a
        if best < 0:  # rounding is all that is left
            break
        more = min(left, limits.upper[best] - share[best])
        value += (gain[best] - price[best]) * more
        share[best] += more
        left -= more
    return value


@kernel
def most_gain(
    limits: AllocationConstraints,
    run: RunState,
    within: bool,
    gain: Vector,
    price: Vector,
    share: Vector,
) -> float:
    """Upper bound on gain . w over the set, from the rows' multipliers (weak duality)."""
    best = -math.inf
    if not within:
        for a in range(limits.size):
            best = max(best, gain[a])
        return best
    x = run.duals.x
    price_arms(limits, x, price)
    if limits.limited:
        best = most_between_limits(limits, gain, price, share)
    else:
        for a in range(limits.size):
            if limits.interior_allocation[a] > 0.0:
                best = max(best, gain[a] - price[a])
    for i in range(limits.b.size):
        best += limits.b[i] * x[i]
    return best


@inlined
def target_gap(pulls: float) -> float:
    """Certified gap worth aiming at: means are known to about 1 / sqrt(t), so no finer.

    Its limit is far below what could be seen in a stopping time.
    """
    return max(1e-3, 1.0 / math.sqrt(pulls))


@kernel
def forget_prices(run: RunState) -> None:
    """Start the next solution from a price that is the same for all arms."""
    for i in range(run.duals.x.size):
        run.duals.x[i] = 0.0


@kernel
def evaluate(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, state: MaximinState
) -> tuple[float, float]:
    """Longest time of a vertex's edges at an allocation, and a bound on any one's information.

    The bound is from the weights of the edges. Infinity and 0 where some gap is not positive.
    """
    q, w = state.q, state.w
    samples = scratch.arms[4] if config.priced else w
    first, last = table.first_edge[state.vertex], table.first_edge[state.vertex + 1]
    base = table.first_entry[first]
    gain, share, price = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    longest = 0.0
    weight = 0.0
    mean_time = 0.0
    if config.priced:
        for a in range(config.size):
            samples[a] = w[a] / config.costs[a]
    for edge in range(first, last):
        value = edge_information(config, table, run, edge, base, samples)
        if not value > TIED:
            return math.inf, 0.0
        time = 1.0 / value
        run.time[edge - first] = time
        longest = max(longest, time)
        weight += q[edge] * time * time
        mean_time += q[edge] * time
    spread_gain(config, table, run, state, gain)
    best = most_gain(config.spend, run, state.within, gain, price, share)
    if not best >= (1.0 - 1e-9) * mean_time:
        # No bound can be below the present allocation's gain: the prices lost their
        # digits, as they may when times jump by orders of magnitude.
        forget_prices(run)
        best = most_gain(config.spend, run, state.within, gain, price, share)
    return longest, best / weight


@kernel
def improve(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, state: MaximinState
) -> None:
    """Multiply weights by the times just evaluated, then answer them with an allocation."""
    q, w, limits = state.q, state.w, config.spend
    first, last = table.first_edge[state.vertex], table.first_edge[state.vertex + 1]
    gain, asked, price = scratch.arms[0], scratch.arms[1], scratch.arms[2]
    total = 0.0
    for edge in range(first, last):
        q[edge] *= run.time[edge - first]
        total += q[edge]
    for edge in range(first, last):
        q[edge] = max(q[edge] / total, 1e-12)
    spread_gain(config, table, run, state, gain)
    total = 0.0
    for a in range(config.size):
        asked[a] = w[a] * w[a] * gain[a]
        total += math.sqrt(asked[a])
    if state.within:
        for a in range(config.size):
            # Arms that nobody asks for keep a trace, so that they stay inside.
            if config.interior_allocation[a] > 0.0:
                asked[a] = max(asked[a], 1e-10 * total * total)
        if not answer_within_rows(limits, asked, run.duals, price, w):
            forget_prices(run)
            answer_within_rows(limits, asked, run.duals, price, w)
        restore_feasibility(limits, run.duals, w)
    else:
        for a in range(config.size):
            w[a] = math.sqrt(asked[a]) / total
            if config.interior_allocation[a] > 0.0:
                w[a] = max(w[a], 1e-12)


@kernel
def maximin(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    vertex: int,
    within: bool,
    tolerance: float,
    w: Vector,
) -> float:
    """Improve the allocation w and the weights of a vertex's edges until the gap is small.

    The weights are run.edge_state[0]; `within` says whether w must be in the set of config. Uses
    run.duals, scratch.arms[0:3] and, for costs, scratch.arms[4].
    Returns the certified relative gap, or infinity where some gap is not positive: no allocation is
    better than another then.
    """
    q = run.edge_state[0]
    state = MaximinState(q, w, vertex, within)
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    to_spend(config, w)
    if q[first] == 0.0:
        for edge in range(first, last):
            q[edge] = 1.0 / (last - first)
    for a in range(config.size):
        # An arm at zero could not come back: steps are multiplicative in it.
        w[a] = (1.0 - REVIVAL) * w[a] + REVIVAL * config.spend.interior_allocation[a]
    gap = math.inf
    for _ in range(MAX_ITERATIONS):
        longest, most = evaluate(config, table, run, scratch, state)
        if longest == math.inf:
            to_shares(config, w)
            return math.inf
        gap = longest * most - 1.0
        if gap <= tolerance:
            break
        improve(config, table, run, scratch, state)
    if not gap < HOPELESS:
        for edge in range(first, last):
            q[edge] = 0.0
        forget_prices(run)
        for a in range(config.size):
            w[a] = config.spend.interior_allocation[a]
    to_shares(config, w)
    return gap
