"""Requests that share a transaction: each is decided with what those before it have decided."""

import threading

import pytest

import simplexplore as sx
import workers
from simplexplore.study.asking import asking
from simplexplore.study.telling import telling
from simplexplore.study.transaction import Request


def elsewhere(reward, key=None, arm="a"):
    return telling([sx.Reward(reward, arm=arm, key=key)])


def test_a_group_is_as_one_after_the_other(url):
    """Journals and states are the same, whether requests come together or alone."""
    requests = [
        asking(3, "first"),
        elsewhere(0.5, "k"),
        elsewhere(0.5, "k"),
        asking(2),
        asking(3, "first"),
        elsewhere(1.5),
    ]
    together, alone = (
        sx.Study.create(url, name, workers.star(), "ctns") for name in ("together", "alone")
    )
    found = together.replica.commit(requests)
    one_by_one = [alone.replica.run(request) for request in requests]
    assert [one[0].outcome for one in (found[1], found[2], found[5])] == [
        *("elsewhere", "repeated", "elsewhere")
    ]
    assert found[0] == found[4]  # the same pulls under the same key, of a moment ago
    assert [pull.arm for pull in found[3]] == [pull.arm for pull in one_by_one[3]]
    events = [
        [[event.get(name) for name in ("event", "arm", "reward", "key")] for event in one.events()]
        for one in (together, alone)
    ]
    assert events[0] == events[1]
    assert together.verify()
    again = together.replica.commit(requests[:5])
    assert again[0] == found[0]
    assert again[1][0].outcome == "repeated"


def test_one_that_is_refused_leaves_the_others_alone(url):
    study = sx.Study.create(url, "mix", workers.star(), "ctns")
    (pull,) = study.ask()
    rewards = [sx.Reward(1.0, pull.id), sx.Reward(2.0, "no such pull")]
    found = study.replica.commit([asking(2), telling(rewards), elsewhere(0.25, "k")])
    assert len(found[0]) == 2
    assert isinstance(found[1], sx.PullError)
    assert found[2][0].outcome == "elsewhere"
    kinds = [event["event"] for event in study.events()]
    assert kinds == ["asked", "asked", "asked", "elsewhere"]
    with pytest.raises(sx.PullError, match="no such pull"):
        study.replica.run(telling(rewards))
    assert study.verify()


def test_a_program_that_fails_takes_nobody_with_it(url):
    """What broke off is not recorded, and the others are decided without it."""
    study = sx.Study.create(url, "mix", workers.star(), "ctns")

    def fails(transaction):
        asking(5).work(transaction)
        raise ZeroDivisionError

    found = study.replica.commit([asking(1), Request(fails), asking(1)])
    assert isinstance(found[1], ZeroDivisionError)
    assert [len(found[0]), len(found[2])] == [1, 1]
    assert study.head == 2
    assert study.verify()
    with pytest.raises(ZeroDivisionError):
        study.replica.run(Request(fails))
    assert study.head == 2


def test_large_groups_are_decide_optimistically_others_wait(sqlite_url):
    """The same journal, also where somebody else writes at the same moment."""
    study = sx.Study.create(sqlite_url, "mix", workers.star(), "ctns")
    rewards = [sx.Reward(0.001 * i, arm="abcde"[i % 5], key=f"{i}") for i in range(600)]
    other = sx.Study.open(sqlite_url, "mix")

    def disturb():
        for i in range(20):
            other.note(f"{i}")

    thread = threading.Thread(target=disturb)
    thread.start()
    found = study.replica.commit([telling(rewards[:300]), telling(rewards[200:])])
    thread.join()
    assert [one.outcome for one in found[1][:100]] == ["repeated"] * 100
    assert study.status()["rewards"] == 600
    assert study.head == 620
    assert study.verify()
    assert other.verify()
