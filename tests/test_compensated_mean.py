"""Running means against exact sums."""

from fractions import Fraction

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.kernels.compensated_mean import next_mean


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


def test_explorers_keep_what_rounding_leaves_out():
    explorer = sx.Explorer(sx.Problem(2), "uniform", threshold="gk16", delta=1e-300)
    for arm, reward in (("a1", 1e12), ("a2", 1e12), *[("a1", 1e12 + 0.001953125)] * 600):
        explorer.tell(arm, reward)
    true = Fraction(10**12) + Fraction(1, 512) * 600 / 601
    assert abs(float(Fraction(explorer.means[0]) - true)) <= np.spacing(1e12) / 2
