"""Damage to a store: it is found, named and harms nothing else; what was there goes on."""

import fcntl
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from permissions import open_folder, ordinary_user
from simplexplore.study.events import Event, EventError
from simplexplore.study.state import State
from simplexplore.study.store import Store
from simplexplore.study.study import Study

DATA = Path(__file__).parent / "data"


def fill(url, name="mix", pairs=6):
    """A study whose 15 events are of all kinds but one."""
    study = Study.create(url, name, workers.star(1e-290), "ctns", expire_after=60)
    pulls = study.ask(pairs, key="first")
    study.tell_many([(pull, 0.5) for pull in pulls[:-1]])
    study.tell(arm="a", reward=1.5, key="k")
    study.note("hello")
    study.extend(1e-300)
    study.ask()
    return study


def execute(url, *statements):
    """Change a store behind its back."""
    store = Store(url)
    with store.writing() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    store.close()


# ---------------------------------------------------------------------- events

SET = "UPDATE events SET {} WHERE study = 1 AND seq = {}"
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


@pytest.mark.parametrize("case", DAMAGE)
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
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
    ],
)
def test_a_damaged_row_hides_no_other(url, change, words):
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


# ---------------------------------------------------------------------- the version before


def restored(tmp_path, *statements):
    """The store that version 2 made, perhaps damaged since."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DATA / "store_version_2.sql").read_text(encoding="utf-8"))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.execute("PRAGMA journal_mode = WAL")
    return path


PINNED = json.loads((DATA / "store_version_2.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["running", "stopped", "new"])
def test_a_study_of_version_2_goes_on(tmp_path, name):
    path = restored(tmp_path)
    study = Study.open(path, name)
    pinned = PINNED[name]
    assert study.about == pinned["about"]
    assert study.events() == pinned["events"]
    assert study.history() == pinned["history"]
    status = study.status()
    for key, expected in pinned["status"].items():
        assert close(status[key], expected), key
    assert study.verify()
    assert Study.list(path) == PINNED["list"]
    if name == "stopped":
        study.extend(0.001)
    seq = study.head
    study.tell_many([(pull, 1.0) for pull in study.ask(3)])
    assert study.head >= seq + 6
    assert study.verify()
    assert Study.open(path, name).verify()


def close(found, expected):
    """Equal, but for rounding in numbers that were computed."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            close(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, rel=1e-5, abs=1e-9)
    return found == expected


@pytest.mark.parametrize(
    ("statement", "seq", "words"),
    [
        ("UPDATE events SET arm = 1000000 WHERE study = 1 AND seq = 7", 7, "arm number 1000000"),
        ("UPDATE events SET arm = -2 WHERE study = 1 AND seq = 7", 7, "arm number -2"),
        ("UPDATE events SET arm = 'a' WHERE study = 1 AND seq = 7", 7, "arm number 'a'"),
        ("UPDATE events SET arm = NULL WHERE study = 1 AND seq = 7", 7, "arm number None"),
        ("UPDATE events SET reward = 'x' WHERE study = 1 AND seq = 3", 3, "the reward 'x'"),
        ("UPDATE events SET reward = 9e999 WHERE study = 1 AND seq = 3", 3, "the reward inf"),
        ("UPDATE events SET reward = 1 WHERE study = 1 AND seq = 1", 1, "has the reward 1.0"),
        ("UPDATE events SET kind = 'guessed' WHERE study = 1 AND seq = 3", 3, "an unknown kind"),
        ("UPDATE events SET pull = 99 WHERE study = 1 AND seq = 3", 3, "which nobody asked for"),
        ("UPDATE events SET pull = 99 WHERE study = 1 AND seq = 1", 1, "where 1 is next"),
        ("UPDATE events SET arm = 1 - arm WHERE study = 1 AND seq = 3", 3, "is not pending"),
        ("UPDATE events SET kind = 'late' WHERE study = 1 AND seq = 3", 3, "which is pending"),
        ("UPDATE events SET at = 'noon' WHERE study = 1 AND seq = 3", 3, "no time but 'noon'"),
        ("UPDATE events SET data = '[' WHERE study = 1 AND kind = 'noted'", 74, "says text"),
        ("UPDATE events SET data = '[3]' WHERE study = 1 AND kind = 'noted'", 74, "says text"),
        (
            """UPDATE events SET data = '{"delta": 5.0, "before": 1.0}'
            WHERE study = 1 AND kind = 'extended'""",
            75,
            "extends 1e-06 to 5",
        ),
        ("DELETE FROM events WHERE study = 1 AND seq = 30", 30, "is missing"),
        ("DELETE FROM events WHERE study = 1 AND seq = 76", 76, "is missing"),
    ],
)
def test_what_was_damaged_before_it_had_checksums(tmp_path, statement, seq, words):
    path = restored(tmp_path, statement)
    study = Study.open(path, "running")
    for look in (study.status, study.ask, study.verify):
        with pytest.raises(sx.StoreError, match=f"'running' is damaged: event {seq} .*{words}"):
            look()
    assert Study.open(path, "stopped").verify()


