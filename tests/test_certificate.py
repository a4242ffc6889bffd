"""Certificates trust no solver: any weights and prices, and rounding counted."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import precise
from precise import DIGITS, decimal, rational
from simplexplore import Bernoulli, Gaussian, Poisson, Problem, lower_bound
from simplexplore.bound.certificate import Certificate, Program, time_and_error
from strategies import CASES, case


def solved(problem, means):
    """The program of the anytime scenario, and the proof that comes with its solution."""
    scenario = lower_bound(problem, means).scenarios["anytime"]
    return Program.of(problem, np.array(means), "anytime"), scenario.certificate


def lower(program, proof, **changes):
    """What other weights and prices prove."""
    other = replace(proof, **changes)
    parts = other.allocation, other.weights, other.prices, other.equality_prices
    return Certificate.of(program, *parts).lower


def even(program, w):
    """What an allocation proves with the same weight on all edges, and no prices."""
    none, free = np.zeros(len(program.allowed.limits)), np.zeros(len(program.allowed.b_eq))
    return Certificate.of(program, np.array(w), np.ones(program.count), none, free)


def test_a_proof_holds_for_its_own_problem_alone():
    problem = Problem(3, ("a1 + a2 <= 0.5",), Gaussian(1.0), means=[1.0, 0.8, 0.2])
    bound = lower_bound(problem)
    for name, scenario in bound.scenarios.items():
        proof = scenario.certificate
        assert proof.lower <= scenario.characteristic_time <= proof.upper
        assert proof.gap == scenario.relative_gap < 1e-8
        assert proof.upper <= proof.lower * (1 + proof.gap) * (1 + 1e-15)
        assert proof.verify(problem, bound.means, name)
        easier = np.add(bound.means, [0.1, 0.0, 0.0])
        assert not proof.verify(problem, easier, name)
        assert not proof.verify(problem.replace(rewards=Gaussian(0.9)), bound.means, name)
        assert not proof.verify(problem.replace(costs={"a1": 2.0}), bound.means, name)
        assert not proof.verify(Problem(4), [*bound.means, 0.0], name)
        # Nor is more promised than was proven.
        assert not replace(proof, lower=proof.lower * (1 + 1e-12)).verify(problem, bound.means)
        assert not replace(proof, upper=proof.upper * (1 - 1e-12)).verify(problem, bound.means)
    outside = replace(bound.scenarios["anytime"].certificate, allocation=np.array([0.6, 0.2, 0.2]))
    assert not outside.verify(problem, bound.means, "anytime")


def test_no_price_makes_the_certificate_overstate():
    # One edge needs a1 and a2 alone; a price below 0 would ask for 0.9 of the samples elsewhere.
    problem = Problem(4, ("a3 + a4 <= 0.9",), Gaussian(1.0))
    program, proof = solved(problem, [1.0, 0.9, -5.0, -5.0])
    value = program.information.closest(proof.allocation).value
    proof = replace(proof, weights=np.array([1.0, 0.0, 0.0]))
    best = lower(program, proof)
    assert 799 < best < 1 / value.min()
    rng = np.random.default_rng(2)
    for price in rng.choice([-1.0, 1.0], 200) * 10.0 ** rng.uniform(-3, 3, 200):
        other = lower(program, proof, prices=np.array([price * value[0]]))
        assert 0 < other <= best * (1 + 1e-9)


ROWS = [(), ("a1 + a2 <= 0.5",), ("a1 <= 1/3", "a2 + a3 == 0.4")]


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_certificates_of_any_point_are_below_the_time(name, rows):
    """Whatever a solver stopped at: an allocation attains no less, its prices promise no more."""
    rng = np.random.default_rng(6)
    chosen = case(name, 5, domain=name == "bounded")
    means = chosen.means(np.array([0.8, 0.6, 0.55, 0.4, 0.2]))
    problem = Problem(5, rows, chosen.family)
    program, best = solved(problem, means)
    bound = lower_bound(problem, means)
    shortest = bound.scenarios["anytime"].characteristic_time
    shortest /= 1 + bound.scenarios["anytime"].relative_gap
    close = 0
    for spread in 10.0 ** rng.uniform(-6, 1, 150):

        def shaken(x, spread=spread):
            return x * np.exp(spread * rng.normal(size=x.shape)) + 0.0

        w = shaken(best.allocation)
        found = lower(
            program,
            best,
            allocation=w / w.sum(),
            weights=shaken(best.weights),
            prices=shaken(best.prices),
            equality_prices=best.equality_prices * (1 + spread),
        )
        assert found <= shortest * (1 + 2e-8)
        close += found > 0.9 * shortest
    for share in np.linspace(0, 1, 20):
        w = (1 - share) * best.allocation + share * program.allowed.interior_allocation
        reached, error = time_and_error(program, w)
        assert reached * (1 + error) >= shortest
    assert 20 < close < 150  # some close, some not


def test_rounding_in_the_certificate_is_counted():
    # A price of the total cancels, however large it is; its rounding does not. T is 8 / gap^2.
    program = Program.of(Problem(2, (), Gaussian(1.0)), np.array([0.8, 0.5]), "anytime")
    proof = even(program, [0.5, 0.5])
    rng = np.random.default_rng(3)
    for price in 10.0 ** rng.uniform(0, 10, 300):
        found = lower(program, proof, equality_prices=np.array([price]))
        assert 0 < Fraction(found) <= Fraction(800, 9)


def test_rounding_of_prices_that_cancel_is_counted():
    # Rows that are tight at the best allocation, 1 to 1.75. T is 2 (1 + 1.75)^2 / gap^2.
    program = Program.of(Problem(2, (), Gaussian((1.0, 1.75))), np.array([0.8, 0.5]), "anytime")
    proof = even(program, [1 / 2.75, 1.75 / 2.75])
    rng = np.random.default_rng(3)
    for size in 10.0 ** rng.uniform(4, 8, 300):
        scale, prices = rng.uniform(0.5, 2, (2, 5)) * [[1, 1, 1, 1, -1], [size] * 5]
        prices[-1] = -scale[:-1] @ prices[:-1] / scale[-1]
        rows = {"A_ub": np.outer(scale, [1.75, -1.0]), "b_ub": np.zeros(5)}
        found = lower(
            replace(program, allowed=replace(program.allowed, **rows)), proof, prices=prices
        )
        assert 0 < Fraction(found) <= Fraction(121, 8) * Fraction(100, 9)


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()], ids=lambda f: f.name)
def test_a_certificate_is_below_the_time_in_its_last_digit(family):
    # Of two arms: T = 1 / d(mu, lam) with lam as far from either mean.
    rng = np.random.default_rng(4)
    closest = 0.0
    for digits in [0] * 100 + rng.uniform(3, 9, 100).tolist():  # in common
        low, high = np.sort(rng.uniform(0.01, 0.99, 2))
        means = np.array([high, high - (high - low) * 10**-digits])
        program = Program.of(Problem(2, (), family), means, "anytime")
        with localcontext(prec=DIGITS):
            high, low = (decimal(x) for x in means)
            lam = _between(family, high, low)
            share = float((lam - low) / (high - low))
            time = 1 / _divergence(family, high, lam)
            found = even(program, [share, 1 - share]).lower
            assert Decimal(found) <= time
            closest = max(closest, float(Decimal(found) / time))
    assert closest > 1 - 1e-12


@pytest.mark.parametrize("family", [Bernoulli(), Gaussian(1.0)], ids=lambda f: f.name)
@pytest.mark.parametrize("reading", [rational, Fraction], ids=["meant", "as it is"])
def test_the_error_of_a_time_is_counted(family, reading):
    # Means with eight digits in common: the float and the number that is meant by it differ.
    means = [0.5, 0.5 - 1e-8, 0.5 - 3e-8, 0.4]
    problem = Problem(4, ("a1 + a2 <= 0.5",), family)
    program = Program.of(problem, np.array(means), "anytime")
    bound = lower_bound(problem, means)
    rng = np.random.default_rng(5)
    for _ in range(10):
        w = rng.dirichlet(np.ones(4))
        found, error = time_and_error(program, w)
        true = precise.time(bound, w.tolist(), [reading(x) for x in means])
        assert abs(Decimal(found) / true - 1) <= Decimal(error)
        assert error < 1e-7


def _between(family, high, low):
    """The mean whose divergences from two others are the same."""
    if family.name == "poisson":
        return ((high * high.ln() - low * low.ln()) / (high - low) - 1).exp()
    entropy = [x * x.ln() + (1 - x) * (1 - x).ln() for x in (high, low)]
    odds = ((entropy[0] - entropy[1]) / (high - low)).exp()
    return odds / (1 + odds)


def _divergence(family, mu, lam):
    part = mu * (mu / lam).ln()
    if family.name == "poisson":
        return part + lam - mu
    return part + (1 - mu) * ((1 - mu) / (1 - lam)).ln()


@pytest.mark.parametrize(
    ("means", "limit"),
    [
        ([2e-3, 4e-5, 934.0, 1.2e10, 1.7e-9, 1e-5, 2.5e-12], 0.81),
        ([5.4e10, 1.4e-6, 440.0, 5.8e-12, 1.4e10, 6.8e6, 30.0], 0.37),
        ([7e-5, 2e-4, 4e-7, 3.4e9, 0.12, 8e-12], 0.5),
    ],
)
def test_rates_that_span_24_orders_of_magnitude(means, limit):
    """A limit that does not bind, found by another method without it."""
    problem = Problem(len(means), [f"a1 + a2 <= {limit}"], rewards=Poisson())
    found = lower_bound(problem, means).scenarios
    free, limited = found["end-of-time"], found["anytime"]
    assert free.allocation[:2].sum() < limit - 0.01
    assert limited.relative_gap < 1e-8
    assert limited.characteristic_time == pytest.approx(free.characteristic_time, rel=1e-8)
