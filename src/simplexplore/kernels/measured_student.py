"""Evidence by outcomes whose standard deviations nobody knows, where limits are measured.

An arm's mixture (student_mixture.py) grows with the distance of its mean, so on a cell of distances
it is at least what it is at the cell's near end. The convex hull of such cells lies below the
mixture, and the least sum of hulls over a half-space is quasi-concave in the half-space: over a
simplex of competitors it is least at a corner, as with known deviations
(docs/theory/measured_stopping.md).
"""

from __future__ import annotations

import math

from .kernel import kernel
from .measured_records import PULLS, WARM, MeasuredRun, MeasuredSetting, MeasuredWork
from .records import Vector
from .student_mixture import IS_FLAT, LEAST, ROUNDING, N, mixture_of, put_arm
from .student_statistic import floor_of_variance

# Corners of a hull at most; and what a cell may lose, at least and of the mixture above its least.
CORNERS = 800
LOSS_OF_CELLS = 0.004
PART_OF_CELLS = 0.01

# Evidence of few samples has an end. A hull stops where it hardly grows any more: where going as
# far again would add less than this part of what was gained since the least, and that is some.
FADES = 0.2
SOME = 1.0


@kernel
def learn(
    setting: MeasuredSetting, run: MeasuredRun, row: int, arm: int, before: float, after: float
) -> None:
    """Take in deviations of an outcome from its mean before and after it; row 0 is rewards.

    Samplers see what `student_statistic.learn` gives others.
    """
    total = setting.size
    run.squares[row, arm] += before * after
    run.squares[row, total] += before * after
    usual = run.squares[row, total] / run.integers[PULLS]
    still = run.integers[WARM] == 0 or not usual > 0.0  # what is usual still changes
    floor = 0.0
    if not usual > 0.0:  # outcomes without noise: all arms alike
        for a in range(setting.size):
            mean = run.mean[a] if row == 0 else run.measured[row - 1, a]
            floor = max(floor, floor_of_variance(mean))
    for a in range(setting.size):
        if run.n[a] > 0.0 and (a == arm or still):
            mean = run.mean[a] if row == 0 else run.measured[row - 1, a]
            seen = (run.squares[row, a] + usual) / run.n[a]
            run.variance[row, a] = max(seen, floor, floor_of_variance(mean))


@kernel
def push(work: MeasuredWork, slot: int, count: int, y: float, value: float) -> int:
    """Add a corner to a hull, which loses those that are above it now; returns how many it has."""
    reach, grown = work.reach, work.grown
    while count > 1:
        last = (grown[slot, count - 1] - grown[slot, count - 2]) * (y - reach[slot, count - 1])
        if last < (value - grown[slot, count - 1]) * (
            reach[slot, count - 1] - reach[slot, count - 2]
        ):
            break
        count -= 1
    reach[slot, count] = y
    grown[slot, count] = value
    return count + 1


@kernel
def put_hull(setting: MeasuredSetting, work: MeasuredWork, slot: int, n: float) -> None:
    """The hull of an arm with so many samples; later slots are for arms without any spread.

    Beyond its last corner the mixture is at least work.ends[slot].
    """
    if work.built[slot] == n:
        return
    work.built[slot] = n
    student = work.student
    student[N, 0] = n
    student[IS_FLAT, 0] = 1.0 if slot >= setting.size else 0.0
    put_arm(student, 0)
    least = student[LEAST, 0]
    width = 1.0 / math.sqrt(n)
    y = 0.0
    value, _ = mixture_of(student, 0, y)
    if slot < setting.size:
        for _ in range(60):
            if value <= least + LOSS_OF_CELLS:
                break
            y -= width
            width *= 1.3
            value, _ = mixture_of(student, 0, y)
    count = push(work, slot, 0, y, least)
    start = y
    steep = math.inf
    width = 0.1 / math.sqrt(n)
    for _ in range(4 * CORNERS):
        gained = value - least
        if count >= CORNERS or not gained < setting.reach:
            break
        if gained > SOME and steep * (y - start) < FADES * gained:
            break
        loss = LOSS_OF_CELLS + PART_OF_CELLS * gained
        further, steep = mixture_of(student, 0, y + width)
        for _ in range(20):
            if further - value <= 1.5 * loss:
                break
            width *= 0.5
            further, steep = mixture_of(student, 0, y + width)
        y += width
        count = push(work, slot, count, y, value)
        value = max(value, further)
        width = min(loss / steep, 4.0 * width) if steep > 0.0 else 2.0 * width
    work.corners[slot] = count
    work.least_of[slot] = least
    work.ends[slot] = value


