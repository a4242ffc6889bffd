"""Evidence by a mixture of tilts, for every family: proven, and close to what a guess would take.

An arm's rewards are weighed by exponential tilts of many strengths; each is a fair or losing bet
if the arm's mean is lam, so a mixture over strengths, multiplied over the arms of an edge, is
evidence against lam. Its logarithm is convex in lam: the least evidence over all means at which
the edge is an improvement is found by Newton's method, and what comes back is a lower bound that
does not trust the search. Definitions and proofs: docs/theory/stopping.md.
"""

from __future__ import annotations

import math

from .exponential import is_pair
from .information import closest, mixture_evidence
from .kernel import inlined, kernel, long
from .pooled import pooled_evidence
from .records import (
    BERNOULLI,
    GAUSSIAN,
    VERTEX,
    Matrix,
    Memory,
    Run,
    Setting,
    Table,
    Tilts,
    Vector,
)
from .student import student_evidence

# Shares of tilts and of conjugate mixtures in the evidence: log(1 / 0.95) and log(1 / 0.05).
TILTS_PAY = 0.05129329438755058
MIXTURE_PAYS = 2.995732273553991

# What the mixtures' grid takes at least where there is one (gaussian.py): log(7).
GRID_PAYS = 1.9459101490553132

# Newton's method ends when a step would gain less than this; it takes five steps or so. Gains are
# squared from step to step: where a level is all that matters, less will do, and the step after a
# short one is not worth asking for.
_GAIN = 1e-11
_GAIN_OF_LOOK = 1e-7
_SHORT = 1e-4
_MOST_STEPS = 40

# A step changes no term of the exponent by more than this.
_LONGEST_STEP = 20.0

# Curvature that rounding could hide is not trusted.
_LEAST_CURVATURE = 1e-7

# Tilts of an arm, the last of which is none, and scales; tilts of an arm at one scale, none apart.
TILTS = 31
SCALES = 20
OWN = 7

# Rows of Memory.tilting: an arm's tilts with two derivatives, one after the other; shares of the
# scales; the edge's arms by scale, with two derivatives and the largest exponent; an arm to spare.
# Whatever one loop reads lies in one row: compilers see then that it does not write there.
FIRST, SECOND = TILTS, 2 * TILTS
SLOPE, BEND, TOP = SCALES, 2 * SCALES, 3 * SCALES

_TINY = 1e-200
_ROUNDING = 2.0**-50


# An arm's samples, their mean, and its sigma: read once, since compilers cannot know that what is
# written to scratch leaves them as they are.
Own = tuple[float, float, float]
Steps = tuple[int, int, int, int, int, int, int]
Shares = tuple[float, float, float, float, float, float, float]


@inlined
def own_of(setting: Setting, run: Run, arm: int) -> Own:
    """What all tilts of an arm share."""
    return run.n[arm], run.mean[arm], math.sqrt(setting.variance[arm])


@inlined
def exponent(
    setting: Setting, run: Run, arm: int, side: int, k: int, lam: float, own: Own
) -> tuple[float, float, float]:
    """Log of tilt k of an arm at mean lam, its derivative, and the second derivative."""
    tilts = setting.tilts
    n, mean, sigma = own
    slope = tilts.slope[side, k]
    if setting.closed_form or setting.family == GAUSSIAN:
        s = slope / sigma
        drift = s * (mean - lam) - 0.5 * slope * slope
        return n * drift, -n * s, 0.0
    s = tilts.strength[k] if side == 1 else -tilts.strength[k]
    if setting.family == BERNOULLI:
        bet = n * (s * mean)
        if setting.betting:
            bet = run.bets[arm, side * tilts.strength.size + k]
        u = slope / (1.0 + slope * lam)
        return bet - n * math.log1p(slope * lam), -n * u, n * u * u
    return n * (s * mean - slope * lam), -n * slope, 0.0


@inlined
def steps_of(tilts: Tilts, side: int) -> Steps:
    """How much weaker an arm's own tilts are than its scale."""
    step = tilts.step
    a, b, c, d = step[side, 0], step[side, 1], step[side, 2], step[side, 3]
    return a, b, c, d, step[side, 4], step[side, 5], step[side, 6]


@inlined
def shares_of(tilts: Tilts, side: int) -> Shares:
    """Their shares."""
    share = tilts.share
    p, q, r, s = share[side, 0], share[side, 1], share[side, 2], share[side, 3]
    return p, q, r, s, share[side, 4], share[side, 5], share[side, 6]


