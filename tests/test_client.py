"""Studies of a service: what they share with studies of a store, and servers that die."""

import threading
import time

import numpy as np
import pytest

import simplexplore as sx
import workers
from nightly import nightly
from servers import Process, Thread
from service_client import new_token, until
from simplexplore.report.study_words import study_words
from stores import postgresql_at_night
from workers import MEANS, star


def test_it_behaves_like_a_study(service, sqlite_url, tmp_path):
    remote = service.create("a mix", star(delta=0.1), "ctns", seed=3, expire_after=None)
    local = sx.Study.open(sqlite_url, "a mix")
    rng = np.random.default_rng(0)
    pulls = remote.ask(10)
    told = remote.tell_many([(pull, float(rng.normal(MEANS[pull.arm]))) for pull in pulls])
    assert {one.outcome for one in told} == {"told"}
    assert remote.tell(pulls[0], told[0].reward).outcome == "repeated"
    assert remote.tell(arm="a", reward=1.0).outcome == "elsewhere"
    assert remote.tell_many([]) == []
    remote.note("from far away")
    remote.extend(0.05)
    assert remote.about == local.about
    for name in ("name", "created", "seed", "expire_after", "problem", "head", "answer", "stopped"):
        assert getattr(remote, name) == getattr(local, name), name
    assert remote.answer_in_words == local.answer_in_words == "No answer yet."
    assert remote.events() == local.events()
    assert remote.events(after=3, limit=2) == local.events(after=3, limit=2)
    assert list(remote.each_event()) == list(local.each_event())
    assert remote.history() == local.history()
    here, there = local.status(), remote.status()
    here["now"] = there["now"]  # a moment later
    words = there["words"]
    assert words["best mix so far"] == "50% a, 50% c."
    assert there == {k: v for k, v in here.items() if k != "store"} | {
        "answer_in_words": "No answer yet.",
        "words": study_words(here),
    }
    for ending in ("csv", "json"):
        local.export(tmp_path / f"here.{ending}")
        remote.export(tmp_path / f"there.{ending}")
        files = [(tmp_path / f"{name}.{ending}").read_bytes() for name in ("here", "there")]
        assert files[0] == files[1]
    assert remote.verify()
    assert [one["name"] for one in service.list()] == ["a mix"]
    file = tmp_path / "rewards.csv"
    file.write_text("arm,reward\na,1.5\nb,0.5\n")
    assert len(remote.import_csv(file)) == 2
    file.write_text("arm,reward\na,1.5\nq,0.5\n")
    with pytest.raises(sx.SettingError, match=r"rewards\.csv, line 3: there is no arm 'q'"):
        remote.import_csv(file)
    assert local.head == 10 + 10 + 1 + 2 + 2


def test_keys_are_those_of_a_study(service, sqlite_url):
    study = service.create("mix", star(), key="första / 100%")
    assert service.create("mix", star(), key="första / 100%").created == study.created
    pulls = study.ask(2, key="week 3, ä/ö")
    assert sx.Study.open(sqlite_url, "mix").ask(2, key="week 3, ä/ö") == pulls
    for key, words in (("x" * 191, "at most 190 characters"), ("a\0b", "none NUL")):
        with pytest.raises(sx.SettingError, match=words):
            study.ask(key=key)


def test_pieces_of_a_long_journal(service):
    """More events than a service gives at once."""
    study = service.create("mix", star())
    for _ in range(3):
        study.ask(7_000)
    assert [event["seq"] for event in study.events()] == list(range(1, 21_001))
    assert sum(1 for _ in study.each_event()) == 21_000


def test_errors_are_those_of_a_study(service):
    study = service.create("mix", star())
    pull = study.ask()[0]
    study.tell(pull, 1.0)
    for call, kind, words in (
        (lambda: service.open("none"), sx.UnknownStudyError, "no study 'none'"),
        (lambda: service.create("mix", star()), sx.ConflictError, "there is a study 'mix'"),
        (lambda: study.tell(pull, 2.0), sx.ConflictError, "already has the reward 1.0"),
        (lambda: study.tell("x-1-0000", 2.0), sx.PullError, "belongs to another study"),
        (lambda: study.tell(arm="a", reward=float("nan")), sx.RewardError, "finite"),
        (lambda: study.tell(pull, None), sx.RewardError, "the reward is missing"),
        (lambda: study.extend(2.0), sx.ProblemError, "between 0 and 1"),
        (lambda: study.ask(0), sx.SettingError, "greater than or equal to 1"),
        (lambda: study.tell_many([(pull, 1.0)] * 10_001), sx.TooLargeError, "10,000"),
        (lambda: study.export("x.xml"), sx.SettingError, "the ending says"),
    ):
        with pytest.raises(kind, match=words):
            call()


