"""When to stop by `tilt`: which policies the evidence leaves, and whether that is one.

All evidence is that of the moment: what was found earlier says only when a look may be worth its
time. Skipping looks is always allowed. Proofs: docs/theory/stopping.md.
"""

from __future__ import annotations

import math

from . import records
from .edges import gap_and_spread
from .information import statistic as statistic_of
from .kernel import inlined, kernel
from .records import EdgeTable, RunConfig, RunState, Scratch
from .tilt import tilt_evidence

# Close enough to look, in nats.
CLOSE = 0.02

# The statistic less the evidence was never seen below this, or half of the statistic: of 4,000
# random states each with statistics of 1.2, 3 and 10, the least were 0.87, 1.64 and 2.41. It says
# when to look, not what is found.
MIN_PRICE = 1.5

# A search that failed waits for one part in so many of more pulls; so do looks at bounded rewards,
# whose evidence may grow faster than the statistic says, and where sigma is unknown: looks cost.
RETRY_PART = 200

# A search that meets more policies is given up: the evidence is not there yet.
MAX_POLICIES = 300


@kernel
def put_aside(table: EdgeTable, scratch: Scratch, edge: int, sign: float) -> None:
    """Copy an edge, or its reverse, into scratch.edge."""
    aside = scratch.edge
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    for i in range(size):
        aside.arm[i] = table.arm[begin + i]
        aside.v[i] = sign * table.v[begin + i]
    aside.first_entry[1] = size
    aside.offset[0] = sign * table.offset[edge]


@kernel
def evidence_of_edge(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, edge: int
) -> float:
    """The evidence against an edge of any table."""
    put_aside(table, scratch, edge, 1.0)
    statistic = statistic_aside(config, run, scratch)
    run.root[scratch.edge.first_root] = 0.0
    return max(tilt_evidence(config, run, scratch, statistic, -math.inf, math.inf), 0.0)


@kernel
def put_pair(scratch: Scratch, winner: int, loser: int) -> None:
    """Make scratch.edge the question whether one arm is better than another."""
    aside = scratch.edge
    aside.arm[0], aside.arm[1] = winner, loser
    aside.v[0], aside.v[1] = 1.0, -1.0
    aside.first_entry[1] = 2
    aside.offset[0] = 0.0


@kernel
def statistic_aside(config: RunConfig, run: RunState, scratch: Scratch) -> float:
    """The statistic of scratch.edge."""
    run.root[scratch.edge.first_root] = 0.0
    return statistic_of(config, scratch.edge, run, 0)


@inlined
def is_promising(
    config: RunConfig, run: RunState, row: int, edge: int, statistic: float, level: float
) -> bool:
    """Whether a look at an edge (row 0) or its reverse (row 1) may find so much evidence.

    What the statistic had more than the evidence at the last look is in run.looks.
    """
    if config.tracks_wealth:
        return statistic > 0.0
    price = max(run.looks[row, edge], min(0.5 * statistic, MIN_PRICE))
    return statistic > 0.0 and statistic - price >= level - CLOSE


@kernel
def look_at(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    edge: int,
    row: int,
    level: float,
    least: float,
    enough: float,
) -> float:
    """The evidence against an edge (row 0) or its reverse (row 1).

    Where it is not promising for the level, -inf. Less than `least` need not be exact.
    """
    first = table.first_edge[run.integers[records.VERTEX]]
    last = table.first_edge[run.integers[records.VERTEX] + 1]
    put_aside(table, scratch, edge, 1.0 if row == 0 else -1.0)
    if row == 0 and edge >= first and edge < last:
        statistic = run.value[edge - first]
    else:
        statistic = statistic_aside(config, run, scratch)
    if not is_promising(config, run, row, edge, statistic, level):
        return -math.inf
    run.root[scratch.edge.first_root] = 0.0
    value = tilt_evidence(config, run, scratch, statistic, least, enough)
    run.looks[row, edge] = statistic - max(value, 0.0)
    return value


@inlined
def level_of_policy(config: RunConfig, table: EdgeTable, vertex: int) -> float:
    """Evidence that one edge of a policy must have for the policy not to be the best one."""
    count = table.first_edge[vertex + 1] - table.first_edge[vertex]
    return config.log_policy + math.log(float(count))


