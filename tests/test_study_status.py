"""What a live study says of itself: status, history, what is left to do, lists."""

import itertools
import json

import numpy as np
import pytest

import simplexplore as sx
from studies import ARMS, drive, journal, make, problem


def test_status_of_a_new_study(sqlite_url):
    status = make(sqlite_url).status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert status["policy"] is None
    assert status["edges"] is None
    assert status["to_go"] is None
    assert [arm["mean"] for arm in status["arms"]] == [None] * 3
    assert status["state"] == "running"


@pytest.mark.parametrize("threshold", ["mixture", "kk21"])
def test_status_of_a_stopped_study_with_a_late_reward(sqlite_url, threshold):
    study = make(sqlite_url, threshold=threshold)
    late, *_ = study.ask(3)
    while study.answer is None:
        for pull in study.ask(5):
            study.tell(pull, {"a": 9.0, "b": 0.0, "c": 6.0}[pull.arm] + 0.1 * (study.head % 3))
    before = study.status()
    study.tell(late, -100.0)
    for one in (study, sx.Study.open(sqlite_url, study.name)):
        after = one.status()
        for key in ("state", "policy", "value", "edges", "confidence"):
            assert after[key] == before[key]


def test_status(url):
    study = drive(make(url), 100)
    status = study.status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    counts = np.array([arm["rewards"] for arm in status["arms"]])
    means = np.array([arm["mean"] for arm in status["arms"]])
    rewards = [event for event in journal(study) if "reward" in event]
    for a, arm in enumerate(ARMS):
        own = [event["reward"] for event in rewards if event["arm"] == arm]
        assert counts[a] == len(own)
        assert means[a] == pytest.approx(np.mean(own))
    assert status["policy"] == pytest.approx([0.6, 0.0, 0.4])
    assert status["value"] == pytest.approx(means @ status["policy"])
    low, high = status["value_interval"]
    assert low < status["value"] < high
    bound = sx.lower_bound(study.problem, means, 1e-6)
    assert status["characteristic_time"] == pytest.approx(bound.characteristic_time)
    assert 0 <= status["to_go_range"][0] <= status["to_go"] <= status["to_go_range"][1]
    assert status["constraints"][0]["explored"] == pytest.approx((counts[0] + counts[1]) / 100)
    assert sum(arm["target"] for arm in status["arms"]) == pytest.approx(100)
    assert study.status()["rewards"] == 100
    study.ask(7)
    assert sum(arm["pending"] for arm in study.status()["arms"]) == 7


def test_history(url):
    study = drive(make(url, delta=0.05), 3000)
    points = study.history()
    rewards = [point["rewards"] for point in points]
    assert rewards == sorted(set(rewards))
    assert rewards[0] == 3
    assert rewards[-1] == study.status()["rewards"]
    assert points[-1]["statistic"] >= points[-1]["threshold"]
    assert all(point["statistic"] < point["threshold"] for point in points[:-1])
    gaps = [b / a for a, b in itertools.pairwise(rewards[60:])]
    assert max(gaps, default=1) < 1.05
    assert study.history(after=points[3]["seq"]) == points[4:]
    # Means with intervals at fewer of them, at the last one those of the answer.
    known = [point["rewards"] for point in points if "means" in point]
    assert len(known) < len(rewards)
    assert max(b / a for a, b in itertools.pairwise(known[15:])) < 1.15
    for (low, mean, high), arm in zip(points[-1]["means"], study.status()["arms"], strict=True):
        assert mean == arm["mean"]
        assert 0 <= arm["low"] - low <= 1e-3 * (mean - low)
        assert 0 <= high - arm["high"] <= 1e-3 * (high - mean)


def test_means_over_time_where_they_are_few_or_not_known(sqlite_url):
    """No arm that never plays has a mean; nobody waits for the intervals of very many arms."""
    names = ["a", "b", "off"]
    study = sx.Study.create(sqlite_url, "mix", sx.Problem(names, {"no": "off <= 0"}, delta=0.1))
    study.tell_many([sx.Reward(1.0, arm=arm) for arm in "ab"])
    means = study.history()[-1]["means"]
    assert [mean for _, mean, _ in means] == [1.0, 1.0, None]
    assert means[2] == [None, None, None]
    many = sx.Study.create(sqlite_url, "many", sx.Problem(101, delta=0.1), sampler="uniform")
    many.tell_many([sx.Reward(1.0, arm=arm) for arm in many.problem.arms])
    assert "means" not in many.history()[-1]


def test_samples_to_go_is_about_right(sqlite_url):
    # Not a promise, but an estimate that is off by a factor of five would be a mistake.
    study = drive(make(sqlite_url, delta=1e-9), 300)
    guess = study.status()["to_go"] + 300
    drive(study, 10_000, seed=5)
    assert guess / 5 < study.answer["rewards"] < guess * 5


def test_samples_to_go_repeat_and_fall_to_nothing(sqlite_url):
    study = drive(make(sqlite_url, sampler="top-two", threshold="tilt", delta=1e-9), 200)
    status = study.status()
    low, high = status["to_go_range"]
    assert 0 <= low < status["to_go"] < high
    assert study.status() | {"now": 0} == status | {"now": 0}
    for again in (study, sx.Study.open(sqlite_url, study.name)):
        assert again.status()["to_go"] == status["to_go"]
    study.ask(1)  # a pull in flight changes what comes next, not what is known
    guess = status["to_go"] + 200
    drive(study, 10_000, seed=5)
    assert guess / 3 < study.answer["rewards"] < guess * 3
    assert (study.status()["to_go"], study.status()["to_go_range"]) == (0, [0, 0])


def test_list(url, clock):
    for name in ("first", "second"):
        sx.Study.create(url, name, problem(), "ctns", delta=0.01)
        clock.now += 1
    study = sx.Study.open(url, "first")
    study.ask(3)
    listed = sx.Study.list(url)
    assert [row["name"] for row in listed] == ["first", "second"]
    assert (listed[0]["asked"], listed[0]["pending"], listed[0]["rewards"]) == (3, 3, 0)
    assert json.loads(json.dumps(listed)) == listed


def test_list_says_how_far_a_study_is(url):
    study = make(url, delta=0.1)
    assert sx.Study.list(url)[0]["progress"] is None
    drive(study, 30)
    # It is as of the last tenth more rewards.
    progress = sx.Study.list(url)[0]["progress"]
    points = [p for p in study.history() if p["statistic"] / p["threshold"] == progress < 1]
    assert points[-1]["rewards"] > 0.85 * study.status()["rewards"]
    drive(study, 10_000)
    assert sx.Study.list(url)[0]["progress"] == 1.0
