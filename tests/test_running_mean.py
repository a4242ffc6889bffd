"""Running means against exact sums."""

from fractions import Fraction

import numpy as np
import pytest

from engines import uncompiled
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import prepare
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.running_mean import next_mean
from simplexplore.problem.families import Gaussian
from simplexplore.problem.problem import Problem


@pytest.mark.parametrize("far", [1e9, 1e12, -1e12])
def test_means_far_from_zero_do_not_stand_still(far):
    rng = np.random.default_rng(3)
    rewards = (far + rng.normal(size=30_000)).tolist()
    mean = lost = plain = 0.0
    for n, reward in enumerate(rewards, 1):
        mean, lost = next_mean(mean, lost, reward, float(n))
        plain += (reward - plain) / n
    true = sum(map(Fraction, rewards)) / len(rewards)
    deviation = len(rewards) ** -0.5
    assert abs(float(Fraction(mean) + Fraction(lost) - true)) <= 0.01 * deviation
    assert abs(float(Fraction(mean) - true)) <= np.spacing(abs(far)) / 2 + 0.01 * deviation
    if abs(far) == 1e12:
        assert abs(float(Fraction(plain) - true)) > 0.1 * deviation


def test_ordinary_rewards_have_the_plain_update_to_the_bit():
    rng = np.random.default_rng(4)
    for rewards in (
        rng.normal(3.0, 0.5, 20_000),
        (rng.random(20_000) < 0.001).astype(float),
        rng.poisson(300.0, 20_000).astype(float),
        np.full(1_000, 0.1),
    ):
        mean = plain = lost = 0.0
        for n, reward in enumerate(rewards.tolist(), 1):
            mean, lost = next_mean(mean, lost, reward, float(n))
            plain += (reward - plain) / n
        assert mean == plain


def test_runs_keep_what_rounding_leaves_out():
    engine = Engine(prepare(Problem(2, (), Gaussian(1.0)), "uniform", "gk16"))
    engine.forget(streams(0, range(1))[0])
    run = uncompiled(engine).run
    for arm, reward in ((0, 1e12), (1, 1e12 + 1.0), *[(0, 1e12 + 0.001953125)] * 600):
        engine.observe(arm, reward)
    true = Fraction(10**12) + Fraction(1, 512) * 600 / 601
    assert abs(float(Fraction(run.mean[0]) + Fraction(run.lost[0]) - true)) < 1e-6
