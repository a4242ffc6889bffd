"""Families against sums, integrals and their own defining equations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from nightly import examples
from simplexplore import (
    Bernoulli,
    Bounded,
    Gaussian,
    MeansError,
    Poisson,
    ProblemError,
    RewardError,
)

HYPOTHESIS = examples(60)


def divergence(family, mu, lam, sigma=1.0):
    return float(family.divergence(np.array([mu]), np.array([lam]), np.array([sigma]))[0])


def tilt(family, mu, s, sigma=1.0):
    mu, s = np.array([mu]), np.array([s])
    found = family.tilt(mu, 1 - mu, s, 1 + s, np.array([sigma]))
    lam, rate = found.mean, found.rate
    return float(lam[0]), float(rate[0])


# ------------------------------------------------------------ divergence


@HYPOTHESIS
@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.2, 3))
def test_gaussian_divergence_is_the_integral(mu, lam, sigma):
    p, q = stats.norm(mu, sigma), stats.norm(lam, sigma)
    # Gauss-Hermite nodes integrate this (a quadratic times a density) exactly.
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    x = mu + sigma * nodes
    expected = float(weights @ (p.logpdf(x) - q.logpdf(x)) / math.sqrt(2 * math.pi))
    assert divergence(Gaussian(), mu, lam, sigma) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@HYPOTHESIS
@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_bernoulli_divergence_is_the_sum(mu, lam):
    expected = sum(
        stats.bernoulli.pmf(x, mu)
        * math.log(stats.bernoulli.pmf(x, mu) / stats.bernoulli.pmf(x, lam))
        for x in (0, 1)
    )
    assert divergence(Bernoulli(), mu, lam) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@HYPOTHESIS
@given(st.floats(0.05, 15), st.floats(0.05, 15))
def test_poisson_divergence_is_the_sum(mu, lam):
    counts = np.arange(150)
    p, q = stats.poisson(mu), stats.poisson(lam)
    expected = float(p.pmf(counts) @ (p.logpmf(counts) - q.logpmf(counts)))
    assert divergence(Poisson(), mu, lam) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_bounded_divergence_is_that_of_a_coin():
    family = Bounded(-1.0, 3.0)
    mu, lam = family.to_unit([0.0, 2.0])
    assert (mu, lam) == (0.25, 0.75)
    assert divergence(family, mu, lam) == pytest.approx(0.5 * math.log(3))


@pytest.mark.parametrize("family", [Bernoulli(), Bounded(0.0, 2.0)])
def test_coins_that_always_fall_the_same_way(family):
    assert divergence(family, 0.0, 0.5) == pytest.approx(math.log(2))
    assert divergence(family, 1.0, 0.25) == pytest.approx(math.log(4))
    assert divergence(family, 0.0, 0.0) == 0.0
    assert divergence(family, 1.0, 1.0) == 0.0


def test_poisson_count_of_zero():
    assert divergence(Poisson(), 0.0, 2.0) == 2.0
    assert divergence(Poisson(), 0.0, 0.0) == 0.0


# ------------------------------------------------------------ tilt


def variance(name, lam, sigma):
    return {"gaussian": sigma**2, "bernoulli": lam * (1 - lam), "poisson": lam}[name]


CURVES = [
    (Gaussian(), st.floats(-3, 3), st.floats(-50, 50), st.floats(0.2, 3)),
    (Bernoulli(), st.floats(1e-3, 1 - 1e-3), st.floats(-50, 50), st.just(1.0)),
    (Poisson(), st.floats(0.05, 15), st.floats(-0.99, 50), st.just(1.0)),
]


@pytest.mark.parametrize(("family", "means", "tilts", "sigmas"), CURVES, ids=lambda c: str(c)[:9])
def test_tilt_solves_its_equation_and_rate_is_its_derivative(family, means, tilts, sigmas):
    @HYPOTHESIS
    @given(means, tilts, sigmas)
    def check(mu, s, sigma):
        lam, rate = tilt(family, mu, s, sigma)
        v = variance(family.name, lam, sigma)
        assert lam - mu + s * v == pytest.approx(0, abs=1e-11 * (1 + abs(mu) + abs(s * v)))
        h = 1e-5 * (1 + abs(s)) if family.name != "poisson" else 1e-5 * (1 + s)
        slope = (tilt(family, mu, s + h, sigma)[0] - tilt(family, mu, s - h, sigma)[0]) / (2 * h)
        assert rate == pytest.approx(-slope, rel=1e-4, abs=1e-9)
        assert rate > 0

    check()


@pytest.mark.parametrize(
    ("family", "mu"), [(Gaussian(), 0.3), (Bernoulli(), 0.3), (Poisson(), 2.0)]
)
@pytest.mark.parametrize("s", [-0.7, -0.1, 0.0, 0.4, 3.0])
def test_tilt_minimises_divergence_plus_tilt(family, mu, s):
    lam, _ = tilt(family, mu, s)
    here = divergence(family, mu, lam) + s * lam
    for other in lam + np.array([-0.1, -0.01, 0.01, 0.1]) * min(lam, 1 - lam if lam < 1 else lam):
        assert divergence(family, mu, other) + s * other > here


def test_bernoulli_tilt_keeps_its_digits_at_both_ends():
    # For large s lam ~ mu / s, for large -s 1 - lam ~ (1 - mu) / -s.
    assert tilt(Bernoulli(), 0.3, 1e12)[0] == pytest.approx(0.3e-12, rel=1e-9)
    near_one = tilt(Bernoulli(), 1 - 1e-6, -1e6)[0]
    assert 1 - near_one == pytest.approx(1e-12, rel=1e-3)


def test_poisson_tilt_ends_where_it_says():
    assert Poisson.lowest_tilt == -1.0
    assert tilt(Poisson(), 2.0, -1 + 1e-9)[0] == pytest.approx(2e9)
    assert Gaussian.lowest_tilt == Bernoulli.lowest_tilt == -math.inf


# ------------------------------------------------------------ coordinates and parameters


def test_names():
    families = (Gaussian(), Bernoulli(), Poisson(), Bounded())
    assert [f.name for f in families] == ["gaussian", "bernoulli", "poisson", "bounded"]


def test_bounded_goes_to_the_unit_interval_and_back():
    family = Bounded(-2.0, 3.0, domain=(-1.0, 0.5))
    assert family.to_unit([-2.0, 0.5, 3.0]).tolist() == [0.0, 0.5, 1.0]
    assert family.from_unit([0.0, 0.5, 1.0]).tolist() == [-2.0, 0.5, 3.0]
    assert family.unit_domain() == (0.2, 0.5)
    assert family.range_of_means() == (-2.0, 3.0)
    assert Gaussian(domain=(-1, 2)).unit_domain() == (-1.0, 2.0)
    assert Poisson().unit_domain() is None


def test_sigmas():
    assert Gaussian(2).sigmas(3).tolist() == [2.0, 2.0, 2.0]
    assert Gaussian([1, 2]).sigmas(2).tolist() == [1.0, 2.0]
    assert Gaussian(np.array([1.0, 2.0])) == Gaussian((1.0, 2.0))
    assert Bernoulli().sigmas(2).tolist() == [1.0, 1.0]
    with pytest.raises(ProblemError, match=r"sigma has 2 numbers for 3 arms; give one number, or"):
        Gaussian([1, 2]).sigmas(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), r"sigma must be positive; got 0\."),
        (lambda: Gaussian(-1), r"sigma must be positive; got -1\."),
        (lambda: Gaussian(math.nan), r"sigma must be finite; got nan\."),
        (lambda: Gaussian(math.inf), r"sigma must be finite; got inf\."),
        (lambda: Gaussian("1"), r"sigma must be a number; got '1'\."),
        (lambda: Gaussian(True), r"sigma must be a number; got True\."),
        (lambda: Gaussian([1.0, 0.0]), r"sigma of arm 2 must be positive; got 0\."),
        (lambda: Gaussian([None]), r"sigma of arm 1 must be a number; got None\."),
        (lambda: Bounded(1.0, 1.0), r"need low < high; got low = 1, high = 1\."),
        (lambda: Bounded(2, 1), r"need low < high; got low = 2, high = 1\."),
        (lambda: Bounded(math.nan, 1), r"low must be finite; got nan\."),
        (lambda: Bounded(0, math.inf), r"high must be finite; got inf\."),
        (lambda: Gaussian(domain=3), r"domain must be two numbers \[low, high\]; got 3\."),
        (lambda: Gaussian(domain=(1, 2, 3)), r"domain must be two numbers .*; got \(1, 2, 3\)\."),
        (lambda: Gaussian(domain=(2, 1)), r"domain must have low < high; got \[2, 1\]\."),
        (lambda: Gaussian(domain=(0, math.nan)), r"domain's high end must be finite; got nan\."),
        (lambda: Gaussian(domain=(-math.inf, 0)), r"domain's low end must be finite; got -inf\."),
        (lambda: Bernoulli(domain=(-0.1, 0.5)), r"leaves the range of bernoulli means, \[0, 1\]"),
        (lambda: Bernoulli(domain=(0.5, 1.1)), r"domain \[0\.5, 1\.1\] leaves the range"),
        (lambda: Poisson(domain=(-1, 2)), r"leaves the range of poisson means, \[0, inf\]"),
        (lambda: Bounded(1, 5, domain=(0, 2)), r"leaves the range of bounded means, \[1, 5\]"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


@pytest.mark.parametrize(
    ("family", "mean", "message"),
    [
        (Bernoulli(), 0.0, r"arm 'y' is 0, but a bernoulli mean must be strictly between 0 and 1"),
        (Bernoulli(), 1.0, r"arm 'y' is 1, but a bernoulli mean must be strictly between 0 and 1"),
        (Poisson(), 0.0, r"arm 'y' is 0, but a poisson mean must be greater than 0\."),
        (Poisson(), -2.0, r"arm 'y' is -2, but a poisson mean must be greater than 0\."),
        (
            Bounded(0.1, 5),
            5.0,
            r"a bounded mean must be strictly between 0.1 and 5",
        ),
        (Gaussian(domain=(0, 1)), 1.5, r"arm 'y' is 1.5, outside the stated domain \[0, 1\]"),
    ],
)
def test_bad_means_are_named(family, mean, message):
    with pytest.raises(MeansError, match=message):
        family.check_means(np.array([0.5, mean]), ["x", "y"])


def test_good_means_pass():
    for family in (Gaussian(), Bernoulli(), Poisson(), Bounded(-1, 1), Gaussian(domain=(0.5, 1))):
        family.check_means(np.array([0.5, 0.9]), ["x", "y"])


# ------------------------------------------------------------ what others read in a family


@HYPOTHESIS
@given(st.sampled_from([Gaussian(0.3), Bernoulli()]), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_gaussian_rewards_are_no_more_informative(family, mu, lam):
    (sigma,) = family.gaussian_deviations(1)
    assert divergence(family, mu, lam, sigma) >= (mu - lam) ** 2 / (2 * sigma**2) * (1 - 1e-9)


def test_poisson_rewards_have_no_largest_deviation():
    assert Poisson().gaussian_deviations(3) is None


@pytest.mark.parametrize(
    ("family", "limit"),
    [
        (Gaussian(1.0), 1e30),
        (Gaussian((2.0, 0.5)), 5e29),
        (Gaussian(1e150), 1e150),
        (Gaussian(1e-150), 1e-120),
        (Poisson(), 1e30),
        (Bounded(-1e160, 1e160), 1e150),
    ],
)
def test_absurd_rewards_are_refused_in_words(family, limit):
    assert family.check_reward(limit) is None
    if family.name != "poisson":
        assert family.check_reward(-limit) is None
    for reward in (limit * 1.01, 1e151, -1e151, 1e308, -1.7e308, 10**400, -(10**400), 10**5000):
        with pytest.raises(RewardError, match=r"at most [15]e.\d+ in size; got about -?1e-?\d+\."):
            family.check_reward(np.float64(reward) if isinstance(reward, float) else reward)
    with pytest.raises(RewardError, match=r"; got inf\."):
        family.check_reward(np.inf)
