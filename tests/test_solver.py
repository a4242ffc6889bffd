"""The lower certificate trusts no solver: any multipliers, and rounding counted."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import precise
from precise import DIGITS, decimal
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.bound.bound import lower_bound
from simplexplore.bound.information import Information
from simplexplore.bound.newton import Newton, Program
from simplexplore.bound.solver import lower_certificate, solve, time_and_error
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.families import Bernoulli, Gaussian, Poisson
from simplexplore.problem.problem import Problem
from simplexplore.problem.rational import rational


def program_of(problem, means):
    polytope = Polytope(problem)
    edges = polytope.edges(polytope.optimal_vertex(means))
    means = np.array(means)
    information = Information(edges, edges.gaps(means), means, problem.rewards)
    return information, Program(np.arange(len(edges)), AllocationSet.of(polytope, "anytime"))


def start(information, program, w):
    """An allocation with the same weight on all edges, and no prices."""
    point, _ = Newton(information, program).cold_start(w, 1.0)
    return replace(point, y=np.ones_like(point.y))


def certificate(information, program, point):
    return lower_certificate(information, program, point, information.closest(point.w))


def test_no_multiplier_makes_the_certificate_overstate():
    # One edge needs a1 and a2 alone; a price below 0 would ask for 0.9 of the samples elsewhere.
    problem = Problem(4, ("a3 + a4 <= 0.9",), Gaussian(1.0))
    information, program = program_of(problem, [1.0, 0.9, -5.0, -5.0])
    point = replace(solve(information, program), y=np.array([1.0, 0.0, 0.0]))
    value = information.closest(point.w).value
    best = certificate(information, program, point)
    assert 799 < best < 1 / value.min()
    rng = np.random.default_rng(2)
    for price in rng.choice([-1.0, 1.0], 200) * 10.0 ** rng.uniform(-3, 3, 200):
        other = replace(point, l=np.array([price * point.unit / value[0]]))
        assert 0 < certificate(information, program, other) <= best * (1 + 1e-9)


def test_rounding_in_the_certificate_is_counted():
    # A price of the total cancels, however large it is; its rounding does not. T is 8 / gap^2.
    information, program = program_of(Problem(2, (), Gaussian(1.0)), [0.8, 0.5])
    point = start(information, program, np.full(2, 0.5))
    rng = np.random.default_rng(3)
    for price in 10.0 ** rng.uniform(0, 10, 300):
        found = certificate(information, program, replace(point, n=np.array([price])))
        assert 0 < Fraction(found) <= Fraction(800, 9)


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()], ids=lambda f: f.name)
def test_a_certificate_is_below_the_time_in_its_last_digit(family):
    # Of two arms: T = 1 / d(mu, lam) with lam as far from either mean.
    rng = np.random.default_rng(4)
    closest = 0.0
    for _ in range(200):
        means = np.sort(rng.uniform(0.01, 0.99, 2))[::-1]
        information, program = program_of(Problem(2, (), family), means)
        with localcontext(prec=DIGITS):
            high, low = (decimal(x) for x in means)
            lam = _between(family, high, low)
            share = float((lam - low) / (high - low))
            time = 1 / _divergence(family, high, lam)
            point = start(information, program, np.array([share, 1 - share]))
            found = certificate(information, program, point)
            assert Decimal(found) <= time
            closest = max(closest, float(Decimal(found) / time))
    assert closest > 1 - 1e-12


@pytest.mark.parametrize("family", [Bernoulli(), Gaussian(1.0)], ids=lambda f: f.name)
@pytest.mark.parametrize("reading", [rational, Fraction], ids=["meant", "as it is"])
def test_the_error_of_a_time_is_counted(family, reading):
    # Means with eight digits in common: the float and the number that is meant by it differ.
    means = [0.5, 0.5 - 1e-8, 0.5 - 3e-8, 0.4]
    problem = Problem(4, ("a1 + a2 <= 0.5",), family)
    information, program = program_of(problem, means)
    bound = lower_bound(problem, means)
    rng = np.random.default_rng(5)
    for _ in range(10):
        w = rng.dirichlet(np.ones(4))
        found, error = time_and_error(information, program, w)
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
