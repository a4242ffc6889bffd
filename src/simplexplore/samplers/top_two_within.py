"""`top-two` where samples have limits.

The challenger and its arms' shares are those of top_two.py, each divided by the price of the
arm: what the exact allocation gains by it (docs/theory/tracking.md). Prices change slowly, so
that allocation is solved for again only when the recommendation moves or samples have grown by
a part of themselves. While limits forbid the arm whose turn it is, the one furthest behind the
exact allocation is played instead, to save for it. A forced turn that they forbid is owed: turns
that would come later are taken at once to save for it.
"""

from __future__ import annotations

import math

from simplexplore.kernels.guard import fill, keeps, save_for
from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.maximin import maximin, worthwhile
from simplexplore.kernels.records import PULLS, VERTEX, Memory, Run, Setting, Table

from .top_two import ON_A_BUDGET, PRICE, affords, evidence, rarest_of, share, turns

# The vertex of the last solution, plus one, and when the next one is due; the arms' prices; until
# when a new vertex waits for its solution, and how many turns there were; how many of them each
# arm had; the arm that is saved for, plus one, and before how many pulls no turn is due.
ARM_VECTORS = 5
# Weights of the last solution; the logarithm of how often an edge was tried, when last asked for,
# after how many pulls that was, and how fast it may grow since.
EDGE_VECTORS = 4
TRACKING = "focused"

# Growth of samples after which prices are computed again: 0, 1, 2 and 5% stop equally soon.
GROWTH = 0.02

# With many arms the best policy changes every few samples at first. It waits for its solution
# until samples have grown by a part of the arms beyond MANY.
MANY = 50
PATIENCE = 0.1

# Turns as in top_two.py. Limits leave some arms next to no samples, and what is proven asks more
# of them: half as many turns took 18% more samples on the films with `tilt`, twice as many as few.
TURNS = 1.0

# One pull of EVERY asks more of who was hardly tried. Two policies that tie could else keep each
# other busy for ever so long while an unlucky third one is underrated: the time that takes grows
# with the exponential of its evidence over the price.
EVERY = 8
MORE = 2.0

# Prices below this part of the largest count as much: an arm that only saves for others has
# none, and limits, not its share, say how often it is played.
LEAST_PRICE = 1e-3

# More than the rounding of a logarithm of pulls.
ROUNDING = 1e-9


