"""Live studies: every rule of asking and telling, and the same run as in simulation."""

import itertools
import json
import math
import re
import threading

import numpy as np
import pytest

import simplexplore as sx
from random_numbers import drawn_here
from simplexplore.exploration.seeding import streams
from simplexplore.kernels import rng
from simplexplore.problem.families import Bernoulli, Bounded, Gaussian, Poisson
from simplexplore.problem.problem import Problem
from simplexplore.study.events import Event
from simplexplore.study.state import State
from simplexplore.study.status import TENTH, range_of_rest
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from simplexplore.study.transaction import snapshot_code

ARMS = ["a", "b", "c"]
MEANS = {"a": 0.7, "b": 0.1, "c": 0.35}


def problem(rewards=None, **options):
    return Problem(ARMS, {"cap": "a + b <= 0.6"}, rewards or Gaussian(0.5), **options)


def make(url, *, name="mix", rewards=None, clock=None, **options):
    options = {"sampler": "ctns", "delta": 1e-6, **options}
    store = Store(url, clock=clock) if clock else Store(url)
    return Study.create(store, name, problem(rewards), **options)


def drive(study, pairs, batch=1, seed=0):
    """Ask and tell; stops when the study does."""
    rng = np.random.default_rng(seed)
    for _ in range(pairs):
        if study.stopped:
            break
        pulls = study.ask(batch)
        study.tell_many([(pull, float(rng.normal(MEANS[pull.arm], 0.5))) for pull in pulls])
    return study


def journal(study):
    return study.events()


# ---------------------------------------------------------------------- asking and telling


def test_a_first_round(url):
    study = make(url)
    pulls = study.ask(4)
    assert [pull.arm for pull in pulls][:3] == ARMS
    assert len({pull.id for pull in pulls}) == 4
    told = study.tell(pulls[1], 0.25)
    assert (told.arm, told.reward, told.outcome, told.stopped) == ("b", 0.25, "told", False)
    assert study.status()["pending"] == 3
    kinds = [event["event"] for event in journal(study)]
    assert kinds == ["asked"] * 4 + ["told"]
    assert [event["seq"] for event in journal(study)] == [1, 2, 3, 4, 5]
    assert study.events(after=4) == journal(study)[4:]
    assert study.events(after=1, limit=2) == journal(study)[1:3]


def test_another_process_sees_it(url):
    study = drive(make(url), 20)
    other = Study.open(url, "mix")
    assert other.problem == study.problem
    assert other.status() | {"now": 0} == study.status() | {"now": 0}
    pulls = other.ask(2)
    study.tell_many([(pull, 0.5) for pull in pulls])
    assert other.verify()
    assert study.verify()
    assert study.ask()[0].arm in ARMS


def test_telling_twice(url):
    study = drive(make(url), 5)
    (pull,) = study.ask()
    assert study.tell(pull.id, 0.1 + 0.2).outcome == "told"
    before = journal(study)
    assert study.tell(pull.id, 0.1 + 0.2).outcome == "repeated"
    message = r"has the reward 0\.30000000000000004 already, and now came 0\.3\. The first is kept"
    with pytest.raises(sx.ConflictError, match=message):
        study.tell(pull.id, 0.3)
    assert journal(study) == before


def test_telling_twice_in_one_batch(url):
    study = drive(make(url), 5)
    one, two = study.ask(2)
    before = journal(study)
    with pytest.raises(sx.ConflictError, match=r"reward 3: pull .* Nothing was recorded"):
        study.tell_many([(one, 1.0), (two, 2.0), (one, 3.0)])
    assert journal(study) == before
    outcomes = [told.outcome for told in study.tell_many([(one, 1.0), (two, 2.0), (one, 1.0)])]
    assert outcomes == ["told", "told", "repeated"]
    assert study.verify()


