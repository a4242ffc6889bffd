"""What `top-two` makes of bounded rewards, and of means that tell nothing."""

import numpy as np
import pytest

from engines import engine_for, stream
from simplexplore import Bounded, Problem
from simplexplore.samplers.top_two import PRIOR, allocate, share_of_variance

ROWS = ["0.538*a1 + 0.865*a2 + 0.842*a3 + 0.938*a4 + 0.798*a5 + 0.05*a6 <= 0.82"]


def told(problem, rewards):
    """An engine that was told rewards by arm."""
    engine = engine_for(problem, "top-two", threshold="tilt")
    engine.begin(stream())
    for arm, values in enumerate(rewards):
        for value in values:
            engine.observe(arm, value)
    engine.advance()
    return engine


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_variance_is_that_of_the_rewards(spread):
    rng = np.random.default_rng(3)
    rewards = [np.clip(rng.normal(mean, spread, 50), 0, 1) for mean in (0.4, 0.6)]
    engine = told(Problem(2, rewards=Bounded(0, 1)), rewards)
    for arm, values in enumerate(rewards):
        mean, n = values.mean(), len(values)
        most = mean * (1 - mean)
        seen = (n * values.var() + PRIOR * most) / (n + PRIOR)
        found = share_of_variance(engine.workspace.config, engine.run, arm, 0.0)
        assert found == pytest.approx(seen / most, rel=1e-4)
        # A gap of 0.3 at a strength of 3, the strongest tilt, leaves 0.1.
        with_gap = share_of_variance(engine.workspace.config, engine.run, arm, 0.3)
        assert with_gap == pytest.approx(min(1.0, (seen + 0.1) / most), rel=1e-4)


def test_rewards_at_the_two_ends_have_all_of_it():
    engine = told(Problem(2, rewards=Bounded(0, 1)), [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    for arm in range(2):
        assert share_of_variance(engine.workspace.config, engine.run, arm, 0.0) == pytest.approx(
            1.0
        )


def test_quieter_arms_get_fewer_samples():
    rng = np.random.default_rng(5)
    rewards = [np.clip(rng.normal(mean, s, 200), 0, 1) for mean, s in ((0.6, 0.02), (0.5, 0.2))]
    engine = told(Problem(2, rewards=Bounded(0, 1)), rewards)
    with np.errstate(all="ignore"):
        allocate(*engine.workspace.records)
    assert engine.run.w.sum() == pytest.approx(1.0)
    assert engine.run.w[0] < 0.6 * engine.run.w[1]


def test_means_that_tell_nothing_share_evenly():
    """Evidence that is rounding, and no gradient: every arm of the edge gets a part."""
    problem = Problem(6, [*ROWS, *(f"a{i} <= 0.6" for i in range(1, 7))], Bounded(0, 1))
    engine = told(problem, [[0.0], [0.0], [1.0], [0.0], [1.0, 1.0], [1.0, 1.0]])
    with np.errstate(all="ignore"):
        allocate(*engine.workspace.records)
    assert engine.run.w.sum() == pytest.approx(1.0)
    assert (engine.run.w >= 0).all()
