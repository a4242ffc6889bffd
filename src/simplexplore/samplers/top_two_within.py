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

from simplexplore.kernels.kernel import kernel
from simplexplore.kernels.limits import fallback_arm, is_allowed, wait_for_slack
from simplexplore.kernels.maximin import maximin, target_gap
from simplexplore.kernels.records import PULLS, VERTEX, EdgeTable, RunConfig, RunState, Scratch

from .top_two import ON_A_BUDGET, PRICE, affords, challenger_of, forced_pulls_due, share

# Vectors over arms: their prices, and how many turns each of them had.
PRICES, TAKEN = 0, 1
# Of these only the first entry counts: the vertex of the last solution, plus one; when the next one
# is due; until when a new vertex waits for its solution; how many turns there were; the arm that is
# saved for, plus one.
SOLVED, DUE, WAITS, FORCED, SAVED_FOR = range(2, 7)
ARM_STATE = 7
EDGE_STATE = 1  # weights of the last solution
TRACKING = "focused"

# Growth of samples after which prices are computed again: 0, 1, 2 and 5% stop equally soon.
GROWTH = 0.02

# With many arms the best policy changes every few samples at first. It waits for its solution
# until samples have grown by a part of the arms beyond MANY.
MANY = 50
WAIT_PER_ARM = 0.1

# Turns as in top_two.py. Limits leave some arms next to no samples, and what is proven asks more
# of them: half as many turns took 18% more samples on the films with `tilt`, twice as many as few.
FORCING_RATE = 1.0

# One pull in so many asks more of who was hardly tried. Two policies that tie could else keep each
# other busy for ever so long while an unlucky third one is underrated: the time that takes grows
# with the exponential of its evidence over the price.
RARITY_PERIOD = 8
RARITY_PRICE = 2.0

# Prices below this part of the largest count as much: an arm that only saves for others has
# none, and limits, not its share, say how often it is played.
MIN_PRICE = 1e-3


@kernel
def solve(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """The exact allocation into run.fallback_allocation, and the arms' prices."""
    state, price = run.arm_state, run.arm_state[PRICES]
    pulls = float(run.integers[PULLS])
    vertex = run.integers[VERTEX]
    gap = maximin(
        config, table, run, scratch, vertex, True, target_gap(pulls), run.fallback_allocation
    )
    state[SOLVED, 0] = vertex + 1.0
    state[DUE, 0] = pulls + max(2.0, GROWTH * pulls)
    state[WAITS, 0] = pulls + WAIT_PER_ARM * max(0, config.size - MANY)
    dearest = 0.0
    for a in range(config.size):
        price[a] = scratch.arms[0, a]  # information for what is spent, at the solution
        dearest = max(dearest, price[a])
    for a in range(config.size):
        # Where there is no solution, all arms cost the same.
        price[a] = max(price[a], MIN_PRICE * dearest) if gap < math.inf else 1.0


@kernel
def force_pull(config: RunConfig, run: RunState, scratch: Scratch, pulls: float) -> None:
    """A forced pull: of the arm with the fewest turns for its share, or of one that saves for it.

    Limits allow `inside`, so that so many turns pay for a pull of an arm as it takes them to owe
    it one. It is given up when these are used up, which only limits that interlock can bring
    about, and is still owed.
    """
    state, taken = run.arm_state, run.arm_state[TAKEN]
    wanted = int(state[SAVED_FOR, 0]) - 1
    if wanted < 0:
        least = math.inf
        for k in range(config.useful_arms.size):
            a = config.useful_arms[k]
            quotient = (taken[a] + 0.5) / config.interior_allocation[a]
            if quotient < least:
                least = quotient
                wanted = a
    arm = wanted
    if not is_allowed(config, run, scratch, wanted):
        arm = wait_for_slack(config, run, scratch, wanted)
    taken[arm] += 1.0
    state[FORCED, 0] += 1.0
    ahead = state[FORCED, 0] - forced_pulls_due(config.size, pulls, FORCING_RATE)
    is_saving = arm != wanted and ahead * config.interior_allocation[wanted] < 1.0
    state[SAVED_FOR, 0] = wanted + 1.0 if is_saving else 0.0
    for a in range(config.size):
        run.w[a] = 0.0
    run.w[arm] = 1.0  # a whole pull leaves who is behind whom as it was


@kernel
def allocate(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> None:
    """Share the next sample among the challenger's arms by what each would tell for its price."""
    pulls = float(run.integers[PULLS])
    vertex = run.integers[VERTEX]
    state, price = run.arm_state, run.arm_state[PRICES]
    if state[SOLVED, 0] == 0.0:
        # What the first round owed is of no interest any more.
        for a in range(config.size):
            run.target[a] = run.n[a]
        state[FORCED, 0] = forced_pulls_due(config.size, pulls - 1.0, FORCING_RATE)
    moved = state[SOLVED, 0] != vertex + 1.0 and pulls >= state[WAITS, 0]
    if moved or pulls >= state[DUE, 0]:
        solve(config, table, run, scratch)
    due = forced_pulls_due(config.size, pulls, FORCING_RATE)
    if state[SAVED_FOR, 0] > 0.0 or due > state[FORCED, 0]:
        force_pull(config, run, scratch, pulls)
        return
    for a in range(config.size):
        run.w[a] = 0.0
    first = table.first_edge[vertex]
    price_of_rarity = ON_A_BUDGET if affords(config) else PRICE
    if run.integers[PULLS] % RARITY_PERIOD == RARITY_PERIOD - 1:
        price_of_rarity = RARITY_PRICE
    challenger = challenger_of(config, table, run, price_of_rarity)
    base, end = table.first_entry[challenger], table.first_entry[challenger + 1]
    share(config, table, run, first, challenger)
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
    if not is_allowed(config, run, scratch, wanted):
        # A whole pull leaves who is behind whom as it was.
        for k in range(base, end):
            run.w[table.arm[k]] = 0.0
        run.w[fallback_arm(config, run, scratch)] = 1.0
