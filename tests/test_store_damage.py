"""Damage to a store: it is found, named and harms nothing else."""

import contextlib
import io
import json
import zlib

import numpy as np
import pytest

import simplexplore as sx
import workers
from nightly import crossed
from simplexplore.study.events import link
from stores import SET, STORES, execute, fill, rows

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
    ("settings = '{'", "checksum mismatch in its definition"),
    ("settings = '{}'", "checksum mismatch in its definition"),
    ("problem = 'arms = 3'", "checksum mismatch in its definition"),
    ("fixed = 5", "checksum mismatch in its definition"),
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
    fresh = sx.Study.open(url, "mix")
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
    assert {one["name"] for one in sx.Study.list(url)} == {"mix", "other"}
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
    study = sx.Study.open(sqlite_url, "mix")
    for look in (study.status, study.ask, study.verify, study.events):
        with pytest.raises(sx.StoreError, match=f"'mix' is damaged: event {seq} "):
            look()


def test_an_event_that_is_looked_up_is_checked(url):
    # A pull that is not pending any more and a key are found in the journal, not in memory.
    study, other = fill(url), fill(url, "other")
    pulls = study.ask(6, key="first")
    execute(
        url, SET.format("arm = 3", 1), "UPDATE events SET arm = 77 WHERE study = 2 AND seq = 12"
    )
    with pytest.raises(sx.StoreError, match="'mix' is damaged: event 1 is not what was recorded"):
        study.tell(pulls[0], 0.5)
    with pytest.raises(sx.StoreError, match="'other' is damaged: event 12 is not what was"):
        other.tell(arm="a", reward=1.5, key="k")


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
    listed = {one["name"]: one for one in sx.Study.list(url)}
    assert "trouble" not in listed["other"]
    assert listed["mix"]["trouble"].startswith("damaged: ")
    assert json.loads(json.dumps(listed, allow_nan=False)) == listed
    with pytest.raises(sx.StoreError, match=f"study 'mix' is damaged: .*{words}"):
        sx.Study.open(url, "mix").status()
    assert other.verify()


@pytest.mark.parametrize(
    "change", ["head = 'x'", "rewards = 'many'", "delta = 'x'", "created = 'x'", "answer = '{'"]
)
def test_text_for_a_number_of_a_row(sqlite_url, change):
    fill(sqlite_url)
    fill(sqlite_url, "other")
    execute(sqlite_url, f"UPDATE studies SET {change}, state = 'stopped' WHERE name = 'mix'")
    listed = {one["name"]: one.get("trouble") for one in sx.Study.list(sqlite_url)}
    assert listed["other"] is None
    assert listed["mix"]
    with pytest.raises(sx.StoreError, match="study 'mix' is damaged"):
        sx.Study.open(sqlite_url, "mix").status()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM simplexplore_store",
        "INSERT INTO simplexplore_store (version, identity) VALUES (2, 'x')",
        "UPDATE simplexplore_store SET version = -1",
    ],
)
def test_a_store_that_does_not_say_its_version(url, statement):
    fill(url).close()
    execute(url, statement)
    for look in (sx.Study.list, lambda url: sx.Study.open(url, "mix")):
        with pytest.raises(sx.StoreError, match=r"is damaged: it does not say of which version"):
            look(url)


def linked_anew(url):
    """Make checksums match a journal that was changed."""
    columns = 'kind, pull, arm, reward, "key", data, at, seq, checksum'
    checksum = 1
    for event in rows(url, f"SELECT {columns} FROM events WHERE study = 1 ORDER BY seq"):
        data = event[5]
        with contextlib.suppress(TypeError, ValueError):  # as it is
            data = json.loads(data)
        checksum = link(checksum, (*event[:5], data, *event[6:]))
        execute(url, SET.format(f"checksum = {checksum}", event[7]))
    execute(url, f"UPDATE studies SET checksum = {checksum}")


@pytest.mark.parametrize("arm", [1_000_000, -2])
def test_an_arm_out_of_range_whatever_its_checksum(sqlite_url, arm):
    """Compiled code trusts in numbers of arms."""
    fill(sqlite_url).close()
    execute(sqlite_url, SET.format(f"arm = {arm}", 7))
    linked_anew(sqlite_url)
    for look in (sx.Study.status, sx.Study.ask, sx.Study.verify):
        study = sx.Study.open(sqlite_url, "mix")
        with pytest.raises(sx.StoreError, match=f"event 7 names arm number {arm}"):
            look(study)