@inlined
def mixed(each: Vector, first: int, steps: Steps, shares: Shares) -> float:
    """Average over an arm's own tilts, no tilt apart, of what lies at `first` for its scale.

    Written out: a loop in the one over scales would keep compilers from making vectors of that.
    """
    a, b, c, d, e, f, g = steps
    p, q, r, s, t, u, v = shares
    total = p * each[first + a] + q * each[first + b] + r * each[first + c] + s * each[first + d]
    return total + t * each[first + e] + u * each[first + f] + v * each[first + g]


@kernel
def tilt_arm(
    setting: Setting, run: Run, work: Matrix, arm: int, side: int, lam: float, row: int
) -> float:
    """Mixture of an arm's tilts, by scale: value over e^top, and two derivatives of its log.

    They go to a row of `work`; top is returned. What underflows only lowers the evidence. Each
    loop writes to one place and reads from others, so that compilers make vectors of them.
    """
    tilts = setting.tilts
    last = TILTS - 1
    own = own_of(setting, run, arm)
    each, scales = work[0], work[row]
    for k in range(last):
        value, first, second = exponent(setting, run, arm, side, k, lam, own)
        each[k], each[FIRST + k], each[SECOND + k] = value, first, second
    each[last], each[FIRST + last], each[SECOND + last] = 0.0, 0.0, 0.0
    top = 0.0  # the last one is no tilt: its exponent is 0
    for k in range(last):
        top = max(top, each[k])
    for k in range(TILTS):
        below = each[k] - top
        x = math.exp(below) if below > -700.0 else 0.0
        dx = each[FIRST + k]
        each[k] = x
        each[FIRST + k] = dx * x
        each[SECOND + k] = (each[SECOND + k] + dx * dx) * x
    steps, shares = steps_of(tilts, side), shares_of(tilts, side)
    for part in range(3):  # values and two derivatives
        begin = part * TILTS
        none = tilts.share[side, OWN] * each[begin + last]
        for j in range(SCALES):
            scales[part * SCALES + j] = mixed(each, begin + j, steps, shares) + none
    for j in range(SCALES):
        total = scales[j] if scales[j] > 0.0 else 1.0  # where there is nothing, slopes are 0, too
        slope = scales[SLOPE + j] / total
        scales[SLOPE + j] = slope
        scales[BEND + j] = scales[BEND + j] / total - slope * slope
    scales[TOP] = top
    return top


@inlined
def row_of(i: int) -> int:
    """Where the i-th arm of an edge has its row in `work`."""
    return 2 + i


@long
def log_evidence(
    setting: Setting, table: Table, run: Run, work: Matrix, edge: int, lam: Vector
) -> float:
    """Log of the mixture at means lam; the shares of the scales go to row 1 of `work`."""
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    top = 0.0
    scale = setting.tilts.scale
    for i in range(size):
        side = 1 if table.v[begin + i] > 0.0 else 0
        top += tilt_arm(setting, run, work, table.arm[begin + i], side, lam[i], row_of(i))
    shares = work[1]
    for j in range(SCALES):
        shares[j] = scale[j]
    for i in range(size):
        factors = work[row_of(i)]
        for j in range(SCALES):
            shares[j] *= factors[j]
    total = 0.0
    for j in range(SCALES):
        total += shares[j]
    if not total > 0.0:
        return -math.inf
    for j in range(SCALES):
        shares[j] /= total
    return top + math.log(total)


@inlined
def averaged(work: Matrix, row: int) -> tuple[float, float]:
    """Slopes and bends of a row of `work`, averaged by the shares of the scales."""
    slope, bend = 0.0, 0.0
    for j in range(SCALES):
        slope += work[1, j] * work[row, SLOPE + j]
        bend += work[1, j] * work[row, BEND + j]
    return slope, bend


@kernel
def solve_two(system: Matrix, size: int, x: Vector, y: Vector) -> None:
    """Solve for two right-hand sides, in place, by Cholesky; a curvature of zero is made tiny."""
    for i in range(size):
        for k in range(i + 1):
            entry = system[i, k]
            least = 1e-14 * abs(entry) + 1e-280
            for m in range(k):
                entry -= system[i, m] * system[k, m]
            if i == k:
                system[i, i] = math.sqrt(entry if entry > least else least)
            else:
                system[i, k] = entry / system[k, k]
    for i in range(size):
        for m in range(i):
            x[i] -= system[i, m] * x[m]
            y[i] -= system[i, m] * y[m]
        x[i] /= system[i, i]
        y[i] /= system[i, i]
    for i in range(size - 1, -1, -1):
        for m in range(i + 1, size):
            x[i] -= system[m, i] * x[m]
            y[i] -= system[m, i] * y[m]
        x[i] /= system[i, i]
        y[i] /= system[i, i]


