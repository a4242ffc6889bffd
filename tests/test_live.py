"""Events of a live study in compiled code: order, grouping, pulls in flight, thresholds."""

import math

import numpy as np
import pytest

import engines
import simplexplore as sx
from simplexplore.exploration.seeding import streams
from simplexplore.kernels.records import ASKED, ELSEWHERE, EXPIRED, LATE, TOLD, VERTEX
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.problem.problem import Problem
from simplexplore.samplers import top_two_within

ARMS = ["a", "b", "c", "d", "e"]
MEANS = np.array([0.9, 0.5, 0.4, 0.85, 0.7])


def star(rewards=None, scenario="anytime"):
    rows = {"first": "a + b <= 0.5", "second": "c + d <= 0.5"}
    return Problem(ARMS, rows, rewards or Gaussian(1.0), scenario=scenario, means=MEANS)


def engine_for(problem, sampler="ctns", threshold="mixture", delta=1e-9, seed=0):
    engine = engines.engine_for(problem, sampler, delta, threshold=threshold)
    engine.forget(streams(seed, range(1))[0])
    return engine


def fold(engine, kind, arms, rewards=0.0):
    arms = np.array(arms, dtype=np.int64)
    rewards = np.broadcast_to(np.asarray(rewards, dtype=float), arms.shape).copy()
    engine.fold(np.full(len(arms), kind, dtype=np.int64), arms, rewards)
    return arms.tolist()


def ask(engine, count=1):
    return fold(engine, ASKED, [-1] * count)


