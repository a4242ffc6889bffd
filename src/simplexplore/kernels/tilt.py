"""Evidence by a mixture of tilts, for every family: proven, and close to what a guess would take.

The mixture's logarithm (tilt_mixture.py) is convex in the means: the least evidence over all means
at which an edge is an improvement is found by Newton's method, and what comes back is a lower bound
that does not trust the search. Definitions and proofs: docs/theory/stopping.md.
"""

from __future__ import annotations

import math

from .edges import is_pair
from .information import closest, mixture_evidence
from .kernel import inlined, kernel
from .linear import factorize, solve_factored
from .records import BERNOULLI, GAUSSIAN, EdgeTable, Matrix, RunConfig, RunState, Scratch
from .tilt_mixture import (
    SCALES,
    SLOPE,
    TILTS,
    TOP,
    averaged,
    exponent,
    log_evidence,
    own_of,
    row_of,
    side_of,
    tilt_arm,
)
from .unknown_variance import edge_evidence

# Shares of tilts and of conjugate mixtures in the evidence: log(1 / 0.95) and log(1 / 0.05).
TILTS_PAY = 0.05129329438755058
MIXTURE_PAYS = 2.995732273553991

# What the mixtures' grid takes at least where there is one (gaussian.py): log(7).
GRID_PAYS = 1.9459101490553132

# Rows of Scratch.newton, by arm of the edge: means, slopes of the evidence there, the step, what a
# multiplier of the plane adds to it, whether an end of its range holds an arm back, and means to
# try; and, when the search is over, curvatures.
LAM, SLOPES, STEP, NORMAL, HELD, TRIAL, BENDS = range(7)

# Newton's method ends when a step would gain less than this; it takes five steps or so. Gains are
# squared from step to step: where a level is all that matters, less will do, and the step after a
# short one is not worth asking for.
_GAIN = 1e-11
_GAIN_OF_LOOK = 1e-7
_SHORT = 1e-4
_MAX_STEPS = 40

# A step changes no term of the exponent by more than this.
_MAX_CHANGE = 20.0

# Curvature that rounding could hide is not trusted.
_MIN_CURVATURE = 1e-7

_TINY = 1e-200
_ROUNDING = 2.0**-50


@kernel
def newton_step(config: RunConfig, scratch: Scratch) -> tuple[float, float]:
    """A step along the plane into scratch.newton[STEP]; its promise, and the plane's multiplier.

    Arms that an end of their range holds back do not move.
    """
    work, newton = scratch.tilting, scratch.newton
    slope, step, normal, held = newton[SLOPES], newton[STEP], newton[NORMAL], newton[HELD]
    edge, size = scratch.edge, scratch.edge.first_entry[1]
    for i in range(size):
        slope[i], bend = averaged(work, row_of(i))
        for k in range(i + 1):
            total = 0.0
            for j in range(SCALES):
                one, other = work[row_of(i), SLOPE + j], work[row_of(k), SLOPE + j]
                total += work[1, j] * ((one - slope[i]) * (other - slope[k]))
            if i == k:
                total += bend
                total += _MIN_CURVATURE * slope[i] * slope[i] + _TINY
            still = held[i] != 0.0 or held[k] != 0.0
            scratch.hessian[i, k] = (1.0 if i == k else 0.0) if still else total
        step[i] = 0.0 if held[i] != 0.0 else slope[i]
        normal[i] = 0.0 if held[i] != 0.0 else edge.v[i]
    factorize(scratch.hessian, size)
    solve_factored(scratch.hessian, size, step)
    solve_factored(scratch.hessian, size, normal)
    along, across = 0.0, 0.0
    for i in range(size):
        along += edge.v[i] * step[i]
        across += edge.v[i] * normal[i]
    gamma = -along / across if across > 0.0 else 0.0
    promise = 0.0
    for i in range(size):
        step[i] = -(step[i] + gamma * normal[i])
        promise -= slope[i] * step[i]
    return promise, gamma


@kernel
def release(config: RunConfig, scratch: Scratch, gamma: float) -> bool:
    """Let go of arms at an end of their range that would rather move inwards."""
    lam, slope, held = scratch.newton[LAM], scratch.newton[SLOPES], scratch.newton[HELD]
    edge = scratch.edge
    freed = False
    for i in range(edge.first_entry[1]):
        pull = slope[i] + gamma * edge.v[i]
        least = 1e-9 * abs(slope[i])
        inwards = (lam[i] <= config.lowest and pull < -least) or (
            lam[i] >= config.highest and pull > least
        )
        if held[i] != 0.0 and inwards:
            held[i] = 0.0
            freed = True
    return freed