@pytest.mark.parametrize(
    ("family", "bad"),
    [
        (Bernoulli(), [0.5, 2, -1]),
        (Poisson(), [0.5, -1]),
        (Bounded(-1.0, 2.0), [-1.01, 2.5]),
        (Gaussian(1.0), []),
    ],
)
def test_rewards_that_cannot_be(sqlite_url, family, bad):
    study = make(sqlite_url, rewards=family, sampler="uniform")
    (pull,) = study.ask()
    before = journal(study)
    for reward in [*bad, math.nan, math.inf, "1.0", None, True]:
        with pytest.raises(sx.RewardError):
            study.tell(pull, reward)
        with pytest.raises(sx.RewardError):
            study.tell(arm="a", reward=reward)
    assert journal(study) == before
    assert study.tell(pull, 1).outcome == "told"


def test_absurd_rewards_break_nothing(sqlite_url, tmp_path):
    # In size at most 1e30 deviations: the status stays one that JSON can say.
    study = make(sqlite_url, rewards=Gaussian(1.0))
    explorer = sx.Explorer(problem(Gaussian(1.0)), "uniform", delta=0.1)
    file = tmp_path / "week.csv"
    for reward in (1e308, -1.7e308, 10**400, -(10**400), 1e151, 1e31):
        file.write_text(f"arm,reward\na,{reward!r}\n")
        for tell in (
            lambda reward: study.tell(arm="a", reward=reward),
            lambda reward: study.tell_many([sx.Reward(reward, arm="a")]),
            lambda reward: explorer.tell(explorer.ask(), reward),
            lambda _: study.import_csv(file),
        ):
            with pytest.raises(sx.RewardError, match="gaussian rewards are finite numbers"):
                tell(reward)
    study.tell_many(
        [sx.Reward(reward, arm=arm) for arm, reward in zip("abc", (1e30, -1e30, 0), strict=True)]
    )
    if not study.stopped:
        study.ask(5)
    assert json.dumps([study.status(), study.events(), study.history()], allow_nan=False)
    assert study.verify()


def test_pulls_that_are_not_ours(url):
    store = Store(url)
    study = Study.create(store, "one", problem(), "ctns")
    other = Study.create(store, "two", problem(), "ctns")
    (foreign,) = other.ask()
    (own,) = study.ask()
    code, number, check = own.id.split("-")
    wrong = {
        foreign.id: "belongs to another study, not to 'one'",
        f"{code}-2-{check}": "never gave out a pull",
        f"{code}-{number}-{int(check, 16) ^ 1:04x}": "never gave out a pull",
        "17": "is not the id of a pull",
        f"{code}-x-{check}": "is not the id of a pull",
        f"{code}-{'9' * 30}-{check}": "is not the id of a pull",
        17: "is not the id of a pull",
    }
    for pull, message in wrong.items():
        with pytest.raises(sx.PullError, match=message):
            study.tell(pull, 1.0)
    with pytest.raises(sx.PullError, match="name the pull, or the arm"):
        study.tell(reward=1.0)
    with pytest.raises(sx.PullError, match="name the pull, or the arm"):
        study.tell(own, 1.0, arm="a")
    assert len(journal(study)) == 1


def test_pulls_made_elsewhere(url):
    study = drive(make(url), 10)
    told = study.tell(arm="b", reward=0.2)
    assert (told.pull, told.arm, told.outcome) == (None, "b", "elsewhere")
    study.tell(arm="b", reward=0.2)  # another pull with the same reward
    status = study.status()
    assert status["elsewhere"] == 2
    assert status["rewards"] == 12
    assert study.tell(arm="b", reward=0.3, key="r1").outcome == "elsewhere"
    assert study.tell(arm="b", reward=0.3, key="r1").outcome == "repeated"
    with pytest.raises(sx.ConflictError, match="the key 'r1' was used"):
        study.tell(arm="b", reward=0.4, key="r1")
    with pytest.raises(sx.SettingError, match="there is no arm 'z'; arms: a, b, c"):
        study.tell(arm="z", reward=0.4)
    assert study.status()["elsewhere"] == 3
    assert study.verify()


