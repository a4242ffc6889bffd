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
from .information import respond
from .kernel import inlined, kernel, long
from .linear import solve_positive
from .records import ITERATIONS, Limits, Matrix, Memory, Run, Setting, Shares, Table, Vector
from .rows import DULL, free_rows, mend, moves, price_arms, row_entry, step_along, worst_of

# Share of the inside that every warm start is given.
REVIVAL = 1e-6

# Steps before an allocation is used as it is, and the gap with which it is thrown away.
MAX_ITERATIONS = 300
HOPELESS = 1.0

# Less information than this per sample is a tie spoilt by rounding.
TIED = 1e-16


@inlined
def answered(limits: Limits, asked: Vector, price: Vector, a: int) -> float:
    """The share that minimises asked / w + price w between an arm's floor and cap."""
    share = 0.0
    if price[a] > 0.0:
        share = math.sqrt(asked[a] / price[a])
    elif limits.limited and asked[a] > 0.0:
        share = limits.cap[a]
    if limits.limited:
        share = min(max(share, limits.floor[a]), limits.cap[a])
    return share


@kernel
def dual_value(limits: Limits, asked: Vector, x: Vector, price: Vector) -> float:
    """Sum of the least asked / w + price w, less bounds . x; -inf where it falls for ever.

    Without limits on single arms these are 2 sqrt(asked price).
    """
    price_arms(limits, x, price)
    m = limits.limit.size
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
    for i in range(m):
        value -= limits.limit[i] * x[i]
    for i in range(limits.total.size):
        value -= limits.total[i] * x[m + i]
    return value


@long
def answer_within_rows(
    limits: Limits, asked: Vector, memory_rows: Matrix, system: Matrix, price: Vector, w: Vector
) -> bool:
    """w = argmin of sum asked / w over the set: projected Newton on its dual, from the last.

    Multipliers of inequalities stay nonnegative. Returns whether it converged.
    """
    x, step, trial = memory_rows[0], memory_rows[1], memory_rows[2]
    residual, free = memory_rows[3], memory_rows[4]
    rows = limits.limit.size + limits.total.size
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
        count = free_rows(limits, memory_rows, w)
        worst = worst_of(memory_rows, count)
        # Prices near zero leave rounding in the rows; what is left is mended afterwards.
        if worst < 1e-10 or (worst < 1e-6 and worst > 0.5 * before):
            return True
        before = worst
        for p in range(count):
            step[p] = residual[int(free[p])]
            for q in range(p + 1):
                entry = 0.0
                for a in range(limits.size):
                    if price[a] > 0.0 or limits.limited:
                        # Shares at a floor or a cap do not move; a little that they might
                        # keeps steps finite where no other does.
                        at_end = limits.limited and not moves(limits, w, a)
                        entry += (
                            row_entry(limits, int(free[p]), a)
                            * row_entry(limits, int(free[q]), a)
                            * (DULL * w[a] if at_end else w[a])
                            / (dearest if at_end else price[a])
                        )
                system[p, q] = 0.5 * entry
        solve_positive(system, count, step)
        length = 1.0
        moved = False
        for _ in range(40):
            promise = step_along(limits, memory_rows, count, length)
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
    setting: Setting,
    table: Table,
    run: Run,
    q: Vector,
    first: int,
    last: int,
    base: int,
    gain: Vector,
) -> None:
    """Information per arm, by what is spent on it, that the weighted edges ask for."""
    for a in range(setting.size):
        gain[a] = 0.0
    for edge in range(first, last):
        time = run.time[edge - first]
        weight = q[edge] * time * time
        for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
            gain[table.arm[k]] += weight * run.gradient[k - base]
    if setting.priced:
        for a in range(setting.size):
            gain[a] /= setting.costs[a]


