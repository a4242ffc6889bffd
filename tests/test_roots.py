"""The rule for roots on falling functions made to defeat it, and its twin for arrays."""

import math
from typing import ClassVar

import numpy as np
import pytest

from simplexplore import Bernoulli, Poisson, Problem
from simplexplore.bound.information import Information
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.roots import is_closed, next_guess


def root(function, slope, x, tolerance=0.0):
    """The root, and the number of evaluations."""
    low, high, before, count = 0.0, math.inf, math.inf, 0
    while True:
        count += 1
        assert count < 1000  # it goes round in circles
        excess = function(x)
        low, high = (x, high) if excess > 0 else (low, x)
        if not abs(excess) > tolerance or is_closed(low, high):
            return x, count
        x, before = next_guess(x, excess, before, -slope(x), low, high)


def cycle(x):
    """Newton's method jumps between 1 and 3 for ever: x - f / f' is 4 - x."""
    return math.copysign(math.sqrt(abs(2.0 - x)), 2.0 - x)


def cycle_slope(x):
    return -0.5 / math.sqrt(max(abs(2.0 - x), 1e-300))


FUNCTIONS = {
    "cycle": (cycle, cycle_slope, 2.0),
    "step": (lambda x: 1.0 if x < 7.3 else -1.0, lambda _: -1e-9, 7.3),
    "flat": (lambda x: 1.0 - min(x, 5.0) / 5.0 if x < 5 else 5.0 - x, lambda _: -0.2, 5.0),
    "no slope": (lambda x: 1.0 - x, lambda _: 0.0, 1.0),
    "wrong slope": (lambda x: math.exp(-x) - 1e-3, lambda _: -1e6, -math.log(1e-3)),
    "pole": (
        lambda x: 1e12 - 1 / max(1 - x, 1e-300),
        lambda x: -1 / max((1 - x) ** 2, 1e-300),
        1.0,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("start", [1e-9, 1.0, 3.0, 1e9])
def test_every_root_is_found(name, start):
    function, slope, expected = FUNCTIONS[name]
    found, count = root(function, slope, start)
    assert found == pytest.approx(expected, rel=1e-11)
    assert count < 400


def test_newton_is_as_fast_as_ever_on_smooth_functions():
    found, count = root(lambda x: math.exp(-x) - 0.3, lambda x: -math.exp(-x), 1.0, 1e-15)
    assert found == pytest.approx(-math.log(0.3), rel=1e-14)
    assert count <= 7


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()], ids=lambda f: f.name)
def test_arrays_of_roots_satisfy_their_equation(family):
    rng = np.random.default_rng(7)
    for _ in range(300):
        size = int(rng.integers(2, 7))
        means = 10.0 ** rng.uniform(-9, -0.01, size)
        polytope = Polytope(Problem(size, (), family))
        edges = polytope.edges(polytope.optimal_vertex(means))
        information = Information(edges, edges.gaps(means), means, family)
        closest = information.closest(10.0 ** rng.uniform(-9, 0, size))
        # Two arms each, with v = (1, -1): they meet.
        lam = closest.alternative
        assert lam[:, 0] == pytest.approx(lam[:, 1], rel=1e-6)
        assert (closest.error <= 1e-7).all()
        spent = closest.ceiling / np.maximum(closest.gradient, 1e-300)
        assert (spent[closest.gradient > 0] <= 1 + 1e-5).all()


class Misled(Poisson):
    """Says that its means fall a million times as fast as they do."""

    calls: ClassVar[int] = 0

    def tilt(self, mu, rest, s, room, sigma):
        Misled.calls += 1
        assert Misled.calls < 400  # it creeps
        found = super().tilt(mu, rest, s, room, sigma)
        return found._replace(rate=1e6 * found.rate)


def test_arrays_of_roots_are_found_though_slopes_are_wrong():
    means, shares = np.array([3.0, 2.0, 1.0, 0.5]), np.array([0.4, 0.1, 0.3, 0.2])
    found = []
    for family in (Poisson(), Misled()):
        polytope = Polytope(Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.7"], family))
        edges = polytope.edges(polytope.optimal_vertex(means))
        information = Information(edges, edges.gaps(means), means, family)
        found.append(information.closest(shares).alternative)
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert Misled.calls > 10


@pytest.mark.parametrize(
    ("function", "slope", "expected"),
    [
        (lambda x: 1 / (1 + x) - 0.125, lambda x: -1 / (1 + x) ** 2, 7.0),
        (lambda x: 0.7 - x**3, lambda x: -3 * x * x, 0.7 ** (1 / 3)),
        (lambda x: 1 / (1 + x) - 0.123, lambda x: -1 / (1 + x) ** 2, 1 / 0.123 - 1),
    ],
)
def test_steps_as_short_as_rounding_still_cross_the_root(function, slope, expected):
    # With no tolerance at all, Newton's steps end beside the root; the bracket closes all the same.
    found, count = root(function, slope, 1.0)
    assert found == pytest.approx(expected, rel=1e-14)
    assert count <= 12
