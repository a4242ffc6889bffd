"""When to stop by `tilt`: which policies the evidence leaves, and whether that is one.

Evidence against an edge counts for good once it was there, however the data go on: the proof
(docs/theory/stopping.md) is about the most that it ever gets to. So what was found is kept, and
an edge is asked again only when its statistic, less the difference that there was between the
two, comes close to what is needed. Skipping looks is always allowed.
"""

from __future__ import annotations

import math

from .gaussian import variance
from .information import statistic as statistic_of
from .kernel import inlined, kernel, long
from .records import (
    EDGES,
    GO_ON,
    LOOK,
    MISSING_EDGE,
    PAIRS,
    POLICIES,
    PULLS,
    SEARCH,
    STOPPED,
    UNKNOWN_REGRET,
    UNKNOWN_VERTEX,
    VERTEX,
    Memory,
    Run,
    Setting,
    Table,
)
from .tilt import tilt_evidence

# Rows of Memory.looks, for an edge as it is and, LOOKS later, for its reverse: pulls at the last
# look, the most evidence there ever was, the statistic less the evidence at the last look.
ASKED, BEST, PRICE, LOOKS = range(4)

# Close enough to look, in nats.
CLOSE = 0.02

# The statistic less the evidence was never seen below this, or half of the statistic: of 4,000
# random states each with statistics of 1.2, 3 and 10, the least were 0.87, 1.64 and 2.41. It says
# when to look, not what is found.
LEAST_PRICE = 1.5

# A search that failed waits for this share of more pulls; so do looks at bounded rewards, whose
# evidence may grow faster than the statistic says, and where sigma is unknown: looks are dear.
PATIENCE = 200

# A search that meets more policies is given up: the evidence is not there yet.
MOST_POLICIES = 300


@kernel
def put_aside(table: Table, memory: Memory, edge: int, sign: float) -> None:
    """Copy an edge, or its reverse, into memory.edge."""
    aside = memory.edge
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    for i in range(size):
        aside.arm[i] = table.arm[begin + i]
        aside.v[i] = sign * table.v[begin + i]
    aside.first_entry[1] = size
    aside.offset[0] = sign * table.offset[edge]


@inlined
def put_row_aside(table: Table, memory: Memory, edge: int, row: int) -> None:
    """Copy what a row of Memory.looks is about into memory.edge."""
    sign = 1.0 if row == 0 else -1.0
    put_aside(table, memory, edge, sign)


@kernel
def put_pair(memory: Memory, winner: int, loser: int) -> None:
    """Make memory.edge the question whether one arm is better than another."""
    aside = memory.edge
    aside.arm[0], aside.arm[1] = winner, loser
    aside.v[0], aside.v[1] = 1.0, -1.0
    aside.first_entry[1] = 2
    aside.offset[0] = 0.0


@kernel
def statistic_aside(setting: Setting, run: Run, memory: Memory) -> float:
    """The statistic of memory.edge."""
    run.root[memory.edge.first_root] = 0.0
    return statistic_of(setting, memory.edge, run, 0)


@inlined
def is_due(setting: Setting, run: Run, memory: Memory, row: int, edge: int) -> bool:
    """Whether it is time for another look at an edge, where looks wait for more pulls."""
    if not (setting.betting or setting.learning):
        return True
    return run.integers[PULLS] >= memory.looks[row + ASKED, edge] * (1.0 + 1.0 / PATIENCE)


@inlined
def is_promising(
    setting: Setting, run: Run, memory: Memory, row: int, edge: int, statistic: float, level: float
) -> bool:
    """Whether a look at an edge that is due may find enough."""
    if setting.betting:
        return True
    price = max(memory.looks[row + PRICE, edge], min(0.5 * statistic, LEAST_PRICE))
    return statistic - price >= level - CLOSE


@kernel
def look_at(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    row: int,
    level: float,
    least: float,
    statistic: float,
) -> float:
    """The evidence against an edge, or its reverse, by the data of now; what is found is kept.

    Arguments are those of `is_ruled_out`.
    """
    # Asked of a copy in any case: code for one more table would be compiled for nothing.
    put_row_aside(table, memory, edge, row)
    if statistic < 0.0:
        statistic = statistic_aside(setting, run, memory)
    run.root[memory.edge.first_root] = 0.0
    enough = max(level, setting.log_union)
    value = tilt_evidence(setting, memory.edge, run, memory, 0, statistic, least, enough)
    looks = memory.looks
    looks[row + ASKED, edge] = float(run.integers[PULLS])
    looks[row + PRICE, edge] = statistic - max(value, 0.0)
    if value >= least:
        looks[row + BEST, edge] = max(looks[row + BEST, edge], value)
    return value


