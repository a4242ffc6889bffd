"""Which answer to work for where limits are measured, and which samples tell most.

Answers are best policies for the empirical means with limits moved inwards: between the
competitors that would earn epsilon more and those limits that must not be exceeded.
"""

from __future__ import annotations

import math

import numpy as np

from . import records
from .kernel import inlined, kernel
from .measured_search import (
    DISTANCE,
    EVIDENCE,
    EVIDENCE_OF_ROWS,
    ROWS_ALONE,
    SCALE,
    SCALES,
    distance,
    gap_and_spread,
    mixed,
    search,
    set_prices,
    shift_and_sharpness,
    take,
    term,
)
from .records import (
    EdgeTable,
    MeasuredLimits,
    MeasuredScratch,
    RunConfig,
    RunState,
    Scratch,
    Vector,
)
from .unknown_variance import least_evidence

# Between looks at the answer, pulls grow by one part in so many.
LOOKS = 100

# Parts of the way from the loosest limits to those that cost about epsilon.
MARGINS = np.array([0.5, 0.46, 0.42, 0.54, 0.38, 0.58, 0.34, 0.62, 0.3, 0.66, 0.7, 0.2, 0.1])

# Prices of rows are found by tightening them by this part of the range of their means, and kept
# within these multiples of range of rewards over range of measurements.
TIGHTENED = 0.05
CHEAPEST, DEAREST = 0.05, 10.0


