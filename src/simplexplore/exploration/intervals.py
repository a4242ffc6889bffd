"""Confidence intervals for means that hold at every moment, however samples were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from simplexplore.kernels.exponential import PRIOR_SAMPLES, regret_of_mixture
from simplexplore.kernels.student_mixture import ROWS, N, mixture_of, put_arm
from simplexplore.kernels.student_statistic import floor_of_variance
from simplexplore.kernels.tilt import MIXTURE_PAYS, TILTS_PAY
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.problem.family import Family
from simplexplore.problem.problem import Problem

from .engines import ExplorationEngine
from .tilts import make_tilts

Array = npt.NDArray[np.float64]
Evidence = Callable[[Array], Array]

# By how much of itself an interval may be too long, unless one asks for less.
CLOSE = 1e-9
_STUDENT_CLOSE = 1e-6

# Empirical deviations at which nothing more is to be found.
_FARTHEST = 1e9

_ROUNDING = 2.0**-50


def mean_intervals(
    problem: Problem,
    counts: Array,
    means: Array,
    delta: float,
    bets: Array | None = None,
    squares: Array | None = None,
    close: float = CLOSE,
) -> tuple[Array, Array]:
    """Lower and upper ends (K,), in the user's coordinates; infinite without samples.

    With probability at least 1 - delta every arm's mean lies in its interval at every moment:
    for each arm the e-value at its true mean, tilts in both directions and a conjugate mixture,
    stays below K / delta (docs/theory/stopping.md). `bets` are the sums that `tilt` keeps of
    bounded rewards; without them only the means count. `squares` are sums of squared deviations
    from the means, where sigma is unknown. `close` is by how much of itself an interval may be
    too long.
    """
    if squares is not None:
        return _learned_intervals(counts, means, squares, math.log(problem.size) - math.log(delta))
    rewards = problem.rewards
    seen = counts > 0
    n = np.where(seen, counts, 1.0)
    unit = np.where(seen, rewards.to_unit(means), 0.5)
    level = math.log(problem.size) - math.log(delta)
    low, high = rewards.unit_domain() or tuple(rewards.to_unit(rewards.range_of_means()))
    sigma = rewards.sigmas(problem.size)
    conjugate = _conjugate(rewards, n, unit, sigma)
    tilts = _tilts(rewards, n, unit, sigma, bets)

    def is_inside(lam: Array) -> npt.NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):
            evidence = np.logaddexp(tilts(lam) - TILTS_PAY, conjugate(lam) - MIXTURE_PAYS)
        return np.asarray(evidence <= level)

    def end(limit: float) -> Array:
        """Bisection between the mean and the end of the range, or far enough out.

        It ends close by, on the outer side: an interval is never too short.
        """
        inside, outside = unit.copy(), np.full(problem.size, limit)
        if math.isinf(limit):
            step = np.ones(problem.size)
            outside = unit + math.copysign(1.0, limit) * step
            while is_inside(outside).any():
                step *= 2
                outside = unit + math.copysign(1.0, limit) * step
        at_end = is_inside(outside)  # of the range
        while True:
            middle = (inside + outside) / 2
            apart = np.abs(outside - inside) > close * np.abs(outside - unit)
            between = apart & (middle != inside) & (middle != outside) & ~at_end
            if not between.any():
                return outside
            good = is_inside(middle)
            inside = np.where(between & good, middle, inside)
            outside = np.where(between & ~good, middle, outside)

    lower, upper = rewards.from_unit(end(float(low))), rewards.from_unit(end(float(high)))
    range_low, range_high = problem.rewards.domain or rewards.range_of_means()
    return (
        np.asarray(np.where(seen, np.clip(lower, range_low, range_high), range_low)),
        np.asarray(np.where(seen, np.clip(upper, range_low, range_high), range_high)),
    )


def known_means(engine: ExplorationEngine, close: float = CLOSE) -> tuple[Array, Array, Array]:
    """Lower ends, empirical means and upper ends (K,) of a run at this moment."""
    problem, run, delta = engine.plan.problem, engine.run, engine.plan.delta
    means = problem.rewards.from_unit(run.mean)
    low, high = mean_intervals(problem, run.n, means, delta, engine.bets, engine.squares, close)
    return low, means, high


def _learned_intervals(
    counts: Array, means: Array, squares: Array, level: float
) -> tuple[Array, Array]:
    """The same by Student evidence of both directions."""
    n = np.maximum(counts, 1.0)
    least = np.array([floor_of_variance(mean) for mean in means])
    deviations = np.sqrt(np.maximum(squares / n, least))
    reach = deviations * np.array([_student_reach(float(count), level) for count in counts])
    return means - reach, means + reach


@lru_cache(maxsize=4096)
def _student_reach(n: float, level: float) -> float:
    """Empirical deviations between the empirical mean and the nearest that is ruled out.

    Mixtures of both directions share the evidence. Each grows with the distance.
    """
    if n < 2:
        return math.inf
    needed = level + math.log(2.0)
    work = np.zeros((ROWS, 1))
    work[N] = n
    put_arm(work, 0)

    def is_inside(y: float) -> bool:
        return mixture_of(work, 0, y)[0] <= needed

    inside, outside = 0.0, 1.0
    while is_inside(outside):
        inside, outside = outside, 2.0 * outside
        if outside > _FARTHEST:
            return math.inf
    while outside - inside > _STUDENT_CLOSE * outside:
        middle = (inside + outside) / 2
        if is_inside(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _conjugate(rewards: Family, n: Array, unit: Array, sigma: Array) -> Evidence:
    """Log of the conjugate mixture of each arm, as a function of its mean."""
    pairs = zip(n, unit, strict=True)
    price = np.array([regret_of_mixture(rewards.code, *pair) for pair in pairs])
    weight = n * n / (n + PRIOR_SAMPLES) if isinstance(rewards, Gaussian) else n
    return lambda lam: weight * rewards.divergence(unit, lam, sigma) - price


def _tilts(rewards: Family, n: Array, unit: Array, sigma: Array, bets: Array | None) -> Evidence:
    """Log of the mixture of each arm's tilts in both directions, as a function of its mean."""
    tilts = make_tilts(rewards)
    count = len(tilts.strength)
    prior = np.zeros(count)
    for j, scale in enumerate(tilts.scale):
        for step, share in zip(tilts.step[0], tilts.share[0], strict=True):
            prior[j + step if step >= 0 else -1] += scale * share
    n, unit = n[:, None], unit[:, None]
    used = np.tile(prior > 0, 2)
    strength = np.concatenate([-tilts.strength, tilts.strength])[used]
    slope = tilts.slope.ravel()[used]
    log_prior = np.log(np.tile(prior / 2, 2)[used])

    def evidence(lam: Array) -> Array:
        lam = lam[:, None]
        if isinstance(rewards, Gaussian):
            scaled = strength / sigma[:, None]
            exponent = n * (scaled * (unit - lam) - 0.5 * strength * strength)
        elif isinstance(rewards, Bernoulli):
            data = n * strength * unit if bets is None else bets[:, used]
            exponent = data - n * np.log1p(slope * lam)
        else:
            exponent = n * (strength * unit - slope * lam)
        # What rounding could add to the terms that matter.
        size = n * np.abs(strength / sigma[:, None]) * (np.abs(unit) + np.abs(lam))
        matters = exponent > exponent.max(axis=1, keepdims=True) - 60
        doubt = _ROUNDING * np.where(matters, size, 0.0).max(axis=1)
        return np.asarray(np.logaddexp.reduce(log_prior + exponent, axis=1) - doubt)

    return evidence
