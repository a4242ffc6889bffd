"""Confidence intervals for means that hold at every moment, however samples were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from simplexplore.kernels.exponential import PRIOR_SAMPLES, regret_of_mixture
from simplexplore.kernels.student_statistic import floor_of_variance
from simplexplore.kernels.tilt import MIXTURE_PAYS, TILTS_PAY
from simplexplore.kernels.unknown_variance import PLACES, reach_of_learned
from simplexplore.problem.families import Bernoulli, Family, Gaussian

from .arrays import make_tilts
from .engine import Engine

Array = npt.NDArray[np.float64]
Inside = npt.NDArray[np.bool_]

# By how much of itself an interval may be too long, unless one asks for less.
CLOSE = 1e-9

_ROUNDING = 2.0**-50


def mean_intervals(
    rewards: Family,
    counts: Array,
    means: Array,
    delta: float,
    log_wealth: Array | None = None,
    squares: Array | None = None,
    close: float = CLOSE,
) -> tuple[Array, Array]:
    """Lower and upper ends (K,), in the user's coordinates; infinite without samples.

    With probability at least 1 - delta every arm's mean lies in its interval at every moment:
    for each arm the e-value at its true mean, tilts in both directions and a conjugate mixture,
    stays below K / delta (docs/theory/stopping.md). `log_wealth` are the sums that `tilt` keeps of
    bounded rewards; without them only the means count. `squares` are sums of squared deviations
    from the means, where sigma is unknown. `close` is by how much of itself an interval may be
    too long.
    """
    size, level = len(counts), math.log(len(counts)) - math.log(delta)
    if squares is not None:
        return _learned_intervals(counts, means, squares, level)
    seen = counts > 0
    n = np.where(seen, counts, 1.0)
    unit = np.where(seen, rewards.to_unit(means), 0.5)
    evidence = _evidence(rewards, n, unit, rewards.sigmas(size), log_wealth)

    def is_inside(lam: Array) -> Inside:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(evidence(lam) <= level)

    ends = rewards.unit_domain() or tuple(rewards.to_unit(rewards.range_of_means()))
    lower, upper = (rewards.from_unit(_end(is_inside, unit, float(x), close)) for x in ends)
    range_low, range_high = rewards.domain or rewards.range_of_means()
    return (
        np.asarray(np.where(seen, np.clip(lower, range_low, range_high), range_low)),
        np.asarray(np.where(seen, np.clip(upper, range_low, range_high), range_high)),
    )


def _end(is_inside: Callable[[Array], Inside], centre: Array, limit: float, close: float) -> Array:
    """Where intervals about a centre end, by bisection up to a limit, which may be infinite.

    It ends close by, on the outer side: an interval is never too short.
    """
    inside, outside = centre, np.full(len(centre), limit)
    if math.isinf(limit):
        step = math.copysign(1.0, limit)
        while is_inside(outside := centre + step).any():
            step *= 2
    at_end = is_inside(outside)
    while True:
        middle = (inside + outside) / 2
        apart = np.abs(outside - inside) > close * np.abs(outside - centre)
        between = apart & (middle != inside) & (middle != outside) & ~at_end
        if not between.any():
            return np.where(at_end, limit, outside)
        good = is_inside(middle)
        inside = np.where(between & good, middle, inside)
        outside = np.where(between & ~good, middle, outside)


def known_means(engine: Engine, close: float = CLOSE) -> tuple[Array, Array, Array]:
    """Lower ends, empirical means and upper ends (K,) of a run at this moment."""
    rewards, run, delta = engine.plan.problem.rewards, engine.run, engine.plan.delta
    means = rewards.from_unit(run.mean[0])
    log_wealth = run.log_wealth if engine.workspace.config.tracks_wealth else None
    squares = None if rewards.knows_sigma else run.squares[0, :-1]
    low, high = mean_intervals(rewards, run.n, means, delta, log_wealth, squares, close)
    return low, means, high


def _learned_intervals(
    counts: Array, means: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """The same by Student evidence: mixtures of both directions share it."""
    n = np.maximum(counts, 1.0)
    least = np.array([floor_of_variance(mean) for mean in means])
    deviations = np.sqrt(np.maximum(squares / n, least))
    both = level + math.log(2.0)
    reach = deviations * [_student_reach(float(count), both) for count in counts]
    return means - reach, means + reach


@lru_cache(maxsize=4096)  # charts ask for the same again
def _student_reach(n: float, level: float) -> float:
    return float(reach_of_learned(np.zeros(PLACES), n, level))


def _evidence(
    rewards: Family, n: Array, unit: Array, sigma: Array, log_wealth: Array | None
) -> Callable[[Array], Array]:
    """Log of each arm's e-value, as a function of its mean: of two mixtures.

    One is conjugate, the other of the arm's tilts in both directions.
    """
    pairs = zip(n, unit, strict=True)
    price = np.array([regret_of_mixture(rewards.code, *pair) for pair in pairs])
    weight = n * n / (n + PRIOR_SAMPLES) if isinstance(rewards, Gaussian) else n
    tilts = make_tilts(rewards)
    count = len(tilts.strength)
    prior = np.zeros(count)
    for j, scale in enumerate(tilts.scale):
        for step, share in zip(tilts.step[0], tilts.share[0], strict=True):
            prior[j + step if step >= 0 else -1] += scale * share
    used = np.tile(prior > 0, 2)
    strength = np.concatenate([-tilts.strength, tilts.strength])[used]
    slope = tilts.slope.ravel()[used]
    log_prior = np.log(np.tile(prior / 2, 2)[used])

    def evidence(lam: Array) -> Array:
        conjugate = weight * rewards.divergence(unit, lam, sigma) - price
        samples, mean, other = n[:, None], unit[:, None], lam[:, None]
        if isinstance(rewards, Gaussian):
            scaled = strength / sigma[:, None]
            exponent = samples * (scaled * (mean - other) - 0.5 * strength * strength)
        elif isinstance(rewards, Bernoulli):
            data = samples * strength * mean if log_wealth is None else log_wealth[:, used]
            exponent = data - samples * np.log1p(slope * other)
        else:
            exponent = samples * (strength * mean - slope * other)
        # What rounding could add to the terms that matter.
        size = samples * np.abs(strength / sigma[:, None]) * (np.abs(mean) + np.abs(other))
        matters = exponent > exponent.max(axis=1, keepdims=True) - 60
        doubt = _ROUNDING * np.where(matters, size, 0.0).max(axis=1)
        tilted = np.logaddexp.reduce(log_prior + exponent, axis=1) - doubt
        return np.asarray(np.logaddexp(tilted - TILTS_PAY, conjugate - MIXTURE_PAYS))

    return evidence