def test_zero_has_no_sign(url):
    study = sx.Study.create(url, "mix", workers.star(), "ctns")
    (pull,) = study.ask()
    study.tell(pull, -0.0)
    assert [str(event["reward"]) for event in study.events(after=1)] == ["0.0"]
    study.tell(arm="b", reward=-0.0, key="k")
    assert sx.Study.open(url, "mix").verify()
    assert study.tell(arm="b", reward=-0.0, key="k").outcome == "repeated"


# ---------------------------------------------------------------------- snapshots


def with_snapshot(url, name="mix"):
    """A study as `fill` makes it, with a correction, after which its state is written down."""
    study = fill(url, name)
    study.tell(arm="a", reward=9.0)
    study.void(event=study.head, reason="a mistake")
    assert rows(url, "SELECT count(*) FROM snapshots") != [(0,)]
    return study


def snapshot_of(url):
    ((data,),) = rows(url, "SELECT data FROM snapshots WHERE study = 1")
    return bytes(data)


def replace_snapshot(url, data):
    execute(url, "UPDATE snapshots SET data = :data WHERE study = 1", data=data)


def as_before(study, before):
    return study.status() | {"now": 0} == before | {"now": 0} and study.verify()


@pytest.mark.parametrize("events", [20, 5000])
def test_a_snapshot_brings_everything_back(url, events):
    """Also delta, what is pending, and the answer; more events than are replayed."""
    study = sx.Study.create(url, "mix", workers.star(delta=0.1), "ctns")
    study.extend(0.01)
    pulls = study.ask(events)
    study.tell_many([(pull, 30 * workers.MEANS[pull.arm]) for pull in pulls[:-3]])
    study.tell(arm="b", reward=-7.0)
    study.void(event=study.head, reason="a mistake")
    assert study.stopped
    fresh = sx.Study.open(url, "mix")
    assert as_before(fresh, study.status())
    assert fresh.status()["delta"] == 0.01
    assert fresh.pending() == pulls[-3:]
    assert fresh.answer == study.answer
    with pytest.raises(sx.SettingError, match=r"it has 0\.01, got 0\.05"):
        fresh.extend(0.05)
    assert list(fresh.each_event()) == study.events()


def test_a_snapshot_that_says_something_else_is_ignored(url):
    # It can be read, and is of this journal; only its checksum tells.
    before = with_snapshot(url).status()
    with np.load(io.BytesIO(snapshot_of(url))) as file:
        arrays = dict(file)
    changed = [name for name in arrays if arrays[name].dtype == float and arrays[name].size]
    assert changed
    arrays |= {name: arrays[name] + 1 for name in changed}
    file = io.BytesIO()
    np.savez(file, **arrays)
    replace_snapshot(url, file.getvalue())
    assert as_before(sx.Study.open(url, "mix"), before)


def test_a_state_that_differs_is_not_verified(sqlite_url):
    # A snapshot that is wrong and has the checksum of what it says.
    with_snapshot(sqlite_url).close()
    with np.load(io.BytesIO(snapshot_of(sqlite_url))) as file:
        arrays = dict(file)
    file = io.BytesIO()
    np.savez(file, **(arrays | {"run.mean": arrays["run.mean"] + 1e-12}))
    replace_snapshot(sqlite_url, file.getvalue())
    execute(sqlite_url, f"UPDATE snapshots SET checksum = {zlib.crc32(file.getvalue())}")
    assert not sx.Study.open(sqlite_url, "mix").verify()


def test_a_damaged_snapshot_is_ignored(url):
    before = with_snapshot(url).status()
    data = bytearray(snapshot_of(url))
    for at in range(200, len(data), 97):
        data[at] ^= 1
    replace_snapshot(url, bytes(data))
    assert as_before(sx.Study.open(url, "mix"), before)


def test_damage_before_a_snapshot_is_found(url):
    with_snapshot(url)
    execute(url, SET.format("reward = 0.75", 8))
    for look in (sx.Study.ask, sx.Study.status):
        words = "'mix' is damaged: event 8 is not what was recorded"
        with pytest.raises(sx.StoreError, match=words):
            look(sx.Study.open(url, "mix"))


def test_a_snapshot_of_another_journal_is_ignored(url):
    one, two = with_snapshot(url), with_snapshot(url, "other")
    two.tell(arm="b", reward=7.0)
    execute(
        url,
        "DELETE FROM snapshots WHERE study = 1",
        "UPDATE snapshots SET study = 1 WHERE study = 2",
    )
    assert sx.Study.open(url, "mix").status()["arms"] == one.status()["arms"]
    assert sx.Study.open(url, "mix").verify()
