"""Constraints that cannot hold together, none of which can be spared."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from nightly import examples
from reference_polytope import sides, vertices
from simplexplore import InfeasibleError, Problem, lower_bound
from strategies import System, systems

HYPOTHESIS = examples(20)


def solve(problem):
    """The bound where all arms tie: feasible or not is all that matters."""
    lower_bound(problem, np.zeros(problem.size))


@HYPOTHESIS
@given(
    systems(max_size=4, max_rows=5, feasible=False)
    | systems(max_size=4, max_rows=1, feasible=False, limits=True)
)
def test_infeasible_sets_are_found_and_no_part_of_a_conflict_can_be_spared(system):
    problem = system.problem()
    feasible = bool(vertices(system.sides(), system.size))
    assert feasible == (highs_status(problem) == 0)
    if feasible:
        solve(problem)
        return
    with pytest.raises(InfeasibleError, match="no policy satisfies all constraints") as error:
        solve(problem)
    conflict = [
        row
        for row, name in zip(system.rows, problem.names, strict=True)
        if name in error.value.conflict
    ]
    assert len(conflict) == len(error.value.conflict)
    assert not vertices(sides(system.size, conflict), system.size)
    for i in range(len(conflict)):
        assert vertices(sides(system.size, conflict[:i] + conflict[i + 1 :]), system.size)
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
        solve(Problem(arms, rows))
    assert error.value.conflict == tuple(f"c{i}" for i in range(1, 11))


@pytest.mark.parametrize("seed", range(30))
def test_limits_on_single_arms_that_conflict(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for a in np.repeat(range(3), rng.integers(1, 3, 3)):
        low, high = sorted(Fraction(int(x), 20) for x in rng.integers(0, 12, 2))
        ends = [(None, low), (high, None), (low, high)][rng.integers(3)]
        rows.append((tuple(Fraction(int(b == a)) for b in range(3)), *ends))
    problem = System(3, tuple(rows)).problem()
    if vertices(sides(3, rows), 3):
        solve(problem)
        return
    with pytest.raises(InfeasibleError) as error:
        solve(problem)
    pairs = zip(rows, problem.names, strict=True)
    named = [row for row, name in pairs if name in error.value.conflict]
    assert len(named) == len(error.value.conflict)
    assert not vertices(sides(3, named), 3)
    for i in range(len(named)):
        assert vertices(sides(3, named[:i] + named[i + 1 :]), 3)


def test_one_row_alone_can_conflict():
    with pytest.raises(InfeasibleError, match=r"this one cannot hold:\n  c2: .*\nRelax it\.") as e:
        solve(Problem(["a", "b"], ["a <= 0.5", "a + b <= 0.9"]))
    assert e.value.conflict == ("c2",)


def test_floors_on_many_arms_that_conflict():
    share = {a: 2 + a % 3 for a in range(80)}
    problem = Problem(80, [f"a{a + 1} >= {x}/100" for a, x in share.items()])
    with pytest.raises(InfeasibleError, match=r"these \d+ cannot hold together") as error:
        solve(problem)
    named = [share[int(name[1:]) - 1] for name in error.value.conflict]
    assert 100 < sum(named) <= 100 + min(named)


def test_caps_on_many_arms_that_conflict():
    caps = [f"a{a + 1} <= 1/25" for a in range(24)]
    with pytest.raises(InfeasibleError) as error:
        solve(Problem(24, caps))
    assert len(error.value.conflict) == 24
    with pytest.raises(InfeasibleError, match="these 2 cannot hold together") as error:
        solve(Problem(40, [*(f"a{a + 1} <= 1/30" for a in range(40)), "a7 >= 1/20"]))
    assert error.value.conflict == ("c7", "c41")


def test_a_row_among_many_caps_that_conflicts():
    rows = [*(f"a{a + 1} <= 1/30" for a in range(40)), "a4 + a9 >= 1/12"]
    with pytest.raises(InfeasibleError, match="these 3 cannot hold together") as error:
        solve(Problem(40, rows))
    assert error.value.conflict == ("c4", "c9", "c41")


def parts_that_hold(problem, error):
    """By HiGHS: whether the constraints named conflict, and whether all but each of them hold."""
    rows = [r for r in problem.constraints if r.name in error.conflict]
    assert highs_status(problem.replace(constraints=rows)) == 2
    return [
        highs_status(problem.replace(constraints=rows[:i] + rows[i + 1 :])) == 0
        for i in range(len(rows))
    ]


@pytest.mark.parametrize("is_planted", [False, True])
@pytest.mark.parametrize(("size", "count"), [(20, 8), (40, 30), (100, 100)])
def test_many_dense_rows_that_conflict(size, count, is_planted):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(count, size)).round(2)
    limit = (rows.mean(axis=1) + 0.2).round(3)
    if is_planted:  # the sum of three rows and the reverse of it
        rows[5] = -rows[:3].sum(axis=0)
        limit[5] = -limit[:3].sum() - 0.01
    else:
        limit[:] = rows.min(axis=1) * 0.7 + 0.02
    problem = Problem(size, (rows, limit))
    with pytest.raises(InfeasibleError) as error:
        solve(problem)
    held = parts_that_hold(problem, error.value)
    assert all(held)
    assert 2 <= len(held) <= size + 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("short", [1e-3, 1e-8, 1e-12])
def test_conflicts_that_floats_hardly_see(scale, short):
    rng = np.random.default_rng(3)
    rows = rng.integers(-5, 6, (12, 8)).astype(float)
    limit = rows.max(axis=1)  # the arms alone keep all of these
    rows[4], rows[7], limit[4], limit[7] = rows[9], -rows[9], 0.5, -0.5 - short
    problem = Problem(8, (rows * scale, limit * scale))
    with pytest.raises(InfeasibleError) as error:
        solve(problem)
    assert error.value.conflict == ("row5", "row8")


def test_a_limit_that_cannot_hold_alone_is_named_alone():
    with pytest.raises(InfeasibleError, match="this one cannot hold") as error:
        solve(Problem(["a", "b"], ["a >= 2", "a <= 0.5", "b <= 0.2"]))
    assert error.value.conflict == ("c1",)
