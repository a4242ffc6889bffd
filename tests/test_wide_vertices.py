"""Caps that meet exactly leave a vertex an edge for every pair of arms: very many are refused."""

import numpy as np
import pytest

import simplexplore as sx


def capped(size, cap):
    means = np.repeat([0.0, 5.0], size // 2)
    return sx.Problem(size, [f"each <= {cap}"], means=means)


@pytest.mark.parametrize(
    "asked", [sx.lower_bound, lambda problem: sx.simulate(problem, problem.means, "top-two")]
)
def test_caps_of_very_many_arms_that_meet_exactly_are_refused(asked):
    said = r"400 constraints bind there, where 399 would do.*20,000 edges.*move some bounds"
    with pytest.raises(sx.TooLargeError, match=said):
        asked(capped(400, "1/200"))


def test_moved_slightly_they_are_not():
    bound = sx.lower_bound(capped(400, "0.0051"))
    assert len(bound.edges) == 399
    assert bound.relative_gap <= 1e-8


def test_fewer_are_explored():
    problem = capped(40, "1/20")
    assert len(sx.lower_bound(problem).edges) == 400
    assert sx.simulate(problem, problem.means, "top-two", delta=0.1, runs=4).correct.all()
