"""The tableau against HiGHS, in floats and in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from simplexplore.errors import NotConvergedError
from simplexplore.geometry import tableau as simplex
from simplexplore.geometry.tableau import Tableau, first_tableau

NO_SLACK = -1


def in_fractions(array):
    return np.vectorize(Fraction, otypes=[object])(array)


def solve(matrix, bound, cost, *, exact):
    """(value, point, tableau) of max cost x over {x >= 0 : matrix x = bound}, or None."""
    rows, columns = matrix.shape
    if exact:
        matrix, bound, cost = in_fractions(matrix), in_fractions(bound), in_fractions(cost)
    tableau = first_tableau(matrix, bound, np.full(rows, NO_SLACK))
    if tableau is None:
        return None
    tableau.maximise(cost, np.ones(columns, dtype=bool))
    point = np.zeros(columns, dtype=tableau.body.dtype)
    point[tableau.basis] = tableau.values
    return cost @ point, point, tableau


def random_programs(count, *, seed):
    """Bounded programs in small whole numbers; repeated rows and ties are frequent."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rows, columns = rng.integers(1, 5), rng.integers(2, 9)
        matrix = rng.integers(-2, 4, size=(rows, columns)).astype(float)
        matrix[0] = 1.0  # keeps the set bounded
        bound = rng.integers(-1, 4, size=rows).astype(float)
        bound[0] = rng.integers(1, 3)
        if rng.random() < 0.3:
            bound[1:] = matrix[1:] @ (bound[0] * np.eye(columns)[rng.integers(columns)])
        if rows > 1 and rng.random() < 0.3:
            matrix[-1], bound[-1] = 2 * matrix[0], 2 * bound[0]
        yield matrix, bound, rng.integers(-3, 4, size=columns).astype(float)


@pytest.mark.parametrize(("exact", "count"), [(False, 300), (True, 120)])
def test_same_answers_as_highs(exact, count):
    feasible = 0
    for matrix, bound, cost in random_programs(count, seed=3):
        expected = linprog(-cost, A_eq=matrix, b_eq=bound, method="highs")
        found = solve(matrix, bound, cost, exact=exact)
        assert (found is None) == (expected.status == 2)
        if found is None:
            continue
        feasible += 1
        value, point, tableau = found
        assert float(value) == pytest.approx(-expected.fun, abs=1e-9)
        assert (point >= (0 if exact else -1e-9)).all()
        residual = matrix @ point.astype(float) - bound
        assert np.abs(residual).max() < 1e-9
        # The tableau is what it says: inverse(M_B) M, over as many rows as M has rank.
        assert len(tableau.basis) == np.linalg.matrix_rank(matrix)
        basic = matrix[:, tableau.basis] @ tableau.body.astype(float)
        assert np.abs(basic - matrix).max() < 1e-8
    assert count // 4 < feasible < count


def test_slack_columns_can_start():
    # x + y <= 2, x - y <= -1 with slacks: the second must start from an artificial one.
    matrix = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, -1.0, 0.0, 1.0]])
    tableau = first_tableau(matrix, np.array([2.0, -1.0]), np.array([2, 3]))
    assert tableau is not None
    tableau.maximise(np.array([1.0, 0.0, 0.0, 0.0]), np.ones(4, dtype=bool))
    point = np.zeros(4)
    point[tableau.basis] = tableau.values
    assert point == pytest.approx([0.5, 1.5, 0.0, 0.0])


@pytest.mark.parametrize("exact", [False, True])
def test_infeasible(exact):
    matrix = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert solve(matrix, np.array([1.0, 2.0]), np.zeros(2), exact=exact) is None
    assert solve(np.ones((1, 2)), np.array([-1.0]), np.zeros(2), exact=exact) is None


def test_fractions_see_what_floats_cannot():
    tiny = Fraction(1, 10**15)
    matrix = in_fractions(np.ones((2, 1)))
    bound = np.array([Fraction(1), 1 + tiny], dtype=object)
    assert first_tableau(matrix, bound, np.full(2, NO_SLACK)) is None
    floats = first_tableau(np.ones((2, 1)), bound.astype(float), np.full(2, NO_SLACK))
    assert floats is not None


def beale():
    """Beale (1955): with Dantzig's rule and the first of tied rows, it cycles."""
    matrix = np.array(
        [
            [1.0, 0.0, 0.0, 0.25, -60.0, -0.04, 9.0],
            [0.0, 1.0, 0.0, 0.5, -90.0, -0.02, 3.0],
            [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        ]
    )
    return matrix, np.array([0.0, 0.0, 1.0]), np.array([0, 0, 0, 0.75, -150, 0.02, -6.0]), 0.05


def kuhn():
    """Kuhn's example, as in Balinski & Tucker (1969), with a bound to keep it finite."""
    matrix = np.array(
        [
            [-2.0, -9.0, 1.0, 9.0, 1.0, 0.0, 0.0],
            [1 / 3, 1.0, -1 / 3, -2.0, 0.0, 1.0, 0.0],
            [2.0, 3.0, -1.0, -12.0, 0.0, 0.0, 1.0],
        ]
    )
    return matrix, np.array([0.0, 0.0, 2.0]), np.array([2.0, 3.0, -1.0, -12.0, 0, 0, 0]), 2.0


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize("example", [beale, kuhn])
def test_degenerate_examples_do_not_cycle(example, exact, patient, monkeypatch):
    matrix, bound, cost, best = example()
    slack = [next(c for c in range(7) if list(matrix[:, c]) == list(row)) for row in np.eye(3)]
    if not patient:
        monkeypatch.setattr(simplex, "STALL_LIMIT", 0)  # Bland's rule from the first stall on
    if exact:
        as_read = np.vectorize(lambda x: Fraction(x).limit_denominator(1000), otypes=[object])
        matrix, bound, cost = as_read(matrix), as_read(bound), as_read(cost)
    tableau = first_tableau(matrix, bound, np.array(slack))
    assert tableau is not None
    assert tableau.basis == slack
    tableau.maximise(cost, np.ones(7, dtype=bool))
    assert float(cost[tableau.basis] @ tableau.values) == pytest.approx(best)


def test_columns_that_are_not_allowed_stay_out():
    tableau = first_tableau(np.ones((1, 3)), np.array([1.0]), np.array([NO_SLACK]))
    assert tableau is not None
    tableau.maximise(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    assert float(np.array([1.0, 2.0, 3.0])[tableau.basis] @ tableau.values) == 2.0


def test_expel_keeps_the_set_and_renumbers():
    # x0 + x1 + x2 = 1 and x0 = 0: expelling x0 leaves one row over x1, x2.
    matrix = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    tableau = first_tableau(matrix, np.array([1.0, 0.0]), np.full(2, NO_SLACK))
    assert tableau is not None
    tableau.expel(np.array([True, False, False]))
    assert len(tableau.basis) == 1
    assert tableau.body.tolist() == [[1.0, 1.0]]
    assert tableau.values.tolist() == [1.0]


def test_unbounded_is_reported_not_endless():
    tableau = Tableau(np.array([[1.0, -1.0]]), np.array([1.0]), [0])
    with pytest.raises(NotConvergedError, match="did not finish"):
        tableau.maximise(np.array([0.0, 1.0]), np.ones(2, dtype=bool))
