"""Certificates against times recomputed in 60 digits, over families and scales."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import precise
from nightly import crossed
from precise import rational
from simplexplore import Bernoulli, Bounded, Gaussian, Poisson, Problem, lower_bound

SCENARIOS = ("end-of-time", "anytime")
ROWS = ((), ("a1 + a2 <= 0.5",), ("a1 <= 1/3", "a2 + a3 == 0.4"))
RATIOS = np.array([1, 1 / 2, 1 / 3, 1 / 4])


def check(problem, means, narrow=1e-8):
    """The time at the reported allocation lies within the certificate, and none is shorter."""
    bound = lower_bound(problem, means)
    mu = [float(x) for x in means]
    # A mean is the float's own value or the number that is meant by it: either is covered.
    for reading in (rational, Fraction):
        exact = [precise.unit(problem.rewards, reading(x)) for x in mu]
        for scenario in SCENARIOS:
            found = bound.scenarios[scenario]
            gap, time = Decimal(found.relative_gap), Decimal(found.characteristic_time)
            true = precise.time(bound, found.allocation.tolist(), exact)
            assert abs(time / true - 1) <= gap, (scenario, mu, time / true - 1, gap)
            assert found.relative_gap <= narrow
            # Other allocations of the set, close by: none beats the certified lower bound.
            inside = bound.scenarios["anytime"].allocation
            for lean in (1e-3, 1e-6) if reading is rational else ():
                w = (1 - lean) * found.allocation + lean * inside
                assert precise.time(bound, w.tolist(), exact) >= time / (1 + gap) * (1 - gap)


SCALES = [10.0**-k for k in (1, 3, 5, 7, 9, 12)]


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()], ids=str)
@pytest.mark.parametrize(("q", "row"), [(0.9, ("a1 + a2 <= a3 + a4",)), (1e-7, ())], ids=str)
def test_pairs_of_capped_arms(family, q, row):
    means = q * np.array([1.0, 0.9, 0.7, 0.6, 0.5, 0.1])
    check(Problem(6, ("each <= 1/4", *row), family), means)


@pytest.mark.parametrize(
    ("family", "q", "rows"),
    crossed([Bernoulli(), Poisson(), Bounded(-3.0, 5.0)], SCALES, ROWS, every=3),
    ids=str,
)
def test_rare_outcomes(family, q, rows):
    means = family.from_unit(q * RATIOS)
    # Next to an end that is not 0, floats have few digits left of what is meant.
    narrow = 1e-8 + (1e-13 / q if family.name == "bounded" else 0.0)
    if narrow < 1e-2:
        check(Problem(4, rows, family), means, narrow)


@pytest.mark.parametrize(
    ("family", "q", "rows"),
    crossed([Bernoulli(), Bounded(0.0, 4.0)], SCALES, ROWS, every=4),
    ids=str,
)
def test_outcomes_that_are_almost_certain(family, q, rows):
    means = family.from_unit(1 - q * RATIOS)
    check(Problem(4, rows, family), means, narrow=1e-8 + 8e-15 / q)


SIZES = (
    (Poisson(), [1, 5e-13, 3.3e-13, 0.5]),
    (Poisson(), [1e12 + 4, 1e12 + 3, 1e12 + 2, 1e12 + 1]),
    (Poisson(), [1e-6, 1e3, 1.0, 30.0]),
    (Poisson(domain=(0.0, 10.0)), [1, 5e-7, 3.3e-7, 0.5]),
    (Bernoulli(), [0.5, 1e-12, 2e-12, 1 - 1e-12]),
    (Bernoulli(), [0.5, 0.5 - 1e-8, 0.5 - 2e-8, 0.4]),
    (Bernoulli(domain=(0.01, 0.6)), [0.5, 0.4, 0.02, 0.01]),
    (Gaussian(1.0), [1e12 + 4, 1e12 + 3, 1e12 + 2, 1e12 + 1]),
    (Gaussian(1e-6), [0.4, 0.3, 0.2, 0.1]),
    (Gaussian(1e6), [0.4, 0.3, 0.2, 0.1]),
    (Gaussian((1e-6, 1.0, 1e6, 1e3)), [0.4, 0.3, 0.2, 0.1]),
    (Gaussian(1.0, domain=(0.0, 0.35)), [0.35, 0.3, 0.2, 0.1]),
)


@pytest.mark.parametrize(("given", "rows"), crossed(SIZES, ROWS, every=3), ids=str)
def test_numbers_of_very_different_sizes(given, rows):
    family, means = given
    check(Problem(4, rows, family), np.array(means), narrow=1e-2)


def test_ordinary_rates_are_never_refused():
    rng = np.random.default_rng(5)
    for _ in range(15):
        size = int(rng.integers(2, 9))
        bound = lower_bound(Problem(size, (), Bernoulli()), 10.0 ** rng.uniform(-4, 0, size))
        assert max(found.relative_gap for found in bound.scenarios.values()) <= 1e-8


def test_click_rates_on_which_newton_ran_in_a_circle():
    means = np.array([0.04255, 0.08042, 0.00142, 0.01373, 0.00101, 0.00759])
    check(Problem(6, (), Bernoulli()), means)


def test_large_means_with_small_gaps_are_exact():
    # One edge at a time: 2 (1 + 1)^2 / gap^2, and half the samples for each of two arms.
    means = [1e12 + 4, 1e12 + 3]
    bound = lower_bound(Problem(2, (), Gaussian(1.0)), means, delta=1e-300)
    assert bound.characteristic_time == pytest.approx(8.0, rel=1e-12)
    assert np.isfinite(bound.scenarios["anytime"].lower_bound)


@pytest.mark.parametrize("rows", [(), ("a1 + a2 <= 0.5",)])
def test_shifted_means_have_the_time_of_small_ones(rows):
    far = lower_bound(Problem(4, rows, Gaussian(1.0)), [1e12 + x for x in (4, 3, 2, 1)])
    near = lower_bound(Problem(4, rows, Gaussian(1.0)), [4, 3, 2, 1])
    for scenario, found in far.scenarios.items():
        there = near.scenarios[scenario]
        allowed = found.relative_gap + there.relative_gap
        assert found.characteristic_time == pytest.approx(there.characteristic_time, rel=allowed)
        assert allowed < 1e-8


@pytest.mark.parametrize(
    "means",
    [
        [2.3e10, 3.1e5, 1.2e5, 5.7e-10],
        [7.0e9, 1.4e5, 1.2e4, 30.0, 3e-3, 1e-8],
        [1e12, 1.0, 1e-12],
        [4.5e10, 7.3e4, 4.6e3, 3.7e-6, 1.1e-9, 7.7e-11],
    ],
    ids=str,
)
def test_poisson_means_of_all_sizes_in_one_problem(means):
    check(Problem(len(means), (), Poisson()), np.array(means))


def test_rates_next_to_certainty_within_epsilon():
    """An edge whose closest alternative cannot be certified gets no weight; nothing is refused."""
    means, epsilon = [0.99997, 0.99999, 1.7e-4, 0.9999999], 0.538
    found = lower_bound(Problem(4, (), Bernoulli()), means, epsilon=epsilon)
    for own in found.scenarios.values():
        assert own.relative_gap <= 1e-8
        answer = [rational(x) for x in own.answer]
        least = min(
            precise.information(
                "bernoulli",
                [share - (a == other) for a, share in enumerate(answer)],
                [rational(x) for x in means],
                own.allocation.tolist(),
                offset=rational(epsilon),
            )
            for other in range(4)
            if answer[other] != 1
        )
        assert abs(own.characteristic_time * float(least) - 1) <= 1e-8


def test_ranges_far_from_zero_keep_their_digits():
    rewards = Bounded(1e6, 1e6 + 0.02)
    means = [1e6 + 0.01, 1e6 + 0.008]
    found = lower_bound(Problem(2, (), rewards), means).scenarios["end-of-time"]
    mu = [precise.unit(rewards, rational(x)) for x in means]
    true = precise.information("bernoulli", [1, -1], mu, found.allocation.tolist())
    assert found.characteristic_time * float(true) == pytest.approx(1.0, rel=1e-13)