@kernel
def newton_step(setting: Setting, table: Table, memory: Memory, edge: int) -> tuple[float, float]:
    """A step along the plane into memory.newton[STEP]; its promise, and the plane's multiplier.

    Arms that an end of their range holds back do not move.
    """
    work, newton = memory.tilting, memory.newton
    slope, step, normal, held = newton[1], newton[2], newton[3], newton[4]
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    for i in range(size):
        slope[i], bend = averaged(work, row_of(i))
        for k in range(i + 1):
            total = 0.0
            for j in range(SCALES):
                one, other = work[row_of(i), SLOPE + j], work[row_of(k), SLOPE + j]
                total += work[1, j] * ((one - slope[i]) * (other - slope[k]))
            if i == k:
                total += bend
                total += _LEAST_CURVATURE * slope[i] * slope[i] + _TINY
            still = held[i] != 0.0 or held[k] != 0.0
            memory.hessian[i, k] = (1.0 if i == k else 0.0) if still else total
        step[i] = 0.0 if held[i] != 0.0 else slope[i]
        normal[i] = 0.0 if held[i] != 0.0 else table.v[begin + i]
    solve_two(memory.hessian, size, step, normal)
    along, across = 0.0, 0.0
    for i in range(size):
        along += table.v[begin + i] * step[i]
        across += table.v[begin + i] * normal[i]
    gamma = -along / across if across > 0.0 else 0.0
    promise = 0.0
    for i in range(size):
        step[i] = -(step[i] + gamma * normal[i])
        promise -= slope[i] * step[i]
    return promise, gamma


@kernel
def release(setting: Setting, table: Table, memory: Memory, edge: int, gamma: float) -> bool:
    """Let go of arms at an end of their range that would rather move inwards."""
    lam, slope, held = memory.newton[0], memory.newton[1], memory.newton[4]
    begin = table.first_entry[edge]
    freed = False
    for i in range(table.first_entry[edge + 1] - begin):
        pull = slope[i] + gamma * table.v[begin + i]
        least = 1e-9 * abs(slope[i])
        inwards = (lam[i] <= setting.lowest and pull < -least) or (
            lam[i] >= setting.highest and pull > least
        )
        if held[i] != 0.0 and inwards:
            held[i] = 0.0
            freed = True
    return freed


@long
def descend(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    level: float,
    exact: bool = True,
) -> float:
    """Newton's method along the plane from memory.newton[0], the evidence there coming back.

    It ends early where the evidence is below the level: the least is no more than that. What is
    not exact is off by some 1e-7.
    """
    gain, short = (_GAIN, 0.0) if exact else (_GAIN_OF_LOOK, _SHORT)
    work, newton = memory.tilting, memory.newton
    lam, slope, step, held, trial = newton[0], newton[1], newton[2], newton[4], newton[5]
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    for i in range(size):
        held[i] = 0.0
    value = log_evidence(setting, table, run, work, edge, lam)
    for _ in range(_MOST_STEPS):
        if not value >= level:
            break
        promise, gamma = newton_step(setting, table, memory, edge)
        if release(setting, table, memory, edge, gamma) and promise < 1e-9:
            continue
        if not promise >= gain:
            break
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(slope[i] * step[i]))
        length = min(1.0, _LONGEST_STEP / largest)
        hit = -1
        for i in range(size):
            if step[i] < 0.0 and lam[i] + length * step[i] < setting.lowest:
                length = (setting.lowest - lam[i]) / step[i]
                hit = i
            if step[i] > 0.0 and lam[i] + length * step[i] > setting.highest:
                length = (setting.highest - lam[i]) / step[i]
                hit = i
        found = math.inf
        for _ in range(30):
            for i in range(size):
                trial[i] = min(max(lam[i] + length * step[i], setting.lowest), setting.highest)
            found = log_evidence(setting, table, run, work, edge, trial)
            if found <= value - 1e-4 * length * promise or found <= value + 1e-12 * abs(value):
                break
            length *= 0.4
            hit = -1
            found = math.inf
        if found == math.inf:  # rounding is all that is left
            return log_evidence(setting, table, run, work, edge, lam)
        if hit >= 0:
            held[hit] = 1.0
        for i in range(size):
            lam[i] = trial[i]
        value = found
        if promise < short and length == 1.0:
            break
    return value


@kernel
def steepest(setting: Setting, work: Matrix, n: float, side: int) -> float:
    """How steep an arm's averaged exponent can get where exponents are linear in the mean."""
    tilts = setting.tilts
    strongest = tilts.step[side, 0]
    total = 0.0
    for j in range(SCALES):
        total += work[1, j] * abs(tilts.slope[side, j + strongest])
    return n * total


