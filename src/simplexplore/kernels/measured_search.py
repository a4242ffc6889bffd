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
from .measured_records import MeasuredRun, MeasuredSetting, MeasuredWork
from .measured_student import least_evidence, put_hulls
from .records import Vector

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
ROUGHLY = 2.0
DEEPEST = 40
MOST = 4000

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


@kernel
def set_prices(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork, n: Vector) -> None:
    """What each arm costs a mixture of each scale; and the hulls of those of all scales."""
    put_hulls(setting, run, work, n)
    for j in range(SCALES):
        c = SCALE[j]
        for a in range(setting.size):
            work.price[a, j] = 0.0
            if n[a] > 0.0:
                work.price[a, j] = 0.5 / (SHARPNESS * SHARPNESS) + 0.5 * math.log1p(n[a] / c)


@kernel
def set_pays(setting: MeasuredSetting, work: MeasuredWork, policy: Vector, cell: int) -> None:
    """What the arms of a cell and an answer cost together."""
    for j in range(SCALES):
        both = 0.0
        own = 0.0
        for a in range(setting.size):
            if setting.used[cell, a] > 0.0:
                own += work.price[a, j]
                both += work.price[a, j]
            elif policy[a] > 0.0:
                both += work.price[a, j]
        work.pays[0, j] = both
        for i in range(setting.rows):
            work.pays[1 + i, j] = own


@kernel
def mixed(setting: MeasuredSetting, work: MeasuredWork, row: int) -> float:
    """Log of the mean of the mixtures of all scales at their least values."""
    if setting.unknown[row]:
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
    setting: MeasuredSetting,
    work: MeasuredWork,
    policy: Vector,
    cell: int,
    first: int,
    corners: int,
) -> None:
    """Corners of a simplex as policies, and on which side of the answer it lies, by arm."""
    for a in range(setting.size):
        total = 0.0
        share = float(policy[a])
        is_used = setting.used[cell, a] > 0.0
        for p in range(corners):
            x = 0.0
            if is_used:
                for k in range(setting.corners):
                    vertex = setting.cells[cell, k]
                    x += float(work.stack[first + p, k]) * float(setting.vertices[vertex, a])
            work.corner[p, a] = x
            total += share - x
        work.sign[a] = 1.0 if total >= 0.0 else -1.0


@kernel
def nearest(
    setting: MeasuredSetting,
    run: MeasuredRun,
    work: MeasuredWork,
    n: Vector,
    policy: Vector,
    mode: int,
    corners: int,
) -> float:
    """`lowest` of distances. Uncompiled runs spend their time here: plain floats are quicker."""
    total = 0.0
    if mode == DISTANCE:
        total = math.inf
        for p in range(corners):
            gap, spread = setting.epsilon, 0.0
            for a in range(setting.size):
                d = float(policy[a]) - float(work.corner[p, a])
                if d != 0.0:
                    lost = float(run.mean[a]) * d
                    gap += lost - ROUNDING_OF_GAPS * abs(lost)
                    spread += float(run.variance[0, a]) * d * d / float(n[a])
            total = min(total, distance(gap, spread))
    for i in range(setting.rows):
        least = math.inf
        limit = float(setting.limit[i])
        for p in range(corners):
            gap, spread = -limit, 0.0
            for a in range(setting.size):
                x = float(work.corner[p, a])
                if x != 0.0:
                    used = float(run.measured[i, a]) * x
                    gap += used - ROUNDING_OF_GAPS * abs(used)
                    spread += float(run.variance[1 + i, a]) * x * x / float(n[a])
            least = min(least, distance(gap, spread))
        total += least
    return total


