"""Asking and telling at the same time: decided one after the other, answered when it is written."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import simplexplore as sx
import workers
from servers import Process, Thread
from service_client import refused, serving, until
from simplexplore.study.store import Store
from stores import sqlite_at_night


def at_once(calls):
    """Results or errors of calls that begin at the same moment."""
    together = threading.Barrier(len(calls), timeout=120)

    def begin(call):
        together.wait()
        try:
            return call()
        except sx.SimplexploreError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(begin, calls))


def test_requests_that_come_together(url):
    """Right ones and wrong ones: each has the outcome that it has alone."""
    study = sx.Study.create(url, "mix", workers.star(), "ctns", expire_after=None)
    told = []
    with Thread(url) as running, sx.connect(running.url) as service:
        remote = service.open("mix")
        remote.ask(3)
        for turn in range(3):
            first, second, third = study.pending()[-3:]
            of_nobody = f"{third.id[:-4]}zzzz"
            calls = [
                lambda: remote.ask(2, key=f"ask {turn}"),  # noqa: B023
                lambda: remote.ask(2, key=f"ask {turn}"),  # noqa: B023
                lambda: remote.tell(first, 0.5),  # noqa: B023
                lambda: remote.tell(first, 0.5),  # noqa: B023
                lambda: remote.tell_many([(second, 0.3), (of_nobody, 0.3)]),  # noqa: B023
                lambda: remote.tell_many([(second, 0.4), (third, 0.4)]),  # noqa: B023
                lambda: remote.tell(arm="a", reward=0.1, key=f"told {turn}"),  # noqa: B023
                lambda: remote.tell(arm="a", reward=0.1, key=f"told {turn}"),  # noqa: B023
                lambda: remote.tell("nonsense", 0.4),
                lambda: remote.ask(1),
            ]
            found = at_once(calls)
            assert found[0] == found[1]
            assert {found[2].outcome, found[3].outcome} == {"told", "repeated"}
            # All or none of it, whoever was first.
            assert isinstance(found[4], (sx.PullError, sx.ConflictError))
            assert isinstance(found[8], sx.PullError)
            assert [one.outcome for one in found[5]] == ["told", "told"]
            assert {found[6].outcome, found[7].outcome} == {"elsewhere", "repeated"}
            told += [(first.id, 0.5), (second.id, 0.4), (third.id, 0.4)]
            with pytest.raises(sx.ConflictError):
                remote.ask(3, key=f"ask {turn}")
    status = study.status()
    assert (status["asked"], status["rewards"], status["elsewhere"]) == (12, 12, 3)
    assert workers.is_sound(study, told)
    assert sx.Study.open(url, "mix").verify()


def after_writing(monkeypatch, then):
    """Let something happen after each transaction that writes, before anybody is told of it."""
    writing = Store.writing

    @contextmanager
    def watched(store):
        with writing(store) as connection:
            yield connection
        then()

    monkeypatch.setattr(Store, "writing", watched)


def test_who_waits_for_the_disk_shares_it(sqlite_url, monkeypatch):
    """Requests that come while others are written go together."""
    sx.Study.create(sqlite_url, "mix", workers.star(), "ctns").close()
    found = []

    def slow():
        time.sleep(0.2)
        found.append(time.monotonic())

    with Thread(sqlite_url) as running, sx.connect(running.url) as service:
        remote = service.open("mix")
        remote.ask()
        after_writing(monkeypatch, slow)
        calls = [lambda i=i: (remote.ask(2, key=f"k{i}"), time.monotonic()) for i in range(24)]
        answers = at_once(calls)
        monkeypatch.undo()
    assert 2 <= len(found) <= 12  # and not 24
    for _, moment in answers:
        assert moment >= found[0]  # nobody is answered before
    study = sx.Study.open(sqlite_url, "mix")
    asked = [pull.id for pulls, _ in answers for pull in pulls]
    assert {pull.id for pull in study.pending()[1:]} == {*asked}
    assert study.head == 1 + len(asked)
    assert study.verify()


def test_nothing_is_acknowledged_that_failed_at_the_end(sqlite_url, monkeypatch):
    study = sx.Study.create(sqlite_url, "mix", workers.star(), "ctns")
    (pull,) = study.ask()

    def broken():
        raise sx.StoreError("the store: the disk failed.")

    with serving(sqlite_url) as client:
        rewards = {"rewards": [{"pull": pull.id, "reward": 0.5}]}
        path = "/v1/studies/mix"
        assert client.get(path).status_code == 200
        after_writing(monkeypatch, broken)
        for answer in (
            client.post(f"{path}/pulls", json={}, headers={"Idempotency-Key": "k"}),
            client.post(f"{path}/rewards", json=rewards),
        ):
            refused(answer, 503, "store", ".")
        with pytest.raises(sx.StoreError):
            study.ask()
        monkeypatch.undo()
        # Sent again it happens once, whatever had reached the disk.
        again = client.post(f"{path}/pulls", json={}, headers={"Idempotency-Key": "k"}).json()
        assert client.post(f"{path}/rewards", json=rewards).status_code == 200
        events = client.get(f"{path}/journal").json()["events"]
        assert [event["pull"] for event in events if event.get("key") == "k"] == [
            pull["id"] for pull in again["pulls"]
        ]
        assert [event.get("reward") for event in events].count(0.5) == 1
    assert study.verify()


def test_several_servers_decide_one_after_the_other(url, tmp_path):
    sx.Study.create(url, "mix", workers.star(), "ctns").close()
    told = []

    def work(address):
        with sx.connect(address) as service:
            study = service.open("mix")
            for _ in range(10):
                pairs = [(pull, 0.5) for pull in study.ask(2)]
                study.tell_many(pairs)
                told.extend((pull.id, reward) for pull, reward in pairs)

    with Process(url, tmp_path / "one") as one, Process(url, tmp_path / "two") as two:
        found = at_once([lambda to=to: work(to) for to in 3 * [one.url, two.url]])
    assert found == 6 * [None]
    assert len(told) == 6 * 10 * 2
    assert workers.is_sound(sx.Study.open(url, "mix"), told)


def test_a_long_decision_keeps_no_other_study_waiting(sqlite_url):
    long = sx.Study.create(sqlite_url, "long", sx.Problem(20, ["a1 + a2 <= 0.5"]))
    other = sx.Study.create(sqlite_url, "other", workers.star())
    long.ask(300)
    other.ask(3)
    meanwhile = 0
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(long.ask, 50_000)
        while not asked.done():
            meanwhile += len(other.ask())
    assert meanwhile > 3
    assert len(asked.result()) == 50_000
    assert long.head == 50_300
    assert other.verify()


def test_who_is_overtaken_decides_anew(sqlite_url):
    """Long decisions of several programs: each of them counts once."""
    sx.Study.create(sqlite_url, "mix", sx.Problem(20, ["a1 + a2 <= 0.5"])).close()
    reward = sx.Reward(0.5, arm="a3", key="once")

    def work():
        with sx.Study.open(sqlite_url, "mix") as study:
            found = [pull.id for _ in range(3) for pull in study.ask(400)]
            return found, study.tell_many([reward])[0].outcome

    answers = at_once(4 * [work])
    ids = [pull for found, _ in answers for pull in found]
    assert len({*ids}) == len(ids) == 4 * 3 * 400
    assert sorted(outcome for _, outcome in answers) == ["elsewhere"] + 3 * ["repeated"]
    study = sx.Study.open(sqlite_url, "mix")
    assert {event["pull"] for event in study.events() if event["event"] == "asked"} == {*ids}
    assert study.verify()


@sqlite_at_night
def test_a_service_killed_while_it_writes_groups(url, tmp_path):
    """What clients were told is in the journal, and they go on with the next server."""
    study = sx.Study.create(url, "mix", workers.star(), "ctns")
    study.ask()

    def written():
        return [log.stat().st_size if log.exists() else 0 for log in crew.logs]

    def wait_until_all_were_answered():
        before = written()
        until(lambda: all(x < y for x, y in zip(before, written(), strict=True)))

    served = Process(url, tmp_path / "log")
    crew = workers.Crew(served.url, "mix", 8, 1, 120.0, tmp_path)
    wait_until_all_were_answered()
    served.stop(signal.SIGKILL)
    with Process(url, tmp_path / "log", served.port):
        wait_until_all_were_answered()
        crew.stop()
        assert len(crew.wait()) == 8
    assert workers.is_sound(study, workers.acknowledged(crew.logs))
