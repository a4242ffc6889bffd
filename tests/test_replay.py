"""A live study is its journal: the same run as in simulation, whatever fails on the way."""

import threading

import numpy as np
import pytest

import simplexplore as sx
from nightly import crossed
from random_numbers import drawn_here
from simplexplore.exploration.seeding import streams
from simplexplore.kernels import rng
from simplexplore.problem.families import Bernoulli, Gaussian
from simplexplore.study.events import Event
from simplexplore.study.state import State
from simplexplore.study.study import Study
from simplexplore.study.transaction import snapshot_code
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