def test_settings_that_were_damaged_before(tmp_path):
    path = restored(
        tmp_path,
        "UPDATE studies SET settings = '{}' WHERE name = 'running'",
        "UPDATE studies SET problem = 'arms' WHERE name = 'new'",
    )
    listed = {one["name"]: one.get("trouble") for one in Study.list(path)}
    assert (
        listed["running"] == "damaged: its settings cannot be read. Put back a copy of the store."
    )
    for name in ("running", "new"):
        with pytest.raises(sx.StoreError, match=f"study '{name}' is damaged: .*cannot be read"):
            Study.open(path, name)
    assert Study.open(path, "stopped").verify()


def test_a_program_of_version_2_that_still_runs_records_nothing(tmp_path):
    path = restored(tmp_path)
    with closing(sqlite3.connect(path)) as old:
        assert Study.open(path, "running").verify()
        with pytest.raises(sqlite3.IntegrityError, match=r"events\.checksum"):
            old.execute(
                "INSERT INTO events (study, seq, at, kind, pull, arm) "
                "VALUES (1, 77, 1.0, 'asked', 38, 0)"
            )


# ---------------------------------------------------------------------- files that go away


def test_a_file_that_was_deleted(tmp_path):
    path = tmp_path / "x.db"
    study = fill(path)
    status = study.status()
    for file in tmp_path.glob("x.db*"):
        file.unlink()
    for wrong in (
        lambda: study.tell(arm="a", reward=1.0),
        study.ask,
        study.status,
        lambda: study.note("x"),
    ):
        with pytest.raises(sx.StoreError, match=r"x\.db was deleted or replaced while it was open"):
            wrong()
    assert not path.exists()  # no empty one was put in its place
    assert status["rewards"] == 6


def test_reading_a_file_that_was_deleted(tmp_path):
    study = fill(tmp_path / "x.db")
    (tmp_path / "x.db").unlink()
    with pytest.raises(sx.StoreError, match=r"x\.db was deleted or replaced while it was open"):
        study.status()


def test_no_empty_file_takes_the_place_of_one_that_goes(tmp_path, monkeypatch):
    study = fill(tmp_path / "x.db")
    study.close()
    (tmp_path / "x.db").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _: True)  # as it was a moment before
        with pytest.raises(sx.StoreError, match="it cannot be opened"):
            study.status()
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize("also", [[], ["x.db-wal", "x.db-shm"]])
def test_a_file_that_was_replaced(tmp_path, also):
    path = tmp_path / "x.db"
    study = fill(path)
    study.close()
    copy = path.read_bytes()
    study.tell(arm="a", reward=1.0)
    for name in also:
        (tmp_path / name).unlink()
    (tmp_path / "copy.db").write_bytes(copy)
    (tmp_path / "copy.db").rename(path)
    with pytest.raises(sx.StoreError, match="was deleted or replaced while it was open"):
        study.tell(arm="a", reward=2.0)
    if also:  # then it goes on with what is there now
        assert study.status()["rewards"] == 6
        study.tell(arm="a", reward=2.0)
        assert Study.open(path, "mix").status()["rewards"] == 7