@long
def is_ruled_out(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    row: int,
    level: float,
    least: float,
    statistic: float,
) -> bool:
    """Whether an edge, or its reverse, has ever had so much evidence against it.

    `row` is 0 for the edge and LOOKS for its reverse; no level that is asked for is below `least`.
    A negative statistic is not known.
    """
    looks = memory.looks
    if looks[row + BEST, edge] >= level:
        return True
    pulls = float(run.integers[PULLS])
    if looks[row + ASKED, edge] == pulls or not is_due(setting, run, memory, row, edge):
        return False
    if statistic < 0.0:
        put_row_aside(table, memory, edge, row)
        statistic = statistic_aside(setting, run, memory)
    if not (statistic > 0.0 and is_promising(setting, run, memory, row, edge, statistic, level)):
        return False
    value = look_at(setting, table, run, memory, edge, row, level, least, statistic)
    return value >= level


@inlined
def level_of_policy(setting: Setting, table: Table, vertex: int, more: float) -> float:
    """Evidence that one edge of a policy must have for the policy not to be the best one."""
    count = table.first_edge[vertex + 1] - table.first_edge[vertex]
    return setting.log_policy + more + math.log(float(count))


@kernel
def was_beaten(setting: Setting, table: Table, memory: Memory, vertex: int, more: float) -> bool:
    """Whether some edge of a policy is known to be an improvement."""
    level = level_of_policy(setting, table, vertex, more)
    for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
        if memory.looks[LOOKS + BEST, edge] >= level:
            return True
    return False


@kernel
def is_reverse(table: Table, one: int, other: int) -> bool:
    """Whether two edges are the same line, as seen from both ends."""
    begin, end = table.first_entry[one], table.first_entry[one + 1]
    first, last = table.first_entry[other], table.first_entry[other + 1]
    if end - begin != last - first or table.offset[one] != 0.0 or table.offset[other] != 0.0:
        return False
    ratio = 0.0
    for k in range(begin, end):
        i = first
        while i < last and table.arm[i] != table.arm[k]:
            i += 1
        if i == last:
            return False
        if k == begin:
            ratio = table.v[k] / table.v[i]
        if ratio >= 0.0 or abs(table.v[k] - ratio * table.v[i]) > 1e-12 * abs(table.v[k]):
            return False
    return True


@kernel
def is_beaten(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    vertex: int,
    arrival: int,
    more: float,
    least: float,
) -> bool:
    """Whether some edge of a policy is an improvement, by the evidence of now.

    The one that leads back along the edge of the search's arrival is the same question: what was
    found there counts.
    """
    looks = memory.looks
    level = level_of_policy(setting, table, vertex, more)
    for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
        if is_reverse(table, edge, arrival):
            looks[LOOKS + BEST, edge] = max(looks[LOOKS + BEST, edge], looks[BEST, arrival])
            if looks[ASKED, arrival] == float(run.integers[PULLS]):
                looks[LOOKS + ASKED, edge] = looks[ASKED, arrival]
                looks[LOOKS + PRICE, edge] = looks[PRICE, arrival]
        if is_ruled_out(setting, table, run, memory, edge, LOOKS, level, least, -1.0):
            return True
    return False


@long
def every_policy(
    setting: Setting, table: Table, run: Run, memory: Memory, more: float, least: float
) -> int:
    """Search outwards from the recommended vertex; stop if every vertex met is beaten.

    Edges that are ruled out for good are not crossed. All levels are so much more.
    """
    high = setting.log_union + more
    met, queue = memory.queue[0], memory.queue[1]
    start = run.integers[VERTEX]
    met[start] = 1
    queue[0] = start
    head, tail = 0, 1
    status = STOPPED
    while head < tail and status == STOPPED:
        vertex = queue[head]
        head += 1
        for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
            if memory.looks[BEST, edge] >= high:
                continue
            following = table.following[edge]
            if following >= 0 and met[following] == 1:
                continue
            if is_ruled_out(setting, table, run, memory, edge, 0, high, least, -1.0):
                continue
            if following < 0:
                run.integers[MISSING_EDGE] = edge
                status = UNKNOWN_VERTEX
                break
            if not (
                was_beaten(setting, table, memory, following, more)
                or is_beaten(setting, table, run, memory, following, edge, more, least)
            ):
                status = GO_ON
                break
            if tail == MOST_POLICIES:
                status = GO_ON
                break
            met[following] = 1
            queue[tail] = following
            tail += 1
    for i in range(tail):
        met[queue[i]] = 0
    return status


@inlined
def arms_of_pair(table: Table, edge: int) -> tuple[int, int]:
    """The arm that an edge takes its share from, and the one that gets it."""
    k = table.first_entry[edge]
    if table.v[k] > 0.0:
        return table.arm[k], table.arm[k + 1]
    return table.arm[k + 1], table.arm[k]