@kernel
def multiplier_of_plane(
    setting: Setting, table: Table, run: Run, memory: Memory, edge: int
) -> float:
    """A multiplier for `certified`, close to the best one and such that all minima are finite."""
    work, newton = memory.tilting, memory.newton
    slope, bend, held = newton[1], newton[3], newton[4]
    begin = table.first_entry[edge]
    size = table.first_entry[edge + 1] - begin
    along, across = 0.0, 0.0
    most = math.inf
    linear = setting.closed_form or setting.family != BERNOULLI
    endless_down, endless_up = setting.lowest == -math.inf, setting.highest == math.inf
    for i in range(size):
        v = table.v[begin + i]
        arm = table.arm[begin + i]
        slope[i], curved = averaged(work, row_of(i))
        least = _LEAST_CURVATURE * slope[i] * slope[i] + _TINY
        bend[i] = max(curved, least)
        if held[i] == 0.0:
            along -= v * slope[i] / bend[i]
            across += v * v / bend[i]
        if linear and (endless_down if v > 0.0 else endless_up):
            n = run.n[arm]
            if setting.closed_form or setting.family == GAUSSIAN:
                n /= math.sqrt(setting.variance[arm])
            most = min(most, steepest(setting, work, n, 1 if v > 0.0 else 0) / abs(v))
    gamma = along / across if across > 0.0 else 0.0
    return min(max(gamma, 0.0), most * (1.0 - 1e-9))


@inlined
def turns_within(
    setting: Setting, run: Run, arm: int, side: int, bend: float, reach: float
) -> bool:
    """Whether a slope of bend reach / 2 is sure to change its sign within so short a reach.

    Where exponents are linear, a mixture's third derivative is at most its second times the
    range S of their slopes, so that curvature falls no faster than e^(-S x), and a reach with S x
    <= 1 turns it by 0.63 bend x or more: nine tenths of the reach will do. Less curvature than
    that may be none: `multiplier_of_plane` lets it be no less than a part of the slope, squared.
    """
    if not (setting.closed_form or setting.family != BERNOULLI):
        return False
    steep = run.n[arm] * abs(setting.tilts.slope[side, 0])
    if setting.closed_form or setting.family == GAUSSIAN:
        steep /= math.sqrt(setting.variance[arm])
    return steep * reach <= 1.0 and bend > 10.0 * _LEAST_CURVATURE * steep * steep


@kernel
def loss_of_arm(
    setting: Setting, table: Table, run: Run, memory: Memory, edge: int, i: int, gamma: float
) -> float:
    """No less than what the i-th arm's convex part could still fall by, from where it is."""
    work = memory.tilting
    lam, slope, bend = memory.newton[0], memory.newton[1], memory.newton[3]
    k = table.first_entry[edge] + i
    v, arm = table.v[k], table.arm[k]
    spare = work.shape[0] - 1
    pull = slope[i] + gamma * v
    if pull == 0.0:
        return 0.0
    reach = 2.0 * abs(pull) / bend[i]
    sure = turns_within(setting, run, arm, 1 if v > 0.0 else 0, bend[i], reach)
    for _ in range(60):
        there = lam[i] - reach if pull > 0.0 else lam[i] + reach
        if there <= setting.lowest and pull > 0.0:
            return pull * (lam[i] - setting.lowest)
        if there >= setting.highest and pull < 0.0:
            return -pull * (setting.highest - lam[i])
        if sure and abs(there - lam[i]) >= 0.9 * reach:
            return abs(pull) * abs(there - lam[i])
        sure = False
        tilt_arm(setting, run, work, arm, 1 if v > 0.0 else 0, there, spare)
        if (gamma * v + averaged(work, spare)[0]) * pull <= 0.0:
            return abs(pull) * abs(there - lam[i])
        reach *= 4.0
    return math.inf


@kernel
def rounding_of_arm(
    setting: Setting, run: Run, arm: int, side: int, lam: float, top: float
) -> float:
    """A bound on the rounding in the exponents of the tilts that matter; top is the largest.

    It is that of the strongest one.
    """
    tilts = setting.tilts
    own = own_of(setting, run, arm)
    n, mean, _ = own
    for k in range(TILTS - 1):
        value, slope, _ = exponent(setting, run, arm, side, k, lam, own)
        if value > top - 60.0:
            s = tilts.strength[k]
            size = abs(slope * lam) + n * s * s
            if setting.closed_form or setting.family == GAUSSIAN:
                size += abs(slope * mean)
            else:
                size += n * s * abs(mean)
            return _ROUNDING * (size + top)
    return _ROUNDING * top


