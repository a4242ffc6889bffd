"""Many rewards told by their sum: the same evidence as told one by one; in a store of each kind."""

import io
import json

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from service_client import refused
from stores import postgresql_at_night

LIMITS = {"first": "a + b <= 0.6"}
FAMILIES = {
    "gaussian": sx.Gaussian(1.5),
    "unknown": sx.Gaussian("unknown", sigma_guess=1.0),
    "bernoulli": sx.Bernoulli(),
    "poisson": sx.Poisson(),
}


def problem(family, **more):
    return sx.Problem(["a", "b", "c"], LIMITS, rewards=FAMILIES[family], delta=0.05, **more)


def drawn(family, rng, mean, n):
    """Rewards of an arm, and what is told of them."""
    if family == "bernoulli":
        rewards = (rng.random(n) < mean).astype(float)
        return rewards, {"successes": int(rewards.sum())}
    if family == "poisson":
        rewards = rng.poisson(mean, n).astype(float)
        return rewards, {"total": int(rewards.sum())}
    rewards = rng.normal(mean, 1.5, n)
    told = {"mean": float(rewards.mean())}
    if family == "unknown" and n > 1:
        told["sd"] = float(rewards.std(ddof=1))
    return rewards, told


@postgresql_at_night
@pytest.mark.parametrize("family", FAMILIES)
def test_as_much_evidence_as_one_by_one(url, family):
    """What is known of the arms, and how sure one is, agree to rounding."""
    rng = np.random.default_rng(3)
    one, other = (sx.Study.create(url, name, problem(family)) for name in ("one", "other"))
    for week in range(2):
        for arm, mean in zip("abc", (0.5, 0.4, 0.3), strict=True):
            rewards, told = drawn(family, rng, mean, 30 + 7 * week)
            one.tell_many([sx.Reward(float(x), arm=arm) for x in rewards])
            done = other.tell(arm=arm, n=len(rewards), key=f"{arm} in week {week}", **told)
            assert (done.outcome, done.reward) == ("batch", pytest.approx(rewards.mean()))
    assert one.answer is None
    mine, theirs = one.status(), other.status()
    assert (theirs["rewards"], theirs["batches"], theirs["elsewhere"]) == (201, 6, 0)
    assert mine["rewards"] == 201
    assert mine["policy"] == theirs["policy"]
    for name in ("confidence", "regret_bound", "value", "progress"):
        assert theirs[name] == pytest.approx(mine[name], rel=1e-6, abs=1e-9)
    for mine_of, theirs_of in zip(mine["arms"], theirs["arms"], strict=True):
        assert theirs_of["rewards"] == mine_of["rewards"]
        for name in ("mean", "low", "high"):
            assert theirs_of[name] == pytest.approx(mine_of[name], rel=1e-6, abs=1e-9)
    assert other.verify()
    assert sx.Study.open(url, "other").status()["arms"] == theirs["arms"]


def test_sums_end_a_study_and_are_struck_out_whole(url):
    study = sx.Study.create(url, "mix", problem("gaussian"))
    for arm, mean in (("a", 9.0), ("b", 1.0), ("c", 0.0)):
        told = study.tell(arm=arm, n=40, mean=mean, key=arm)
    assert told.stopped
    assert study.answer["rewards"] == 120
    assert study.answer["mix"] == {"a": 0.6, "c": 0.4} or study.answer["mix"]["a"] == 0.6
    assert study.tell(arm="b", n=40, mean=1.0, key="b").outcome == "repeated"
    with pytest.raises(sx.ConflictError, match="was used for another reward"):
        study.tell(arm="b", n=41, mean=1.0, key="b")
    wrong = next(event for event in study.events() if event.get("key") == "a")
    assert (wrong["event"], wrong["n"], wrong["reward"]) == ("batch", 40, 9.0)
    study.void(event=wrong["seq"], reason="another kitchen")
    assert study.answer is None
    assert study.status()["rewards"] == 80
    assert study.verify()
    study.tell(arm="a", n=40, mean=9.0, key="a again")
    assert study.stopped
    assert study.verify()


def test_pulls_go_on_after_sums(sqlite_url):
    """Targets take the share of a sum along, so that no arm goes without a turn."""
    study = sx.Study.create(sqlite_url, "mix", problem("gaussian"), delta=1e-300)
    study.tell(arm="a", n=1000, mean=0.5, key="a")
    pulls = study.ask(40)
    assert {pull.arm for pull in pulls} >= {"b", "c"}
    study.tell_many([(pull, 0.1) for pull in pulls])
    assert study.verify()