@inlined
def arms_of_pair(table: EdgeTable, edge: int) -> tuple[int, int]:
    """The arm that an edge takes its share from, and the one that gets it."""
    k = table.first_entry[edge]
    if table.v[k] > 0.0:
        return table.arm[k], table.arm[k + 1]
    return table.arm[k + 1], table.arm[k]


@kernel
def least_of_pairs(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    level: float,
    enough: float,
) -> float:
    """Where only single arms are limited: the least evidence that an arm beats another one.

    Of arms with more than their least share and arms with less than their most. Edges are such
    pairs; where one arm is in between, all edges have that arm, and the other pairs are asked
    here. It ends early below the level, and looks for no more than what is enough.
    """
    vertex = run.integers[records.VERTEX]
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
            put_pair(scratch, winner, loser)
            statistic = statistic_aside(config, run, scratch)
            if statistic < level and not (config.tracks_wealth or config.learns_variance):
                return statistic
            value = tilt_evidence(config, run, scratch, statistic, level, least)
            least = min(least, value)
            if least < level:
                return least
    return least


@kernel
def margin_of_policy(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    vertex: int,
    found: float,
    least: float,
    most: float,
) -> float:
    """By how much the evidence that some edge of a policy is an improvement exceeds its level.

    So much was found already; no more than `most` is looked for, and below `least` it need not be
    exact.
    """
    level = level_of_policy(config, table, vertex)
    edge = table.first_edge[vertex]
    while found < most and edge < table.first_edge[vertex + 1]:
        low = level + max(least, found)
        value = look_at(config, table, run, scratch, edge, 1, low, low, level + most)
        found = max(found, value - level)
        edge += 1
    return found


@kernel
def meet(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    edge: int,
    value: float,
    here: float,
    tail: int,
    least: float,
    margin: float,
) -> tuple[float, int]:
    """`margin` with the policy that an edge leads to; and how many policies were met by now.

    So much is the evidence against the edge, and the search gets to it from the level `here` on.
    """
    there = value - config.log_union
    there = max(here, there) if there >= least else here
    if there >= margin:
        return margin, tail
    vertex = table.following[edge]
    if vertex < 0:
        run.integers[records.MISSING_EDGE] = edge
        return there, tail
    met, queue, reach, beaten = (
        scratch.queue[0],
        scratch.queue[1],
        scratch.reach[0],
        scratch.reach[1],
    )
    found = value - level_of_policy(config, table, vertex)
    if met[vertex] == 0:
        met[vertex], queue[tail], reach[vertex] = 1, vertex, there
        tail += 1
        beaten[vertex] = margin_of_policy(config, table, run, scratch, vertex, found, least, margin)
    reach[vertex] = min(reach[vertex], there)
    beaten[vertex] = max(beaten[vertex], found)
    return min(margin, max(reach[vertex], beaten[vertex])), tail


@kernel
def margin_of_rule(
    config: RunConfig,
    table: EdgeTable,
    run: RunState,
    scratch: Scratch,
    weakest: int,
    least: float,
    most: float,
) -> float:
    """By how much all levels could be higher and `tilt` would still stop.

    No more than `most` is looked for, and below `least` it ends early. Edges of the policy must
    have log_policy. Other policies are met by a search outwards, nearest first, each at the least
    level for which no edge of some way there is ruled out; those that are met must be beaten.
    Where a policy is not in the table yet, MISSING_EDGE says so; it counts as not beaten.
    """
    met, queue, reach = scratch.queue[0], scratch.queue[1], scratch.reach[0]
    start = run.integers[records.VERTEX]
    met[start], queue[0], reach[start] = 1, start, -math.inf
    tail = 1
    margin = most
    low, enough = config.log_policy + least, config.log_union + most
    first = table.first_edge[start]
    for i in range(-1, table.first_edge[start + 1] - first):
        if i == weakest:
            continue
        e = weakest if i < 0 else i
        value = look_at(config, table, run, scratch, first + e, 0, low, low, enough)
        margin = min(margin, value - config.log_policy)
        if margin >= least and config.rule == records.POLICIES:
            margin, tail = meet(
                config, table, run, scratch, first + e, value, -math.inf, tail, least, margin
            )
        if margin < least:
            break
    if config.rule == records.PAIRS and margin >= least:
        level = config.log_union
        found = least_of_pairs(config, table, run, scratch, level + least, level + margin)
        margin = min(margin, found - level)
    done = 1
    while done < tail and margin >= least:
        nearest = done
        for i in range(done, tail):
            if reach[queue[i]] < reach[queue[nearest]]:
                nearest = i
        vertex, queue[nearest] = queue[nearest], queue[done]
        queue[done] = vertex
        done += 1
        here = reach[vertex]
        if here >= margin:
            break
        if tail > MAX_POLICIES:
            margin = min(margin, here)
            break
        high = config.log_union + max(least, here)
        for edge in range(table.first_edge[vertex], table.first_edge[vertex + 1]):
            following = table.following[edge]
            if following >= 0 and met[following] == 1 and reach[following] <= here:
                continue
            enough = config.log_union + margin
            value = look_at(config, table, run, scratch, edge, 0, high, low, enough)
            margin, tail = meet(config, table, run, scratch, edge, value, here, tail, least, margin)
            if margin < least:
                break
    for i in range(tail):
        met[queue[i]] = 0
    return margin