def test_an_arm_that_no_policy_uses(sqlite_url):
    rows = ["a + b <= 0.6", "d <= 0"]
    study = Study.create(sqlite_url, "mix", Problem([*ARMS, "d"], rows), "uniform")
    with pytest.raises(sx.SettingError, match="no feasible policy uses arm 'd'"):
        study.tell(arm="d", reward=1.0)
    assert {pull.arm for pull in study.ask(30)} == set(ARMS)


def test_asking_under_a_key(url):
    study = drive(make(url), 10)
    pulls = study.ask(3, key="request 7")
    assert study.ask(3, key="request 7") == pulls
    assert study.ask(3) != pulls
    with pytest.raises(sx.ConflictError, match="the key 'request 7' was used"):
        study.ask(2, key="request 7")
    study.tell_many([(pull, 0.5) for pull in pulls])
    assert study.ask(3, key="request 7") == pulls
    with pytest.raises(sx.ConflictError, match="the key 'request 7' was used"):
        study.tell(arm="a", reward=1.0, key="request 7")
    assert study.status()["asked"] == 16


def test_creating_extending_and_noting_under_a_key(url):
    study = make(url, key="new", delta=0.1)
    study.ask()
    again = make(url, key="new", delta=0.1)
    assert (again.created, again.head) == (study.created, 1)
    with pytest.raises(sx.ConflictError, match="the key 'new' was used for another request"):
        make(url, key="new", delta=0.2)
    with pytest.raises(sx.ConflictError, match="there is a study 'mix'"):
        make(url, key="other", delta=0.1)
    for _ in range(2):
        study.extend(0.05, key="smaller")
        study.note("spring", key="remark")
    assert [event["event"] for event in study.events()] == ["asked", "extended", "noted"]
    for wrong in (
        lambda: study.extend(0.01, key="smaller"),
        lambda: study.note("x", key="smaller"),
    ):
        with pytest.raises(
            sx.ConflictError, match="the key 'smaller' was used for another request"
        ):
            wrong()
    assert study.verify()


def test_creating_at_the_same_moment(server):
    # Whoever comes second under the same key gets the study of the first.
    url = server.database()
    made, errors = [], []
    start = threading.Barrier(6)

    def work(key):
        store = Store(url)
        start.wait()
        try:
            made.append(Study.create(store, "mix", problem(), "ctns", key=key).created)
        except sx.ConflictError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work, args=(key,)) for key in ["k"] * 3 + [None] * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1
    assert len(made) + len(errors) == 6
    assert all("there is a study 'mix'" in error for error in errors)


def test_bad_requests(sqlite_url):
    study = make(sqlite_url)
    for n in (0, -1, 1.5, True):
        with pytest.raises(sx.SettingError, match="n must be a whole number, 1 or more"):
            study.ask(n)
    with pytest.raises(sx.TooLargeError, match="at most 100000 pulls at a time"):
        study.ask(100_001)
    with pytest.raises(sx.SettingError, match="a key is a text of 1 to 200 characters"):
        study.ask(key="")
    with pytest.raises(sx.SettingError, match="a note is a text"):
        study.note("  ")
    assert study.tell_many([]) == []
    assert journal(study) == []


# ---------------------------------------------------------------------- expiry and clocks


def test_expiry(url, clock):
    study = drive(make(url, clock=clock, expire_after=60), 10)
    first = study.ask(2)
    clock.now += 59
    study.ask()
    assert study.status()["expired"] == 0
    clock.now += 2
    assert study.status()["overdue"] == 2
    study.ask()
    status = study.status()
    assert (status["expired"], status["pending"], status["overdue"]) == (2, 2, 0)
    late = study.tell(first[0], 0.5)
    assert late.outcome == "late"
    assert study.tell(first[0], 0.5).outcome == "repeated"
    with pytest.raises(sx.ConflictError):
        study.tell(first[0], 0.6)
    assert study.status()["late"] == 1
    assert study.verify()


