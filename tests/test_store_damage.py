"""Damage to a store: it is found, named and harms nothing else."""

import io
import json

import numpy as np
import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from nightly import crossed
from simplexplore.study.events import Event, EventError
from simplexplore.study.state import State
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from stores import SET, STORES, execute, fill

COPY = (
    "INSERT INTO events (study, seq, at, kind, arm, reward, checksum) SELECT study, 13, at, kind,"
    " arm, reward, checksum FROM events WHERE study = 1 AND seq = 12"
)
DAMAGE = {
    "an arm out of range": ([SET.format("arm = 1000000000", 7)], 7),
    "a negative arm": ([SET.format("arm = -7", 7)], 7),
    "another arm": ([SET.format("arm = 3", 7)], 7),
    "no arm": ([SET.format("arm = NULL", 7)], 7),
    "another reward": ([SET.format("reward = 0.75", 8)], 8),
    "no reward": ([SET.format("reward = NULL", 8)], 8),
    "another time": ([SET.format("at = at + 1", 3)], 3),
    "another key": ([SET.format("\"key\" = 'x'", 12)], 12),
    "another note": ([SET.format("""data = '{"text": "bye"}'""", 13)], 13),
    "no JSON": ([SET.format("data = '{'", 13)], 13),
    "another delta": ([SET.format("""data = '{"delta": 0.5, "before": 0.1}'""", 14)], 14),
    "an unknown kind": ([SET.format("kind = 'guessed'", 9)], 9),
    "another kind": ([SET.format("kind = 'expired'", 7)], 7),
    "an orphan pull": ([SET.format("pull = 99", 8)], 8),
    "another checksum": ([SET.format("checksum = 1", 5)], 5),
    "missing": (["DELETE FROM events WHERE study = 1 AND seq = 4"], 4),
    "the first one missing": (["DELETE FROM events WHERE study = 1 AND seq = 1"], 1),
    "the last one missing": (["DELETE FROM events WHERE study = 1 AND seq = 15"], 15),
    "many missing": (["DELETE FROM events WHERE study = 1 AND seq > 9"], 10),
    "doubled": (
        [
            SET.format("seq = 115", 15),
            SET.format("seq = 114", 14),
            SET.format("seq = 14", 13),
            COPY,
            SET.format("seq = 15", 114),
            SET.format("seq = 16", 115),
        ],
        13,
    ),
    "exchanged": (
        [SET.format("seq = 99", 8), SET.format("seq = 8", 9), SET.format("seq = 9", 99)],
        8,
    ),
    "of another study": (
        [
            "DELETE FROM events WHERE study = 1",
            "UPDATE events SET study = 1 WHERE study = 2",
        ],
        1,
    ),
}

ROWS = [
    ("head = 14", "its row and event 14, the last one, do not agree"),
    ("head = 16", "event 16 is missing"),
    ("head = 0", "its row and event 0"),
    ("checksum = 5", "its row and event 15, the last one, do not agree"),
    ("settings = '{'", "what it was made with"),
    ("settings = '{}'", "what it was made with"),
    ("problem = 'arms = 3'", "what it was made with"),
    ("fixed = NULL", "what it was made with"),
    ("head = -1", "its row says head = -1"),
    ("changed = 1e300", "its row says changed = 1e\\+300"),
    ("progress = 7", "its row says progress = 7.0"),
    ("state = 'asleep'", "its row says state = 'asleep'"),
    ("state = 'stopped'", "its answer cannot be read"),
]


# Each damage on one kind of store every time, on both at night: it is found above the database.
@pytest.mark.parametrize(("url", "case"), crossed(STORES, DAMAGE), indirect=["url"])
def test_a_damaged_event_is_found_and_named(url, case):
    statements, seq = DAMAGE[case]
    running = fill(url)
    other = fill(url, "other")
    execute(url, *statements)
    fresh = Study.open(url, "mix")
    words = rf"study 'mix' is damaged: event {seq} .*Put back a copy of the store"
    for look in (
        fresh.status,
        fresh.ask,
        fresh.verify,
        fresh.events,
        lambda: list(fresh.each_event()),
        lambda: fresh.tell(arm="a", reward=1.0),
        running.verify,
    ):
        with pytest.raises(sx.StoreError, match=words):
            look()
    # What comes before can be read, and studies beside it go on.
    assert len(fresh.events(limit=seq - 1)) == seq - 1
    assert {one["name"] for one in Study.list(url)} == {"mix", "other"}
    if case != "of another study":
        assert other.ask()
        assert other.verify()


