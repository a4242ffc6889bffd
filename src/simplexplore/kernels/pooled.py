"""Evidence for Gaussian rewards whose one standard deviation, the same for all arms, is unknown.

A normal-inverse-gamma mixture over the arms of an edge together: one prior of the variance, and
for each arm's mean the scales of student_mixture.py. Bounded from below by a tangent and by
Jensen's inequality it is quadratic in the means and concave in the precision of the hypothesis, so
that its least value over the half-space and all deviations is that at ends of cells. Definitions
and proofs: docs/theory/unknown_sigma.md.
"""

from __future__ import annotations

import math

from .gamma import log_gamma
from .kernel import kernel, long
from .records import Matrix, Memory, Run, Setting, Table
from .student_mixture import ROUNDING, SCALES, scale_of
from .student_statistic import floor_of_variance

# Rows of `work` (Memory.student), by arm of an edge: rewards, |v| in deviations, the least
# favourable mean; averages over scales by their shares: of k, k r and k r^2, and what the shares
# pay; the mean that they are for, the best such one so far, and the next to try.
N, COEFFICIENT, X, WEIGHT, PULL, SQUARE, PAYS, HELD, BEST, AIM = range(10)

# Samples that the prior of the variance is worth, halved: one for edges of up to so many rewards,
# and one for more. A prior minds that the hypothesis has a larger variance than the data, by a
# part of 2 D / n: less so the more rewards there are, while a weak one pays for every order of
# magnitude of them.
FEW = 1000.0
WEAK, STRONG = 8.0, 2500.0

# What the cells may lose in nats, and how many there may be.
_LOSS = 0.01
_MOST_CELLS = 300

# Gaps of more deviations than this, by |v|, count as so many: the evidence hardly grows with them,
# all the same it is no more than theirs, and cells of all precisions would be too many.
_FAR = 10.0

# Halvings of the range of precisions, rounds of shares, and steps of the tangent's slope.
_HALVINGS = 18
_ROUNDS = 8
_SLOPES = 8

# The tangent's slope stays so far from where the means' part is no longer convex.
_INSIDE = 0.999


@kernel
def prior_of(n: float) -> float:
    """What the prior of the variance is worth for an edge of so many rewards."""
    return WEAK if n <= FEW else STRONG


@kernel
def constant_of(n: float, a0: float) -> float:
    """What does not depend on the hypothesis; what rounding could add is taken off."""
    a = a0 + 0.5 * n
    gained, paid, prior, linear = log_gamma(a), log_gamma(a0), a0 * math.log(a0), a * math.log(a)
    size = 1.0 + abs(gained) + abs(paid) + abs(prior) + abs(linear) + a
    return gained - paid + prior + a - linear - math.log(2.0) - ROUNDING * size


@kernel
def share(work: Matrix, i: int, b: float, x: float) -> None:
    """Shares of an arm's scales by what each has at x, as averages; any would be allowed."""
    n = work[N, i]
    top = -math.inf
    for scale in range(SCALES):
        r, c, _ = scale_of(scale)
        k = 0.5 * c * n / (n + c)
        top = max(top, -0.5 * math.log1p(n / c) - b * k * (x - r) * (x - r))
    total, weight, pull, square, spent = 0.0, 0.0, 0.0, 0.0, 0.0
    for scale in range(SCALES):
        r, c, _ = scale_of(scale)
        k = 0.5 * c * n / (n + c)
        found = b * k * (x - r) * (x - r)
        part = math.exp(-0.5 * math.log1p(n / c) - found - top)
        total += part
        weight += part * k
        pull += part * k * r
        square += part * k * r * r
        spent += part * found
    work[WEIGHT, i], work[PULL, i], work[SQUARE, i] = weight / total, pull / total, square / total
    # The sum of part log(prior / part): of the mixture's log, what is not in the averages.
    work[PAYS, i] = top + math.log(total) + spent / total - math.log(float(SCALES))


@kernel
def at_precision(
    work: Matrix, size: int, gap: float, n: float, a0: float, precision: float, b: float
) -> tuple[float, float, float]:
    """Least over means at one precision, the logarithm of Q replaced by a tangent.

    And Q there, and how fast it grows with the precision: that of the hypothesis times the pooled
    variance. b, the tangent's slope, may be anything for which every arm's part is convex.
    """
    root = math.sqrt(precision)
    reach = gap * root
    across = 0.0
    value = (a0 + 0.5 * n) * math.log(b) - b * a0 + 0.5 * n * precision * (1.0 - b)
    for i in range(size):
        v, pull = work[COEFFICIENT, i], 2.0 * b * work[PULL, i]
        h = work[N, i] - 2.0 * b * work[WEIGHT, i]
        reach += v * pull / h
        across += v * v / h
        value += work[PAYS, i] - b * work[SQUARE, i] - 0.5 * pull * pull / h
    gamma = reach / across
    q = a0 + 0.5 * n * precision
    for i in range(size):
        h = work[N, i] - 2.0 * b * work[WEIGHT, i]
        x = (gamma * work[COEFFICIENT, i] - 2.0 * b * work[PULL, i]) / h
        work[X, i] = x
        q += (work[WEIGHT, i] * x - 2.0 * work[PULL, i]) * x + work[SQUARE, i]
    grows = 0.5 * n * (1.0 - b) + (0.5 * gamma * gap / root if root > 0.0 else 0.0)
    return value + 0.5 * reach * gamma, q, grows


