"""Constraints that cannot hold together, and which of them do not."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from nightly import examples
from reference_polytope import (
    sides,
    smallest_conflict,
    vertices,
)
from simplexplore.errors import InfeasibleError
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.problem import Problem
from strategies import System, systems

HYPOTHESIS = examples(20)


@HYPOTHESIS
@given(
    systems(max_size=4, max_rows=5, feasible=False)
    | systems(max_size=4, max_rows=1, feasible=False, limits=True)
)
def test_infeasible_sets_are_found_and_the_conflict_is_smallest(system):
    problem = system.problem()
    feasible = bool(vertices(system.sides(), system.size))
    assert feasible == (highs_status(problem) == 0)
    if feasible:
        Polytope(problem)
        return
    with pytest.raises(InfeasibleError, match="no policy satisfies all constraints") as error:
        Polytope(problem)
    conflict = [
        row
        for row, name in zip(system.rows, problem.names, strict=True)
        if name in error.value.conflict
    ]
    assert len(conflict) == len(error.value.conflict)
    assert not vertices(sides(system.size, conflict), system.size)
    for i in range(len(conflict)):
        assert vertices(sides(system.size, conflict[:i] + conflict[i + 1 :]), system.size)
    assert len(conflict) == smallest_conflict(system.size, system.rows)
    for name in error.value.conflict:
        assert f"  {name}: " in str(error.value)


def highs_status(problem):
    """0: feasible, 2: not."""
    above, limit, equal, total = [], [], [np.ones(problem.size)], [1.0]
    for row, lower, upper in zip(problem.matrix, problem.lower, problem.upper, strict=True):
        if lower == upper:
            equal.append(row)
            total.append(upper)
            continue
        if math.isfinite(upper):
            above.append(row)
            limit.append(upper)
        if math.isfinite(lower):
            above.append(-row)
            limit.append(-lower)
    return linprog(
        np.zeros(problem.size),
        A_ub=np.array(above) if above else None,
        b_ub=np.array(limit) if limit else None,
        A_eq=np.array(equal),
        b_eq=np.array(total),
        method="highs",
    ).status


def test_conflict_of_many_rows_is_irreducible():
    # The only conflict takes all: each arm at most 0.9/10.
    arms = [f"x{a}" for a in range(10)]
    rows = [f"{arm} <= 0.09" for arm in arms] + ["x0 + x1 <= 0.9", "x2 >= 0"]
    with pytest.raises(InfeasibleError, match="these 10 cannot hold together") as error:
        Polytope(Problem(arms, rows))
    assert error.value.conflict == tuple(f"c{i}" for i in range(1, 11))


def test_larger_conflict_first_still_names_the_smallest():
    # Dropping c1 first leaves a conflict of three, although one of two exists.
    rows = ["a >= 0.4", "a <= 0.3", "b <= 0.3", "c <= 0.3"]
    with pytest.raises(InfeasibleError, match="these 2 cannot hold together") as error:
        Polytope(Problem(["a", "b", "c"], rows))
    assert error.value.conflict == ("c1", "c2")


@pytest.mark.parametrize("seed", range(30))
def test_limits_on_single_arms_name_the_fewest(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for a in np.repeat(range(3), rng.integers(1, 3, 3)):
        low, high = sorted(Fraction(int(x), 20) for x in rng.integers(0, 12, 2))
        ends = [(None, low), (high, None), (low, high)][rng.integers(3)]
        rows.append((tuple(Fraction(int(b == a)) for b in range(3)), *ends))
    problem = System(3, tuple(rows)).problem()
    if vertices(sides(3, rows), 3):
        Polytope(problem)
        return
    with pytest.raises(InfeasibleError) as error:
        Polytope(problem)
    pairs = zip(rows, problem.names, strict=True)
    named = [row for row, name in pairs if name in error.value.conflict]
    assert len(named) == len(error.value.conflict) == smallest_conflict(3, rows)
    assert not vertices(sides(3, named), 3)


def test_one_row_alone_can_conflict():
    with pytest.raises(InfeasibleError, match=r"this one cannot hold:\n  c2: .*\nRelax it\.") as e:
        Polytope(Problem(["a", "b"], ["a <= 0.5", "a + b <= 0.9"]))
    assert e.value.conflict == ("c2",)


def test_floors_on_many_arms_that_conflict():
    share = {a: 2 + a % 3 for a in range(80)}
    problem = Problem(80, [f"a{a + 1} >= {x}/100" for a, x in share.items()])
    with pytest.raises(InfeasibleError, match="these 26 cannot hold together") as error:
        Polytope(problem)
    named = [share[int(name[1:]) - 1] for name in error.value.conflict]
    least = sorted(share.values(), reverse=True)
    count = next(n for n in range(80) if sum(least[:n]) > 100)
    assert sum(named) > 100
    assert len(named) == count


def test_caps_on_many_arms_that_conflict():
    caps = [f"a{a + 1} <= 1/25" for a in range(24)]
    with pytest.raises(InfeasibleError) as error:
        Polytope(Problem(24, caps))
    assert len(error.value.conflict) == 24
    with pytest.raises(InfeasibleError, match="these 2 cannot hold together") as error:
        Polytope(Problem(40, [*(f"a{a + 1} <= 1/30" for a in range(40)), "a7 >= 1/20"]))
    assert error.value.conflict == ("c7", "c41")


def test_a_row_among_many_caps_that_conflicts():
    rows = [*(f"a{a + 1} <= 1/30" for a in range(40)), "a4 + a9 >= 1/12"]
    with pytest.raises(InfeasibleError, match="these 3 cannot hold together") as error:
        Polytope(Problem(40, rows))
    assert error.value.conflict == ("c4", "c9", "c41")
