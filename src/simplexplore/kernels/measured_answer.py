"""Which answer to work for where limits are measured, and which samples tell most.

Answers are best policies for the empirical means with limits moved inwards: between the
competitors that would earn epsilon more and those limits that must not be exceeded.
"""

from __future__ import annotations

import math

import numpy as np

from .kernel import inlined, kernel
from .measured_records import (
    AIM,
    ANSWER,
    FRACTION,
    INFEASIBLE,
    INSIDE,
    NOTHING,
    MeasuredRun,
    MeasuredSetting,
    MeasuredWork,
)
from .measured_search import (
    DISTANCE,
    EVIDENCE,
    EVIDENCE_OF_ROWS,
    ROUNDING_OF_GAPS,
    ROWS_ALONE,
    SCALE,
    SCALES,
    distance,
    mixed,
    search,
    set_prices,
    term,
)
from .measured_student import least_evidence
from .records import Vector

# Parts of the way from the loosest limits to those that cost about epsilon.
FRACTIONS = np.array([0.5, 0.46, 0.42, 0.54, 0.38, 0.58, 0.34, 0.62, 0.3, 0.66, 0.7, 0.2, 0.1])

# Prices of rows are found by tightening them by this part of the range of their means, and kept
# within these multiples of range of rewards over range of measurements.
TIGHTENED = 0.05
CHEAPEST, DEAREST = 0.05, 10.0


