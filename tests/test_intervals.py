"""Intervals for means: closed forms, and coverage at every moment."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln

from engines import engine_for
from reference import sampled
from simplexplore import Bernoulli, Bounded, Gaussian, Poisson, Problem
from simplexplore.exploration.intervals import mean_intervals
from tilting import LOSE, SCALES, log_mixture


def log_tilts(family, n, total, lam, sigma=1.0):
    """Tilts of one arm in both directions, by the definition: one that loses, and its mirror."""
    loses = log_mixture(family, [n], [total], [-1.0], [lam], [sigma])
    if family == "gaussian":
        mirror = log_mixture(family, [n], [-total], [-1.0], [-lam], [sigma])
    else:  # a coin that shows 1 with probability lam shows 0 with the rest
        mirror = log_wins(n, total, lam)
    return np.logaddexp(loses, mirror) - math.log(2)


def log_wins(n, total, lam):
    """A coin's tilts upwards, with the weights of an arm that loses."""
    prior, weights = np.array(SCALES) / sum(SCALES), sum(LOSE.values())
    parts = []
    for j, scale in enumerate(prior):
        for offset, share in LOSE.items():
            t = 0.0 if offset is None else 3.0 / 1.6 ** (j + offset)
            exponent = t * total - n * math.log1p(math.expm1(t) * lam)
            parts.append(math.log(scale * share / weights) + exponent)
    return np.logaddexp.reduce(parts)


def test_gaussian_by_the_definition():
    problem = Problem(3, rewards=Gaussian([1.0, 2.0, 0.5]))
    counts, means = np.array([10.0, 200.0, 0.0]), np.array([0.3, -1.0, 0.0])
    low, high = mean_intervals(problem.rewards, counts, means, 0.05)
    for a in range(2):
        n, mean, sigma = counts[a], means[a], (1.0, 2.0)[a]

        def excess(lam, n=n, mean=mean, sigma=sigma):
            robbins = n * n * (mean - lam) ** 2 / (2 * sigma**2 * (n + 16)) - np.log1p(n / 16) / 2
            tilts = log_tilts("gaussian", n, n * mean, lam, sigma)
            together = np.logaddexp(math.log(0.95) + tilts, math.log(0.05) + robbins)
            return together - math.log(3 / 0.05)

        assert low[a] == pytest.approx(brentq(excess, mean - 9 * sigma, mean), rel=1e-8)
        assert high[a] == pytest.approx(brentq(excess, mean, mean + 9 * sigma), rel=1e-8)
    assert (low[2], high[2]) == (-math.inf, math.inf)


def test_bernoulli_by_the_definition():
    problem = Problem(2, rewards=Bernoulli())
    low, high = mean_intervals(problem.rewards, np.array([40.0, 7.0]), np.array([0.3, 0.0]), 0.1)

    def excess(p):  # with a mixture over Beta(1/2, 1/2) against p: 12 ones in 40
        mixture = betaln(12.5, 28.5) - betaln(0.5, 0.5)
        mixture -= 12 * math.log(p) + 28 * math.log1p(-p)
        tilts = log_tilts("bernoulli", 40, 12, p)
        return np.logaddexp(math.log(0.95) + tilts, math.log(0.05) + mixture) - math.log(2 / 0.1)

    assert low[0] == pytest.approx(brentq(excess, 1e-9, 0.3), rel=1e-8)
    assert high[0] == pytest.approx(brentq(excess, 0.3, 1 - 1e-9), rel=1e-8)
    assert low[1] == 0.0
    assert 0 < high[1] < 1


def test_bets_make_intervals_of_small_variance_short():
    rng = np.random.default_rng(7)
    rewards = Bounded(0.0, 1.0)
    x = rng.beta(50, 50, 400)
    engine = engine_for(Problem(2, rewards=rewards), threshold="tilt")
    for reward in x:
        engine.observe(0, float(reward))
    log_wealth = engine.run.log_wealth[:1]
    problem = Problem(1, rewards=rewards)
    plain = np.array(mean_intervals(problem.rewards, np.array([400.0]), np.array([x.mean()]), 0.1))
    short = np.array(
        mean_intervals(problem.rewards, np.array([400.0]), np.array([x.mean()]), 0.1, log_wealth)
    )
    assert np.ptp(short) < 0.25 * np.ptp(plain)
    assert short[0, 0] < 0.5 < short[1, 0]


def test_units_and_domains():
    counts, means = np.array([50.0, 50.0]), np.array([0.1, 0.4])
    unit = mean_intervals(Bernoulli(), counts, means, 0.1)
    scaled = mean_intervals(Bounded(-1, 3), counts, 4 * means - 1, 0.1)
    assert np.array(scaled) == pytest.approx(4 * np.array(unit) - 1)
    low, high = mean_intervals(Gaussian(1.0, domain=(0.0, 0.5)), counts, means, 0.1)
    assert (low >= 0).all()
    assert (high <= 0.5).all()


@pytest.mark.parametrize(
    "rewards",
    [Gaussian(1.0), Bernoulli(), Poisson(), Bounded(0.0, 1.0)],
    ids=lambda family: family.name,
)
def test_coverage_at_every_moment(rewards):
    # At most delta = 0.1 of the runs may ever miss; were it 0.1, more than 42 of 200 would
    # miss with probability below 1e-6. All runs are evaluated in one call, with a delta that
    # gives each arm the share it has in a run of its own.
    rng = np.random.default_rng(2)
    runs = 200
    truth = np.tile([0.5, 0.2], (runs, 1))
    problem = Problem(2 * runs, rewards=rewards)
    sums, counts = np.zeros((runs, 2)), np.zeros((runs, 2))
    missed = np.zeros(runs, dtype=bool)
    row = np.arange(runs)
    for step in range(60):
        # The arm that looks better is played, in growing blocks: an adaptive choice.
        arm = np.full(runs, step) if step < 2 else np.argmax(sums / counts, axis=1)
        for _ in range(1 + step // 4):
            sums[row, arm] += sampled(rewards, rng, truth[row, arm], np.ones(runs))
            counts[row, arm] += 1
        if step % 6 == 1:
            means = (sums / counts).ravel()
            low, high = mean_intervals(problem.rewards, counts.ravel(), means, 0.1 * runs)
            missed |= ((truth.ravel() < low) | (truth.ravel() > high)).reshape(runs, 2).any(axis=1)
    assert missed.sum() <= 42
