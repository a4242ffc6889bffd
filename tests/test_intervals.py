"""Intervals for means: closed forms, and coverage at every moment."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln

from simplexplore.exploration.intervals import mean_intervals
from simplexplore.problem.families import Bernoulli, Bounded, Gaussian, Poisson
from simplexplore.problem.problem import Problem


def test_gaussian_closed_form():
    problem = Problem(3, rewards=Gaussian([1.0, 2.0, 0.5]))
    counts, means = np.array([10.0, 200.0, 0.0]), np.array([0.3, -1.0, 0.0])
    low, high = mean_intervals(problem, counts, means, 0.05)
    for a in range(2):
        n, sigma = counts[a], (1.0, 2.0)[a]
        level = math.log(3 / 0.05) + 0.5 * math.log1p(n / 16)
        radius = sigma * math.sqrt(2 * level * (n + 16)) / n
        assert (low[a], high[a]) == pytest.approx((means[a] - radius, means[a] + radius))
    assert (low[2], high[2]) == (-math.inf, math.inf)


def test_bernoulli_against_a_beta_integral():
    problem = Problem(2, rewards=Bernoulli())
    low, high = mean_intervals(problem, np.array([40.0, 7.0]), np.array([0.3, 0.0]), 0.1)

    def log_ratio(p):  # mixture over Beta(1/2, 1/2) against p: 12 ones in 40
        mixture = betaln(12.5, 28.5) - betaln(0.5, 0.5)
        return mixture - 12 * math.log(p) - 28 * math.log1p(-p) - math.log(2 / 0.1)

    assert low[0] == pytest.approx(brentq(log_ratio, 1e-9, 0.3), rel=1e-9)
    assert high[0] == pytest.approx(brentq(log_ratio, 0.3, 1 - 1e-9), rel=1e-9)
    assert low[1] == 0.0
    assert 0 < high[1] < 1


def test_units_and_domains():
    counts, means = np.array([50.0, 50.0]), np.array([0.1, 0.4])
    unit = mean_intervals(Problem(2, rewards=Bernoulli()), counts, means, 0.1)
    scaled = mean_intervals(Problem(2, rewards=Bounded(-1, 3)), counts, 4 * means - 1, 0.1)
    assert np.array(scaled) == pytest.approx(4 * np.array(unit) - 1)
    known = Problem(2, rewards=Gaussian(1.0, domain=(0.0, 0.5)))
    low, high = mean_intervals(known, counts, means, 0.1)
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
            sums[row, arm] += rewards.sample(rng, truth[row, arm], np.ones(runs))
            counts[row, arm] += 1
        if step >= 1:
            means = (sums / counts).ravel()
            low, high = mean_intervals(problem, counts.ravel(), means, 0.1 * runs)
            missed |= ((truth.ravel() < low) | (truth.ravel() > high)).reshape(runs, 2).any(axis=1)
    assert missed.sum() <= 42
