"""Live studies: every rule of asking and telling."""

import json
import math
import re
import threading

import numpy as np
import pytest

import simplexplore as sx
from stores import postgresql_at_night
from studies import ARMS, MEANS, drive, journal, make, problem

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
    other = sx.Study.open(url, "mix")
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
    message = r"already has the reward 0\.30000000000000004; got 0\.3\. The first is kept"
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
        (sx.Bernoulli(), [0.5, 2, -1]),
        (sx.Poisson(), [0.5, -1]),
        (sx.Bounded(-1.0, 2.0), [-1.01, 2.5]),
        (sx.Gaussian(1.0), []),
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
    study = make(sqlite_url, rewards=sx.Gaussian(1.0))
    explorer = sx.Explorer(problem(sx.Gaussian(1.0)), "uniform", delta=0.1)
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
    study = sx.Study.create(url, "one", problem(), "ctns")
    other = sx.Study.create(url, "two", problem(), "ctns")
    (foreign,) = other.ask()
    (own,) = study.ask()
    code, number, check = own.id.split("-")
    wrong = {
        foreign.id: "belongs to another study, not to 'one'",
        f"{code}-2-{check}": "never handed out a pull",
        f"{code}-{number}-{int(check, 16) ^ 1:04x}": "never handed out a pull",
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
    with pytest.raises(sx.SettingError, match=r"there is no arm 'z'\. Known: a, b, c"):
        study.tell(arm="z", reward=0.4)
    assert study.status()["elsewhere"] == 3
    assert study.verify()


def test_an_arm_that_no_policy_uses(sqlite_url):
    rows = ["a + b <= 0.6", "d <= 0"]
    study = sx.Study.create(sqlite_url, "mix", sx.Problem([*ARMS, "d"], rows), "uniform")
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
        start.wait()
        try:
            made.append(sx.Study.create(url, "mix", problem(), "ctns", key=key).created)
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
    study = drive(make(url, expire_after=60), 10)
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
    study = make(sqlite_url, expire_after=None)
    study.ask(3)
    clock.now += 1e9
    study.ask()
    assert study.status()["expired"] == 0
    assert sx.Study.open(sqlite_url, "mix").status()["expire_after"] is None
    make(sqlite_url, name="short", expire_after=np.float32(60))
    assert sx.Study.open(sqlite_url, "short").status()["expire_after"] == 60


def test_a_clock_that_jumps_back(url, clock):
    study = drive(make(url, expire_after=60), 5)
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


@postgresql_at_night
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
    message = (
        r"has stopped and hands out no more pulls\. The answer, .*0\.1: 0\.6 a, 0\.4 c\. To go on"
    )
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
    assert sx.Study.list(url)[0]["state"] == "running"
    assert sx.Study.open(url, "mix").status()["delta"] == 1e-9
    drive(study, 5000, seed=1)
    assert study.stopped
    assert study.answer["delta"] == 1e-9
    assert study.answer["rewards"] > answer["rewards"]
    assert study.verify()
    listed = sx.Study.list(url)[0]
    assert (listed["state"], listed["answer"]["mix"]) == ("stopped", study.answer["mix"])


def test_an_extension_that_has_enough_evidence_already(sqlite_url):
    study = make(sqlite_url, rewards=sx.Gaussian(0.01), delta=0.1)
    pulls = study.ask(30)
    study.tell_many([(pull, MEANS[pull.arm]) for pull in pulls])
    assert study.stopped
    study.extend(0.05)
    assert study.stopped
    assert study.answer["delta"] == 0.05
    assert study.verify()


@postgresql_at_night
def test_rewards_after_the_stop_are_kept(url):
    study = make(url, rewards=sx.Gaussian(0.01), delta=0.1)
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
    one = make(sqlite_url, name="one", rewards=sx.Gaussian(0.05), delta=0.1)
    two = make(sqlite_url, name="two", rewards=sx.Gaussian(0.05), delta=0.1)
    values = [MEANS[pull.arm] for pull in one.ask(40)]
    one.tell_many([(f"{event['pull']}", v) for event, v in zip(journal(one), values, strict=True)])
    for pull, value in zip(two.ask(40), values, strict=True):
        two.tell(pull, value)
    assert one.answer == two.answer


# ---------------------------------------------------------------------- notes, names, settings


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
        sx.Study.open(url, "mix")


def test_settings(sqlite_url):
    for option, message in (
        ({"sampler": "unifrom"}, "Did you mean 'uniform'"),
        ({"sampler": "oracle"}, "exists in simulations only"),
        ({"sampler": "./mine.py"}, "a live study needs a built-in sampler"),
        ({"threshold": "mine.py"}, "a live study needs a built-in threshold"),
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
        sx.Study.create(sqlite_url, "x", sx.Problem(["a", "b"], ["a == 0.5"]))
    with pytest.raises(sx.StoreError, match="there is no file"):
        sx.Study.list(f"{sqlite_url}-typo")  # and none is made


def test_the_problem_travels_with_the_study(sqlite_url):
    exact = sx.Problem(
        ["x y", "b", "c"],
        {"third": "3*`x y` <= 1"},
        sx.Gaussian([0.1, 0.2, 1 / 3], domain=(-1, 5)),
        groups={"both": ["x y", "b"]},
        means=[1 / 3, 0.1, 0.2],
        delta=0.123456789012345,
        scenario="anytime",
    )
    sx.Study.create(sqlite_url, "mix", exact, "uniform")
    assert sx.Study.open(sqlite_url, "mix").problem == exact


def test_pulls_in_flight_have_a_limit(sqlite_url, clock):
    study = make(sqlite_url, expire_after=10.0)
    pulls = study.ask(99_999)
    with pytest.raises(sx.TooLargeError, match="99,999 pulls in flight, and 2 more are too many"):
        study.ask(2)
    study.ask(1)
    study.tell(pulls[0], 1.0)
    study.ask(1)
    clock.now += 20.0  # all of them expire with the next question
    assert len(study.ask(5)) == 5
    assert study.status()["pending"] == 5