@pytest.mark.parametrize(
    ("seq", "change"),
    [(7, "arm = 'a'"), (8, "reward = 'much'"), (7, "pull = 'one'"), (3, "at = 'noon'")],
)
def test_text_for_a_number(sqlite_url, seq, change):
    fill(sqlite_url)
    execute(sqlite_url, SET.format(change, seq))
    study = Study.open(sqlite_url, "mix")
    for look in (study.status, study.ask, study.verify, study.events):
        with pytest.raises(sx.StoreError, match=f"'mix' is damaged: event {seq} "):
            look()


def test_an_event_that_is_looked_up_is_checked(url):
    # A pull that is not pending any more and a key are found in the journal, not in memory.
    study = fill(url)
    pulls = study.ask(6, key="first")
    execute(url, SET.format("arm = 3", 1), SET.format("arm = 77", 12))
    with pytest.raises(sx.StoreError, match="'mix' is damaged: event 1 is not what was recorded"):
        study.tell(pulls[0], 0.5)
    with pytest.raises(sx.StoreError, match="'mix' is damaged: event 12 is not what was recorded"):
        study.tell(arm="a", reward=1.5, key="k")


def test_events_that_vanish_under_a_running_program(url):
    study = fill(url)
    execute(url, "DELETE FROM events WHERE seq = 15")
    with pytest.raises(sx.StoreError, match="'mix' is damaged: event 15 is missing"):
        study.ask()


@pytest.mark.parametrize(("url", "damage"), crossed(STORES, ROWS), indirect=["url"])
def test_a_damaged_row_hides_no_other(url, damage):
    change, words = damage
    fill(url)
    other = fill(url, "other")
    execute(url, f"UPDATE studies SET {change} WHERE name = 'mix'")
    listed = {one["name"]: one for one in Study.list(url)}
    assert "trouble" not in listed["other"]
    assert listed["mix"]["trouble"].startswith("damaged: ")
    assert json.loads(json.dumps(listed, allow_nan=False)) == listed
    with pytest.raises(sx.StoreError, match=f"study 'mix' is damaged: .*{words}"):
        Study.open(url, "mix").status()
    assert other.verify()


@pytest.mark.parametrize(
    "change", ["head = 'x'", "rewards = 'many'", "delta = 'x'", "created = 'x'", "answer = '{'"]
)
def test_text_for_a_number_of_a_row(sqlite_url, change):
    fill(sqlite_url)
    fill(sqlite_url, "other")
    execute(sqlite_url, f"UPDATE studies SET {change}, state = 'stopped' WHERE name = 'mix'")
    listed = {one["name"]: one.get("trouble") for one in Study.list(sqlite_url)}
    assert listed["other"] is None
    assert listed["mix"]
    with pytest.raises(sx.StoreError, match="study 'mix' is damaged"):
        Study.open(sqlite_url, "mix").status()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM simplexplore_schema",
        "INSERT INTO simplexplore_schema (version) VALUES (2)",
        "UPDATE simplexplore_schema SET version = -1",
        "UPDATE simplexplore_schema SET version = NULL",
    ],
)
def test_a_store_that_does_not_say_its_version(url, statement):
    fill(url).close()
    execute(url, statement)
    for look in (Store, Study.list, lambda url: Study.open(url, "mix")):
        with pytest.raises(sx.StoreError, match=r"is damaged: it does not say of which version"):
            look(url)


def test_a_history_that_cannot_be_read(url):
    study = fill(url)
    execute(url, "UPDATE history SET policy = '['")
    with pytest.raises(sx.StoreError, match="'mix' is damaged: its history cannot be read"):
        study.history()
    assert study.verify()


def test_zero_has_no_sign(url):
    study = Study.create(url, "mix", workers.star(), "ctns")
    (pull,) = study.ask()
    study.tell(pull, -0.0)
    assert [str(event["reward"]) for event in study.events(after=1)] == ["0.0"]
    study.tell(arm="b", reward=-0.0, key="k")
    assert Study.open(url, "mix").verify()
    assert study.tell(arm="b", reward=-0.0, key="k").outcome == "repeated"


# ---------------------------------------------------------------------- snapshots