def test_no_expiry(sqlite_url, clock):
    study = make(sqlite_url, clock=clock, expire_after=None)
    study.ask(3)
    clock.now += 1e9
    study.ask()
    assert study.status()["expired"] == 0
    assert Study.open(sqlite_url, "mix").status()["expire_after"] is None
    make(sqlite_url, name="short", expire_after=np.float32(60))
    assert Study.open(sqlite_url, "short").status()["expire_after"] == 60


def test_a_clock_that_jumps_back(url, clock):
    study = drive(make(url, clock=clock, expire_after=60), 5)
    (early,) = study.ask()
    clock.now -= 30
    pulls = study.ask(2)
    assert study.status()["expired"] == 0
    study.tell(pulls[0], 0.5)
    clock.now -= 3600  # so far back that the pulls would wait for an hour
    study.ask()
    assert study.status()["expired"] == 2
    assert study.tell(early, 0.1).outcome == "late"
    assert study.tell(pulls[1], 0.1).outcome == "late"
    assert study.verify()
    times = [event["at"] for event in journal(study)]
    assert times != sorted(times)  # recorded as the clock said


# ---------------------------------------------------------------------- stopping


def test_stopping_and_extending(url):
    study = drive(make(url, delta=0.1), 2000)
    answer = study.answer
    assert study.stopped
    assert answer["policy"] == pytest.approx([0.6, 0.0, 0.4])
    assert answer["mix"] == pytest.approx({"a": 0.6, "c": 0.4})
    assert answer["statistic"] >= answer["threshold"]
    assert answer["delta"] == 0.1
    stop = [event for event in journal(study) if event["event"] == "stopped"]
    assert [{k: stop[0][k] for k in answer}] == [answer]
    assert journal(study)[-1] == stop[-1]
    before = len(journal(study))
    message = r"has stopped and gives no more pulls\. The answer, .*0\.1: 0\.6 a, 0\.4 c\. To go on"
    with pytest.raises(sx.StoppedError, match=message):
        study.ask()
    for delta in (0.1, 0.2):
        with pytest.raises(
            sx.SettingError, match=r"only be extended to a smaller delta: it has 0\.1"
        ):
            study.extend(delta)
    for delta in (0.0, -1, 2):
        with pytest.raises(sx.ProblemError, match="delta"):
            study.extend(delta)
    for delta in (1e-310, 9.9e-301):
        with pytest.raises(sx.ProblemError, match="delta must be at least 1e-300; got"):
            study.extend(delta)
    assert len(journal(study)) == before
    study.extend(1e-9)
    assert not study.stopped
    assert Study.list(url)[0]["state"] == "running"
    assert Study.open(url, "mix").status()["delta"] == 1e-9
    drive(study, 5000, seed=1)
    assert study.stopped
    assert study.answer["delta"] == 1e-9
    assert study.answer["rewards"] > answer["rewards"]
    assert study.verify()
    listed = Study.list(url)[0]
    assert (listed["state"], listed["answer"]["mix"]) == ("stopped", study.answer["mix"])


def test_an_extension_that_has_enough_evidence_already(sqlite_url):
    study = make(sqlite_url, rewards=Gaussian(0.01), delta=0.1)
    pulls = study.ask(30)
    study.tell_many([(pull, MEANS[pull.arm]) for pull in pulls])
    assert study.stopped
    study.extend(0.05)
    assert study.stopped
    assert study.answer["delta"] == 0.05
    assert study.verify()


def test_rewards_after_the_stop_are_kept(url):
    study = make(url, rewards=Gaussian(0.01), delta=0.1)
    pulls = study.ask(40)
    told = study.tell_many([(pull, MEANS[pull.arm]) for pull in pulls[:-1]])
    assert all(one.stopped for one in told)
    kinds = [event["event"] for event in journal(study)]
    assert 0 < kinds.index("stopped") < len(kinds) - 1  # at the reward with which it was enough
    answer = study.answer
    assert answer["rewards"] == kinds[: kinds.index("stopped")].count("told")
    assert study.tell(pulls[-1], 99.0).outcome == "told"  # nothing is lost, nor changed
    assert study.answer == answer
    assert study.status()["rewards"] == 40
    assert study.verify()