@kernel
def set_values(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> None:
    """Reward and rows of each vertex by the empirical means."""
    for v in range(measured.vertices.shape[0]):
        for row in range(1 + measured.rows):
            work.values[row, v] = 0.0
        for a in range(measured.size):
            x = measured.vertices[v, a]
            if x > 0.0:
                work.values[0, v] += run.mean[0, a] * x
                for i in range(measured.rows):
                    work.values[1 + i, v] += run.mean[1 + i, a] * x


@kernel
def is_allowed(measured: MeasuredLimits, work: MeasuredScratch, cell: int, but: int) -> bool:
    """Whether the point in row 0 of the stack keeps all limits but one that it is on."""
    for i in range(measured.rows):
        if i == but:
            continue
        total = 0.0
        for k in range(measured.corners):
            total += float(work.stack[0, k]) * float(work.values[1 + i, measured.cells[cell, k]])
        if not total <= work.bounds[0, i]:
            return False
    return True


@kernel
def offer(
    measured: MeasuredLimits, work: MeasuredScratch, policy: Vector, cell: int, best: float
) -> float:
    """Take the point in row 0 of the stack if it earns more; returns what is earned."""
    earned = 0.0
    for k in range(measured.corners):
        earned += float(work.stack[0, k]) * float(work.values[0, measured.cells[cell, k]])
    if not earned > best:
        return best
    for a in range(measured.size):
        x = 0.0
        if measured.used[cell, a] > 0.0:
            for k in range(measured.corners):
                x += work.stack[0, k] * measured.vertices[measured.cells[cell, k], a]
        policy[a] = x
    inside = 1.0
    for k in range(measured.corners):
        if not work.stack[0, k] > 0.0:
            inside = 0.0
    work.stack[1, 0] = inside
    return earned


@kernel
def best_policy(measured: MeasuredLimits, work: MeasuredScratch, policy: Vector) -> float:
    """The best policy within work.bounds[0]; -inf if there is none.

    A best one lies where as many rows are met as its face has dimensions. Row 1 of the stack then
    says whether it is on no smaller face.
    """
    best = -math.inf
    corners = measured.corners
    point = work.stack
    for cell in range(measured.cells.shape[0]):
        for k in range(corners):
            for q in range(corners):
                point[0, q] = 1.0 if q == k else 0.0
            if is_allowed(measured, work, cell, -1):
                best = offer(measured, work, policy, cell, best)
        for i in range(measured.rows):
            limit = work.bounds[0, i]
            for k in range(corners):
                for q in range(corners):
                    above = work.values[1 + i, measured.cells[cell, k]]
                    below = work.values[1 + i, measured.cells[cell, q]]
                    if above > limit and below < limit:
                        for r in range(corners):
                            point[0, r] = 0.0
                        part = (limit - below) / (above - below)
                        point[0, k] = part
                        point[0, q] = 1.0 - part
                        if is_allowed(measured, work, cell, i):
                            best = offer(measured, work, policy, cell, best)
        if corners == 3 and measured.rows == 2 and meet(measured, work, cell):
            best = offer(measured, work, policy, cell, best)
    return best


@kernel
def meet(measured: MeasuredLimits, work: MeasuredScratch, cell: int) -> bool:
    """Put the point of a triangle where two rows meet their limits into row 0 of the stack."""
    first, second, third = measured.cells[cell, 0], measured.cells[cell, 1], measured.cells[cell, 2]
    a = work.values[1, second] - work.values[1, first]
    b = work.values[1, third] - work.values[1, first]
    c = work.values[2, second] - work.values[2, first]
    d = work.values[2, third] - work.values[2, first]
    e = work.bounds[0, 0] - work.values[1, first]
    f = work.bounds[0, 1] - work.values[2, first]
    determinant = a * d - b * c
    if determinant == 0.0:
        return False
    s = (e * d - b * f) / determinant
    t = (a * f - e * c) / determinant
    work.stack[0, 0] = 1.0 - s - t
    work.stack[0, 1] = s
    work.stack[0, 2] = t
    return s > 0.0 and t > 0.0 and 1.0 - s - t > 0.0


@kernel
def set_row_prices(measured: MeasuredLimits, work: MeasuredScratch) -> float:
    """What each row's limit is worth, into work.bounds[1]; returns what the best policy earns."""
    for i in range(measured.rows):
        work.bounds[0, i] = measured.limit[i]
    best = best_policy(measured, work, work.policy)
    low, high = math.inf, -math.inf
    for v in range(measured.vertices.shape[0]):
        low, high = min(low, work.values[0, v]), max(high, work.values[0, v])
    for i in range(measured.rows):
        least, most = math.inf, -math.inf
        for v in range(measured.vertices.shape[0]):
            least = min(least, work.values[1 + i, v])
            most = max(most, work.values[1 + i, v])
        usual = (high - low) / (most - least) if most > least else 0.0
        price = DEAREST * usual
        if best > -math.inf and most > least:
            tightened = TIGHTENED * (most - least)
            work.bounds[0, i] = measured.limit[i] - tightened
            price = (best - best_policy(measured, work, work.policy)) / tightened
            work.bounds[0, i] = measured.limit[i]
        price = min(max(price, CHEAPEST * usual), DEAREST * usual)
        # How far the limit moves inwards for epsilon, and no farther than any policy keeps it.
        inwards = measured.epsilon / price if price > 0.0 else math.inf
        work.bounds[1, i] = min(inwards, max(measured.limit[i] - least, 0.0))
    return best


@inlined
def row_gap(
    measured: MeasuredLimits, run: RunState, n: Vector, policy: Vector, i: int
) -> tuple[float, float]:
    """How far a policy stays below a row's limit with its tolerance, and the variance of that."""
    return gap_and_spread(run, n, 1 + i, policy, -1.0, measured.limit[i] + measured.tolerance[i])


@kernel
def row_distance(
    measured: MeasuredLimits, run: RunState, n: Vector, policy: Vector, i: int
) -> float:
    """How far away means are with which a policy exceeds a row's limit."""
    gap, spread = row_gap(measured, run, n, policy, i)
    return distance(gap, spread)


@kernel
def row_evidence(measured: MeasuredLimits, run: RunState, work: MeasuredScratch, i: int) -> float:
    """Log of the evidence that the answer keeps a row's limit with its tolerance."""
    set_prices(measured, run, work, run.n)
    gap, spread = row_gap(measured, run, run.n, run.answer, i)
    price = measured.log_inside if run.integers[records.INSIDE] else measured.log_outside
    if measured.unknown[1 + i]:
        count = 0
        for a in range(measured.size):
            if run.answer[a] > 0.0:
                count = take(work, count, 1 + i, a, run.answer[a])
        return least_evidence(work.hulls, count, gap) - price
    shift, sharp = shift_and_sharpness(run, work, run.n, 1 + i, run.answer)
    for j in range(SCALES):
        work.least[1 + i, j] = term(gap, shift, spread, sharp, SCALE[j])
        work.pays[1 + i, j] = 0.0
        for a in range(measured.size):
            if run.answer[a] > 0.0:
                work.pays[1 + i, j] += work.price[a, j]
    return mixed(measured, work, 1 + i) - price


@kernel
def aim(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> None:
    """Choose what to work for, with its hardest competitor.

    Of several answers the one that is farthest from all alternatives, by what is needed of each.
    """
    set_values(measured, run, work)
    feasible = set_row_prices(measured, work) > -math.inf
    best = 0.0
    need = measured.value_need
    run.integers[records.TARGET] = records.NONE
    last = run.integers[records.MARGIN_INDEX]
    for count in range(MARGINS.size):
        # The last one first: it is likely to be good, and others are soon seen to be worse.
        number = last if count == 0 else (count if count > last else count - 1)
        f = MARGINS[number]
        for i in range(measured.rows):
            tolerance = measured.tolerance[i]
            inwards = f * (tolerance + work.bounds[1, i])
            work.bounds[0, i] = measured.limit[i] + tolerance - inwards
        if best_policy(measured, work, work.policy) == -math.inf:
            continue
        inside = work.stack[1, 0]
        far = math.inf
        for i in range(measured.rows):
            d = row_distance(measured, run, run.n, work.policy, i)
            far = min(far, d / measured.row_need)
        if not far > best:
            continue
        for a in range(measured.size):
            work.found[a] = run.closest[a]
        given = search(
            measured, run, work, run.n, work.policy, DISTANCE, best * need, far * need, work.found
        )
        far = min(far, given / need)
        if far > best:
            best = far
            run.integers[records.TARGET] = records.ANSWER
            run.integers[records.INSIDE] = 1 if inside > 0.0 else 0
            run.integers[records.MARGIN_INDEX] = number
            for a in range(measured.size):
                run.answer[a] = work.policy[a]
                run.closest[a] = work.found[a]
    if not feasible:
        for a in range(measured.size):
            work.found[a] = run.closest[a]
        given = search(
            measured, run, work, run.n, run.answer, ROWS_ALONE, best * need, math.inf, work.found
        )
        if given > best * need:
            run.integers[records.TARGET] = records.INFEASIBLE
            for a in range(measured.size):
                run.closest[a] = work.found[a]


@kernel
def could_be_certain(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> bool:
    """Whether distances are at least the levels, without which hulls need not be made."""
    some = False
    for row in range(1 + measured.rows):
        some = some or measured.unknown[row] != 0
    if not some:
        return True
    if run.integers[records.TARGET] == records.ANSWER:
        for i in range(measured.rows):
            if row_distance(measured, run, run.n, run.answer, i) < measured.row_level:
                return False
    total = 0.0
    for channel in range(1 + measured.rows):
        total += comparison(measured, run, work, run.n, channel)[0]
    return total >= measured.value_level


@kernel
def is_certain(measured: MeasuredLimits, run: RunState, work: MeasuredScratch) -> bool:
    """Whether the evidence is enough for what the run works for."""
    if run.integers[records.TARGET] == records.NONE or not could_be_certain(measured, run, work):
        return False
    mode = EVIDENCE_OF_ROWS
    if run.integers[records.TARGET] == records.ANSWER:
        mode = EVIDENCE
        for i in range(measured.rows):
            if not row_evidence(measured, run, work, i) >= measured.row_level:
                return False
    level = measured.value_level
    found = search(measured, run, work, run.n, run.answer, mode, level, level, work.found)
    return found >= level


@kernel
def recommend(config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch) -> int:
    """Choose what to work for; it is looked at again after every hundredth part of all pulls."""
    pulls = run.integers[records.PULLS]
    run.integers[records.NEXT_CHECK] = pulls + max(1, pulls // LOOKS)
    aim(config.measured, run, scratch.measured)
    return records.GO_ON


@kernel
def enough(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch, weakest: int
) -> int:
    """Stop when what the run works for is certain."""
    return records.STOPPED if is_certain(config.measured, run, scratch.measured) else records.GO_ON


@kernel
def comparison(
    measured: MeasuredLimits, run: RunState, work: MeasuredScratch, n: Vector, channel: int
) -> tuple[float, float]:
    """How far the hardest competitor is by a channel, and the variance of that.

    What each mean counts for is in work.loss. Rewards say nothing where no policy is feasible.
    """
    gap = measured.epsilon if channel == 0 else -measured.limit[channel - 1]
    for a in range(measured.size):
        work.loss[a] = run.closest[a]
        if channel == 0:
            compared = run.integers[records.TARGET] == records.ANSWER
            work.loss[a] = run.answer[a] - run.closest[a] if compared else 0.0
    gap, spread = gap_and_spread(run, n, channel, work.loss, 1.0, gap)
    return (distance(gap, spread), spread) if spread > 0.0 else (0.0, 1.0)


@kernel
def share(
    measured: MeasuredLimits, run: RunState, work: MeasuredScratch, n: Vector, w: Vector
) -> None:
    """Share a sample by what each arm would tell of the closest alternative, for its cost."""
    for a in range(measured.size):
        w[a] = 0.0
    weakest = -1
    far = math.inf
    if run.integers[records.TARGET] == records.ANSWER:
        for i in range(measured.rows):
            d = row_distance(measured, run, n, run.answer, i) / measured.row_need
            if d < far:
                far = d
                weakest = i
    total = 0.0
    for channel in range(1 + measured.rows):
        d, spread = comparison(measured, run, work, n, channel)
        total += d
        for a in range(measured.size):
            z = work.loss[a]
            if z != 0.0:  # no policy uses some arms, which then have no samples
                w[a] += d * run.variance[channel, a] * z * z / n[a] / spread
    if not total / measured.value_need < far:
        for a in range(measured.size):
            x = run.answer[a] if weakest >= 0 else 0.0
            w[a] = run.variance[1 + weakest, a] * x * x / n[a] if x > 0.0 else 0.0
    whole = 0.0
    for a in range(measured.size):
        w[a] /= measured.costs[a]
        whole += w[a]
    if whole > 0.0:
        for a in range(measured.size):
            w[a] /= whole
        return
    for k in range(measured.useful_arms.size):
        w[measured.useful_arms[k]] = 1.0 / measured.useful_arms.size