@pytest.mark.parametrize(
    ("family", "given", "kind", "words"),
    [
        ("gaussian", {"n": 3, "mean": 1.0}, sx.SettingError, "a sum needs a key"),
        ("gaussian", {"n": 3, "successes": 1, "key": "k"}, sx.RewardError, "as n and mean; got n"),
        ("gaussian", {"n": 3, "mean": 1.0, "sd": 1.0, "key": "k"}, sx.RewardError, "n and mean;"),
        (
            "gaussian",
            {"n": 0, "mean": 1.0, "key": "k"},
            sx.SettingError,
            "n must be a whole number",
        ),
        ("gaussian", {"mean": 1.0, "key": "k"}, sx.SettingError, "n must be a whole number"),
        ("gaussian", {"n": 2, "mean": float("nan"), "key": "k"}, sx.RewardError, "finite numbers"),
        (
            "gaussian",
            {"n": 10**9 + 1, "mean": 0.0, "key": "k"},
            sx.RewardError,
            "at most 1,000,000",
        ),
        ("unknown", {"n": 3, "mean": 1.0, "key": "k"}, sx.RewardError, "as n and mean and sd"),
        ("unknown", {"n": 3, "mean": 1.0, "sd": -1.0, "key": "k"}, sx.RewardError, "0 or more"),
        ("bernoulli", {"n": 3, "successes": 4, "key": "k"}, sx.RewardError, "4 successes in 3"),
        ("bernoulli", {"n": 3, "mean": 0.5, "key": "k"}, sx.RewardError, "as n and successes"),
        ("poisson", {"n": 3, "total": -1, "key": "k"}, sx.SettingError, "total must be a whole"),
        ("poisson", {"n": 3, "total": 1.5, "key": "k"}, sx.SettingError, "total must be a whole"),
    ],
)
def test_what_is_refused(sqlite_url, family, given, kind, words):
    study = sx.Study.create(sqlite_url, "mix", problem(family))
    with pytest.raises(kind, match=words):
        study.tell(arm="a", **given)
    assert study.head == 0


def test_rewards_that_are_told_one_by_one(sqlite_url):
    bounded = sx.Problem(["a", "b"], rewards=sx.Bounded(0.0, 1.0))
    study = sx.Study.create(sqlite_url, "bounded", bounded)
    with pytest.raises(sx.RewardError, match="told one by one here: evidence needs every one"):
        study.tell(arm="a", n=3, mean=0.5, key="k")
    study = sx.Study.create(sqlite_url, "mix", problem("gaussian"))
    (pull,) = study.ask()
    with pytest.raises(sx.PullError, match="a sum is of an arm"):
        study.tell(pull, n=3, mean=0.5, key="k")
    with pytest.raises(sx.RewardError, match="a reward has no 'count'"):
        study.tell_many([{"arm": "a", "count": 3}])


def test_files_of_sums(sqlite_url, tmp_path):
    study = sx.Study.create(sqlite_url, "mix", problem("bernoulli"))
    text = "arm,key,n,successes\na,w1 a,1200,37\nb,w1 b,900,31\n"
    assert [one.outcome for one in study.import_csv(io.StringIO(text))] == ["batch", "batch"]
    assert {one.outcome for one in study.import_csv(io.StringIO(text))} == {"repeated"}
    checked = study.check_csv(io.StringIO(f"{text}c,,100,5\nc,w1 c,100,101\n"))
    assert [row["n"] for row in checked["rows"]] == [1200, 900]
    assert [fault["line"] for fault in checked["faults"]] == [4, 5]
    with pytest.raises(sx.SettingError, match="a file of sums has the columns arm, key, n, and"):
        study.import_csv(io.StringIO("arm,n,successes\na,3,1\n"))
    study.tell(arm="c", reward=1.0)
    study.export(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "pull,arm,reward,outcome,asked,told,key,n,sd"
    assert lines[1].endswith(",w1 a,1200,")
    assert lines[3].endswith(",,")


def test_on_the_command_line_and_over_http(client, study, sqlite_url):
    """The study of the service has Gaussian rewards."""
    body = {"rewards": [{"arm": "a", "n": 48, "mean": "7,31", "key": "monday"}]}
    answer = client.post(f"{study}/rewards", json=body).json()["rewards"]
    assert [(one["outcome"], one["reward"]) for one in answer] == [("batch", 7.31)]
    body["rewards"][0] |= {"key": None}
    refused(client.post(f"{study}/rewards", json=body), 422, "setting", "a sum needs a key")
    place = ("mix", "--store", sqlite_url)
    sum_of_b = ("--arm", "b", "--n", "12", "--mean", "7,5", "--key", "tuesday")
    told = run("study", "tell", *place, *sum_of_b, "--json")
    assert json.loads(told.stdout)["rewards"][0]["reward"] == 7.5
    again = run("study", "tell", *place, *sum_of_b)
    assert again.stdout == "Recorded 1 reward (1 known already).\n"
    failed = run("study", "tell", *place, "--n", "12", "--mean", "7", code=2)
    assert "for many rewards tell NAME --arm ARM --key TEXT --n N" in failed.stderr