def test_each_reward_is_judged_as_it_comes(sqlite_url):
    # In one batch or one by one, the study stops at the same reward.
    one = make(sqlite_url, name="one", rewards=Gaussian(0.05), delta=0.1)
    two = make(sqlite_url, name="two", rewards=Gaussian(0.05), delta=0.1)
    values = [MEANS[pull.arm] for pull in one.ask(40)]
    one.tell_many([(f"{event['pull']}", v) for event, v in zip(journal(one), values, strict=True)])
    for pull, value in zip(two.ask(40), values, strict=True):
        two.tell(pull, value)
    assert one.answer == two.answer


@pytest.mark.parametrize("rewards", [Gaussian(0.5), Bernoulli()], ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("sampler", ["uniform", "ctns", "cge", "ptns", "top-two"])
@pytest.mark.parametrize("scenario", ["end-of-time", "anytime"])
def test_one_pull_at_a_time_is_run_0_of_simulate(sqlite_url, sampler, scenario, rewards):
    means = np.array([MEANS[arm] for arm in ARMS])
    known = problem(rewards, means=means, scenario=scenario)
    settings = {"sampler": sampler, "delta": 0.2, "threshold": "gk16", "seed": 8}
    result = sx.simulate(known, runs=1, workers=1, **settings)
    explorer = sx.Explorer(known, **settings)
    study = Study.create(sqlite_url, "mix", known, **settings)
    stream = streams(8, range(1))[0, 0].copy()
    while not explorer.stopped:
        (pull,) = study.ask()
        assert pull.arm == explorer.ask()
        mean = means[ARMS.index(pull.arm)]
        if rewards.name == "gaussian":
            reward = mean + 0.5 * drawn_here(rng.normal, stream)
        else:
            reward = float(drawn_here(rng.uniform, stream) < mean)
        explorer.tell(pull.arm, reward)
        study.tell(pull, reward)
    assert study.stopped
    status = study.status()
    assert status["rewards"] == result.stopping_times[0]
    assert [arm["rewards"] for arm in status["arms"]] == result.pulls[0].tolist()
    assert study.answer["policy"] == explorer.policy.tolist()


# ---------------------------------------------------------------------- looking


def test_status_of_a_new_study(sqlite_url):
    status = make(sqlite_url).status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    assert status["policy"] is None
    assert status["edges"] is None
    assert status["to_go"] is None
    assert [arm["mean"] for arm in status["arms"]] == [None] * 3
    assert status["state"] == "running"


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
    missing = max(edge["threshold"] - edge["statistic"] for edge in status["edges"])
    assert status["to_go"] == math.ceil(missing * bound.characteristic_time)
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
    study = Study.create(sqlite_url, "mix", sx.Problem(names, {"no": "off <= 0"}, delta=0.1))
    study.tell_many([sx.Reward(1.0, arm=arm) for arm in "ab"])
    means = study.history()[-1]["means"]
    assert [mean for _, mean, _ in means] == [1.0, 1.0, None]
    assert means[2] == [None, None, None]
    many = Study.create(sqlite_url, "many", sx.Problem(101, delta=0.1), sampler="uniform")
    many.tell_many([sx.Reward(1.0, arm=arm) for arm in many.problem.arms])
    assert "means" not in many.history()[-1]


def test_samples_to_go_is_about_right(sqlite_url):
    # Not a promise, but an estimate that is off by a factor of five would be a mistake.
    study = drive(make(sqlite_url, delta=1e-9), 300)
    guess = study.status()["to_go"] + 300
    drive(study, 10_000, seed=5)
    assert guess / 5 < study.answer["rewards"] < guess * 5


def test_samples_to_go_of_the_default_rule(sqlite_url, monkeypatch):
    """The expected number at the means seen, less the share that there is evidence for."""
    study = drive(make(sqlite_url, sampler="top-two", threshold="tilt", delta=1e-9), 200)
    status = study.status()
    means = [arm["mean"] for arm in status["arms"]]
    expected = sx.expected_samples(sx.lower_bound(study.problem, means, 1e-9))
    assert status["to_go"] == math.ceil((1 - status["progress"]) * expected)
    low, high = status["to_go_range"]
    assert 0 <= low < status["to_go"] < high
    with monkeypatch.context() as patch:  # the same means are not planned for twice
        patch.setattr("simplexplore.study.status.lower_bound", None)
        assert study.status() | {"now": 0} == status | {"now": 0}
    guess = status["to_go"] + 200
    drive(study, 10_000, seed=5)
    assert guess / 3 < study.answer["rewards"] < guess * 3
    assert (study.status()["to_go"], study.status()["to_go_range"]) == (0, [0, 0])


@pytest.mark.parametrize("statistic", [0.3, 1.0, 5.0, 8.9])
def test_range_of_what_is_left(statistic):
    """At its ends the statistic, with one chance in ten more or less luck, meets the threshold."""
    threshold = 9.0
    x, level = math.sqrt(2 * statistic), math.sqrt(2 * threshold)
    left = threshold / statistic - 1
    low, high = (left * share for share in range_of_rest(statistic, threshold))
    assert x * math.sqrt(1 + low) + TENTH * math.sqrt(low) == pytest.approx(level)
    if high < math.inf:
        assert x * math.sqrt(1 + high) - TENTH * math.sqrt(high) == pytest.approx(level)
    else:
        assert x <= TENTH  # what was seen may be luck alone: there is no end
    assert range_of_rest(0.0, threshold) == (0.0, math.inf)


def test_list(url, clock):
    store = Store(url)
    assert Study.list(store) == []
    store.clock = clock
    for name in ("first", "second"):
        Study.create(store, name, problem(), "ctns", delta=0.01)
        clock.now += 1
    study = Study.open(store, "first")
    study.ask(3)
    listed = Study.list(url)
    assert [row["name"] for row in listed] == ["first", "second"]
    assert (listed[0]["asked"], listed[0]["pending"], listed[0]["rewards"]) == (3, 3, 0)
    assert json.loads(json.dumps(listed)) == listed


def test_list_says_how_far_a_study_is(url):
    study = make(url, delta=0.1)
    assert Study.list(url)[0]["progress"] is None
    drive(study, 30)
    point = study.history()[-1]
    assert Study.list(url)[0]["progress"] == point["statistic"] / point["threshold"] < 1
    drive(study, 10_000)
    assert Study.list(url)[0]["progress"] == 1.0


def test_notes(url):
    study = make(url)
    noted = study.note("the scale was <b>recalibrated</b> 🙂")
    study.ask()
    assert noted == journal(study)[0]
    assert study.note("twice", key="k") == study.note("twice", key="k") == journal(study)[2]
    assert journal(study)[0]["text"] == "the scale was <b>recalibrated</b> 🙂"
    assert study.verify()


def test_names(url):
    make(url, name="Müller's [mix] 🙂")
    with pytest.raises(sx.ConflictError, match=r"there is a study .* already"):
        make(url, name="Müller's [mix] 🙂")
    for name in ("", " ", " a", "a\nb", "x" * 201):
        with pytest.raises(sx.SettingError, match="a study's name is one line"):
            make(url, name=name)
    with pytest.raises(sx.SettingError, match=r"a study cannot be called '\.\.'"):
        make(url, name="..")
    with pytest.raises(sx.UnknownStudyError, match=r"no study 'mix' in .*It holds: Müller's"):
        Study.open(url, "mix")


def test_settings(sqlite_url):
    for option, message in (
        ({"sampler": "unifrom"}, "Did you mean 'uniform'"),
        ({"sampler": "oracle"}, "exists in simulations only"),
        ({"sampler": "./mine.py"}, "a live study uses a sampler of the program"),
        ({"threshold": "mine.py"}, "a live study uses a threshold of the program"),
        ({"threshold": "gk61"}, "Did you mean 'gk16'"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"expire_after": 0}, "expire_after must be a positive number"),
        ({"expire_after": math.inf}, "expire_after must be a positive number"),
        ({"tracking": "backwards"}, "there is no tracking"),
        ({"delta": 0}, "delta"),
    ):
        with pytest.raises(sx.SimplexploreError, match=re.escape(message)):
            make(sqlite_url, **option)
    with pytest.raises(sx.ProblemError, match="only one policy"):
        Study.create(sqlite_url, "x", Problem(["a", "b"], ["a == 0.5"]))
    with pytest.raises(sx.StoreError, match="there is no file"):
        Study.list(f"{sqlite_url}-typo")  # and none is made