def test_tokens(sqlite_url, monkeypatch):
    sx.Study.create(sqlite_url, "mix", star())
    _, reader = new_token(sqlite_url)
    with Thread(sqlite_url) as running:
        with (
            sx.connect(running.url) as service,
            pytest.raises(sx.AccessError, match="this service needs a token"),
        ):
            service.list()
        monkeypatch.setenv("SIMPLEXPLORE_TOKEN", reader)
        with sx.connect(running.url) as service:
            assert len(service.list()) == 1
            with pytest.raises(sx.AccessError, match="role 'run'; yours has the role 'read'"):
                service.open("mix").ask()


def test_an_empty_variable_is_no_token(service, monkeypatch):
    monkeypatch.setenv("SIMPLEXPLORE_TOKEN", "")
    with sx.connect(service.url) as other:
        assert other.list() == []


def test_numbers_of_numpy(service, sqlite_url):
    study = service.create("mix", star(delta=0.1), seed=np.int64(3), expire_after=np.float32(60))
    pulls = study.ask(np.int64(2))
    study.tell_many([(pulls[0], np.float32(0.5)), (pulls[1], np.int64(1))])
    study.extend(np.float32(0.0625))
    local = sx.Study.open(sqlite_url, "mix")
    assert [event.get("reward") for event in local.events()] == [None, None, 0.5, 1.0, None]
    assert (local.seed, local.status()["delta"]) == (3, 0.0625)


@nightly
def test_many_studies(service, sqlite_url):
    """All pages are read, though studies move to the front meanwhile."""
    names = {f"s{i}" for i in range(1100)}
    for name in sorted(names):
        sx.Study.create(sqlite_url, name, star()).close()
    over = threading.Event()

    def work():
        rng = np.random.default_rng(0)
        while not over.is_set():
            with sx.Study.open(sqlite_url, f"s{rng.integers(1100)}") as study:
                study.note("moves to the front")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(5):
            assert {one["name"] for one in service.list()} == names
    finally:
        over.set()
        worker.join()


# ---------------------------------------------------------------------- servers that die


@postgresql_at_night
def test_servers_die_and_come_back(url, tmp_path):
    """Workers over HTTP do not notice; every acknowledged reward is there once."""
    study = sx.Study.create(url, "mix", star())
    study.ask()  # compiled before anything is measured
    served = Process(url, tmp_path / "log")
    crew = workers.Crew(served.url, "mix", 3, 5, 300.0, tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(2):
        time.sleep(rng.uniform(0.1, 0.8))
        served.stop(9)
        served = Process(url, tmp_path / "log", served.port)
    sizes = [log.stat().st_size if log.exists() else 0 for log in crew.logs]
    for size, log in zip(sizes, crew.logs, strict=True):  # it goes on
        until(lambda size=size, log=log: log.exists() and log.stat().st_size > size)
    crew.stop()
    crew.wait()
    told = workers.acknowledged(crew.logs)
    served.stop()
    assert workers.is_sound(study, told)


def test_two_servers_on_one_database(server, tmp_path):
    url = server.database()
    study = sx.Study.create(url, "mix", star())
    study.ask()
    with Process(url, tmp_path / "one") as one, Process(url, tmp_path / "two") as two:
        folders = [tmp_path / "crew1", tmp_path / "crew2"]
        for folder in folders:
            folder.mkdir()
        crews = [
            workers.Crew(served.url, "mix", 2, 5, 300.0, folder)
            for served, folder in zip((one, two), folders, strict=True)
        ]
        for crew in crews:
            crew.stop(rewards=2 * 50)
        for crew in crews:
            crew.wait()
    told = [pair for crew in crews for pair in workers.acknowledged(crew.logs)]
    assert {event["event"] for event in study.each_event()} == {"asked", "told"}
    assert min(len(workers.acknowledged(crew.logs)) for crew in crews) >= 2 * 50
    assert workers.is_sound(study, told)