@kernel
def set_values(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """Reward and rows of each vertex by the empirical means."""
    for v in range(setting.vertices.shape[0]):
        for row in range(1 + setting.rows):
            work.values[row, v] = 0.0
        for a in range(setting.size):
            x = setting.vertices[v, a]
            if x > 0.0:
                work.values[0, v] += run.mean[a] * x
                for i in range(setting.rows):
                    work.values[1 + i, v] += run.measured[i, a] * x


@kernel
def keeps(setting: MeasuredSetting, work: MeasuredWork, cell: int, but: int) -> bool:
    """Whether the point in row 0 of the stack keeps all limits but one that it is on."""
    for i in range(setting.rows):
        if i == but:
            continue
        total = 0.0
        for k in range(setting.corners):
            total += float(work.stack[0, k]) * float(work.values[1 + i, setting.cells[cell, k]])
        if not total <= work.bounds[0, i]:
            return False
    return True


@kernel
def offer(
    setting: MeasuredSetting, work: MeasuredWork, policy: Vector, cell: int, best: float
) -> float:
    """Take the point in row 0 of the stack if it earns more; returns what is earned."""
    earned = 0.0
    for k in range(setting.corners):
        earned += float(work.stack[0, k]) * float(work.values[0, setting.cells[cell, k]])
    if not earned > best:
        return best
    for a in range(setting.size):
        x = 0.0
        if setting.used[cell, a] > 0.0:
            for k in range(setting.corners):
                x += work.stack[0, k] * setting.vertices[setting.cells[cell, k], a]
        policy[a] = x
    inside = 1.0
    for k in range(setting.corners):
        if not work.stack[0, k] > 0.0:
            inside = 0.0
    work.stack[1, 0] = inside
    return earned


@kernel
def best_policy(setting: MeasuredSetting, work: MeasuredWork, policy: Vector) -> float:
    """The best policy within work.bounds[0]; -inf if there is none.

    A best one lies where as many rows are met as its face has dimensions. Row 1 of the stack then
    says whether it is on no smaller face.
    """
    best = -math.inf
    corners = setting.corners
    point = work.stack
    for cell in range(setting.cells.shape[0]):
        for k in range(corners):
            for q in range(corners):
                point[0, q] = 1.0 if q == k else 0.0
            if keeps(setting, work, cell, -1):
                best = offer(setting, work, policy, cell, best)
        for i in range(setting.rows):
            limit = work.bounds[0, i]
            for k in range(corners):
                for q in range(corners):
                    above = work.values[1 + i, setting.cells[cell, k]]
                    below = work.values[1 + i, setting.cells[cell, q]]
                    if above > limit and below < limit:
                        for r in range(corners):
                            point[0, r] = 0.0
                        part = (limit - below) / (above - below)
                        point[0, k] = part
                        point[0, q] = 1.0 - part
                        if keeps(setting, work, cell, i):
                            best = offer(setting, work, policy, cell, best)
        if corners == 3 and setting.rows == 2 and meet(setting, work, cell):
            best = offer(setting, work, policy, cell, best)
    return best


@kernel
def meet(setting: MeasuredSetting, work: MeasuredWork, cell: int) -> bool:
    """Put the point of a triangle where two rows meet their limits into row 0 of the stack."""
    first, second, third = setting.cells[cell, 0], setting.cells[cell, 1], setting.cells[cell, 2]
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
def set_row_prices(setting: MeasuredSetting, work: MeasuredWork) -> float:
    """What each row's limit is worth, into work.bounds[1]; returns what the best policy earns."""
    for i in range(setting.rows):
        work.bounds[0, i] = setting.limit[i]
    best = best_policy(setting, work, work.policy)
    low, high = math.inf, -math.inf
    for v in range(setting.vertices.shape[0]):
        low, high = min(low, work.values[0, v]), max(high, work.values[0, v])
    for i in range(setting.rows):
        least, most = math.inf, -math.inf
        for v in range(setting.vertices.shape[0]):
            least = min(least, work.values[1 + i, v])
            most = max(most, work.values[1 + i, v])
        usual = (high - low) / (most - least) if most > least else 0.0
        price = DEAREST * usual
        if best > -math.inf and most > least:
            tightened = TIGHTENED * (most - least)
            work.bounds[0, i] = setting.limit[i] - tightened
            price = (best - best_policy(setting, work, work.policy)) / tightened
            work.bounds[0, i] = setting.limit[i]
        price = min(max(price, CHEAPEST * usual), DEAREST * usual)
        # How far the limit moves inwards for epsilon, and no farther than any policy keeps it.
        inwards = setting.epsilon / price if price > 0.0 else math.inf
        work.bounds[1, i] = min(inwards, max(setting.limit[i] - least, 0.0))
    return best


@kernel
def row_gap(setting: MeasuredSetting, run: MeasuredRun, policy: Vector, i: int) -> float:
    """How far a policy stays below a row's limit with its tolerance."""
    gap = setting.limit[i] + setting.tolerance[i]
    for a in range(setting.size):
        if policy[a] > 0.0:
            use = run.measured[i, a] * policy[a]
            gap -= use + ROUNDING_OF_GAPS * abs(use)
    return gap


@kernel
def row_distance(
    setting: MeasuredSetting, run: MeasuredRun, n: Vector, policy: Vector, i: int
) -> float:
    """How far away means are with which a policy exceeds a row's limit."""
    spread = 0.0
    for a in range(setting.size):
        if policy[a] > 0.0:
            spread += run.variance[1 + i, a] * policy[a] * policy[a] / n[a]
    return distance(row_gap(setting, run, policy, i), spread)


@kernel
def row_evidence(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork, i: int) -> float:
    """Log of the evidence that the answer keeps a row's limit with its tolerance."""
    shift = 0.0
    spread = 0.0
    sharp = 0.0
    set_prices(setting, run, work, run.n)
    for j in range(SCALES):
        work.pays[1 + i, j] = 0.0
    for a in range(setting.size):
        x = run.answer[a]
        if x > 0.0:
            one = run.variance[1 + i, a] * x * x / run.n[a]
            spread += one
            sharp += one / run.n[a]
            shift += math.sqrt(run.variance[1 + i, a]) * x / run.n[a]
            for j in range(SCALES):
                work.pays[1 + i, j] += work.price[a, j]
    gap = row_gap(setting, run, run.answer, i)
    price = setting.log_inside if run.integers[INSIDE] else setting.log_outside
    if setting.unknown[1 + i]:
        for a in range(setting.size):
            x = run.answer[a]
            work.coefficient[a] = x * work.deviation[1 + i, a] if x > 0.0 else -1.0
        return least_evidence(setting, work, run.n, 1 + i, gap) - price
    for j in range(SCALES):
        work.least[1 + i, j] = term(gap, shift, spread, sharp, SCALE[j])
    return mixed(setting, work, 1 + i) - price


@kernel
def aim(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> None:
    """Choose what to work for, with its hardest competitor.

    Of several answers the one that is farthest from all alternatives, by what is needed of each.
    """
    set_values(setting, run, work)
    feasible = set_row_prices(setting, work) > -math.inf
    best = 0.0
    need = setting.value_need
    run.integers[AIM] = NOTHING
    last = run.integers[FRACTION]
    for count in range(FRACTIONS.size):
        # The last one first: it is likely to be good, and others are soon seen to be worse.
        number = last if count == 0 else (count if count > last else count - 1)
        f = FRACTIONS[number]
        for i in range(setting.rows):
            tolerance = setting.tolerance[i]
            inwards = f * (tolerance + work.bounds[1, i])
            work.bounds[0, i] = setting.limit[i] + tolerance - inwards
        if best_policy(setting, work, work.policy) == -math.inf:
            continue
        inside = work.stack[1, 0]
        far = math.inf
        for i in range(setting.rows):
            d = row_distance(setting, run, run.n, work.policy, i)
            far = min(far, d / setting.row_need)
        if not far > best:
            continue
        for a in range(setting.size):
            work.found[a] = run.closest[a]
        given = search(
            setting,
            run,
            work,
            run.n,
            work.policy,
            DISTANCE,
            best * need,
            far * need,
            work.found,
        )
        far = min(far, given / need)
        if far > best:
            best = far
            run.integers[AIM] = ANSWER
            run.integers[INSIDE] = 1 if inside > 0.0 else 0
            run.integers[FRACTION] = number
            for a in range(setting.size):
                run.answer[a] = work.policy[a]
                run.closest[a] = work.found[a]
    if not feasible:
        for a in range(setting.size):
            work.found[a] = run.closest[a]
        given = search(
            setting,
            run,
            work,
            run.n,
            run.answer,
            ROWS_ALONE,
            best * need,
            math.inf,
            work.found,
        )
        if given > best * need:
            run.integers[AIM] = INFEASIBLE
            for a in range(setting.size):
                run.closest[a] = work.found[a]


@kernel
def could_be_certain(setting: MeasuredSetting, run: MeasuredRun) -> bool:
    """Whether distances are at least the levels, without which hulls need not be made."""
    some = False
    for row in range(1 + setting.rows):
        some = some or setting.unknown[row] != 0
    if not some:
        return True
    if run.integers[AIM] == ANSWER:
        for i in range(setting.rows):
            if row_distance(setting, run, run.n, run.answer, i) < setting.row_level:
                return False
    total = 0.0
    for row in range(-1, setting.rows):
        total += measure(setting, run, run.n, row)[0]
    return total >= setting.value_level


@kernel
def is_certain(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork) -> bool:
    """Whether the evidence is enough for what the run works for."""
    if run.integers[AIM] == NOTHING or not could_be_certain(setting, run):
        return False
    mode = EVIDENCE_OF_ROWS
    if run.integers[AIM] == ANSWER:
        mode = EVIDENCE
        for i in range(setting.rows):
            if not row_evidence(setting, run, work, i) >= setting.row_level:
                return False
    level = setting.value_level
    found = search(setting, run, work, run.n, run.answer, mode, level, level, work.found)
    return found >= level


@inlined
def stream(
    setting: MeasuredSetting, run: MeasuredRun, row: int, a: int
) -> tuple[float, float, float]:
    """Coefficient of an arm in a comparison with the hardest competitor, variance and mean.

    Row -1 is rewards, which say nothing where no policy is feasible.
    """
    if row >= 0:
        return run.closest[a], run.variance[1 + row, a], run.measured[row, a]
    if run.integers[AIM] == INFEASIBLE:
        return 0.0, run.variance[0, a], run.mean[a]
    return run.answer[a] - run.closest[a], run.variance[0, a], run.mean[a]


@kernel
def measure(setting: MeasuredSetting, run: MeasuredRun, n: Vector, row: int) -> tuple[float, float]:
    """How far the hardest competitor is by rewards (-1) or a row, and the variance of that."""
    gap = -setting.limit[row] if row >= 0 else setting.epsilon
    spread = 0.0
    for a in range(setting.size):
        z, variance, mean = stream(setting, run, row, a)
        if z != 0.0:
            gap += z * mean
            spread += variance * z * z / n[a]
    return (distance(gap, spread), spread) if spread > 0.0 else (0.0, 1.0)


@kernel
def share(setting: MeasuredSetting, run: MeasuredRun, n: Vector, w: Vector) -> None:
    """Share a sample by what each arm would tell of the closest alternative, for its cost."""
    for a in range(setting.size):
        w[a] = 0.0
    weakest = -1
    far = math.inf
    if run.integers[AIM] == ANSWER:
        for i in range(setting.rows):
            d = row_distance(setting, run, n, run.answer, i) / setting.row_need
            if d < far:
                far = d
                weakest = i
    total = 0.0
    for row in range(-1, setting.rows):
        total += measure(setting, run, n, row)[0]
    if total / setting.value_need < far:
        for row in range(-1, setting.rows):
            d, spread = measure(setting, run, n, row)
            for a in range(setting.size):
                z, variance, _ = stream(setting, run, row, a)
                if z != 0.0:  # no policy uses some arms, which then have no samples
                    w[a] += d * variance * z * z / n[a] / spread
    elif weakest >= 0:
        for a in range(setting.size):
            x = run.answer[a]
            w[a] = run.variance[1 + weakest, a] * x * x / n[a] if x > 0.0 else 0.0
    whole = 0.0
    for a in range(setting.size):
        w[a] /= setting.costs[a]
        whole += w[a]
    if whole > 0.0:
        for a in range(setting.size):
            w[a] /= whole
        return
    for k in range(setting.first_arms.size):
        w[setting.first_arms[k]] = 1.0 / setting.first_arms.size
