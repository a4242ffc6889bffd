"""Stopping when no policy earns much more than the answer."""

import numpy as np
import pytest

import simplexplore as sx
from engines import engine_for, stream
from random_numbers import rewards_of_run
from reference import sampled
from simplexplore import Bernoulli, Gaussian, Problem, SettingError

MIX = Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.8"], means=[1.0, 0.8, 0.5, 0.0])
COINS = Problem(3, ["a1 <= 0.5"], Bernoulli(), means=[0.7, 0.5, 0.2])


def run_by_hand(problem, seed=0):
    """A run to its end, one reward at a time."""
    engine = engine_for(problem, "top-two", threshold="tilt")
    arm = engine.begin(stream(seed))
    means = problem.rewards.to_unit(np.asarray(problem.means))
    rng = np.random.default_rng(0)
    while arm is not None:
        reward = sampled(problem.rewards, rng, means[arm : arm + 1], np.ones(1))
        engine.observe(arm, float(reward[0]))
        arm = engine.advance()
    return engine


@pytest.mark.parametrize("problem", [MIX, COINS], ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("regret", [0.3, 0.1])
def test_it_stops_when_the_bound_is_small_or_the_best_is_known(problem, regret):
    engine = run_by_hand(problem.replace(stop_when={"regret": regret}, delta=0.2))
    known = engine.evidence.confidence_margin() >= 0
    assert engine.evidence.regret().bound <= regret or known


def test_a_larger_regret_takes_fewer_samples():
    means = [
        sx.simulate(MIX, runs=10, stop_when={"regret": regret}).stopping_times.mean()
        for regret in (0.4, 0.2, 0.1)
    ]
    assert means[0] < 0.8 * means[1]
    assert means[1] < 0.8 * means[2]


def test_it_costs_little_where_only_the_best_is_good_enough():
    plain = sx.simulate(MIX, runs=50)
    goal = sx.simulate(MIX, runs=50, stop_when={"regret": 1e-9})
    # Half of delta for each rule: log 2 more of some 9, so that 20% is never reached by chance.
    assert plain.stopping_times.mean() < goal.stopping_times.mean()
    assert goal.stopping_times.mean() < 1.2 * plain.stopping_times.mean()


def test_run_0_is_that_of_an_explorer():
    problem = MIX.replace(stop_when={"regret": 0.2})
    results = sx.simulate(problem, runs=1, seed=3)
    explorer = sx.Explorer(problem, seed=3)
    draw = rewards_of_run(problem, seed=3)
    while not explorer.stopped:
        explorer.tell(explorer.ask(), draw(explorer.ask()))
    assert explorer.pulls == results.stopping_times[0]
    np.testing.assert_array_equal(explorer.counts, results.pulls[0])


def test_answers_within_the_regret_are_right():
    # a1 and a2 are 0.04 apart: either of them is right, and a3 is not.
    problem = Problem(3, means=[2.0, 1.96, 0.0], stop_when={"regret": 0.2}, delta=0.2)
    results = sx.simulate(problem, runs=80)
    # More than 35 wrong of 80 has a probability below 1e-6 if each is below 0.2.
    assert (~results.correct).sum() <= 35
    assert results.stopping_times.max() < 100_000
    table = engine_for(problem, "top-two", threshold="tilt").workspace.table
    assert table.explore()
    good = table.right_answers(np.array([2.0, 1.96, 0.0]), 0.2)
    assert {int(np.argmax(table.policy(v))) for v in good} == {0, 1}


def test_the_regret_asked_for_is_kept():
    # Near-ties and a large delta: wrong as often as it may be, or less.
    problem = Problem(
        4, ["a1 + a2 <= 0.6"], means=[0.6, 0.5, 0.4, 0.0], stop_when={"regret": 0.2}, delta=0.3
    )
    results = sx.simulate(problem, runs=100, seed=5)
    # 100 runs wrong with probability 0.3 each: more than 53 of them with probability below 1e-6.
    assert (~results.correct).sum() <= 53


def test_ties_end():
    problem = Problem(3, means=[0.5, 0.5, 0.1], stop_when={"regret": 0.3})
    assert sx.simulate(problem, runs=20).correct.all()
    with pytest.raises(SettingError, match="not unique"):
        sx.simulate(problem.replace(stop_when=None), runs=20)


def test_where_epsilon_refuses():
    """More than 400 policies: no list of them is needed."""
    arms = 9
    problem = Problem(
        arms, [f"a{i} <= 0.21" for i in range(1, arms + 1)], means=np.linspace(1, 0, arms)
    )
    with pytest.raises(sx.SimplexploreError, match="400"):
        sx.simulate(problem.replace(epsilon=0.3), runs=1)
    results = sx.simulate(problem, runs=2, stop_when={"regret": 0.3})
    assert results.correct.all()
    assert results.stopping_times.mean() < sx.simulate(problem, runs=2).stopping_times.mean()


@pytest.mark.parametrize("threshold", ["gk16", "mixture"])
def test_only_tilt_bounds_the_regret(threshold):
    with pytest.raises(SettingError, match="stop_when goes with the threshold 'tilt'"):
        sx.simulate(MIX, stop_when={"regret": 0.1}, threshold=threshold)


def test_degenerate_policies():
    """Rows that meet in one point: the linear program has more multiples than dimensions."""
    problem = Problem(
        4,
        ["a1 + a2 <= 0.5", "a1 + a3 <= 0.5", "a1 + a4 <= 0.5", "a1 <= 0.5"],
        means=[1.0, 0.5, 0.4, 0.3],
        stop_when={"regret": 0.2},
    )
    engine = run_by_hand(problem)
    best = sx.lower_bound(problem).policy
    assert problem.means @ (best - engine.policy) <= 0.2


def test_the_unit_is_that_of_rewards():
    """Everything times ten, and the same samples."""
    small = Problem(3, ["a1 <= 0.5"], means=[1.0, 0.5, 0.0], stop_when={"regret": 0.25})
    large = Problem(
        3, ["a1 <= 0.5"], Gaussian(8.0), means=[8.0, 4.0, 0.0], stop_when={"regret": 2.0}
    )
    times = [sx.simulate(problem, runs=20).stopping_times for problem in (small, large)]
    np.testing.assert_array_equal(*times)


def test_a_study_stops_and_goes_on(tmp_path):
    problem = MIX.replace(stop_when={"regret": 0.4}, delta=0.2)
    rng = np.random.default_rng(1)

    def play(study):
        while study.answer is None:
            study.tell_many(
                (pull, problem.means[problem.arms.index(pull.arm)] + rng.normal())
                for pull in study.ask(20)
            )

    with sx.Study.create(tmp_path / "store.db", "mix", problem) as study:
        pulls = study.ask(8)
        study.tell_many((pull, float(i % 3)) for i, pull in enumerate(pulls))
        status = study.status()
        assert status["stop_when"] == {"regret": 0.4}
        assert 0 < status["progress"] < 1
        assert status["to_go"] >= 1
        assert status["to_go_range"] is None
        play(study)
        answer = study.answer
        status = study.status()
        assert status["answer"] == answer
        assert status["regret_bound"] <= 0.4 or status["confidence"] >= 0.9
        assert status["progress"] == 1
        assert study.verify()
        study.extend(delta=0.01)
        assert study.answer is None
        play(study)
        assert study.answer["rewards"] > answer["rewards"]
        assert study.verify()
    with sx.Study.open(tmp_path / "store.db", "mix") as again:
        assert again.answer["delta"] == 0.01
        assert "within 0.4 of the best" in again.answer_in_words