def warmed(engine, steps=200, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        (arm,) = ask(engine)
        fold(engine, TOLD, [arm], rng.normal(MEANS[arm]))
    return engine


def history(engine, count, seed):
    """A journal with everything in it, in a random order that makes sense."""
    rng = np.random.default_rng(seed)
    flying, lost, events = [], [], []

    def add(kind, arm, reward=0.0):
        (arm,) = fold(engine, kind, [arm], reward)
        events.append((kind, arm, reward))
        return arm

    for _ in range(count):
        move = rng.random()
        if move < 0.45 or not flying:
            flying.append(add(ASKED, -1))
        elif move < 0.8:
            arm = flying.pop(rng.integers(len(flying)))
            add(TOLD, arm, float(rng.random() < MEANS[arm]))
        elif move < 0.9:
            lost.append(flying.pop(0))
            add(EXPIRED, lost[-1])
        elif move < 0.95 and lost:
            arm = lost.pop()
            add(LATE, arm, float(rng.random() < MEANS[arm]))
        else:
            add(ELSEWHERE, int(rng.integers(5)), float(rng.integers(2)))
    return events


@pytest.mark.parametrize("rewards", [Gaussian(1.0), Bernoulli()], ids=["closed", "roots"])
def test_grouping_makes_no_difference(rewards):
    problem = star(rewards)
    one_by_one = engine_for(problem)
    events = history(one_by_one, 600, 3)
    kinds, arms, told = (np.array(column) for column in zip(*events, strict=True))
    expected = {name: array.tobytes() for name, array in one_by_one.state().items()}
    rng = np.random.default_rng(0)
    for cuts in ([], sorted(rng.choice(600, 20, replace=False).tolist())):
        engine = engine_for(problem)
        for first, last in zip([0, *cuts], [*cuts, 600], strict=True):
            chosen = arms[first:last].copy()
            chosen[kinds[first:last] == ASKED] = -1  # replay must choose the same
            engine.fold(kinds[first:last], chosen, told[first:last].astype(float))
            assert chosen.tolist() == arms[first:last].tolist()
        assert {name: array.tobytes() for name, array in engine.state().items()} == expected


def test_bounds_of_before_find_the_challenger(monkeypatch):
    """Of top-two within limits, though pulls that expire make an arm rarer than it was."""
    found_by_bounds = top_two_within.challenger_of
    expired = []

    def checked(setting, table, run, memory, price):
        first, last = table.first_edge[run.integers[VERTEX] :][:2]
        scores = []
        for edge in range(first, last):
            entries = slice(*table.first_entry[edge : edge + 2])
            arms, squares = table.arm[entries], np.square(table.v[entries])
            spread = squares / (np.array(run.n) * setting.pulls_for_one)[arms]
            tried = squares.sum() / spread.sum()
            scores.append(run.value[edge - first] + price * math.log(tried))
            low, since, rate = (memory.edges[row][edge] for row in (1, 2, 3))
            if rate > 0 and not any(run.given_up):
                high = low + 2e-9 + rate * (sum(run.n) - since)
                assert low < math.log(tried) < high
        found = found_by_bounds(setting, table, run, memory, price)
        assert scores[found - first] <= min(scores) + 1e-12
        expired.append(sum(run.given_up))
        return found

    monkeypatch.setattr(top_two_within, "challenger_of", checked)
    engine = warmed(engines.uncompiled(engine_for(star(), "top-two")), 50)
    for _ in range(3):
        flying = ask(engine, 100)
        fold(engine, EXPIRED, flying)
        warmed(engine, 50)
        fold(engine, LATE, flying, MEANS[flying])
    assert [expired.count(number) > 100 for number in (0, 100)] == [True, True]


def test_the_journal_decides_which_arm_was_played():
    engine = warmed(engine_for(star()))
    (arm,) = ask(warmed(engine_for(star())))
    other = (arm + 1) % 5
    assert fold(engine, ASKED, [other]) == [other]
    assert engine.pending[other] == 1


def test_asking_leaves_the_evidence_alone():
    for rewards in (Gaussian(1.0), Bernoulli()):
        problem = star(rewards)
        engine = engine_for(problem)
        history(engine, 300, 5)
        names = ("n", "mean", "clipped", "gap", "spread", "value", "scale")
        before = {name: getattr(engine.run, name).copy() for name in names}
        pulls = engine.pulls
        ask(engine, 40)
        assert engine.pulls == pulls
        for name, array in before.items():
            assert array.tobytes() == getattr(engine.run, name).tobytes(), name


@pytest.mark.parametrize("sampler", ["ctns", "top-two"])
def test_batches_do_not_pile_on_one_arm(sampler):
    problem = star(scenario="end-of-time")
    engine = warmed(engine_for(problem, sampler))
    counts = np.bincount(ask(engine, 200), minlength=5)
    assert counts.max() <= 0.6 * 200
    pulled = engine.run.n + counts
    # As far as the means are known, the whole is spread like the optimal allocation.
    means = engine.run.mean
    bound = sx.lower_bound(problem, means)
    rate = min(
        (edge.gap**2 / (2 * (edge.direction**2 / (pulled / pulled.sum())).sum()))
        for edge in bound.edges
    )
    assert rate * bound.characteristic_time > 0.75  # 1 is the optimum


def test_tracking_follows_pulled_counts():
    engine = warmed(engine_for(star()))
    counts = np.bincount(ask(engine, 500), minlength=5)
    assert np.abs(engine.run.n + counts - engine.run.target).max() < 2
    # ... which are within the constraints up to a pull or two.
    share = (engine.run.n + counts) / 700
    assert share[0] + share[1] <= 0.5 + 2 / 700
    assert share[2] + share[3] <= 0.5 + 2 / 700


@pytest.mark.parametrize("scenario", ["end-of-time", "anytime"])
def test_first_pulls_in_one_batch(scenario):
    problem = star(scenario=scenario)
    engine = engine_for(problem)
    arms = ask(engine, 60)
    # An arm in flight counts as tried; limits may change the order.
    assert sorted(arms[:5]) == [0, 1, 2, 3, 4]
    assert scenario == "anytime" or arms[:5] == [0, 1, 2, 3, 4]
    counts = np.bincount(arms, minlength=5)
    assert np.abs(counts - 60 * engine._setting.inside).max() < 1.5
    assert not engine.is_warm
    # Answers in any order; the policy is there once each arm has one.
    for i, arm in enumerate(reversed(arms)):
        fold(engine, TOLD, [arm], MEANS[arm])
        seen = set(arms[len(arms) - 1 - i :])
        assert engine.is_warm == (len(seen) == 5)
    assert engine.pending.sum() == 0
    assert engine.policy.tolist() == [0.5, 0, 0, 0.5, 0]


def test_pulls_that_never_come_back_starve_nobody():
    rng = np.random.default_rng(4)
    engine = warmed(engine_for(star()))
    for _ in range(4000):
        (arm,) = ask(engine)
        if rng.random() < 0.4:
            fold(engine, EXPIRED, [arm])
        else:
            fold(engine, TOLD, [arm], rng.normal(MEANS[arm]))
    assert engine.run.target.sum() == pytest.approx(engine.pulls)
    assert np.abs(engine.run.n - engine.run.target).max() < 5


def test_pulls_made_elsewhere_take_a_turn_of_the_target():
    engine = warmed(engine_for(star()))
    fold(engine, ELSEWHERE, [0] * 60, MEANS[0])
    assert engine.run.target.sum() == pytest.approx(engine.pulls) == 260


def test_late_rewards_take_their_share_back():
    engine = warmed(engine_for(star()))
    target = engine.run.target.copy()
    arms = ask(engine, 50)
    whole = engine.run.target.copy()
    fold(engine, EXPIRED, arms)
    assert engine.run.target.sum() == pytest.approx(target.sum())
    fold(engine, LATE, arms, [MEANS[arm] for arm in arms])
    assert engine.run.target == pytest.approx(whole)
    assert engine.pulls == 250
    assert engine.pending.tolist() == [0] * 5


def test_a_state_goes_on_in_another_engine():
    for rewards in (Gaussian(1.0), Bernoulli()):
        engine = engine_for(star(rewards))
        history(engine, 500, 8)
        other = engine_for(star(rewards), seed=99)
        other.restore(engine.state())
        assert ask(other, 30) == ask(engine, 30)
        fold(other, ELSEWHERE, [2], 1.0)
        fold(engine, ELSEWHERE, [2], 1.0)
        assert {k: v.tobytes() for k, v in other.state().items()} == {
            k: v.tobytes() for k, v in engine.state().items()
        }


def test_a_state_of_vertices_met_on_the_way():
    # Without a union bound, vertices are met on the way and their order matters.
    problem = Problem(8, ["a1 + a2 + a3 <= 0.5", "a4 + a5 <= 0.4", "a6 + a7 <= 0.7"])
    engine = engine_for(problem, threshold="gk16", delta=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(300):
        (arm,) = ask(engine)
        fold(engine, TOLD, [arm], rng.normal())
    assert len(engine.state()["followed"]) > 1
    other = engine_for(problem, threshold="gk16", delta=1e-12)
    other.restore(engine.state())
    assert other.policy.tolist() == engine.policy.tolist()
    assert ask(other, 20) == ask(engine, 20)


def test_a_state_of_another_problem_is_refused():
    state = warmed(engine_for(star())).state()
    with pytest.raises(ValueError, match="does not fit"):
        engine_for(Problem(3, ["a1 <= 0.5"])).restore(state)


def robbins_level(engine, direction):
    """The Gaussian mixture threshold on the scale of the statistic, written out."""
    n, used = engine.run.n, direction != 0
    log_union = engine._setting.log_union + math.log(7)
    levels = []
    for c in 4.0 ** np.arange(7):
        spread = (direction[used] ** 2 * (n[used] + c) / n[used] ** 2).sum()
        plain = (direction[used] ** 2 / n[used]).sum()
        levels.append((log_union + 0.5 * np.log1p(n[used] / c).sum()) * spread / plain)
    return min(levels)


def test_thresholds_of_edges():
    engine = warmed(engine_for(star()))
    before = engine.run.clipped.copy()
    directions, (statistics, levels) = engine.directions(), engine.evidence()
    assert engine.run.clipped.tobytes() == before.tobytes()
    assert levels == pytest.approx([robbins_level(engine, d) for d in directions], rel=1e-9)
    gaps = directions @ engine.run.mean
    spreads = (directions**2 / engine.run.n).sum(axis=1)
    assert statistics == pytest.approx(gaps**2 / (2 * spreads))
    heuristic = warmed(engine_for(star(), threshold="gk16", delta=0.1 / 1e8))
    expected = math.log((1 + math.log(200)) / 1e-9)
    assert heuristic.evidence()[1] == pytest.approx(expected, rel=1e-9)


def test_a_smaller_delta_only_moves_thresholds():
    engine, other = (warmed(engine_for(star(), delta=1e-6)) for _ in range(2))
    levels = engine.evidence()[1]
    engine.tighten(1e-8)
    assert (engine.evidence()[1] > levels + 4).all()
    assert ask(engine, 50) == ask(other, 50)
