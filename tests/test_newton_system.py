"""The linear system of a Newton step against exact elimination of the whole of it."""

from fractions import Fraction

import numpy as np
import pytest

from simplexplore.bound import newton_system as system_module
from simplexplore.bound.newton_system import State, System, Weights

# Edges like those at a vertex lead from the first arms to one other arm each: from all of
# them together, or, where vertices are degenerate, from each of them.
SHARED = 2


@pytest.fixture(autouse=True)
def _small_systems_are_worthwhile(monkeypatch):
    monkeypatch.setattr(system_module, "WORTHWHILE", 1)


def exactly(numbers):
    return np.vectorize(Fraction, otypes=[object])(np.asarray(numbers, dtype=float))


def solve_exactly(matrix, right):
    """Gauss-Jordan elimination in fractions."""
    rows = [[*row, value] for row, value in zip(matrix.tolist(), right.tolist(), strict=True)]
    for column in range(len(rows)):
        pivot = next(i for i in range(column, len(rows)) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[column], strict=True)]
    return np.array([row[-1] for row in rows], dtype=object)


def instance(arms, rows, equalities, spread, seed, *, degenerate=False):
    """Random coefficients; weights differ by `spread` orders of magnitude."""
    rng = np.random.default_rng(seed)
    lone = np.arange(SHARED, arms)
    place = np.column_stack([np.tile(np.arange(SHARED), (len(lone), 1)), lone])
    moves = np.ones(place.shape, dtype=bool)
    if degenerate:
        place, moves = np.tile(place, (2, 1)), np.tile(moves, (2, 1))
        moves[: len(lone), 0] = moves[len(lone) :, 1] = False
    place = np.vstack([place, [0, 1, 0]])  # and one edge between shared arms
    moves = np.vstack([moves, [True, True, False]])
    above = rng.normal(size=(rows, arms))
    above = np.vstack([above, 3.0 * np.eye(arms)[SHARED : SHARED + 2]])  # limits of one arm
    equal = np.vstack([np.ones(arms), rng.normal(size=(equalities - 1, arms))])
    state, weights, right = coefficients(rng, moves, len(above), arms, equalities, spread)
    w = rng.dirichlet(np.ones(arms))
    return System(place, moves, above, equal), place, above, equal, w, state, weights, right


def coefficients(rng, moves, rows, arms, equalities, spread):
    """A convex state, weights and right-hand sides."""

    def graded(*shape):
        return 10.0 ** rng.uniform(-spread, spread, shape)

    bend = np.where(moves, rng.normal(size=moves.shape), 0.0)
    state = State(
        time=graded(len(moves)),
        gradient=np.where(moves, rng.uniform(0.5, 2.0, moves.shape), 0.0),
        curvature=np.where(moves, rng.uniform(2.0, 4.0, moves.shape), 0.0),
        twist=rng.uniform(0.5, 1.0, len(moves)),
        bend=bend,
        bend_scale=0.5 / (bend**2).sum(axis=1),
    )
    weights = Weights(
        edges=graded(len(moves)),
        stiff=graded(len(moves)),
        rows=graded(rows),
        arms=graded(arms),
    )
    right = {
        "edges": rng.normal(size=len(moves)),
        "arms": rng.normal(size=arms),
        "time": float(rng.normal()),
        "equal": rng.normal(size=equalities),
    }
    return state, weights, right