def test_a_file_that_goes_just_before_it_is_acknowledged(tmp_path, monkeypatch):
    path = tmp_path / "x.db"
    study = fill(path)
    flush = study.store._file.flush

    def late():
        for file in tmp_path.glob("x.db*"):
            file.unlink()
        flush()

    monkeypatch.setattr(study.store._file, "flush", late)
    with pytest.raises(sx.StoreError, match="was deleted or replaced while it was open"):
        study.tell(arm="a", reward=1.0)


def test_a_log_that_was_deleted(tmp_path):
    # Without it, other programs would not see what is recorded, nor would a crash spare it.
    path = tmp_path / "x.db"
    study = fill(path)
    (tmp_path / "x.db-wal").unlink()
    with pytest.raises(sx.StoreError, match="was deleted or replaced while it was open"):
        study.tell(arm="a", reward=1.0)


def test_a_database_that_was_made_anew(server):
    # The study's number and code may be the same by chance; the identity of the store is not.
    url = server.database()
    study = fill(url)
    execute(url, "UPDATE simplexplore_identity SET identity = 'another'")
    for wrong in (study.ask, study.status, lambda: study.tell(arm="a", reward=0.5)):
        with pytest.raises(sx.UnknownStudyError, match=r"study 'mix' is not in .* any more"):
            wrong()
    assert Study.open(url, "mix").verify()


# ---------------------------------------------------------------------- read-only stores


def look_at(path, folder):
    """Everything that needs no writing."""
    assert [one["name"] for one in Study.list(path)] == ["mix"]
    study = Study.open(path, "mix")
    assert study.status()["rewards"] == 6
    assert len(study.events()) == 15
    assert study.verify()
    study.export(folder / "x.csv")
    study.close()


def try_to_write(path):
    study = Study.open(path, "mix")
    for wrong in (study.ask, lambda: study.tell(arm="a", reward=1.0), lambda: study.note("x")):
        with pytest.raises(sx.StoreError, match=r"cannot be written.*Nothing was recorded"):
            wrong()
    with pytest.raises(sx.StoreError, match=r"cannot be written.*Nothing was recorded"):
        Study.create(path, "new", workers.star())
    study.close()