@pytest.fixture
def many_snapshots(monkeypatch):
    monkeypatch.setattr("simplexplore.study.transaction.SNAPSHOT_EVERY", 10)


@pytest.mark.usefixtures("many_snapshots")
def test_a_snapshot_brings_delta_back(url):
    study = Study.create(url, "mix", workers.star(delta=0.1), "ctns")
    study.extend(0.01)
    study.ask(20)
    whole = list(study._replica.each_event())
    state = State.from_snapshot(study._replica.plan, study._replica._state.snapshot())
    assert state.engine.plan.delta == 0.01
    assert state.same_as(study._replica._state)
    fresh = Study.open(url, "mix")
    assert fresh.status()["delta"] == 0.01
    with pytest.raises(sx.SettingError, match=r"it has 0\.01, got 0\.05"):
        fresh.extend(0.05)
    assert fresh.verify()
    assert list(fresh._replica.each_event()) == whole


def test_a_snapshot_brings_everything_back(sqlite_url):
    study = Study.create(sqlite_url, "mix", workers.star(delta=0.1), "ctns")
    pulls = study.ask(400)
    study.tell_many([(pull, 30 * workers.MEANS[pull.arm]) for pull in pulls[:-3]])
    assert study.stopped
    state = study._replica._state
    again = State.from_snapshot(study._replica.plan, state.snapshot())
    assert again.same_as(state)
    assert again.answer == study.answer
    assert list(again.pending) == [398, 399, 400]
    assert again.totals == state.totals


@pytest.mark.usefixtures("many_snapshots")
def test_a_snapshot_that_says_something_else_is_ignored(url):
    # It can be read, and is of this journal; only its checksum tells.
    study = fill(url)
    before = study.status()
    with study.store.writing() as connection:
        (data,) = connection.execute(sa.text("SELECT data FROM snapshots")).one()
        with np.load(io.BytesIO(data)) as file:
            arrays = dict(file)
        (counts,) = [name for name in arrays if name.endswith("mean")]
        arrays[counts] = arrays[counts] + 1
        changed = io.BytesIO()
        np.savez(changed, **arrays)
        new = {"data": changed.getvalue()}
        connection.execute(sa.text("UPDATE snapshots SET data = :data"), new)
    assert Study.open(url, "mix").status() | {"now": 0} == before | {"now": 0}


def test_a_state_that_differs_is_not_verified(sqlite_url):
    study = fill(sqlite_url)
    study._replica._state.engine.run.mean[0] += 1e-12
    assert not study.verify()


def test_arms_are_checked_before_compiled_code(sqlite_url):
    state = fill(sqlite_url)._replica._state
    for arm in (5, 10**9, -2, -(10**9)):
        for kind in ("asked", "elsewhere"):
            with pytest.raises(EventError, match="names an arm that is not there"):
                state.decide([Event(kind, 8 if kind == "asked" else None, arm, 0.5)], 0.0)


@pytest.mark.usefixtures("many_snapshots")
def test_a_damaged_snapshot_is_ignored(url):
    study = fill(url)
    before = study.status()
    store = study.store
    with store.writing() as connection:
        (data,) = connection.execute(sa.text("SELECT data FROM snapshots")).one()
        data = bytearray(data)
        for at in range(200, len(data), 97):
            data[at] ^= 1
        connection.execute(sa.text("UPDATE snapshots SET data = :data"), {"data": bytes(data)})
    fresh = Study.open(url, "mix")
    assert fresh.status() | {"now": 0} == before | {"now": 0}
    assert fresh.verify()


@pytest.mark.usefixtures("many_snapshots")
def test_damage_before_a_snapshot_is_found(url):
    fill(url)
    execute(url, SET.format("reward = 0.75", 8))
    with pytest.raises(sx.StoreError, match="'mix' is damaged: event 8 is not what was recorded"):
        Study.open(url, "mix").status()


@pytest.mark.usefixtures("many_snapshots")
def test_a_snapshot_of_another_journal_is_ignored(url):
    one, two = fill(url), fill(url, "other")
    two.tell(arm="b", reward=7.0)
    execute(
        url,
        "DELETE FROM snapshots WHERE study = 1",
        "UPDATE snapshots SET study = 1 WHERE study = 2",
    )
    assert Study.open(url, "mix").status()["arms"] == one.status()["arms"]
    assert Study.open(url, "mix").verify()