@kernel
def lowest(
    setting: MeasuredSetting,
    run: MeasuredRun,
    work: MeasuredWork,
    n: Vector,
    policy: Vector,
    mode: int,
    cell: int,
    corners: int,
) -> float:
    """No more than any point of the simplex in work.corner has; of a single corner what it has."""
    if mode < EVIDENCE:
        return nearest(setting, run, work, n, policy, mode, corners)
    for row in range(1 + setting.rows):
        for j in range(SCALES):
            work.least[row, j] = math.inf
    for p in range(corners):
        gap = setting.epsilon
        shift = 0.0
        spread = 0.0
        sharp = 0.0
        for a in range(setting.size):
            d = policy[a] - work.corner[p, a]
            if d == 0.0:
                continue
            gap += run.mean[a] * d - ROUNDING_OF_GAPS * abs(run.mean[a] * d)
            one = run.variance[0, a] * d * d / n[a]
            spread += one
            sharp += one / n[a]
            shift += math.sqrt(run.variance[0, a]) * work.sign[a] * d / n[a]
        if mode == EVIDENCE and setting.unknown[0]:
            for a in range(setting.size):
                work.coefficient[a] = -1.0
                if setting.used[cell, a] > 0.0 or policy[a] > 0.0:
                    d = abs(policy[a] - work.corner[p, a])
                    work.coefficient[a] = d * work.deviation[0, a]
            value = least_evidence(setting, work, n, 0, gap)
            work.least[0, 0] = min(work.least[0, 0], value)
        elif mode == EVIDENCE:
            for j in range(SCALES):
                value = term(gap, shift, spread, sharp, SCALE[j])
                work.least[0, j] = min(work.least[0, j], value)
        for i in range(setting.rows):
            gap = -setting.limit[i]
            shift = 0.0
            spread = 0.0
            sharp = 0.0
            for a in range(setting.size):
                x = work.corner[p, a]
                if x == 0.0:
                    continue
                gap += run.measured[i, a] * x - ROUNDING_OF_GAPS * abs(run.measured[i, a] * x)
                one = run.variance[1 + i, a] * x * x / n[a]
                spread += one
                sharp += one / n[a]
                shift += math.sqrt(run.variance[1 + i, a]) * x / n[a]
            if setting.unknown[1 + i]:
                for a in range(setting.size):
                    work.coefficient[a] = -1.0
                    if setting.used[cell, a] > 0.0:
                        work.coefficient[a] = work.corner[p, a] * work.deviation[1 + i, a]
                value = least_evidence(setting, work, n, 1 + i, gap)
                work.least[1 + i, 0] = min(work.least[1 + i, 0], value)
            else:
                for j in range(SCALES):
                    value = term(gap, shift, spread, sharp, SCALE[j])
                    work.least[1 + i, j] = min(work.least[1 + i, j], value)
    total = math.log(NO_REWARDS)
    if mode == EVIDENCE:
        part = math.log(1.0 - NO_REWARDS) - setting.log_patterns[cell] + mixed(setting, work, 0)
        total = log_sum(total, part)
    for i in range(setting.rows):
        part = math.log(1.0 - NO_ROW) + mixed(setting, work, 1 + i)
        total += log_sum(math.log(NO_ROW), part)
    return total - ROUNDING * (1.0 + abs(total)) if total < math.inf else total


@kernel
def halve(setting: MeasuredSetting, work: MeasuredWork, first: int, corners: int) -> None:
    """Replace a simplex by its halves, in its place and behind it."""
    longest = -1.0
    one, other = 0, 1
    for p in range(corners):
        for q in range(p + 1, corners):
            length = 0.0
            for a in range(setting.size):
                d = work.corner[p, a] - work.corner[q, a]
                length += d * d
            if length > longest:
                longest = length
                one, other = p, q
    for k in range(setting.corners):
        middle = 0.5 * (work.stack[first + one, k] + work.stack[first + other, k])
        for p in range(corners):
            work.stack[first + corners + p, k] = work.stack[first + p, k]
        work.stack[first + one, k] = middle
        work.stack[first + corners + other, k] = middle
        work.stack[first + 2 * corners, k] = middle


@kernel
def search(
    setting: MeasuredSetting,
    run: MeasuredRun,
    work: MeasuredWork,
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
    corners = setting.corners
    best = math.inf
    bound = math.inf
    loss = LOSS if corners < 3 else LOSS_OF_TRIANGLES
    slack = loss
    if mode < EVIDENCE and closest[setting.first_arms[0]] >= 0.0:
        for a in range(setting.size):
            work.corner[0, a] = closest[a]
        best = lowest(setting, run, work, n, policy, mode, 0, 1)
        if best < too_little:
            return best
    if mode >= EVIDENCE:
        set_prices(setting, run, work, n)
    for cell in range(setting.cells.shape[0]):
        if mode >= EVIDENCE:
            set_pays(setting, work, policy, cell)
        for p in range(corners):
            for k in range(corners):
                work.stack[p, k] = 1.0 if p == k else 0.0
        top = 0
        left = MOST
        while top >= 0:
            first = top * corners
            place(setting, work, policy, cell, first, corners)
            least = lowest(setting, run, work, n, policy, mode, cell, corners)
            if mode < EVIDENCE and best < math.inf:
                slack = loss * (1.0 + ROUGHLY * best)
            if least >= enough or least >= best - slack:
                bound = min(bound, least)
                top -= 1
                continue
            at = first
            if corners == 1 or top >= DEEPEST or left <= 0:
                bound = min(bound, least)
                top -= 1
            else:
                halve(setting, work, first, corners)
                at = first + 2 * corners
                top += 1
                left -= 1
            place(setting, work, policy, cell, at, 1)
            value = lowest(setting, run, work, n, policy, mode, cell, 1)
            if value < best:
                best = value
                for a in range(setting.size):
                    closest[a] = work.corner[0, a]
                if value < too_little:
                    return min(bound, value)
    return bound
