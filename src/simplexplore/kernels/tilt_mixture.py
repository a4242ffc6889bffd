"""The mixture of tilts: log of the evidence of an edge at given means, with derivatives.

An arm's rewards are weighed by exponential tilts of many strengths; each is a fair or losing bet
if the arm's mean is lam. An edge's arms are multiplied scale by scale, and scales are averaged
(docs/theory/stopping.md).
"""

from __future__ import annotations

import math

from .kernel import inlined, kernel
from .records import BERNOULLI, GAUSSIAN, Matrix, RunConfig, RunState, Scratch, Vector

# Tilts of an arm, the last of which is none, and scales; tilts of an arm at one scale, none apart.
TILTS = 31
SCALES = 20
OWN = 7

# Rows of Scratch.tilting: an arm's tilts with two derivatives, one after the other; shares of the
# scales; the edge's arms by scale, with two derivatives and the largest exponent; an arm to spare.
# Whatever one loop reads lies in one row: compilers see then that it does not write there.
FIRST, SECOND = TILTS, 2 * TILTS
SLOPE, BEND, TOP = SCALES, 2 * SCALES, 3 * SCALES

# An arm's samples, their mean, and its sigma: read once, since compilers cannot know that what is
# written to scratch leaves them as they are.
Own = tuple[float, float, float]


@inlined
def own_of(config: RunConfig, run: RunState, arm: int) -> Own:
    """What all tilts of an arm share."""
    return run.n[arm], run.mean[0, arm], math.sqrt(config.variance[arm])


@inlined
def exponent(
    config: RunConfig, run: RunState, arm: int, side: int, k: int, lam: float, own: Own
) -> tuple[float, float, float]:
    """Log of tilt k of an arm at mean lam, its derivative, and the second derivative."""
    tilts = config.tilts
    n, mean, sigma = own
    slope = tilts.slope[side, k]
    if config.closed_form or config.family == GAUSSIAN:
        s = slope / sigma
        drift = s * (mean - lam) - 0.5 * slope * slope
        return n * drift, -n * s, 0.0
    s = tilts.strength[k] if side == 1 else -tilts.strength[k]
    if config.family == BERNOULLI:
        log_wealth = n * (s * mean)
        if config.tracks_wealth:
            log_wealth = run.log_wealth[arm, side * tilts.strength.size + k]
        u = slope / (1.0 + slope * lam)
        return log_wealth - n * math.log1p(slope * lam), -n * u, n * u * u
    return n * (s * mean - slope * lam), -n * slope, 0.0


@kernel
def tilt_arm(
    config: RunConfig, run: RunState, work: Matrix, arm: int, side: int, lam: float, row: int
) -> float:
    """Mixture of an arm's tilts, by scale: value over e^top, and two derivatives of its log.

    They go to a row of `work`; top is returned. What underflows only lowers the evidence. Each
    loop writes to one place and reads from others, so that compilers make vectors of them.
    """
    tilts = config.tilts
    last = TILTS - 1
    own = own_of(config, run, arm)
    each, scales = work[0], work[row]
    for k in range(last):
        value, first, second = exponent(config, run, arm, side, k, lam, own)
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
    for part in range(3):  # values and two derivatives
        begin, end = part * TILTS, part * SCALES
        for j in range(SCALES):
            scales[end + j] = 0.0
        for i in range(OWN):
            share, step = tilts.share[side, i], tilts.step[side, i]
            for j in range(SCALES):
                scales[end + j] += share * each[begin + step + j]
        none = tilts.share[side, OWN] * each[begin + last]
        for j in range(SCALES):
            scales[end + j] += none
    for j in range(SCALES):
        total = scales[j] if scales[j] > 0.0 else 1.0  # where there is nothing, slopes are 0, too
        slope = scales[SLOPE + j] / total
        scales[SLOPE + j] = slope
        scales[BEND + j] = scales[BEND + j] / total - slope * slope
    scales[TOP] = top
    return top


@inlined
def side_of(v: float) -> int:
    """Which side of an arm's tilts a coefficient asks for."""
    return 1 if v > 0.0 else 0


@inlined
def row_of(i: int) -> int:
    """Where the i-th arm of an edge has its row in `work`."""
    return 2 + i


@kernel
def log_evidence(config: RunConfig, run: RunState, scratch: Scratch, lam: Vector) -> float:
    """Log of the mixture for scratch.edge at means lam; shares of the scales go to row 1."""
    work, edge, size = scratch.tilting, scratch.edge, scratch.edge.first_entry[1]
    top = 0.0
    scale = config.tilts.scale
    for i in range(size):
        top += tilt_arm(config, run, work, edge.arm[i], side_of(edge.v[i]), lam[i], row_of(i))
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
