"""A store that version 2 made: what was there goes on, what was damaged is named."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import simplexplore as sx
from simplexplore.study.study import Study

DATA = Path(__file__).parent / "data"


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


# Computed in another way since: intervals, and the use of limits over all pulls handed out.
ANEW = ("intervals", "value_interval", "arms", "constraints")
# Of a study that has stopped: rewards that came later count no more.
AT_THE_STOP = ("value", "edges", "progress", "characteristic_time")
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
        if key not in ANEW and not (name == "stopped" and key in AT_THE_STOP):
            assert close(status[key], expected), key
    for row, expected in zip(status["constraints"], pinned["status"]["constraints"], strict=True):
        assert close(row, expected | {"explored": row["explored"]})
    if name == "stopped":
        assert status["value"] == study.answer["value"]
        assert status["decision"]["samples"] + 2 == status["rewards"]
        for arm in status["arms"]:
            if arm["later"]:  # what is known of it without them is not in the older pins
                arm["rewards"] += arm["later"]
                arm["mean"] += (arm["later_mean"] - arm["mean"]) * arm["later"] / arm["rewards"]
            arm["share"] = arm["rewards"] / status["rewards"]
    computed = ["low", "high"] + ["target", "optimal_share"] * (name == "stopped")
    for arm, expected in zip(status["arms"], pinned["status"]["arms"], strict=True):
        assert close(arm | dict.fromkeys(computed), expected | dict.fromkeys(computed))
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
        return found.keys() >= expected.keys() and all(
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