@pytest.mark.parametrize("what", ["file", "folder", "both"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_read_only_store_can_be_read(what, is_open):
    with open_folder() as folder, open_folder() as exports:
        path = folder / "x.db"
        study = fill(path)
        if not is_open:
            study.close()
        exports.chmod(0o777)
        with ordinary_user(folder):
            if what != "folder":
                for file in folder.glob("x.db*"):
                    file.chmod(0o444)
            if what != "file":
                folder.chmod(0o555)
            try:
                look_at(path, exports)
                if (what, is_open) != ("folder", True):  # there, all files it needs are there
                    try_to_write(path)
            finally:
                folder.chmod(0o755)
        study.close()


def test_a_log_that_cannot_be_read():
    with open_folder() as folder:
        path = folder / "x.db"
        study = fill(path)
        copies = {file.name: file.read_bytes() for file in folder.glob("x.db*")}
        study.close()
        for name, content in copies.items():
            (folder / name).write_bytes(content)
        (folder / "x.db-shm").unlink()
        with ordinary_user(folder):
            folder.chmod(0o555)
            with pytest.raises(sx.StoreError, match=r"a part of it is in x\.db-wal, which cannot"):
                Study.list(path)
            folder.chmod(0o755)


def test_a_read_only_database(server, tmp_path):
    url = server.database()
    fill(url).close()
    execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on")
    look_at(url, tmp_path)
    try_to_write(url)


def test_a_user_who_may_only_read(server, tmp_path):
    url = server.database()
    fill(url).close()
    role = f"reader_{url.rpartition('/')[2]}"
    execute(
        url, f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    )
    url = url.replace("tester@", f"{role}@")
    look_at(url, tmp_path)
    try_to_write(url)


# ---------------------------------------------------------------------- restarts


def test_opening_waits_for_a_restart(server):
    url = server.database()
    fill(url).close()
    server.stop()
    back = threading.Timer(1.0, server.start)
    back.start()
    try:
        assert Study.open(url, "mix").verify()
    finally:
        back.join()


def test_what_waiting_does_not_help(server):
    start = time.monotonic()
    with pytest.raises(sx.StoreError, match="does not exist") as caught:
        Study.open(server.database() + "x", "mix")
    assert not caught.value.passing
    assert time.monotonic() - start < 25


# ---------------------------------------------------------------------- forks

FORKS = """
    import os, signal, sys, threading, time
    import simplexplore as sx
    study = sx.Study.open({url!r}, "mix")
    over = threading.Event()

    def work():
        while not over.is_set():
            study.tell_many([(pull, 0.5) for pull in study.ask(2)])
            study.status()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(8):
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that hangs is killed
            try:
                study.tell_many([(pull, 0.25) for pull in study.ask(3)])
                study.status()
                assert study.verify()
            except sx.StoreError as error:
                os._exit(3 if "forked" in str(error) else 4)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(5)
            os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    over.set()
    for thread in threads:
        thread.join()
    assert study.verify()
    print(*codes)
"""


def test_forks_while_threads_work(url):
    fill(url).close()
    code = textwrap.dedent(FORKS.format(url=url))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = [int(status) for status in done.stdout.split()]
    # Each has worked, or said that it could not: by then, others may be at work for too long.
    assert set(codes) <= {0, 3 << 8}, (codes, done.stderr)
    assert codes.count(0) >= 4, codes
    study = Study.open(url, "mix")
    quarters = [event for event in study.events() if event.get("reward") == 0.25]
    assert len(quarters) == 3 * codes.count(0)
    assert study.verify()


def test_a_fork_in_the_middle_of_a_transaction(url):
    study = fill(url)
    with study.store.reading() as connection:
        connection.execute(sa.text("SELECT 1"))
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                study.ask()
            except sx.StoreError as error:
                os._exit(0 if "was forked while a study was being used" in str(error) else 1)
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert study.ask()
    assert study.verify()


def test_a_child_does_not_keep_the_lock(tmp_path):
    # It has the lock file open as its parent had, and lives for longer than the transaction.
    store = Store(tmp_path / "x.db")
    with store.writing():
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with (tmp_path / "x.db-lock").open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# ---------------------------------------------------------------------- power and locks


def test_a_commit_is_on_the_disk_before_others_may_reset_the_log(tmp_path):
    # NORMAL: what moves from the log into the database is flushed first. With OFF, a power
    # failure during that damages the file.
    store = Store(tmp_path / "x.db")
    for context in (store.reading, store.writing):
        with context() as connection:
            for pragma, expected in (
                ("synchronous", 1),
                ("journal_mode", "wal"),
                ("foreign_keys", 1),
            ):
                found = connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one()
                assert found == expected, pragma


def test_what_was_flushed_is_in_the_servers_log_on_disk(server):
    # Commits do not wait for it, so that the flush has to.
    store = Store(server.database())
    for _ in range(5):
        with store.writing() as connection:
            connection.execute(sa.text("UPDATE simplexplore_identity SET identity = identity"))
        with store.reading() as connection:
            written = connection.execute(sa.text("SELECT pg_current_wal_insert_lsn()")).scalar_one()
        store.flush()
        with store.reading() as connection:
            behind = connection.execute(
                sa.text(
                    "SELECT pg_wal_lsn_diff(CAST(:written AS pg_lsn), pg_current_wal_flush_lsn())"
                ),
                {"written": written},
            ).scalar_one()
        assert behind <= 0


def test_who_writes_is_alone_before_it_has_read(tmp_path, monkeypatch):
    # Without the lock file, as where the system has none: SQLite's own lock is enough, taken
    # when the transaction begins. Taken later, two would decide on the same state.
    monkeypatch.setattr("simplexplore.study.sqlite_file.fcntl", None)
    monkeypatch.setattr("simplexplore.study.database.PATIENCE", 0.2)
    study = fill(tmp_path / "x.db")
    other = Study.open(tmp_path / "x.db", "mix")
    with study.store.writing() as connection:
        connection.exec_driver_sql("SELECT head FROM studies").all()
        with pytest.raises(sx.StoreError, match="another program kept it locked"):
            other.ask()
    assert other.ask()