@kernel
def certified(
    setting: Setting, table: Table, run: Run, memory: Memory, edge: int, value: float
) -> float:
    """No more than the least evidence over the half-space, from the point that was reached.

    Averaging over scales at the shares found there (Jensen), and a multiplier of the plane, split
    the problem into one convex function per arm; each is bounded by its slope.
    """
    lam = memory.newton[0]
    begin = table.first_entry[edge]
    gamma = multiplier_of_plane(setting, table, run, memory, edge)
    off = table.offset[edge]
    beyond = abs(off)
    bound = value
    for i in range(table.first_entry[edge + 1] - begin):
        v = table.v[begin + i]
        off += v * lam[i]
        beyond += abs(v * lam[i])
        arm, side, top = table.arm[begin + i], 1 if v > 0.0 else 0, memory.tilting[row_of(i), TOP]
        bound -= rounding_of_arm(setting, run, arm, side, lam[i], top)
    for i in range(table.first_entry[edge + 1] - begin):
        bound -= loss_of_arm(setting, table, run, memory, edge, i, gamma)
    bound += gamma * off - _ROUNDING * gamma * beyond
    return bound if bound > -math.inf else -math.inf  # NaN is no evidence


@kernel
def is_out_of_reach(setting: Setting, table: Table, edge: int) -> bool:
    """Whether no possible means make the edge an improvement."""
    least = table.offset[edge]
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        v = table.v[k]
        least += v * (setting.lowest if v > 0.0 else setting.highest)
    return least > 0.0


@inlined
def rounding_of_statistic(
    setting: Setting, table: Table, run: Run, edge: int, statistic: float
) -> float:
    """A bound on it. Where the statistic is found by a root, that was found just now.

    Then it is that of the edge's loss, times the multiplier: next to nothing unless coefficients
    differ by many orders of magnitude.
    """
    if setting.closed_form:
        return 0.0
    if is_pair(table, edge):
        return 4.0 * _ROUNDING * statistic
    weight = 0.0
    size = abs(table.offset[edge])
    for k in range(table.first_entry[edge], table.first_entry[edge + 1]):
        weight += run.n[table.arm[k]]
        size += abs(table.v[k] * run.clipped[table.arm[k]])
    return 4.0 * _ROUNDING * run.root[table.first_root + edge] * weight * size


@kernel
def conjugate_evidence(
    setting: Setting, table: Table, run: Run, edge: int, statistic: float
) -> float:
    """Log of the conjugate mixtures' evidence, with their share."""
    value = mixture_evidence(setting, table, run, edge, statistic) - MIXTURE_PAYS
    return value - rounding_of_statistic(setting, table, run, edge, statistic)


@long
def tilt_evidence(
    setting: Setting,
    table: Table,
    run: Run,
    memory: Memory,
    edge: int,
    statistic: float,
    least: float,
    enough: float,
) -> float:
    """Log of the evidence that an edge is no improvement: no more than its least, proven.

    Below `least` it may be more than that, but then both are below `least`. From `enough` on no
    more is looked for.
    """
    if is_out_of_reach(setting, table, edge):
        return math.inf
    if statistic <= 0.0:
        return 0.0
    if not setting.closed_form and setting.learning:
        if setting.pooled:
            return pooled_evidence(setting, table, run, memory, edge, least, enough)
        return student_evidence(setting, table, run, memory, edge, least, enough)
    closest(setting, table, run, edge, memory.newton[0])
    most = statistic - MIXTURE_PAYS - (GRID_PAYS if setting.closed_form else 0.0)
    conjugate = -math.inf
    if most >= enough:
        conjugate = conjugate_evidence(setting, table, run, edge, statistic)
        if conjugate >= enough:
            return conjugate
    value = descend(setting, table, run, memory, edge, least + TILTS_PAY, enough == math.inf)
    if value >= least + TILTS_PAY:
        value = certified(setting, table, run, memory, edge, value)
    value -= TILTS_PAY
    if most > value and statistic >= least + MIXTURE_PAYS:
        conjugate = conjugate_evidence(setting, table, run, edge, statistic)
    return max(value, conjugate)


@kernel
def evidence_of_edges(setting: Setting, table: Table, run: Run, memory: Memory, count: int) -> None:
    """`tilt_evidence` of so many edges of the vertex, in the place of their numbers in run.time."""
    first = table.first_edge[run.integers[VERTEX]]
    for i in range(count):
        e = int(run.time[i])
        statistic = run.value[e]
        run.time[i] = tilt_evidence(
            setting, table, run, memory, first + e, statistic, -math.inf, math.inf
        )