def exact_step(place, above, equal, state, weights, right):
    """The step by the whole system, in the order arms, time, equalities; edges; rows."""
    size, edges, total = above.shape[1], len(place), above.shape[1] + 1 + len(equal)
    slopes, bends = (exactly(np.zeros((edges, total))) for _ in range(2))
    matrix = exactly(np.zeros((total, total)))
    for e in range(edges):
        for entry, arm in enumerate(place[e]):
            slopes[e, arm] += Fraction(state.gradient[e, entry])
            bends[e, arm] += Fraction(state.bend[e, entry])
            own = Fraction(weights.edges[e]) * Fraction(state.curvature[e, entry])
            matrix[arm, arm] += own
        along = Fraction(weights.edges[e]) * Fraction(state.twist[e])
        across = Fraction(weights.edges[e]) * Fraction(state.bend_scale[e])
        matrix += along * np.outer(slopes[e], slopes[e]) - across * np.outer(bends[e], bends[e])
        slopes[e, size] = Fraction(1)
        matrix += Fraction(weights.stiff[e]) * np.outer(slopes[e], slopes[e])
    rows, held = exactly(above), exactly(weights.rows)
    matrix[:size, :size] += rows.T @ (held[:, None] * rows)
    matrix[range(size), range(size)] += exactly(weights.arms)
    matrix[:size, size + 1 :] = exactly(equal).T
    matrix[size + 1 :, :size] = exactly(equal)
    pulls = exactly(right["edges"])
    sides = slopes.T @ pulls
    sides[:size] += exactly(right["arms"])
    sides[size] += Fraction(right["time"])
    sides[size + 1 :] = exactly(right["equal"])
    solved = solve_exactly(matrix, sides)
    changed = pulls - exactly(weights.stiff) * (slopes @ solved)
    return solved, changed, held * (rows @ solved[:size])


def compare(step, expected, w, tolerance):
    solved, edges, rows = (np.array(part, dtype=float) for part in expected)
    size = len(w)
    for found, exact in (
        (step.arms / w, solved[:size] / w),
        (np.array([step.time]), solved[size : size + 1]),
        (step.equal, solved[size + 1 :]),
        (step.edges, edges),
        (step.rows, rows),
    ):
        assert np.abs(found - exact).max(initial=0.0) <= tolerance * np.abs(exact).max(initial=0.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("degenerate", [False, True])
@pytest.mark.parametrize(
    ("arms", "rows", "equalities", "core"),
    [
        (14, 0, 1, SHARED + 2),  # what is left: shared arms, t, one equality
        (14, 3, 2, SHARED + 3 + 3),  # and the rows that couple arms
        (14, 12, 1, 14 + 2),  # so many of them that nothing is gained
        (4, 2, 1, 4 + 2),
    ],
)
def test_steps_are_those_of_the_whole_system(arms, rows, equalities, core, degenerate, seed):
    system, *parts, w, state, weights, right = instance(
        arms, rows, equalities, 1.0, seed, degenerate=degenerate
    )
    system.factor(w, state, weights)
    assert system.unknowns == core
    step = system.solve(**right)
    compare(step, exact_step(*parts, state, weights, right), w, 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_steps_are_right_where_little_holds_some_arms(seed):
    # As at the end of a solution that leaves arms free: their pivots are tiny, and eliminating
    # them loses digits that the corrections bring back.
    system, *parts, w, state, weights, right = instance(14, 3, 1, 0.0, seed)
    hold = np.ones(14)
    hold[-3:] = 1e-11
    by_edge = np.append(hold[SHARED:], 1.0)
    weights = Weights(by_edge, by_edge, np.array([1e4, 1e4, 1.0, 1.0, 1.0]), hold)
    system.factor(w, state, weights)
    step = system.solve(**right)
    compare(step, exact_step(*parts, state, weights, right), w, 1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_right_whatever_edges_meet(seed):
    rng = np.random.default_rng(seed)
    arms, edges = int(rng.integers(3, 12)), int(rng.integers(1, 12))
    place = np.array([rng.permutation(arms)[:3] for _ in range(edges)])
    moves = rng.random(place.shape) < 0.8
    moves[:, 0] = True
    place[~moves] = 0
    above, equal = rng.normal(size=(int(rng.integers(0, 3)), arms)), np.ones((1, arms))
    above[rng.random(above.shape) < 0.5] = 0.0
    state, weights, right = coefficients(rng, moves, len(above), arms, 1, 1.0)
    w = rng.dirichlet(np.ones(arms))
    expected = exact_step(place, above, equal, state, weights, right)
    for whole in (False, True):
        system = System(place, moves, above, equal, whole=whole)
        system.factor(w, state, weights)
        assert system.is_whole or not whole
        compare(system.solve(**right), expected, w, 1e-9)
