"""Ask and tell: the rules in the class's notes; asking itself is in test_sampler_contract.py."""

import math

import numpy as np
import pytest

import simplexplore as sx
from simplexplore import Bernoulli, Bounded, Gaussian, Poisson, Problem, RewardError, SettingError

ARMS = ["a", "b", "c"]


def explorer(rewards=None, **options):
    problem = Problem(ARMS, ["a + b <= 0.6"], rewards or Gaussian(1.0))
    options = {"sampler": "uniform", "threshold": "gk16", **options}
    return sx.Explorer(problem, **options)


def state(x):
    return (
        x.ask(),
        x.pulls,
        x.counts.tolist(),
        x.means.tolist(),
        None if x.policy is None else x.policy.tolist(),
        x.stopped,
    )


def warm(x, steps=10, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        x.tell(x.ask(), float(rng.normal()))
    return x


def test_telling_another_arm_counts():
    for sampler in ("uniform", "ctns"):
        x = warm(explorer(sampler=sampler, delta=1e-6))
        other = next(arm for arm in ARMS if arm != x.ask())
        number = ARMS.index(other)
        before, mean = x.counts.copy(), x.means[number]
        x.tell(other, 5.0)
        assert x.pulls == 11
        assert x.counts[number] == before[number] + 1
        assert x.means[number] == pytest.approx((mean * before[number] + 5) / (before[number] + 1))
        assert x.ask() in ARMS


def test_telling_out_of_order_from_the_start():
    # The first round ends once every arm has a reward, in whatever order they come.
    x = explorer(sampler="ctns", delta=1e-6)
    assert x.ask() == "a"
    x.tell("c", 0.1)
    assert x.ask() == "a"
    x.tell("c", 0.3)
    assert x.policy is None
    x.tell("a", 1.0)
    assert x.ask() == "b"
    assert x.policy is None
    x.tell("b", 0.2)
    assert x.policy == pytest.approx([0.6, 0.0, 0.4])
    assert x.counts.tolist() == [1, 1, 2]


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, "1.0", None, True])
def test_rewards_that_are_no_numbers(reward):
    x = warm(explorer(delta=1e-6))
    same = warm(explorer(delta=1e-6))
    with pytest.raises(RewardError):
        x.tell(x.ask(), reward)
    assert state(x) == state(same)
    assert state(warm(x)) == state(warm(same))  # now and later


@pytest.mark.parametrize(
    ("family", "good", "bad"),
    [
        (Bernoulli(), [0, 1, 0.0, 1.0], [0.5, 2, -1]),
        (Poisson(), [0, 3, 7.0], [0.5, -1]),
        (Bounded(-1.0, 2.0), [-1, 0.3, 2.0], [-1.01, 2.5]),
        (Gaussian(1.0), [-1e6, 0.0, 3], []),
    ],
)
def test_rewards_that_a_family_cannot_produce(family, good, bad):
    x = explorer(family, delta=1e-6)
    for reward in good:
        x.tell(x.ask(), reward)
    before = state(x)
    for reward in [*bad, math.nan]:
        with pytest.raises(RewardError):
            x.tell(x.ask(), reward)
    assert str(state(x)) == str(before)  # a mean may be NaN, which equals nothing


def test_unknown_arm():
    x = warm(explorer(delta=1e-6))
    before = state(x)
    with pytest.raises(SettingError, match=r"there is no arm 'd'\. Known: a, b, c"):
        x.tell("d", 1.0)
    with pytest.raises(SettingError, match=r"there is no arm '0'"):
        x.tell(0, 1.0)
    assert state(x) == before


@pytest.mark.parametrize("sampler", ["uniform", "ptns"])
@pytest.mark.parametrize("unused", ["d", "a"])
def test_arm_that_no_policy_uses(sampler, unused):
    used = [arm for arm in "abcd" if arm != unused]
    problem = Problem(list("abcd"), [f"{used[0]} + {used[1]} <= 0.6", f"{unused} <= 0"])
    x = sx.Explorer(problem, sampler, threshold="gk16")
    with pytest.raises(SettingError, match=rf"no feasible policy uses arm '{unused}'"):
        x.tell(unused, 1.0)
    assert x.pulls == 0
    asked = set()
    for _ in range(30):
        if x.ask() is None:
            break
        asked.add(x.ask())
        x.tell(
            x.ask(), -1.0 - "abcd".index(x.ask()) / 10
        )  # below what an arm is taken for at first
    assert asked == set(used)
    assert math.isnan(x.means["abcd".index(unused)])


def test_after_stopping():
    x = explorer(Gaussian(0.1), sampler="ctns")
    values = {"a": 1.0, "b": 0.0, "c": 0.5}
    while not x.stopped:
        x.tell(x.ask(), values[x.ask()])
        assert x.pulls < 1000
    assert x.ask() is None
    assert x.policy == pytest.approx([0.6, 0.0, 0.4])
    before = state(x)
    with pytest.raises(SettingError, match=r"has stopped: its answer is in 'policy'"):
        x.tell("a", 1.0)
    assert state(x) == before


def test_before_any_reward():
    x = explorer()
    assert x.ask() == "a"
    assert x.pulls == 0
    assert not x.stopped
    assert x.policy is None
    assert np.isnan(x.means).all()
    assert x.counts.tolist() == [0, 0, 0]


def test_seeds():
    for seed in (-1, 1.5, True):
        with pytest.raises(SettingError, match="seed must be a whole number, 0 or more"):
            explorer(seed=seed)
    arms = []
    for seed in (1, 1, 2):
        x = explorer(delta=1e-6, seed=seed)
        told = []
        for _ in range(40):
            told.append(x.ask())
            x.tell(x.ask(), 0.0)
        arms.append(told)
    assert arms[0] == arms[1] != arms[2]


def test_settings():
    with pytest.raises(SettingError, match="Did you mean 'uniform'"):
        explorer(sampler="unifrom")
    with pytest.raises(SettingError, match="Did you mean 'gk16'"):
        explorer(threshold="gk61")
    with pytest.raises(sx.ProblemError, match="delta"):
        explorer(delta=0.0)
    with pytest.raises(sx.ProblemError, match="scenario"):
        explorer(scenario="sometimes")
    assert explorer(scenario="anytime", delta=0.3).problem.delta == 0.3


@pytest.mark.parametrize("sigma", [1e-200, 1e200, (1.0, 1e155, 1.0)])
def test_deviations_whose_squares_are_no_floats(sigma):
    # Evidence would be infinite, or not a number, and a run stop after one reward of each arm.
    with pytest.raises(sx.ProblemError, match=r"must lie between 1e-150 and 1e150.*another unit"):
        explorer(Gaussian(sigma))
    assert not warm(explorer(Gaussian(1e150))).stopped


def test_the_default_is_proven():
    problem = Problem(ARMS, means=[2.0, 1.0, 0.0])
    summary = sx.simulate(problem, runs=1, seed=4).summary()
    assert (summary["sampler"], summary["threshold"]) == ("top-two", "tilt")
    assert summary["proven"]
    default, named = (sx.Explorer(problem, **s) for s in ({}, {"sampler": "top-two"}))
    assert state(warm(default)) == state(warm(named))
    assert default.confidence is not None