@inlined
def gain_at_level(limits: Limits, gain: Vector, price: Vector, level: float) -> tuple[float, float]:
    """n + sum of (gain - price - n) w at a level n, and the sum of the shares w that it takes."""
    value = level
    total = 0.0
    for a in range(limits.size):
        if limits.inside[a] > 0.0:
            net = gain[a] - price[a] - level
            share = min(limits.cap[a], 1.0) if net > 0.0 else limits.floor[a]
            value += net * share
            total += share
    return value, total


@kernel
def most_between_limits(
    limits: Limits, gain: Vector, price: Vector, low: float, high: float
) -> float:
    """Upper bound on (gain - price) . w over shares between floor and cap that sum to 1.

    For every level n it is at most n + sum of (gain - price - n) w, with w at the cap where
    this is positive and at the floor elsewhere. The best level is where those shares sum to 1.
    The bound is convex and piecewise linear in n: where the lines through both ends of a bracket
    meet is the next level, and every third time its middle.
    """
    below, sum_below = gain_at_level(limits, gain, price, low)
    above, sum_above = gain_at_level(limits, gain, price, high)
    best = min(below, above)
    for k in range(150):
        level = 0.5 * (low + high)
        least = -math.inf
        if k % 3 != 2 and sum_below > 1.0 and sum_above < 1.0:
            meets = low + (above - below + (1.0 - sum_above) * (low - high)) / (
                sum_above - sum_below
            )
            if meets > low and meets < high:
                level = meets
                least = below + (1.0 - sum_below) * (level - low)
        value, total = gain_at_level(limits, gain, price, level)
        best = min(best, value)
        if value <= least + 1e-13 * abs(least):  # no level is better than where the lines meet
            break
        if total > 1.0:
            low, below, sum_below = level, value, total
        else:
            high, above, sum_above = level, value, total
        if high - low <= 1e-13 * (abs(high) + abs(low)):
            break
    return best


@kernel
def most_gain(limits: Limits, memory: Memory, within: bool, gain: Vector, price: Vector) -> float:
    """Upper bound on gain . w over the set, from the rows' multipliers (weak duality)."""
    best = -math.inf
    if not within:
        for a in range(limits.size):
            best = max(best, gain[a])
        return best
    x = memory.rows[0]
    m = limits.limit.size
    price_arms(limits, x, price)
    lowest = math.inf
    for a in range(limits.size):
        if limits.inside[a] > 0.0:
            best = max(best, gain[a] - price[a])
            lowest = min(lowest, gain[a] - price[a])
    if limits.limited:
        best = most_between_limits(limits, gain, price, lowest, best)
    for i in range(m):
        best += limits.limit[i] * x[i]
    for i in range(limits.total.size):
        best += limits.total[i] * x[m + i]
    return best


@inlined
def worthwhile(pulls: float) -> float:
    """Certified gap worth aiming at: means are known to about 1 / sqrt(t), so no finer.

    Its limit is far below what could be seen in a stopping time.
    """
    return max(1e-3, 1.0 / math.sqrt(pulls))


@kernel
def forget_prices(memory: Memory) -> None:
    """Start the next solution from a price that is the same for all arms."""
    for i in range(memory.rows.shape[1]):
        memory.rows[0, i] = 0.0