@kernel
def tilt(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, weakest: int) -> int:
    """Stop when no other policy can be the best one. Proven in docs/theory/stopping.md."""
    pulls = run.integers[records.PULLS]
    if pulls < run.integers[records.SEARCH]:
        return records.GO_ON
    first = table.first_edge[run.integers[records.VERTEX]]
    for i in range(-1, table.first_edge[run.integers[records.VERTEX] + 1] - first):
        e = weakest if i < 0 else i
        if not is_promising(config, run, 0, first + e, run.value[e], config.log_policy):
            return records.GO_ON
    run.integers[records.MISSING_EDGE] = -1
    if margin_of_rule(config, table, run, scratch, weakest, 0.0, 0.0) >= 0.0:
        return records.STOPPED
    if run.integers[records.MISSING_EDGE] >= 0:
        return records.UNKNOWN_VERTEX
    run.integers[records.SEARCH] = pulls + 1 + pulls // RETRY_PART
    return records.GO_ON


@kernel
def within_regret(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, weakest: int
) -> int:
    """Stop when no policy earns much more than the recommended one, or no other can be the best.

    The first is a linear program, and so for Python to say: NEXT_CHECK is when to ask again, or -1
    if it is so.
    """
    if run.integers[records.NEXT_CHECK] < 0:
        return records.STOPPED
    if run.integers[records.PULLS] >= run.integers[records.NEXT_CHECK]:
        return records.UNKNOWN_REGRET
    return tilt(config, table, run, scratch, weakest)


@kernel
def confidence_margin(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, least: float
) -> float:
    """By how much all levels could be higher and `tilt` would still stop; negative if it would not.

    No less than `least`. run.looks must be forgotten before: then all evidence there is counts.
    """
    margin = margin_of_rule(config, table, run, scratch, -1, least, math.inf)
    # A proof of more may be content with less than the rule proves: does it stop as it is?
    if margin < 0.0 and margin_of_rule(config, table, run, scratch, -1, 0.0, 0.0) >= 0.0:
        return 0.0
    return max(margin, least)


@kernel
def gain_bound(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, edge: int, level: float
) -> float:
    """No less than what an edge can gain per unit, in unit coordinates: the evidence of a level.

    That v . mean + x <= 0 is ruled out means that the edge gains less than x.
    """
    aside = scratch.edge
    put_aside(table, scratch, edge, 1.0)
    aside.offset[0] = 0.0
    gap, spread = gap_and_spread(config, aside, run, 0, run.n)
    low = 0.0
    high = math.inf
    reach = math.sqrt(2.0 * level * spread)
    while high == math.inf or high - low > 1e-3 * high:
        aside.offset[0] = reach - gap
        statistic = statistic_aside(config, run, scratch)
        value = tilt_evidence(config, run, scratch, statistic, level, level)
        if value >= level:
            high = reach
        else:
            low = reach
        if low > 1e9 * (1.0 + abs(gap)):
            return math.inf
        reach = 2.0 * low if high == math.inf else 0.5 * (low + high)
    return high - gap
