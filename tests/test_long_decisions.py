"""Decisions that take long: they keep nobody waiting, and nothing of them is lost."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import simplexplore as sx
import workers
from service_client import until
from simplexplore.study import queries, replica
from simplexplore.study.events import Event
from simplexplore.study.state import State
from simplexplore.study.store import Store
from simplexplore.study.study import Study


@pytest.fixture
def paused(monkeypatch):
    """Let something happen whenever a study of 20 arms decides, while it does."""
    meanwhile = []
    decide = State.decide

    def slow(state, *arguments):
        if state.engine.plan.problem.size == 20 and meanwhile:
            meanwhile.pop(0)()
        return decide(state, *arguments)

    monkeypatch.setattr(State, "decide", slow)
    return meanwhile


def large(url, name="large"):
    return Study.create(url, name, sx.Problem(20, ["a1 + a2 <= 0.5"]))


@pytest.mark.parametrize("why", ["arms", "events", "seconds"])
def test_long_decisions_keep_no_other_study_waiting(sqlite_url, monkeypatch, paused, why):
    study, other = large(sqlite_url), Study.create(sqlite_url, "other", workers.star())
    if why != "arms":
        monkeypatch.setattr(replica, "_MANY_ARMS", 100)
    if why == "seconds":
        paused.append(lambda: time.sleep(0.1))
        study.ask()
    begun, over = threading.Event(), threading.Event()
    paused.append(lambda: (begun.set(), over.wait(60)))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(study.ask, 300 if why == "events" else 1)
        try:
            assert begun.wait(60)
            assert len(other.ask(3)) == 3
            assert not asked.done()
        finally:
            over.set()
        pulls = asked.result()
    # The list of studies shows what was written last first, whenever it was decided.
    assert [one["name"] for one in Study.list(sqlite_url)] == ["large", "other"]
    assert study.tell(pulls[0], 1.0).outcome == "told"
    assert study.verify()
    assert Study.open(sqlite_url, "large").verify()


def test_a_study_that_was_slow_once_is_quick_again(sqlite_url, monkeypatch, paused):
    """Functions are slow until they are compiled: that is no reason to take a detour for ever."""
    study = large(sqlite_url)
    monkeypatch.setattr(replica, "_MANY_ARMS", 100)
    monkeypatch.setattr(replica, "_LONG", 0.1)
    paused.append(lambda: time.sleep(0.3))
    study.ask()
    assert study._replica.is_long(events=1)
    until(lambda: study.ask() and not study._replica.is_long(events=1))


@pytest.mark.parametrize("column", ["key", "pull"])
def test_what_is_recorded_is_found_without_reading_the_journal(sqlite_url, column):
    """SQLite guesses which index is best, and guessed that the whole study is."""
    store = Store(sqlite_url)
    statement, places = queries.Statements(is_sqlite=True).events_by(column, 2)
    with store.reading() as connection:
        plan = store.run(connection, f"EXPLAIN QUERY PLAN {statement}", (1, *["x"] * places))
        plan = [row[-1] for row in plan.fetchall()]
    assert plan[0] == f"SEARCH events USING INDEX events_by_{column} (study=? AND {column}=?)"


@pytest.mark.parametrize("column", ["key", "pull"])
@pytest.mark.parametrize("is_analysed", [True, False])
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_young_study_is_not_read_from_end_to_end(url, column, is_analysed):
    """PostgreSQL knows nothing of studies younger than its statistics, and takes them for small."""
    store = Store(url)
    statement, _ = queries.Statements(is_sqlite=False).events_by(column)
    asked = """
        INSERT INTO events (study, seq, at, kind, pull, "key", checksum)
        SELECT %s, i, 0, 'asked', i, 'key' || i, 0 FROM generate_series(1, 20000) AS i
    """
    with store.writing() as connection:
        for study in (1, 2, 3):
            store.reserve(connection, f"{study}")
            row = {"problem": "", "settings": "", "created": 0.0, "delta": 0.1, "code": "x"}
            store.create(connection, name=f"{study}", **row)
            if study == 3 and is_analysed:
                store.run(connection, "ANALYZE")
            store.run(connection, asked, (study,))
        wanted = [f"key{i}" if column == "key" else i for i in (7, 5, 30_000)]
        plan = store.run(connection, f"EXPLAIN {statement}", (3, wanted)).fetchall()
        found = store.run(connection, statement, (3, wanted)).fetchall()
    assert f"events_by_{column}" in str(plan)
    assert "pkey" not in str(plan)
    assert [Event(*row).seq for row in found] == [5, 7]


def test_who_is_overtaken_decides_anew(sqlite_url, paused):
    study = large(sqlite_url)
    other = Study.open(sqlite_url, "large")
    twin = Study.open(sqlite_url, "large")
    paused.append(lambda: others.extend(other.ask(2, key="theirs")))
    others = []
    pulls = study.ask(3)
    ids = [pull.id for pull in others + pulls]
    assert len(set(ids)) == 5
    assert [event["pull"] for event in twin.events()] == ids  # theirs came first
    # What was recorded meanwhile under the same key is found, too.
    fresh = Study.open(sqlite_url, "large")
    reward = sx.Reward(0.5, arm="a3", key="once")
    told = []
    paused.append(lambda: told.extend(twin.tell_many([reward])))
    told += fresh.tell_many([reward])
    assert [one.outcome for one in told] == ["elsewhere", "repeated"]
    assert study.head == 6
    assert all(one.verify() for one in (study, other, twin, fresh))


def test_a_long_decision_that_cannot_be_written_is_forgotten(sqlite_url, monkeypatch):
    study = large(sqlite_url)
    first = study.ask()
    monkeypatch.setattr(Store, "append", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        study.tell(first[0], 1.0)
    monkeypatch.undo()
    assert study.status()["rewards"] == 0
    assert study.tell(first[0], 2.0).outcome == "told"
    assert study.verify()