@kernel
def solve(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """The exact allocation into run.filler, and the arms' prices."""
    last, price = memory.arms[0], memory.arms[1]
    pulls = float(run.integers[PULLS])
    vertex = run.integers[VERTEX]
    gap = maximin(setting, table, run, memory, vertex, True, worthwhile(pulls), run.filler)
    last[0] = vertex + 1.0
    last[1] = pulls + max(2.0, GROWTH * pulls)
    memory.arms[2, 0] = pulls + PATIENCE * max(0, setting.size - MANY)
    dearest = 0.0
    for a in range(setting.size):
        price[a] = memory.scratch[0, a]  # information for what is spent, at the solution
        dearest = max(dearest, price[a])
    for a in range(setting.size):
        # Where there is no solution, all arms cost the same.
        price[a] = max(price[a], LEAST_PRICE * dearest) if gap < math.inf else 1.0


@kernel
def pulls_into(setting: Setting, table: Table, run: Run, edge: int) -> float:
    """Pulls that went into the estimate of an edge's gap.

    An arm may have few samples because they are dear, and an edge with little of a rare arm be
    studied at length by its other ones.
    """
    squares = 0.0
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        square = table.v[k] * table.v[k]
        squares += square
        spread += square / (run.n[a] * setting.pulls_for_one[a])
    return squares / spread


@kernel
def challenger_of(setting: Setting, table: Table, run: Run, memory: Memory, price: float) -> int:
    """The edge with the least evidence and so much of the logarithm of pulls that went into it.

    A logarithm is only computed where it decides. As long as no pull has expired it is no less than
    before, and no more by the pulls since then over those of the rarest arm.
    """
    vertex = run.integers[VERTEX]
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    low, since, rate = memory.edges[1], memory.edges[2], memory.edges[3]
    pulls = float(run.integers[PULLS])
    none_expired = memory.excess[setting.limit.size + setting.total.size] == pulls
    closest = first
    least = math.inf
    second = math.inf
    for edge in range(first, last):
        bound = evidence(setting, table, run, first, edge)
        if none_expired:
            bound += price * low[edge]
        run.time[edge - first] = bound
        if bound < least:
            second = least
            least = bound
            closest = edge
        elif bound < second:
            second = bound
    if none_expired and rate[closest] > 0.0:
        most = low[closest] + 2.0 * ROUNDING + rate[closest] * (pulls - since[closest])
        if evidence(setting, table, run, first, closest) + price * most < second:
            return closest
    challenger = closest
    least = math.inf
    for i in range(-1, last - first):
        edge = closest if i < 0 else first + i
        if run.time[edge - first] > least or (edge == closest and i >= 0):
            continue
        tried = math.log(pulls_into(setting, table, run, edge))
        if none_expired:
            low[edge] = tried - ROUNDING
            since[edge] = pulls
            rate[edge] = 1.0 / rarest_of(table, run, edge)
        score = evidence(setting, table, run, first, edge) + price * tried
        if score < least or (score == least and edge < challenger):
            least = score
            challenger = edge
    return challenger


@kernel
def next_turn(setting: Setting, taken: float) -> float:
    """Pulls before which there are no more turns than were taken, a little less for rounding."""
    size = float(setting.size)
    root = (taken + 1.0) / (TURNS * size) + size
    return root * root - size * size - 2.0


@kernel
def take_turn(setting: Setting, run: Run, memory: Memory, pulls: float) -> None:
    """A forced pull: of the arm with the fewest turns for its share, or of one that saves for it.

    Limits allow `inside`, so that so many turns pay for a pull of an arm as it takes them to owe
    it one. It is given up when these are used up, which only limits that interlock can bring
    about, and is still owed.
    """
    count, taken, saved_for = memory.arms[2], memory.arms[3], memory.arms[4]
    wanted = int(saved_for[0]) - 1
    if wanted < 0:
        least = math.inf
        for k in range(setting.first_arms.size):
            a = setting.first_arms[k]
            quotient = (taken[a] + 0.5) / setting.inside[a]
            if quotient < least:
                least = quotient
                wanted = a
    arm = wanted
    if not keeps(setting, run, memory, wanted):
        arm = save_for(setting, run, memory, wanted)
    taken[arm] += 1.0
    count[1] += 1.0
    ahead = count[1] - turns(setting, pulls, TURNS)
    saved_for[1] = next_turn(setting, count[1])
    saved_for[0] = 0.0
    if arm != wanted and ahead * setting.inside[wanted] < 1.0:
        saved_for[0] = wanted + 1.0
    for a in range(setting.size):
        run.w[a] = 0.0
    run.w[arm] = 1.0  # a whole pull leaves who is behind whom as it was


@kernel
def allocate(setting: Setting, table: Table, run: Run, memory: Memory) -> None:
    """Share the next sample among the challenger's arms by what each would tell for its price."""
    pulls = float(run.integers[PULLS])
    vertex = run.integers[VERTEX]
    last, price = memory.arms[0], memory.arms[1]
    if last[0] == 0.0:
        # What the first round owed is of no interest any more.
        for a in range(setting.size):
            run.target[a] = run.n[a]
        memory.arms[2, 1] = turns(setting, pulls - 1.0, TURNS)
    moved = last[0] != vertex + 1.0 and pulls >= memory.arms[2, 0]
    if moved or pulls >= last[1]:
        solve(setting, table, run, memory)
    is_due = pulls >= memory.arms[4, 1] and turns(setting, pulls, TURNS) > memory.arms[2, 1]
    if memory.arms[4, 0] > 0.0 or is_due:
        take_turn(setting, run, memory, pulls)
        return
    for a in range(setting.size):
        run.w[a] = 0.0
    first = table.first_edge[vertex]
    price_of_rarity = ON_A_BUDGET if affords(setting) else PRICE
    if run.integers[PULLS] % EVERY == EVERY - 1:
        price_of_rarity = MORE
    challenger = challenger_of(setting, table, run, memory, price_of_rarity)
    base, end = table.first_entry[challenger], table.first_entry[challenger + 1]
    share(setting, table, run, first, challenger)
    total = 0.0
    for k in range(base, end):
        a = table.arm[k]
        run.w[a] /= price[a]
        total += run.w[a]
    wanted = table.arm[base]
    least = math.inf
    for k in range(base, end):
        a = table.arm[k]
        run.w[a] /= total
        lag = run.n[a] - run.target[a] - run.w[a]
        if lag < least:
            least = lag
            wanted = a
    if not keeps(setting, run, memory, wanted):
        # A whole pull leaves who is behind whom as it was.
        for k in range(base, end):
            run.w[table.arm[k]] = 0.0
        run.w[fill(setting, run, memory)] = 1.0