@kernel
def descend(
    config: RunConfig, run: RunState, scratch: Scratch, level: float, exact: bool = True
) -> float:
    """Newton's method along the plane from scratch.newton[LAM], the evidence there coming back.

    It ends early where the evidence is below the level: the least is no more than that. What is
    not exact is off by some 1e-7.
    """
    gain, short = (_GAIN, 0.0) if exact else (_GAIN_OF_LOOK, _SHORT)
    newton = scratch.newton
    lam, slope, step = newton[LAM], newton[SLOPES], newton[STEP]
    held, trial = newton[HELD], newton[TRIAL]
    size = scratch.edge.first_entry[1]
    for i in range(size):
        held[i] = 0.0
    value = log_evidence(config, run, scratch, lam)
    for _ in range(_MAX_STEPS):
        if not value >= level:
            break
        promise, gamma = newton_step(config, scratch)
        if release(config, scratch, gamma) and promise < 1e-9:
            continue
        if not promise >= gain:
            break
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(slope[i] * step[i]))
        length = min(1.0, _MAX_CHANGE / largest)
        hit = -1
        for i in range(size):
            if step[i] < 0.0 and lam[i] + length * step[i] < config.lowest:
                length = (config.lowest - lam[i]) / step[i]
                hit = i
            if step[i] > 0.0 and lam[i] + length * step[i] > config.highest:
                length = (config.highest - lam[i]) / step[i]
                hit = i
        found = math.inf
        for _ in range(30):
            for i in range(size):
                trial[i] = min(max(lam[i] + length * step[i], config.lowest), config.highest)
            found = log_evidence(config, run, scratch, trial)
            if found <= value - 1e-4 * length * promise or found <= value + 1e-12 * abs(value):
                break
            length *= 0.4
            hit = -1
            found = math.inf
        if found == math.inf:  # rounding is all that is left
            return log_evidence(config, run, scratch, lam)
        if hit >= 0:
            held[hit] = 1.0
        for i in range(size):
            lam[i] = trial[i]
        value = found
        if promise < short and length == 1.0:
            break
    return value


@kernel
def steepest(config: RunConfig, work: Matrix, n: float, side: int) -> float:
    """How steep an arm's averaged exponent can get where exponents are linear in the mean."""
    tilts = config.tilts
    strongest = tilts.step[side, 0]
    total = 0.0
    for j in range(SCALES):
        total += work[1, j] * abs(tilts.slope[side, j + strongest])
    return n * total


@kernel
def multiplier_of_plane(config: RunConfig, run: RunState, scratch: Scratch) -> float:
    """A multiplier for `certified`, close to the best one and such that all minima are finite."""
    work, newton = scratch.tilting, scratch.newton
    slope, bend, held = newton[SLOPES], newton[BENDS], newton[HELD]
    edge, size = scratch.edge, scratch.edge.first_entry[1]
    along, across = 0.0, 0.0
    most = math.inf
    linear = config.family != BERNOULLI
    endless_down, endless_up = config.lowest == -math.inf, config.highest == math.inf
    for i in range(size):
        v = edge.v[i]
        arm = edge.arm[i]
        slope[i], curved = averaged(work, row_of(i))
        least = _MIN_CURVATURE * slope[i] * slope[i] + _TINY
        bend[i] = max(curved, least)
        if held[i] == 0.0:
            along -= v * slope[i] / bend[i]
            across += v * v / bend[i]
        if linear and (endless_down if v > 0.0 else endless_up):
            n = run.n[arm]
            if config.family == GAUSSIAN:
                n /= math.sqrt(config.variance[arm])
            most = min(most, steepest(config, work, n, side_of(v)) / abs(v))
    gamma = along / across if across > 0.0 else 0.0
    return min(max(gamma, 0.0), most * (1.0 - 1e-9))


@kernel
def loss_of_arm(config: RunConfig, run: RunState, scratch: Scratch, i: int, gamma: float) -> float:
    """No less than what the i-th arm's convex part could still fall by, from where it is."""
    work = scratch.tilting
    lam, slope, bend = scratch.newton[LAM], scratch.newton[SLOPES], scratch.newton[BENDS]
    v, arm = scratch.edge.v[i], scratch.edge.arm[i]
    spare = work.shape[0] - 1
    pull = slope[i] + gamma * v
    if pull == 0.0:
        return 0.0
    reach = 2.0 * abs(pull) / bend[i]
    for _ in range(60):
        there = lam[i] - reach if pull > 0.0 else lam[i] + reach
        if there <= config.lowest and pull > 0.0:
            return pull * (lam[i] - config.lowest)
        if there >= config.highest and pull < 0.0:
            return -pull * (config.highest - lam[i])
        tilt_arm(config, run, work, arm, side_of(v), there, spare)
        if (gamma * v + averaged(work, spare)[0]) * pull <= 0.0:
            return abs(pull) * abs(there - lam[i])
        reach *= 4.0
    return math.inf


