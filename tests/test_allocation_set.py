"""The set of allocations that the bound and compiled runs share."""

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from nightly import examples
from simplexplore.bound.allocation_set import AllocationSet
from simplexplore.errors import InfeasibleError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import EXPLORATION, SCENARIOS, Problem
from strategies import systems


def allocation_set(constraints, scenario, size=4):
    return AllocationSet.of(Polytope(Problem(size, constraints)), scenario)


def test_simplex_has_room_for_all_arms_and_in_play_are_those_of_policies():
    allowed = allocation_set(["a4 <= 0", "a1 + a2 <= 0.5"], "end-of-time")
    assert allowed.is_simplex
    assert allowed.arms.all()
    assert allowed.in_play.tolist() == [True, True, True, False]
    assert allowed.inside.tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert allowed.deep.tolist() == [0.25] * 4
    assert allowed.start == pytest.approx([1.0])
    assert allowed.width == 0.25


def test_feasible_set_has_the_rows_of_the_constraints():
    allowed = allocation_set(["a4 <= 0", "a1 + a2 <= 0.75", "a1 == a3"], "anytime")
    assert not allowed.is_simplex
    assert allowed.arms.tolist() == allowed.in_play.tolist() == [True, True, True, False]
    assert allowed.free.tolist() == [0, 1, 2]
    assert allowed.above.shape == (1, 4)
    assert allowed.equal.shape == (2, 4)
    assert allowed.inside == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert allowed.width > 0


@pytest.mark.parametrize("scenario", [*SCENARIOS, EXPLORATION])
@given(system=systems())
@examples(15)
def test_points_lie_inside_and_start_prices_every_arm_alike(system, scenario):
    problem = system.problem()
    if scenario == EXPLORATION:
        if not system.rows:
            return
        problem = problem.replace(constraints=(), exploration=problem.constraints)
    try:
        polytope = Polytope(problem)
    except InfeasibleError:
        return
    allowed = AllocationSet.of(polytope, scenario)
    for w in (allowed.inside, allowed.deep):
        assert (w >= 0).all()
        assert allowed.equal @ w == pytest.approx(allowed.total)
        assert (allowed.room(w) >= -1e-12).all()
        assert (w >= allowed.floor - 1e-12).all()
        assert (w <= allowed.cap + 1e-12).all()
    in_play = allowed.in_play & allowed.arms
    prices = np.vstack([allowed.above, allowed.equal]).T @ allowed.start
    assert prices[in_play & (allowed.floor < allowed.cap)] == pytest.approx(1.0)
    rows = allowed.as_rows()
    prices = np.vstack([rows.above, rows.equal]).T @ rows.start
    assert prices[in_play] == pytest.approx(1.0)
    assert (allowed.costs == 1.0).all()


def test_pulls_for_one_are_one_over_the_largest_share_that_each_limit_alone_leaves():
    allowed = allocation_set(["40*a1 + 40*a2 + a3 <= 0.5"], "anytime")
    assert allowed.pulls_for_one == pytest.approx([80, 80, 2, 1])
    assert allocation_set(["a1 + a2 <= 0.5"], "end-of-time").pulls_for_one.tolist() == [1.0] * 4
    constraints = ["3*a1 + a2 - a3 <= 0.2", "a2 + 2*a3 <= 1.5", "a4 <= 0.1", "a5 <= 0"]
    found = allocation_set(constraints, "anytime", 5).pulls_for_one
    for a in range(4):
        alone = [
            linprog(-np.eye(4)[a], [row], [limit], np.ones((1, 4)), [1.0]).fun
            for row, limit in (([3, 1, -1, 0], 0.2), ([0, 1, 2, 0], 1.5), ([0, 0, 0, 1], 0.1))
        ]
        assert found[a] == pytest.approx(-1 / max(alone))


def test_least_share_is_largest_inside_and_rows_count_deep_inside():
    allowed = allocation_set(["a1 <= 0.25"], "anytime")
    assert allowed.inside == pytest.approx([0.25] * 4)
    assert allowed.room(allowed.inside) == pytest.approx([0.0])
    assert allowed.holds_strictly(allowed.deep)
    assert not allowed.holds_strictly(np.array([0.3, 0.3, 0.2, 0.2]))


def test_mended_allocation_meets_equalities_and_rows():
    allowed = allocation_set(["a1 + a2 <= 0.5", "a3 == a4"], "anytime")
    mended = allowed.mended(np.array([0.30001, 0.2, 0.25, 0.2499]))
    assert allowed.equal @ mended == pytest.approx(allowed.total, abs=1e-12)
    assert (allowed.room(mended) >= -1e-15).all()
    assert mended == pytest.approx([0.3, 0.2, 0.25, 0.25], abs=1e-3)
