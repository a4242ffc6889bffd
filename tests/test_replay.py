"""A live study is its journal: the same run as in simulation, whatever fails on the way."""

import threading

import numpy as np
import pytest
import sqlalchemy as sa

import simplexplore as sx
from nightly import crossed
from random_numbers import rewards_of_run
from simplexplore import Bernoulli, Gaussian, Study
from stores import execute
from studies import ARMS, MEANS, drive, journal, make, problem


@pytest.mark.parametrize(
    ("sampler", "scenario", "rewards"),
    crossed(
        ["uniform", "ctns", "cge", "ptns", "top-two"],
        ["end-of-time", "anytime"],
        [Gaussian(0.5), Bernoulli()],
    ),
    ids=str,
)
def test_one_pull_at_a_time_is_run_0_of_simulate(sqlite_url, sampler, scenario, rewards):
    means = np.array([MEANS[arm] for arm in ARMS])
    known = problem(rewards, means=means, scenario=scenario)
    settings = {"sampler": sampler, "delta": 0.2, "threshold": "gk16", "seed": 8}
    result = sx.simulate(known, runs=1, workers=1, **settings)
    explorer = sx.Explorer(known, **settings)
    study = Study.create(sqlite_url, "mix", known, **settings)
    draw = rewards_of_run(known, seed=8)
    while not explorer.stopped:
        (pull,) = study.ask()
        assert pull.arm == explorer.ask()
        reward = draw(pull.arm)
        explorer.tell(pull.arm, reward)
        study.tell(pull, reward)
    assert study.stopped
    status = study.status()
    assert status["rewards"] == result.stopping_times[0]
    assert [arm["rewards"] for arm in status["arms"]] == result.pulls[0].tolist()
    assert study.answer["policy"] == explorer.policy.tolist()


def test_snapshots_are_only_a_cache(url):
    study = make(url, delta=1e-300)
    for _ in range(11):
        study.tell_many((pull, MEANS[pull.arm]) for pull in study.ask(200))
    expected = study.status() | {"now": 0}
    for damage in ("substr(data, 1, length(data) - 400)", "substr(data, 1, 100)", "'nonsense'"):
        execute(url, f"UPDATE snapshots SET data = {damage}")
        other = Study.open(url, "mix")
        assert other.status() | {"now": 0} == expected
        assert other.verify()
    execute(url, "DELETE FROM snapshots")
    fresh = Study.open(url, "mix")
    arms = [pull.arm for pull in fresh.ask(20)]
    assert len(arms) == 20
    assert Study.open(url, "mix").verify()


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


@pytest.mark.parametrize("event", ["events", "studies"])
def test_a_write_that_fails_is_forgotten(sqlite_url, event):
    """Arms have been chosen, but nothing of that is kept: only reading it anew helps."""
    study = drive(make(sqlite_url), 20)
    before, status = journal(study), study.status()
    change = {"events": "INSERT ON events", "studies": "UPDATE ON studies"}[event]
    raising = "BEGIN SELECT RAISE(ABORT, 'no room'); END"
    execute(sqlite_url, f"CREATE TRIGGER full BEFORE {change} {raising}")
    with pytest.raises((sx.StoreError, sa.exc.SQLAlchemyError), match="no room"):
        study.ask(5)
    execute(sqlite_url, "DROP TRIGGER full")
    assert journal(study) == before
    assert study.status() | {"now": 0} == status | {"now": 0}
    assert study.verify()
    study.ask(5)
    assert study.verify()
