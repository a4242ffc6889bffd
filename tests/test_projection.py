"""Projection on the allocation set against a conic solver, from good and from wild starts."""

import numpy as np
import pytest

from engines import engine_for
from instances import AWKWARD, awkward
from simplexplore.kernels.projection import project_within_rows
from twins import all_rows, project


@pytest.mark.parametrize("seed", AWKWARD)
def test_projection_is_the_closest_point(seed):
    problem = awkward(seed, "anytime")
    engine = engine_for(problem, "cge")
    setting = engine._setting
    rows = len(setting.limit) + len(setting.total)
    allowed = setting.inside > 0
    rng = np.random.default_rng([seed, 9])
    converged = 0
    for case in range(60):
        wild = case % 3 == 0
        y = rng.normal(size=problem.size) * 10 ** rng.uniform(-2, 1)
        loose = 10 ** rng.uniform(-4 if wild else -1, 1, problem.size)
        memory = np.zeros((5, rows))
        if wild:
            memory[0] = np.abs(rng.normal(size=rows)) * 10 ** rng.uniform(-2, 2)
        w = np.zeros(problem.size)
        system, price = np.zeros((rows, rows)), np.zeros(problem.size)
        with np.errstate(all="ignore"):
            done = project_within_rows(setting, y, loose, memory, system, price, w)
        # Whatever comes, the point is in the set.
        assert w.min() >= 0
        assert (w[~allowed] == 0).all()
        above, limit, equal, total = all_rows(setting)
        assert (above @ w - limit).max(initial=0) <= 1e-9
        assert equal @ w == pytest.approx(total, abs=1e-9)
        assert done or wild
        converged += done
        if done:
            other = project(y, loose, *all_rows(setting), allowed)
            ours, theirs = ((((x - y) ** 2 / loose)[allowed]).sum() for x in (w, other))
            assert ours <= theirs * (1 + 1e-7) + 1e-9
    assert converged >= 50