@kernel
def least_of_pairs(
    setting: Setting, table: Table, run: Run, memory: Memory, level: float, enough: float
) -> float:
    """Where only single arms are limited: the least evidence that an arm beats another one.

    Of arms with more than their least share and arms with less than their most. Edges are such
    pairs; where one arm is in between, all edges have that arm, and the other pairs are asked
    here. It ends early below the level, and looks for no more than what is enough.
    """
    vertex = run.integers[VERTEX]
    first, last = table.first_edge[vertex], table.first_edge[vertex + 1]
    giver, taker = arms_of_pair(table, first)
    between = -1
    for edge in range(first, last):
        gives, takes = arms_of_pair(table, edge)
        if gives == taker or takes == giver:
            between = taker if gives == taker else giver
    least = enough
    if between < 0:
        return least
    for upper in range(first, last):
        winner, takes = arms_of_pair(table, upper)
        if takes != between:
            continue
        for lower in range(first, last):
            gives, loser = arms_of_pair(table, lower)
            if gives != between:
                continue
            put_pair(memory, winner, loser)
            statistic = statistic_aside(setting, run, memory)
            if statistic < level and not (setting.betting or setting.learning):
                return statistic
            aside = memory.edge
            value = tilt_evidence(setting, aside, run, memory, 0, statistic, level, least)
            least = min(least, value)
            if least < level:
                return least
    return least


@kernel
def tilt(setting: Setting, table: Table, run: Run, memory: Memory, weakest: int) -> int:
    """Stop when no other policy can be the best one. Proven in docs/theory/stopping.md."""
    vertex = run.integers[VERTEX]
    first = table.first_edge[vertex]
    sure = setting.log_policy
    for i in range(-1, table.first_edge[vertex + 1] - first):
        e = weakest if i < 0 else i
        if memory.looks[BEST, first + e] >= sure:  # as most are after a while; calls are slow
            continue
        if not is_ruled_out(setting, table, run, memory, first + e, 0, sure, sure, run.value[e]):
            return GO_ON
    if setting.rule == EDGES:
        return STOPPED
    pulls = run.integers[PULLS]
    if pulls < run.integers[SEARCH]:
        return GO_ON
    if setting.rule == PAIRS:
        level = setting.log_union
        found = least_of_pairs(setting, table, run, memory, level, level)
        status = STOPPED if found >= level else GO_ON
    else:
        status = every_policy(setting, table, run, memory, 0.0, sure)
    if status == GO_ON:
        run.integers[SEARCH] = pulls + 1 + pulls // PATIENCE
    return status


@kernel
def within_regret(setting: Setting, table: Table, run: Run, memory: Memory, weakest: int) -> int:
    """Stop when no policy earns much more than the recommended one, or no other can be the best.

    The first is a linear program, and so for Python to say: LOOK is when to ask again, or -1 if it
    is so.
    """
    if run.integers[LOOK] < 0:
        return STOPPED
    if run.integers[PULLS] >= run.integers[LOOK]:
        return UNKNOWN_REGRET
    return tilt(setting, table, run, memory, weakest)


@kernel
def surplus(setting: Setting, table: Table, run: Run, memory: Memory, least: float) -> float:
    """By how much all levels could be higher and `tilt` would still stop; negative if it would not.

    No less than -log(1 / delta), at which delta would be 1: nothing is known. `least` is the
    lowest level that matters. Policies that are not in the table yet count as not beaten.
    """
    vertex = run.integers[VERTEX]
    low = least - setting.log_policy
    high = math.inf
    for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
        look_at(setting, table, run, memory, edge, 0, math.inf, least, -1.0)
        high = min(high, memory.looks[BEST, edge] - setting.log_policy)
    if setting.rule == PAIRS and high > low:
        level = setting.log_union
        found = least_of_pairs(setting, table, run, memory, least, high + level)
        # A proof of more may be content with less than the rule proves: does it stop as it is?
        if found < level <= high + level:
            as_it_is = least_of_pairs(setting, table, run, memory, level, level)
            found = level if as_it_is >= level else found
        high = min(high, found - level)
    if setting.rule != POLICIES or high <= low:
        return max(high, low)
    high = min(high, 1e3)
    if every_policy(setting, table, run, memory, high, least) == STOPPED:
        return high
    middle = 0.0  # first of all whether it stops as things are
    while high - low > 1e-3:
        if not low < middle < high:
            middle = 0.5 * (low + high)
        if every_policy(setting, table, run, memory, middle, least) == STOPPED:
            low = middle
        else:
            high = middle
        middle = 0.5 * (low + high)
    return low


@kernel
def gain_bound(
    setting: Setting, table: Table, run: Run, memory: Memory, edge: int, level: float
) -> float:
    """No less than what an edge can gain per unit, in unit coordinates: the evidence of a level.

    That v . mean + x <= 0 is ruled out means that the edge gains less than x.
    """
    aside = memory.edge
    put_aside(table, memory, edge, 1.0)
    gap = 0.0
    spread = 0.0
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        a = table.arm[k]
        gap += table.v[k] * run.clipped[a]
        spread += variance(setting, run, a) * table.v[k] * table.v[k] / run.n[a]
    low = 0.0
    high = math.inf
    reach = math.sqrt(2.0 * level * spread)
    while high == math.inf or high - low > 1e-3 * high:
        aside.offset[0] = reach - gap
        statistic = statistic_aside(setting, run, memory)
        value = tilt_evidence(setting, aside, run, memory, 0, statistic, level, level)
        if value >= level:
            high = reach
        else:
            low = reach
        if low > 1e9 * (1.0 + abs(gap)):
            return math.inf
        reach = 2.0 * low if high == math.inf else 0.5 * (low + high)
    return high - gap