def test_the_problem_travels_with_the_study(sqlite_url):
    exact = Problem(
        ["x y", "b", "c"],
        {"third": "3*`x y` <= 1"},
        Gaussian([0.1, 0.2, 1 / 3], domain=(-1, 5)),
        groups={"both": ["x y", "b"]},
        means=[1 / 3, 0.1, 0.2],
        delta=0.123456789012345,
        scenario="anytime",
    )
    Study.create(sqlite_url, "mix", exact, "uniform")
    assert Study.open(sqlite_url, "mix").problem == exact


# ---------------------------------------------------------------------- replay


def test_snapshots_are_only_a_cache(url, monkeypatch):
    monkeypatch.setattr("simplexplore.study.transaction.SNAPSHOT_EVERY", 50)
    study = drive(make(url), 100, batch=3)
    code = snapshot_code(study._replica._state)
    with study.store.reading() as connection:
        data = study.store.snapshot(connection, study._replica._journal.study, code)
    assert data is not None
    fresh = Study.open(url, "mix")
    assert fresh.verify()
    expected = next_arms(study, 20)
    assert [pull.arm for pull in fresh.ask(20)] == expected
    method = data.index(b"PK\1\2") + 10  # of compression, in the list of contents
    for damaged in (
        b"",
        data[: len(data) // 2],
        data[:-400] + bytes(400),
        data[:method] + b"\x63" + data[method + 1 :],
        b"nonsense",
    ):
        with study.store.writing() as connection:
            study.store.save_snapshot(connection, study._replica._journal.study, code, 1, damaged)
        other = Study.open(url, "mix")
        assert other.status() | {"now": 0} == study.status() | {"now": 0}
        assert other.verify()


def next_arms(study, n):
    """Arms that a replay of the journal would give out next; asking it changes nothing."""
    state = State(study._replica.plan, study.seed)
    state.replay(list(study._replica.each_event()))
    events = [Event("asked", pull=state.asked + 1 + i) for i in range(n)]
    return [study.problem.arms[event.arm] for event in state.decide(events, 0.0)]


def test_threads_share_a_study(url):
    study = drive(make(url, delta=1e-100), 10)
    errors = []

    def work(seed):
        try:
            drive(study, 10, batch=3, seed=seed)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    status = study.status()
    assert (status["rewards"], status["pending"]) == (250, 0)
    assert study.verify()


def test_a_write_that_fails_is_forgotten(url, monkeypatch):
    study = drive(make(url), 20)
    before = journal(study)
    arm = study.status()
    monkeypatch.setattr(study.store, "append", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.ask(5)
    monkeypatch.undo()
    assert journal(study) == before
    assert study.status() | {"now": 0} == arm | {"now": 0}
    assert study.verify()
    study.ask(5)
    assert study.verify()


def test_a_decision_that_fails_half_way_is_forgotten(url, monkeypatch):
    # The arms have been chosen, but nothing is numbered yet: only reading it anew helps.
    study = drive(make(url), 20)
    monkeypatch.setattr(State, "_apply", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.ask(5)
    monkeypatch.undo()
    assert study.status()["pending"] == 0
    assert study.verify()
