"""Projection on the allocation set against a conic solver, from good and from wild starts."""

from fractions import Fraction

import numpy as np
import pytest

from engines import engine_for
from instances import AWKWARD, awkward
from simplexplore.exploration.arrays import make_duals
from simplexplore.kernels.projection import project, project_on_simplex
from twin_solvers import all_rows
from twin_solvers import project as conic_project


@pytest.mark.parametrize("seed", AWKWARD)
def test_projection_is_the_closest_point(seed):
    problem = awkward(seed, "anytime")
    engine = engine_for(problem, "cge")
    config = engine.workspace.config
    rows = len(config.shares.b)
    allowed = config.interior_allocation > 0
    rng = np.random.default_rng([seed, 9])
    converged = 0
    for case in range(60):
        wild = case % 3 == 0
        y = rng.normal(size=problem.size) * 10 ** rng.uniform(-2, 1)
        loose = 10 ** rng.uniform(-4 if wild else -1, 1, problem.size)
        duals = make_duals(rows)
        if wild:
            duals.x[:] = np.abs(rng.normal(size=rows)) * 10 ** rng.uniform(-2, 2)
        w = np.zeros(problem.size)
        price = np.zeros(problem.size)
        with np.errstate(all="ignore"):
            done = project(config.shares, duals, y, loose, price, w)
        # Whatever comes, the point is in the set.
        assert w.min() >= 0
        assert (w[~allowed] == 0).all()
        above, limit, equal, total = all_rows(config)
        assert (above @ w - limit).max(initial=0) <= 1e-9
        assert equal @ w == pytest.approx(total, abs=1e-9)
        assert done or wild
        converged += done
        if done:
            other = conic_project(y, loose, *all_rows(config), allowed)
            ours, theirs = ((((x - y) ** 2 / loose)[allowed]).sum() for x in (w, other))
            assert ours <= theirs * (1 + 1e-7) + 1e-9
    assert converged >= 50


def test_projection_on_the_simplex_is_exact():
    rng = np.random.default_rng(4)
    some_at_zero = 0
    for _ in range(300):
        size = int(rng.integers(1, 9))
        y = rng.normal(size=size) * 10 ** rng.uniform(-2, 2)
        loose = 10 ** rng.uniform(-3, 1, size)
        w = np.full(size, np.nan)
        project_on_simplex(size, y, loose, w)
        # In fractions: arms leave one by one, those first that reach zero at the lowest level.
        exact = [
            (Fraction(a), Fraction(b)) for a, b in zip(y.tolist(), loose.tolist(), strict=True)
        ]
        kept = sorted(exact, key=lambda one: one[0] / one[1])
        level = (sum(a for a, _ in kept) - 1) / sum(b for _, b in kept)
        while kept[0][0] <= level * kept[0][1]:
            kept.pop(0)
            level = (sum(a for a, _ in kept) - 1) / sum(b for _, b in kept)
        expected = [float(max(a - level * b, Fraction(0))) for a, b in exact]
        some_at_zero += 0.0 in expected
        scale = max(1.0, float(np.abs(y).max()))
        assert w == pytest.approx(expected, abs=1e-12 * scale)
        assert w.min() >= 0
    assert some_at_zero > 100
