"""Runs with measured limits: the same bits whoever makes them, and what they end with."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import run
from engines import ASKED, EXPIRED, EXTENDED, LATE, TOLD, engine_for, stream, streams
from simplexplore import (
    Bounded,
    Explorer,
    Gaussian,
    MeansError,
    Measured,
    Problem,
    ProblemError,
    RewardError,
    SettingError,
    TooLargeError,
    load_results,
    save_results,
    simulate,
)
from simplexplore.exploration.measured_evidence import (
    SAID_INFEASIBLE,
    SUBOPTIMAL,
    UNFINISHED,
    VIOLATES,
    WRONGLY,
)
from simplexplore.kernels.records import ANSWER, CAPPED, INFEASIBLE, NONE

MEANS = [1.0, 0.6, 0.2]
TOXICITY = Measured("toxicity", 0.5, sigma=0.5, tolerance=0.15, means=[1.0, 0.5, 0.1])
RESPONSE = Measured("response", ">= 0.2", low=0, high=1, tolerance=0.2, means=[0.9, 0.6, 0.1])


def trial(*rows, **changes):
    given = {"epsilon": 0.3, "means": MEANS, "measured": rows or (TOXICITY,), "delta": 0.2}
    return Problem(["a", "b", "c"], **{**given, **changes})


def engine(problem=None, sampler="top-two"):
    return engine_for(problem or trial(), sampler, threshold="tilt")


TWO = trial(TOXICITY, RESPONSE, rewards=Bounded(-1, 2), constraints=["c <= 0.8"], delta=0.5)
LEARNED = trial(
    replace(TOXICITY, sigma="unknown", sigma_guess=0.1),
    rewards=Gaussian("unknown", sigma_guess=0.3),
    delta=0.5,
)
CASES = {
    "one row": (trial(), "top-two"),
    "by a game": (trial(costs={"a": 3.0}), "ctns"),
    "uniform": (trial(TOXICITY), "uniform"),
    "two rows": (TWO, "top-two"),
    "unknown deviations": (LEARNED, "top-two"),
    "an arm that no policy uses": (trial(constraints=["c == 0"], means=[1.0, 0.6, 9.0]), "top-two"),
}


@pytest.mark.parametrize("case", CASES)
def test_uncompiled_steps_are_those_of_compiled_runs(case):
    problem, sampler = CASES[case]
    cap = 14 if problem is LEARNED else 20 if sampler == "ctns" else 40
    one = engine(problem, sampler)
    words = streams(3, range(2))
    noise = problem.rewards.sigmas(3)
    pulls, _, counts, *_ = one.simulate(np.array(MEANS), noise, words, cap)
    state = one.workspace.state()
    other = one.clone()
    for _ in other.played(np.array(MEANS), noise, words[1], cap):
        pass
    assert other.pulls == abs(pulls[1])
    assert np.array_equal(other.run.n, counts[1])
    ours = other.workspace.state()
    for name, array in state.items():
        if name != "run.integers":  # it holds whether the run was capped, too
            assert np.array_equal(array, ours[name]), name
    both = (np.delete(integers, CAPPED) for integers in (state["run.integers"], other.run.integers))
    assert np.array_equal(*both)


def test_an_explorer_told_the_same_repeats_a_simulated_run():
    problem = trial()
    results = simulate(problem, runs=1, seed=5)
    explorer = Explorer(problem, seed=5)
    drawing = engine(problem)
    counts = np.zeros(3)
    for stopped in drawing.played(np.array(MEANS), np.ones(3), stream(5), 10**6):
        arm = explorer.ask()
        assert problem.arms[int(np.argmax(drawing.run.n - counts))] == arm
        counts = drawing.run.n.copy()
        reward, value = drawing.run.reported
        explorer.tell(arm, reward, measured={"toxicity": value})
        assert explorer.stopped == stopped
    assert explorer.pulls == results.stopping_times[0] == drawing.pulls
    assert np.array_equal(explorer.counts, results.pulls[0])
    assert explorer.policy == pytest.approx(drawing.policy, abs=1e-9)
    assert explorer.confidence >= 1 - problem.delta
    assert explorer.regret_bound is None
    (edge,) = explorer.edges()  # to the competitor that is hardest to rule out
    assert edge["statistic"] >= edge["threshold"]
    assert not explorer.infeasible
    assert explorer.ask() is None
    with pytest.raises(SettingError, match="has stopped"):
        explorer.tell("a", 1.0, measured={"toxicity": 0.1})


def test_runs_do_not_depend_on_workers_and_are_kept(tmp_path):
    problem = trial()
    one, two = (simulate(problem, runs=6, seed=1, workers=w) for w in (1, 3))
    assert np.array_equal(one.pulls, two.pulls)
    assert one.summary() | {"microseconds_per_step": 0} == two.summary() | {
        "microseconds_per_step": 0
    }
    assert one.correct.all()
    save_results([one], tmp_path)
    (back,) = load_results(tmp_path)
    assert back.summary() == one.summary()
    assert np.array_equal(back.outcomes, one.outcomes)
    assert one.summary()["violations"]["fraction"] == 0
    assert {"violations", "suboptimal", "infeasible"} <= set(one.rows()[0])
    # Outcomes in a range have no lower bound; where rewards vary less that is drawn, too.
    given = {"rewards": Bounded(0, 2), "epsilon": 0.9}
    some = simulate(trial(replace(TOXICITY, sigma=None, low=0, high=1), **given), runs=2, noise=0.2)
    assert some.correct.all()
    assert (some.summary()["lower_bound"], some.times_bound) == (None, math.inf)


def test_what_cannot_be_kept_is_said_to_be_so():
    # The least toxicity is 0.7; after some hundred samples that is certain.
    never = Measured("toxicity", 0.4, sigma=0.5, tolerance=0.05, means=[1.0, 0.8, 0.7])
    results = simulate(trial(never), runs=20, seed=2)
    summary = results.summary()
    assert summary["infeasible"]["fraction"] == summary["correct"]["fraction"] == 1.0
    explorer = Explorer(trial(never), sampler="uniform", seed=0)
    rng = np.random.default_rng(0)
    while not explorer.stopped:
        arm = explorer.ask()
        value = dict(zip("abc", never.means, strict=True))[arm] + 0.5 * rng.normal()
        explorer.tell(arm, rng.normal(), measured={"toxicity": value})
    assert explorer.infeasible
    assert explorer.policy is None
    assert explorer.confidence >= 0.8
    assert explorer.measured[0].p_value is None


@pytest.mark.parametrize(("mean", "is_infeasible"), [(0.2, False), (0.7, True)])
def test_one_arm_is_a_question_of_its_limit(mean, is_infeasible):
    row = Measured("toxicity", 0.5, sigma=0.1, means=[mean])
    explorer = Explorer(Problem(["a"], epsilon=0.1, measured=[row]), seed=0)
    while not explorer.stopped:
        explorer.tell("a", 1.0, measured={"toxicity": mean})
    assert explorer.pulls < 10
    assert explorer.infeasible is is_infeasible
    assert (explorer.policy is None) is is_infeasible


def test_ends_of_runs_are_judged_by_the_truth():
    one = engine()
    batch = one.make_batch(np.array(MEANS), np.ones(3), streams(0, range(6)), 10)
    # OPT = 0.6 (b alone); the limit with its tolerance is 0.65.
    batch.answers[:] = [[0, 1, 0], [0.4, 0.6, 0], [0, 0, 1], [0.6, 0, 0.4], [0, 1, 0], [0, 1, 0]]
    batch.vertices[:] = [ANSWER, ANSWER, ANSWER, ANSWER, INFEASIBLE, NONE]
    expected = [0, VIOLATES, SUBOPTIMAL, 0, SAID_INFEASIBLE + WRONGLY, UNFINISHED]
    assert one.results_of(batch, np.array(MEANS), 0.0).ends.tolist() == expected
    never = engine(trial(Measured("toxicity", 0.05, sigma=0.5, means=[1.0, 0.5, 0.1])))
    # Nothing is feasible: to say so is right, and so is an answer within the tolerance.
    beyond = never.make_batch(np.array(MEANS), np.ones(3), streams(0, range(6)), 10)
    beyond.answers[:], beyond.vertices[:] = batch.answers, batch.vertices
    assert never.results_of(beyond, np.array(MEANS), 0.0).ends.tolist()[2:5] == [
        VIOLATES,
        VIOLATES,
        8,
    ]


def told(one, arm, reward, value, kind=TOLD):
    one.fold(np.array([kind]), np.array([arm]), np.array([reward]), np.array([[value]]))


def asked(one):
    arms = np.array([-1])
    one.fold(np.array([ASKED]), arms, np.zeros(1))
    return int(arms[0])


def test_live_events_are_folded_like_a_run():
    rng = np.random.default_rng(4)
    simple, live = engine(), engine()
    words = stream()
    arm = simple.begin(words)
    live.reset(words)
    for _ in range(60):
        assert asked(live) == arm
        reward, value = rng.normal(MEANS[arm]), rng.normal(TOXICITY.means[arm], 0.5)
        told(live, arm, reward, value)
        simple.observe(arm, reward, [value])
        arm = simple.advance()
    assert np.array_equal(simple.run.mean, live.run.mean)
    # Several in flight, one given up, one late: counts are kept, and snapshots go on alike.
    arms = [asked(live) for _ in range(6)]
    assert live.workspace.pending.sum() == 6
    assert live.pulls == 60
    live.fold(np.array([EXPIRED]), np.array(arms[:1]), np.zeros(1))
    assert live.assigned.sum() == 66
    told(live, arms[0], 0.5, 0.2, kind=LATE)
    copy = live.clone()
    copy.workspace.restore(live.workspace.state())
    for one in (live, copy):
        told(one, arms[1], 0.5, 0.2)
        one.workspace.set_delta(0.01)
        one.fold(np.array([EXTENDED]), np.array([0]), np.zeros(1))
    assert asked(live) == asked(copy)
    for name, array in live.workspace.state().items():
        assert np.array_equal(array, copy.workspace.state()[name]), name
    with pytest.raises(ValueError, match="does not fit"):
        live.workspace.restore({})
    assert live.evidence.values()[1] == pytest.approx([math.log(200), math.log(200)])


def test_intervals_and_p_values_hold_at_every_moment():
    explorer = Explorer(trial(), seed=1)
    (row,) = explorer.measured
    assert np.isnan(row.means).all()
    assert np.isinf(row.low).all()
    assert (row.value, row.p_value) == (None, None)
    rng = np.random.default_rng(1)
    while explorer.pulls < 200 and not explorer.stopped:
        arm = explorer.ask()
        a = "abc".index(arm)
        value = rng.normal(TOXICITY.means[a], 0.5)
        explorer.tell(arm, rng.normal(MEANS[a]), measured={"toxicity": value})
        if explorer.pulls % 50 == 0:
            (row,) = explorer.measured
            assert (row.low < TOXICITY.means).all()
            assert (row.high > TOXICITY.means).all()
            assert row.value_low < row.value == pytest.approx(row.means @ explorer.policy)
            assert 0 < row.p_value <= 1
            # p = delta exp(-surplus), and rows have half of delta.
            assert explorer.confidence <= max(0, 1 - 2 * row.p_value) + 1e-12


def test_a_limit_from_below_is_one_from_above_of_the_opposite():
    means = (0.2, 0.7, 0.9)
    below = Measured("x", ">= 0.5", sigma=0.5, tolerance=0.1, means=means)
    above = Measured("x", "<= -0.5", sigma=0.5, tolerance=0.1, means=tuple(-m for m in means))
    one, two = engine(trial(below)), engine(trial(above))
    for _ in range(3):
        for a in range(3):
            one.observe(a, MEANS[a], [means[a]])
            two.observe(a, MEANS[a], [-means[a]])
    assert one.advance() == two.advance()
    assert np.array_equal(one.policy, two.policy)
    assert MEANS @ one.policy >= 0.4


def refused(match, error=SettingError, problem=None, **settings):
    given = {"sampler": "top-two", "threshold": "tilt", **settings}
    with pytest.raises(error, match=match):
        Explorer(problem or trial(), **given)


def test_what_is_not_possible_is_refused_in_words():
    refused("cge sampler does not support measured limits; choose top-two, ctns or", sampler="cge")
    refused("'gk16' does not support measured limits", threshold="gk16")
    refused("nothing says how much toxicity that is", scenario="anytime")
    refused("need epsilon > 0", problem=trial(epsilon=0.0))
    refused("tracking cannot be chosen", tracking="direct")
    refused("more than 200 vertices", TooLargeError, problem=trial_of(30, "each <= 0.04"))
    with pytest.raises(MeansError, match="no means given"):
        simulate(trial(means=None), runs=1)
    with pytest.raises(ProblemError, match="sigma is unknown and no guess of it"):
        simulate(trial(replace(TOXICITY, sigma="unknown")), runs=1)
    with pytest.raises(MeansError, match="'toxicity' has no means"):
        simulate(trial(Measured("toxicity", 0.5, sigma=1)), runs=1)
    explorer = Explorer(trial())
    for wrong, match in (
        (None, "toxicity is missing"),
        ({"toxicity": 0.1, "x": 1}, "no measured row 'x'. Known: toxicity"),
        ({"toxicity": math.nan}, "finite"),
        (0.3, "must map names to numbers"),
    ):
        with pytest.raises(RewardError, match=match):
            explorer.tell("a", 1.0, measured=wrong)
    assert explorer.pulls == 0
    with pytest.raises(RewardError, match=r"no measured row 'x'\. Known: none"):
        Explorer(Problem(2)).tell("a1", 1.0, measured={"x": 1})


def trial_of(size, *constraints):
    row = Measured("toxicity", 0.5, sigma=1, means=[0.1] * size)
    return Problem(size, constraints, epsilon=0.1, measured=[row])


def test_a_file_is_simulated_from_the_command_line(tmp_path):
    file, trace = str(tmp_path / "trial.toml"), str(tmp_path / "trace.json")
    trial().to_file(file)
    words = run("simulate", file, "--runs", "3", "--sampler", "top-two,uniform").stdout
    assert "1 measured limit" in words
    assert "no mix" in words
    told = run("simulate", file, "--runs", "3", "--trace", trace, "--json").stdout
    (found,) = json.loads(told)["results"]
    assert found["violations"]["fraction"] == found["suboptimal"]["fraction"] == 0
    assert found["lower_bound"] is None
    looks = json.loads(Path(trace).read_text(encoding="utf-8"))
    assert looks[-1]["stopped"]
    assert looks[-1]["confidence"] >= 0.8
    assert 0 <= looks[-1]["limits"]["toxicity"] <= 0.1
    assert len(looks[-1]["edges"]) == 1