@kernel
def balance(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    shares: Shares,
    vertex: int,
    within: bool,
    tolerance: float,
) -> float:
    """Improve the allocation and the weights of a vertex's edges until the gap is small.

    The allocation is of what is spent. `within` says whether it must satisfy the setting's rows.
    Uses memory.rows (multipliers), memory.scratch[0:3] and, for costs, memory.scratch[4].
    Returns the certified relative gap, or infinity, with w as it was, where some gap is not
    positive: no allocation is better than another then. If run.integers[ITERATIONS] is not 0
    afterwards it is unfinished, and goes on when it is called again.
    """
    q, w = shares.q, shares.w
    limits = setting.spend
    samples = memory.scratch[4] if setting.priced else w
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    base = table.first_entry[first]
    gain, asked, price = memory.scratch[0], memory.scratch[1], memory.scratch[2]
    if run.integers[ITERATIONS] == 0:
        if q[first] == 0.0:
            for edge in range(first, last):
                q[edge] = 1.0 / (last - first)
        for a in range(setting.size):
            # An arm at zero could not come back: steps are multiplicative in it.
            w[a] = (1.0 - REVIVAL) * w[a] + REVIVAL * limits.inside[a]
    gap = math.inf
    for _ in range(setting.at_once):
        longest = 0.0
        weight = 0.0
        mean_time = 0.0
        if setting.priced:
            for a in range(setting.size):
                samples[a] = w[a] / setting.costs[a]
        for edge in range(first, last):
            value = respond(setting, table, run, edge, base, samples)
            if not value > TIED:
                run.integers[ITERATIONS] = 0
                return math.inf
            time = 1.0 / value
            run.time[edge - first] = time
            longest = max(longest, time)
            weight += q[edge] * time * time
            mean_time += q[edge] * time
        spread_gain(setting, table, run, q, first, last, base, gain)
        run.integers[ITERATIONS] += 1
        best = most_gain(limits, memory, within, gain, price)
        if not best >= (1.0 - 1e-9) * mean_time:
            # No bound can be below the present allocation's gain: the prices lost their
            # digits, as they may when times jump by orders of magnitude.
            forget_prices(memory)
            best = most_gain(limits, memory, within, gain, price)
        gap = longest * best / weight - 1.0
        if gap <= tolerance:
            break
        total = 0.0
        for edge in range(first, last):
            q[edge] *= run.time[edge - first]
            total += q[edge]
        for edge in range(first, last):
            q[edge] = max(q[edge] / total, 1e-12)
        spread_gain(setting, table, run, q, first, last, base, gain)
        total = 0.0
        for a in range(setting.size):
            asked[a] = w[a] * w[a] * gain[a]
            total += math.sqrt(asked[a])
        if within:
            for a in range(setting.size):
                # Arms that nobody asks for keep a trace, so that they stay inside.
                if setting.inside[a] > 0.0:
                    asked[a] = max(asked[a], 1e-10 * total * total)
            if not answer_within_rows(limits, asked, memory.rows, memory.system, price, w):
                forget_prices(memory)
                answer_within_rows(limits, asked, memory.rows, memory.system, price, w)
            mend(limits, memory.rows, memory.system, w)
        else:
            for a in range(setting.size):
                w[a] = math.sqrt(asked[a]) / total
                if setting.inside[a] > 0.0:
                    w[a] = max(w[a], 1e-12)
    if not gap <= tolerance and run.integers[ITERATIONS] < MAX_ITERATIONS:
        return gap
    run.integers[ITERATIONS] = 0
    if not gap < HOPELESS:
        for edge in range(first, last):
            q[edge] = 0.0
        forget_prices(memory)
        for a in range(setting.size):
            w[a] = limits.inside[a]
    return gap


@inlined
def part_of_maximin(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    vertex: int,
    within: bool,
    tolerance: float,
    w: Vector,
) -> float:
    """As many iterations of `maximin` as are made at once.

    Threads of a GPU would wait for the one that needs the most. While it is unfinished w is in
    shares of what is spent.
    """
    if run.integers[ITERATIONS] == 0:
        to_spend(setting, w)
    shares = Shares(memory.edges[0], w)
    gap = setting.slots.balance(setting, table, run, memory, shares, vertex, within, tolerance)
    if run.integers[ITERATIONS] == 0:
        to_shares(setting, w)
    return gap


@kernel
def maximin(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    vertex: int,
    within: bool,
    tolerance: float,
    w: Vector,
) -> float:
    """`balance` with memory.edges[0] for the weights of edges, and w in shares of samples."""
    while True:
        gap = part_of_maximin(setting, table, run, memory, vertex, within, tolerance, w)
        if run.integers[ITERATIONS] == 0:
            return gap
