"""Evidence against competitors of an answer where limits are measured.

A competitor x of an answer p beats it by epsilon and keeps all limits: two kinds of half-spaces of
means, ruled out by rewards and by measurements. Each term of the evidence is the square of an
affine function over a convex quadratic one, so it is quasi-concave: over a simplex it is least at
a corner. The sum over terms of these least values bounds the evidence on the whole simplex from
below, and simplices are halved until that is enough (docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math

import numpy as np

from .kernel import inlined, kernel
from .records import (
    EdgeTable,
    MeasuredLimits,
    MeasuredScratch,
    RunConfig,
    RunState,
    Scratch,
    Vector,
)
from .student_statistic import floor_of_variance
from .unknown_variance import LEAST, SPARE, least_evidence, put_arm, slot_of

# Mixtures: shifts of 2, 2/3, 2/9, ... standard deviations, each sharp to this part of itself.
SCALES = 6
STRONGEST = 2.0
RATIO = 3.0
SHARPNESS = 0.7
SCALE = 1.0 / (SHARPNESS * STRONGEST / RATIO ** np.arange(SCALES)) ** 2

# The part of delta that does without rewards, or without a row's measurements.
NO_REWARDS = 0.1
NO_ROW = 0.1

# What is measured over simplices: distances of closest alternatives by measurements alone, or with
# rewards; from here on evidence, with rewards or by measurements alone.
ROWS_ALONE, DISTANCE, EVIDENCE, EVIDENCE_OF_ROWS = range(4)

# What halving may lose, by dimension; of distances as many times more as they are large, by this
# part; and how often a cell is halved at most.
LOSS = 0.01
LOSS_OF_TRIANGLES = 0.03
LOSS_PER_NAT = 2.0
MAX_DEPTH = 40
MAX_HALVINGS = 4000

# What rounding could add to evidence, of itself and at least; and to a gap, of its terms' sizes.
ROUNDING = 1e-11
ROUNDING_OF_GAPS = 1e-13


@inlined
def log_sum(x: float, y: float) -> float:
    """log(exp x + exp y)."""
    most, rest = max(x, y), min(x, y)
    if most == math.inf or rest == -math.inf:
        return most
    return most + math.log1p(math.exp(rest - most))


@inlined
def term(gap: float, shift: float, spread: float, sharp: float, c: float) -> float:
    """What a mixture says at the closest alternative, before its price.

    `spread` is the variance of the gap, `sharp` the same with each arm's part over its pulls.
    """
    moved = gap + math.sqrt(c) / SHARPNESS * shift
    if not moved > 0.0:
        return 0.0
    if not spread > 0.0:
        return math.inf
    return 0.5 * moved * moved / (spread + c * sharp)


@inlined
def distance(gap: float, spread: float) -> float:
    """How far the closest alternative is, in nats."""
    if not gap > 0.0:
        return 0.0
    return 0.5 * gap * gap / spread if spread > 0.0 else math.inf


@inlined
def gap_and_spread(
    run: RunState, n: Vector, channel: int, x: Vector, sign: float, gap: float
) -> tuple[float, float]:
    """A gap and so many times each mean of a channel, less rounding; and the variance of it.

    Uncompiled runs spend their time here: plain floats are quicker.
    """
    spread = 0.0
    for a in range(n.size):
        part = float(x[a])
        if part != 0.0:
            moved = sign * float(run.mean[channel, a]) * part
            gap += moved - ROUNDING_OF_GAPS * abs(moved)
            spread += float(run.variance[channel, a]) * part * part / float(n[a])
    return gap, spread


@inlined
def shift_and_sharpness(
    run: RunState, work: MeasuredScratch, n: Vector, channel: int, x: Vector
) -> tuple[float, float]:
    """How far mixtures are moved towards the alternative, and the variance with it over pulls."""
    shift = 0.0
    sharp = 0.0
    for a in range(n.size):
        if x[a] != 0.0:
            side = work.sign[a] if channel == 0 else 1.0
            shift += math.sqrt(run.variance[channel, a]) * side * x[a] / n[a]
            sharp += run.variance[channel, a] * x[a] * x[a] / n[a] / n[a]
    return shift, sharp


@kernel
def set_loss(
    measured: MeasuredLimits, work: MeasuredScratch, policy: Vector, competitor: Vector
) -> None:
    """What an answer has more of each arm than a competitor, into work.loss."""
    for a in range(measured.size):
        work.loss[a] = policy[a] - competitor[a]


@kernel
def put_hulls(measured: MeasuredLimits, run: RunState, work: MeasuredScratch, n: Vector) -> None:
    """Hulls and empirical deviations of all arms and channels without a known deviation."""
    hulls = work.hulls
    lowest = 0.0
    for a in range(measured.size):
        if n[a] >= 2.0:
            put_arm(hulls.arm, n[a], False)
            lowest += hulls.arm[LEAST]
    reach = math.ceil(measured.most + SPARE - lowest)
    taken = 0
    for channel in range(1 + measured.rows):
        if not measured.unknown[channel]:
            continue
        for a in range(measured.size):
            if n[a] < 2.0:
                work.slot[channel, a] = -1
                continue
            seen = run.squares[channel, a] / n[a]
            floor = floor_of_variance(run.mean[channel, a])
            hulls.slot[taken] = slot_of(hulls, taken, n[a], seen < floor, reach)
            work.slot[channel, a] = hulls.slot[taken]
            work.deviation[channel, a] = math.sqrt(max(seen, floor))
            taken += 1


@kernel
def take(work: MeasuredScratch, count: int, channel: int, arm: int, share: float) -> int:
    """Have an arm at hand that moves a gap by so much of its mean; returns how many there are."""
    work.hulls.slot[count] = work.slot[channel, arm]
    work.hulls.coefficient[count] = share * work.deviation[channel, arm]
    return count + 1


@kernel
def set_prices(measured: MeasuredLimits, run: RunState, work: MeasuredScratch, n: Vector) -> None:
    """What each arm costs a mixture of each scale; and the hulls of those of all scales."""
    put_hulls(measured, run, work, n)
    for j in range(SCALES):
        c = SCALE[j]
        for a in range(measured.size):
            work.price[a, j] = 0.0
            if n[a] > 0.0:
                work.price[a, j] = 0.5 / (SHARPNESS * SHARPNESS) + 0.5 * math.log1p(n[a] / c)


@kernel
def set_pays(measured: MeasuredLimits, work: MeasuredScratch, policy: Vector, cell: int) -> None:
    """What the arms of a cell and an answer cost together."""
    for j in range(SCALES):
        both = 0.0
        own = 0.0
        for a in range(measured.size):
            if measured.used[cell, a] > 0.0:
                own += work.price[a, j]
                both += work.price[a, j]
            elif policy[a] > 0.0:
                both += work.price[a, j]
        work.pays[0, j] = both
        for i in range(measured.rows):
            work.pays[1 + i, j] = own


@kernel
def mixed(measured: MeasuredLimits, work: MeasuredScratch, row: int) -> float:
    """Log of the mean of the mixtures of all scales at their least values."""
    if measured.unknown[row]:
        return work.least[row, 0]  # each arm has scales of its own
    most = -math.inf
    for j in range(SCALES):
        most = max(most, work.least[row, j] - work.pays[row, j])
    if most == math.inf:
        return most
    total = 0.0
    for j in range(SCALES):
        total += math.exp(work.least[row, j] - work.pays[row, j] - most)
    return most + math.log(total / SCALES)


@kernel
def place(
    measured: MeasuredLimits,
    work: MeasuredScratch,
    policy: Vector,
    cell: int,
    first: int,
    corners: int,
) -> None:
    """Corners of a simplex as policies, and on which side of the answer it lies, by arm."""
    for a in range(measured.size):
        total = 0.0
        share = float(policy[a])
        is_used = measured.used[cell, a] > 0.0
        for p in range(corners):
            x = 0.0
            if is_used:
                for k in range(measured.corners):
                    vertex = measured.cells[cell, k]
                    x += float(work.stack[first + p, k]) * float(measured.vertices[vertex, a])
            work.corner[p, a] = x
            total += share - x
        work.sign[a] = 1.0 if total >= 0.0 else -1.0


@kernel
def lowest(
    measured: MeasuredLimits,
    run: RunState,
    work: MeasuredScratch,
    n: Vector,
    policy: Vector,
    mode: int,
    cell: int,
    corners: int,
) -> float:
    """No more than any point of the simplex in work.corner has; of a single corner what it has."""
    distances = 0.0
    for channel in range(0 if mode in (DISTANCE, EVIDENCE) else 1, 1 + measured.rows):
        least = math.inf
        for p in range(corners):
            x = work.corner[p]
            gap = measured.epsilon if channel == 0 else -measured.limit[channel - 1]
            if channel == 0:
                set_loss(measured, work, policy, x)
                x = work.loss
            gap, spread = gap_and_spread(run, n, channel, x, 1.0, gap)
            if mode < EVIDENCE:
                least = min(least, distance(gap, spread))
            elif measured.unknown[channel]:
                count = 0
                for a in range(measured.size):
                    if measured.used[cell, a] > 0.0 or (channel == 0 and policy[a] > 0.0):
                        count = take(work, count, channel, a, abs(x[a]))
                least = min(least, least_evidence(work.hulls, count, gap))
                work.least[channel, 0] = least
            else:
                shift, sharp = shift_and_sharpness(run, work, n, channel, x)
                for j in range(SCALES):
                    value = term(gap, shift, spread, sharp, SCALE[j])
                    work.least[channel, j] = value if p == 0 else min(work.least[channel, j], value)
        distances += least
    if mode < EVIDENCE:
        return distances
    # Only independent supermartingales may be multiplied; others are averaged.
    averaged = math.log(NO_REWARDS)
    total = -measured.log_averaged
    if mode == EVIDENCE:
        part = math.log(1.0 - NO_REWARDS) - measured.log_patterns[cell] + mixed(measured, work, 0)
        averaged = log_sum(averaged, part)
    for i in range(measured.rows):
        part = math.log(1.0 - NO_ROW) + mixed(measured, work, 1 + i)
        part = log_sum(math.log(NO_ROW), part)
        if measured.independent[i]:
            total += part
        else:
            averaged = log_sum(averaged, part)
    total += averaged
    return total - ROUNDING * (1.0 + abs(total)) if total < math.inf else total


@kernel
def halve(measured: MeasuredLimits, work: MeasuredScratch, first: int, corners: int) -> None:
    """Replace a simplex by its halves, in its place and behind it."""
    longest = -1.0
    one, other = 0, 1
    for p in range(corners):
        for q in range(p + 1, corners):
            length = 0.0
            for a in range(measured.size):
                d = work.corner[p, a] - work.corner[q, a]
                length += d * d
            if length > longest:
                longest = length
                one, other = p, q
    for k in range(measured.corners):
        middle = 0.5 * (work.stack[first + one, k] + work.stack[first + other, k])
        for p in range(corners):
            work.stack[first + corners + p, k] = work.stack[first + p, k]
        work.stack[first + one, k] = middle
        work.stack[first + corners + other, k] = middle
        work.stack[first + 2 * corners, k] = middle


@kernel
def search(
    measured: MeasuredLimits,
    run: RunState,
    work: MeasuredScratch,
    n: Vector,
    policy: Vector,
    mode: int,
    too_little: float,
    enough: float,
    closest: Vector,
) -> float:
    """No more than the least over all competitors; that but for LOSS, or `enough`.

    A competitor with less than `too_little` ends it at once: what comes back is below that, too.
    `closest` receives the competitor with the least found; of distances it holds a guess of it
    before, or is negative.
    """
    corners = measured.corners
    best = math.inf
    bound = math.inf
    slack = measured.loss
    if mode < EVIDENCE and closest[measured.useful_arms[0]] >= 0.0:
        for a in range(measured.size):
            work.corner[0, a] = closest[a]
        best = lowest(measured, run, work, n, policy, mode, 0, 1)
        if best < too_little:
            return best
    if mode >= EVIDENCE:
        set_prices(measured, run, work, n)
    for cell in range(measured.cells.shape[0]):
        if mode >= EVIDENCE:
            set_pays(measured, work, policy, cell)
        for p in range(corners):
            for k in range(corners):
                work.stack[p, k] = 1.0 if p == k else 0.0
        top = 0
        left = MAX_HALVINGS
        while top >= 0:
            first = top * corners
            place(measured, work, policy, cell, first, corners)
            least = lowest(measured, run, work, n, policy, mode, cell, corners)
            if mode < EVIDENCE and best < math.inf:
                slack = measured.loss * (1.0 + LOSS_PER_NAT * best)
            if least >= enough or least >= best - slack:
                bound = min(bound, least)
                top -= 1
                continue
            at = first
            if corners == 1 or top >= MAX_DEPTH or left <= 0:
                bound = min(bound, least)
                top -= 1
            else:
                halve(measured, work, first, corners)
                at = first + 2 * corners
                top += 1
                left -= 1
            place(measured, work, policy, cell, at, 1)
            value = lowest(measured, run, work, n, policy, mode, cell, 1)
            if value < best:
                best = value
                for a in range(measured.size):
                    closest[a] = work.corner[0, a]
                if value < too_little:
                    return min(bound, value)
    return bound


@kernel
def closest_competitor(
    config: RunConfig, table: EdgeTable, run: RunState, scratch: Scratch
) -> float:
    """Distance of the closest competitor of run.answer, with scratch.measured.n for counts.

    Beyond 1 none is looked for, so that run.closest may stay negative.
    """
    work = scratch.measured
    given = config.measured
    return search(given, run, work, work.n, run.answer, DISTANCE, -1.0, 1.0, run.closest)