@kernel
def best_slope(
    work: Matrix, size: int, gap: float, n: float, a0: float, precision: float, b: float
) -> float:
    """A slope of the tangent that is close to the best, from a guess.

    The value is concave in it, with the derivative a / b - Q.
    """
    low, high = 0.0, math.inf
    for i in range(size):
        high = min(high, _INSIDE * work[N, i] / (2.0 * work[WEIGHT, i]))
    b = min(b, high)
    for _ in range(_SLOPES):
        _, q, _ = at_precision(work, size, gap, n, a0, precision, b)
        better = (a0 + 0.5 * n) / q
        if better > b:
            low = b
        else:
            high = b
        before = b
        b = better if low < better < high else 0.5 * (low + high)
        if abs(b - before) <= 1e-4 * b:
            break
    return b


@kernel
def least_evidence(
    work: Matrix, size: int, gap: float, n: float, a0: float
) -> tuple[float, float, float]:
    """About the least over all hypotheses, where it stops falling; that precision and slope."""
    across = 0.0
    for i in range(size):
        across += work[COEFFICIENT, i] * work[COEFFICIENT, i] / work[N, i]
    likely = 1.0 / (1.0 + gap * gap / (n * across))
    low, high = 0.3 * likely, 2.0 + 8.0 / math.sqrt(n)
    b, value = 1.0, math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        b = best_slope(work, size, gap, n, a0, middle, b)
        found, _, grows = at_precision(work, size, gap, n, a0, middle, b)
        value = min(value, found)
        if grows > 0.0:
            high = middle
        else:
            low = middle
    return value, high, b


@kernel
def share_well(
    work: Matrix, size: int, gap: float, n: float, a0: float
) -> tuple[float, float, float]:
    """Shares that leave much at the hypothesis that minds them most; that, its precision, slope.

    They are for means x, and the best x is least favourable to its own shares. Steps towards that
    are shortened where they lose.
    """
    across = 0.0
    for i in range(size):
        across += work[COEFFICIENT, i] * work[COEFFICIENT, i] / work[N, i]
    for i in range(size):
        y = gap * work[COEFFICIENT, i] / (work[N, i] * across)
        work[HELD, i] = y / math.sqrt(1.0 + gap * gap / (n * across))
    best, where, slope, length = -math.inf, 1.0, 1.0, 1.0
    for _ in range(_ROUNDS):
        for i in range(size):
            share(work, i, slope, work[HELD, i])
        value, precision, b = least_evidence(work, size, gap, n, a0)
        if value > best:
            gain = value - best
            best, where, slope = value, precision, b
            at_precision(work, size, gap, n, a0, precision, b)
            for i in range(size):
                work[BEST, i], work[AIM, i] = work[HELD, i], work[X, i]
            if gain < _LOSS:
                break
        else:
            length *= 0.4
        for i in range(size):
            work[HELD, i] = work[BEST, i] + length * (work[AIM, i] - work[BEST, i])
    return best, where, slope


@kernel
def reaches(
    work: Matrix,
    size: int,
    gap: float,
    n: float,
    a0: float,
    start: float,
    b: float,
    target: float,
) -> bool:
    """Whether the evidence, but for its constant, is at least so much under all hypotheses.

    With fixed shares and slope it is concave in the precision, so least at an end of a cell; with
    a slope of at most 1 it grows.
    """
    for i in range(size):
        share(work, i, b, work[BEST, i])
    high = start
    is_enough = False
    for _ in range(60):
        b = min(best_slope(work, size, gap, n, a0, high, 1.0), 1.0)
        value, _, _ = at_precision(work, size, gap, n, a0, high, b)
        is_enough = value >= target
        if is_enough:
            break
        high *= 1.3
    if not is_enough:
        return False
    width = 0.1 * high
    for _ in range(_MOST_CELLS):
        low = max(high - width, 0.0)
        b = best_slope(work, size, gap, n, a0, 0.5 * (low + high), b)
        upper, _, _ = at_precision(work, size, gap, n, a0, high, b)
        lower, _, _ = at_precision(work, size, gap, n, a0, low, b)
        if min(upper, lower) >= target:
            if low == 0.0:
                return True
            high = low
            width *= 1.5
        else:
            width *= 0.5
            if width < 1e-9 * high:
                return False
    return False


@long
def pooled_evidence(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    least: float,
    enough: float,
) -> float:
    """Log of the evidence that an edge is no improvement: no more than its least, proven.

    Below `least` it may be more than that, but then both are below `least`. From `enough` on no
    more is looked for.
    """
    work = memory.student
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    gap = table.offset[edge]
    rounding = abs(gap)
    n, squares, floor, length = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        arm, v = table.arm[begin + i], table.v[begin + i]
        if run.n[arm] < 1.0:
            return 0.0
        length += abs(v)
        work[N, i], work[COEFFICIENT, i] = run.n[arm], abs(v)
        n += run.n[arm]
        squares += run.squares[arm]
        floor = max(floor, floor_of_variance(run.mean[arm]))
        gap += v * run.mean[arm]
        rounding += abs(v * run.mean[arm])
    gap -= ROUNDING * rounding
    if not gap > 0.0:
        return 0.0
    gap *= (1.0 - ROUNDING) / math.sqrt(max(squares / n, floor))
    gap = min(gap, _FAR * length)
    a0 = prior_of(n)
    constant = constant_of(n, a0)
    value, precision, b = share_well(work, size, gap, n, a0)
    value += constant
    if value < least:
        return value
    bound = min(value - _LOSS, enough)
    less = 0.0
    while bound >= least:
        if reaches(work, size, gap, n, a0, precision, b, bound - constant):
            return bound
        less += 0.1 if less < 1.0 else 0.5 * less  # far off: rewards that hardly vary
        bound -= less
    return min(bound, least - 1e-9)  # not proven, and too little