@kernel
def put_hulls(setting: MeasuredSetting, run: MeasuredRun, work: MeasuredWork, n: Vector) -> None:
    """Hulls and empirical deviations of all arms and of all rows without a known deviation."""
    for row in range(1 + setting.rows):
        if not setting.unknown[row]:
            continue
        for a in range(setting.size):
            if n[a] < 2.0:
                continue
            mean = run.mean[a] if row == 0 else run.measured[row - 1, a]
            seen, floor = run.squares[row, a] / n[a], floor_of_variance(mean)
            slot = a if seen >= floor else setting.size + a
            work.slot[row, a] = slot
            work.deviation[row, a] = math.sqrt(max(seen, floor))
            put_hull(setting, work, slot, n[a])


@kernel
def conjugate(work: MeasuredWork, slot: int, price: float) -> tuple[float, float]:
    """The most of price y less an arm's hull, and where."""
    reach, grown = work.reach, work.grown
    low, high = 0, work.corners[slot] - 1
    while low < high:
        middle = (low + high) // 2
        rise = grown[slot, middle + 1] - grown[slot, middle]
        if rise < price * (reach[slot, middle + 1] - reach[slot, middle]):
            low = middle + 1
        else:
            high = middle
    return price * reach[slot, low] - grown[slot, low], reach[slot, low]


@kernel
def dual(
    setting: MeasuredSetting, work: MeasuredWork, row: int, gap: float, gamma: float
) -> tuple[float, float]:
    """No more than the least over the half-space, for any multiplier; and its slope."""
    value, slope = gamma * gap, gap
    size = abs(value)
    for a in range(setting.size):
        c = work.coefficient[a]
        if c >= 0.0:
            most, y = conjugate(work, work.slot[row, a], gamma * c)
            value -= most
            slope -= c * y
            size += abs(gamma * c * y) + abs(most)
    return value - ROUNDING * size, slope


@kernel
def least_evidence(
    setting: MeasuredSetting, work: MeasuredWork, n: Vector, row: int, gap: float
) -> float:
    """No more than the log of a row's mixture over means that lose `gap`.

    Arms lose work.coefficient for each empirical deviation; those below 0 have no part in it.
    Either every arm is on its hull, where every multiplier gives a bound, or one is beyond it.
    """
    least = 0.0
    beyond = math.inf
    scale = 0.0
    for a in range(setting.size):
        c = work.coefficient[a]
        if c >= 0.0:
            if n[a] < 2.0:
                return -math.inf
            slot = work.slot[row, a]
            least += work.least_of[slot]
            if c > 0.0:
                beyond = min(beyond, work.ends[slot] - work.least_of[slot])
                scale += c * c / n[a]
    beyond += least
    if not scale > 0.0:
        return math.inf if gap > 0.0 else least
    best, slope = dual(setting, work, row, gap, 0.0)
    if not slope > 0.0:
        return least
    low, high = 0.0, slope / scale
    best = least
    for _ in range(60):
        value, slope = dual(setting, work, row, gap, high)
        best = max(best, value)
        if not slope > 0.0 or best >= beyond:
            break
        low = high
        high *= 2.0
    for _ in range(12):
        if best >= beyond:
            return beyond
        middle = 0.5 * (low + high)
        value, slope = dual(setting, work, row, gap, middle)
        best = max(best, value)
        if slope > 0.0:
            low = middle
        else:
            high = middle
    return min(best, beyond)