@kernel
def rounding_of_arm(
    config: RunConfig, run: RunState, arm: int, side: int, lam: float, top: float
) -> float:
    """A bound on the rounding in the exponents of the tilts that matter; top is the largest.

    It is that of the strongest one.
    """
    tilts = config.tilts
    own = own_of(config, run, arm)
    n, mean, _ = own
    for k in range(TILTS - 1):
        value, slope, _ = exponent(config, run, arm, side, k, lam, own)
        if value > top - 60.0:
            s = tilts.strength[k]
            size = abs(slope * lam) + n * s * s
            if config.family == GAUSSIAN:
                size += abs(slope * mean)
            else:
                size += n * s * abs(mean)
            return _ROUNDING * (size + top)
    return _ROUNDING * top


@kernel
def certified(config: RunConfig, run: RunState, scratch: Scratch, value: float) -> float:
    """No more than the least evidence over the half-space, from the point that was reached.

    Averaging over scales at the shares found there (Jensen), and a multiplier of the plane, split
    the problem into one convex function per arm; each is bounded by its slope.
    """
    lam, edge, size = scratch.newton[LAM], scratch.edge, scratch.edge.first_entry[1]
    gamma = multiplier_of_plane(config, run, scratch)
    off = edge.offset[0]
    beyond = abs(off)
    bound = value
    for i in range(size):
        v = edge.v[i]
        off += v * lam[i]
        beyond += abs(v * lam[i])
        top = scratch.tilting[row_of(i), TOP]
        bound -= rounding_of_arm(config, run, edge.arm[i], side_of(v), lam[i], top)
    for i in range(size):
        bound -= loss_of_arm(config, run, scratch, i, gamma)
    bound += gamma * off - _ROUNDING * gamma * beyond
    return bound if bound > -math.inf else -math.inf  # NaN is no evidence


@kernel
def is_out_of_reach(config: RunConfig, edge: EdgeTable) -> bool:
    """Whether no possible means make the edge an improvement."""
    least = edge.offset[0]
    for i in range(edge.first_entry[1]):
        v = edge.v[i]
        least += v * (config.lowest if v > 0.0 else config.highest)
    return least > 0.0


@inlined
def rounding_of_statistic(
    config: RunConfig, run: RunState, edge: EdgeTable, statistic: float
) -> float:
    """A bound on it. Where the statistic is found by a root, that was found just now.

    Then it is that of the edge's loss, times the multiplier: next to nothing unless coefficients
    differ by many orders of magnitude.
    """
    if config.closed_form:
        return 0.0
    if is_pair(edge, 0):
        return 4.0 * _ROUNDING * statistic
    weight = 0.0
    size = abs(edge.offset[0])
    for i in range(edge.first_entry[1]):
        weight += run.n[edge.arm[i]]
        size += abs(edge.v[i] * run.clipped_mean[edge.arm[i]])
    return 4.0 * _ROUNDING * run.root[edge.first_root] * weight * size


@kernel
def conjugate_evidence(
    config: RunConfig, run: RunState, edge: EdgeTable, statistic: float
) -> float:
    """Log of the conjugate mixtures' evidence, with their share."""
    value = mixture_evidence(config, edge, run, 0, statistic) - MIXTURE_PAYS
    return value - rounding_of_statistic(config, run, edge, statistic)


@kernel
def tilt_evidence(
    config: RunConfig,
    run: RunState,
    scratch: Scratch,
    statistic: float,
    least: float,
    enough: float,
) -> float:
    """Log of the evidence that scratch.edge is no improvement: no more than its least, proven.

    Below `least` it may be more than that, but then both are below `least`. From `enough` on no
    more is looked for.
    """
    if is_out_of_reach(config, scratch.edge):
        return math.inf
    if statistic <= 0.0:
        return 0.0
    if not config.closed_form and config.learns_variance:
        return edge_evidence(config, run, scratch, least, enough)
    closest(config, scratch.edge, run, 0, scratch.newton[LAM])
    most = statistic - MIXTURE_PAYS - (GRID_PAYS if config.closed_form else 0.0)
    conjugate = -math.inf
    if most >= enough:
        conjugate = conjugate_evidence(config, run, scratch.edge, statistic)
        if conjugate >= enough:
            return conjugate
    value = descend(config, run, scratch, least + TILTS_PAY, enough == math.inf)
    if value >= least + TILTS_PAY:
        value = certified(config, run, scratch, value)
    value -= TILTS_PAY
    if most > value and statistic >= least + MIXTURE_PAYS:
        conjugate = conjugate_evidence(config, run, scratch.edge, statistic)
    return max(value, conjugate)
