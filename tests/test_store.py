"""What every store does, on SQLite and on PostgreSQL: URLs, versions, journals, writers."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import simplexplore as sx
import workers
from stores import answered, execute


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/base", "a store is SQLite or PostgreSQL; got 'mysql'"),
        ("sqlite://", "so it needs a file"),
        ("sqlite:///:memory:", "so it needs a file"),
        (":memory:", "so it needs a file"),
        ("", "so it needs a file"),
        (".", "'.' is a folder"),
        ("/", "'/' is a folder"),
        ("postgresql://host:port/x", "is not a store's URL"),
    ],
)
def test_urls_that_are_none(url, message):
    for look in (sx.Study.list, lambda url: sx.Study.create(url, "mix", workers.star())):
        with pytest.raises(sx.SettingError, match=message):
            look(url)


def test_a_path_is_a_url(tmp_path):
    sx.Study.create(tmp_path / "x.db", "mix", workers.star(), "ctns")
    assert [row["name"] for row in sx.Study.list(f"sqlite:///{tmp_path / 'x.db'}")] == ["mix"]


def test_a_drive_is_no_protocol(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answered("c:x.db")
    assert (tmp_path / "c:x.db").exists()


def test_names_that_are_no_text(url):
    # What a terminal makes of bytes that are not UTF-8.
    study = answered(url)
    for wrong in (
        lambda: sx.Study.open(url, "\udcff"),
        lambda: study.ask(key="\udcff"),
        lambda: study.tell(arm="a", reward=0.5, key="\udcff"),
    ):
        with pytest.raises(sx.SettingError, match=r"'\\udcff' is no text that can be stored"):
            wrong()
    assert study.verify()


def test_a_relative_path_is_where_it_was(tmp_path, monkeypatch):
    # A program that goes elsewhere must still queue at, and write, the files beside the database.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    study = answered("x.db")
    monkeypatch.chdir("elsewhere")
    before = (tmp_path / "x.db-wal").stat().st_mtime_ns
    study.ask()
    assert (tmp_path / "x.db-wal").stat().st_mtime_ns > before
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(sx.StoreError, match="there is no folder"):
        sx.Study.create(tmp_path / "no" / "x.db", "mix", workers.star())


def test_passwords_are_not_shown():
    with pytest.raises(sx.StoreError) as caught:
        sx.Study.list("postgresql://me:hunter2@127.0.0.1:1/base")
    assert "hunter2" not in str(caught.value)
    assert "cannot be reached" in str(caught.value)


# ---------------------------------------------------------------------- versions


def test_a_newer_store_is_left_alone(url):
    answered(url).close()
    execute(url, "UPDATE simplexplore_store SET version = 99")
    message = r"made by a newer simplexplore \(store version 99; this program knows 1\); upgrade"
    for look in (sx.Study.list, lambda url: sx.Study.open(url, "mix")):
        with pytest.raises(sx.StoreError, match=message):
            look(url)


def test_tables_of_another_program(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE studies (id INTEGER)")
    connection.close()
    with pytest.raises(sx.StoreError, match="holds tables of another program"):
        sx.Study.create(tmp_path / "other.db", "mix", workers.star())


def test_looking_makes_no_tables(tmp_path, server):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
    connection.close()
    for url in (path, server.database()):
        for look in (sx.Study.list, lambda url: sx.Study.open(url, "mix")):
            with pytest.raises(sx.StoreError, match="holds no studies; 'simplexplore study create"):
                look(url)
        answered(url)  # tables of others are no obstacle
        assert [one["name"] for one in sx.Study.list(url)] == ["mix"]


def test_first_ones_at_the_same_time(url):
    code = """
import sys
sys.path.insert(0, sys.argv[3])
import simplexplore as sx, workers
sx.Study.create(sys.argv[1], sys.argv[2], workers.star())
"""
    here = str(Path(__file__).parent)
    names = ["one", "two", "three", "four"]
    running = [
        subprocess.Popen([sys.executable, "-c", code, url, name, here], stderr=subprocess.PIPE)
        for name in names
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
    assert {one["name"] for one in sx.Study.list(url)} == {*names}


# ---------------------------------------------------------------------- journals


def test_events_come_back_as_they_were(url):
    study = sx.Study.create(url, "Müller's 🙂", workers.star(delta=0.1), "ctns")
    (pull,) = study.ask(key="'); --")
    study.tell(pull, 0.1 + 0.2)
    study.tell(arm="b", reward=-5e-324, key="ä🙂'\"%")
    study.tell(arm="b", reward=1e29)
    study.note("ü 🙂 \\ %s :x")
    study.extend(1e-300)
    events = study.events()
    assert [one.get("reward") for one in events] == [None, 0.1 + 0.2, -5e-324, 1e29, None, None]
    assert [one.get("key") for one in events][:3] == ["'); --", None, "ä🙂'\"%"]
    assert events[4]["text"] == "ü 🙂 \\ %s :x"
    study.close()
    for one in (study, sx.Study.open(url, "Müller's 🙂")):  # closed, it opens again
        assert one.events() == list(one.each_event()) == events
        assert one.events(after=2, limit=2) == events[2:4]
        assert one.events(after=6) == []
        assert one.verify()


def test_studies_have_journals_of_their_own(url):
    one, two = (sx.Study.create(url, name, workers.star(), "ctns") for name in ("one", "two"))
    one.ask(3, key="k")
    two.note("hello", key="k")
    assert [event["event"] for event in two.events()] == ["noted"]
    assert sx.Study.list(url)[0]["name"] == "two"
    assert [one.head, two.head] == [3, 1]


def test_more_pulls_and_keys_than_a_statement_takes(url):
    study = sx.Study.create(url, "mix", workers.star(), "uniform", expire_after=None)
    pulls = study.ask(2000)
    pairs = [(pull, 0.5) for pull in pulls]
    keyed = [sx.Reward(1.0, arm="a", key=f"k{i}") for i in range(2000)]
    for outcome, known in (("told", "elsewhere"), ("repeated", "repeated")):
        assert {one.outcome for one in study.tell_many(pairs)} == {outcome}
        assert {one.outcome for one in study.tell_many(keyed)} == {known}
    assert study.head == 6000
    assert study.verify()


def test_writers_of_a_study_wait_for_each_other(url):
    sx.Study.create(url, "mix", workers.star(), "ctns").close()

    def work():
        with sx.Study.open(url, "mix") as study:
            for _ in range(10):
                study.note("hello")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sx.Study.open(url, "mix") as study:
        assert [event["seq"] for event in study.events()] == list(range(1, 61))
        assert study.verify()


def test_any_number_of_threads_may_look(url):
    study = answered(url)
    together = threading.Barrier(20, timeout=120)
    found = []

    def look():
        together.wait()
        found.append(study.status()["rewards"])

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 20 * [20]
