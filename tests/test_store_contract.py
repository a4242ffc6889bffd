"""What every store does, on SQLite and on PostgreSQL."""

import hashlib
import json
import threading
import zlib

import numpy as np
import pytest
import sqlalchemy as sa

import simplexplore as sx
from simplexplore.study import migrations
from simplexplore.study.events import Event
from simplexplore.study.schema import METADATA
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from workers import star

HEAD = {
    "changed": 2.0,
    "state": "running",
    "delta": 0.1,
    "asked": 0,
    "rewards": 0,
    "pending": 0,
    "answer": None,
    "progress": None,
    "checksum": 7,
    "tags": None,
}


@pytest.fixture
def store(url):
    store = Store(url)
    yield store
    store.close()


def enter(store, name="mix", created=1.0):
    """Make a study; returns its number."""
    with store.writing() as connection:
        assert store.reserve(connection, name) is None
        store.create(
            connection,
            name=name,
            code="abc123",
            created=created,
            problem="a problem",
            settings="{}",
            delta=0.1,
        )
    return find(store, name).id


def find(store, name):
    with store.reading() as connection:
        return store.find(connection, name)


def append(store, study, *events, **head):
    with store.writing() as connection:
        store.append(connection, study, events, {**HEAD, "head": events[-1].seq, **head})


def read(store, study, after=0, **limit):
    with store.reading() as connection:
        return store.read(connection, study, after, **limit)


EVENTS = [
    Event("asked", 1, 0, key="k", at=1.5, seq=1),
    Event("asked", 2, 1, key="k", at=1.5, seq=2),
    Event("told", 1, 0, 0.1 + 0.2, at=1e9 + 1 / 3, seq=3),
    Event("expired", 2, 1, at=3.0, seq=4),
    Event("late", 2, 1, -5e-324, at=4.0, seq=5),
    Event("elsewhere", None, 1, 1e300, "ä🙂'\"%", at=5.0, seq=6),
    Event("noted", data={"text": "ü 🙂 \\ %s :x"}, at=6.0, seq=7),
    Event("extended", data={"delta": 0.05, "before": 0.1}, at=7.0, seq=8),
]


# ---------------------------------------------------------------------- studies


def test_a_new_store_is_empty(store):
    assert store.page() == []
    with store.reading() as connection:
        assert migrations.version_of(connection) == len(migrations.MIGRATIONS)
        assert store.look_up(connection, "mix") is None
        with pytest.raises(sx.UnknownStudyError, match=r"no study 'mix' in .* holds none yet"):
            store.find(connection, "mix")


def test_a_study_is_found_by_its_name(store):
    enter(store, "Müller's 🙂")
    row = find(store, "Müller's 🙂")
    assert (row.code, row.created, row.changed, row.head) == ("abc123", 1.0, 1.0, 0)
    assert (row.state, row.delta, row.answer) == ("running", 0.1, None)
    with store.writing() as connection:
        assert store.reserve(connection, "Müller's 🙂") == row


def test_a_name_is_given_once(store):
    enter(store)
    with pytest.raises(sx.StoreError), store.writing() as connection:
        store.create(
            connection, name="mix", code="x", created=1.0, problem="", settings="", delta=0.1
        )
    assert len(store.page()) == 1


def test_lists_begin_with_the_latest_change(store):
    first, second, _ = (enter(store, name) for name in ("first", "second", "third"))
    append(store, second, Event("noted", seq=1), changed=5.0)
    append(store, first, Event("noted", seq=1), changed=4.0)
    assert [row["name"] for row in store.page()] == ["second", "first", "third"]
    append(store, first, Event("noted", seq=2), changed=4.0, progress=0.25)
    append(store, first, Event("noted", seq=3), changed=4.0)  # None leaves it as it was
    assert [row["progress"] for row in store.page()] == [None, 0.25, None]
    assert [row["checksum"] for row in store.page()] == [7, 7, None]


def test_pages(store):
    for name, changed in (("a", 3.0), ("b", 1.0), ("c", 2.0), ("d", 2.0), ("é", 2.0)):
        append(store, enter(store, name), Event("noted", seq=1), changed=changed)
    whole = [(row["changed"], row["name"]) for row in store.page()]
    assert whole[0] == (3.0, "a")
    assert whole[-1] == (1.0, "b")
    assert {name for _, name in whole[1:-1]} == {"c", "d", "é"}
    for limit in (1, 2, 3, 5, 9):
        found, after = [], None
        while page := store.page(limit, after):
            assert len(page) <= limit
            found += [(row["changed"], row["name"]) for row in page]
            after = found[-1]
        assert found == whole


def test_totals(store):
    none = dict.fromkeys(("running", "stopped", "paused", "archived"), 0)
    assert store.totals() == {**none, "asked": 0, "rewards": 0, "pending": 0}
    for name, state, asked in (("a", "running", 5), ("b", "stopped", 7), ("c", "running", 1)):
        study = enter(store, name)
        append(store, study, Event("noted", seq=1), state=state, asked=asked, rewards=2, pending=3)
    counted = {**none, "running": 2, "stopped": 1}
    assert store.totals() == {**counted, "asked": 13, "rewards": 6, "pending": 9}


# ---------------------------------------------------------------------- journals


def test_events_come_back_as_they_were(store):
    study = enter(store)
    append(store, study, *EVENTS[:3])
    append(store, study, *EVENTS[3:], state="stopped", asked=2, answer="{}")
    assert read(store, study) == EVENTS
    assert read(store, study, after=3) == EVENTS[3:]
    assert read(store, study, after=3, limit=2) == EVENTS[3:5]
    assert read(store, study, after=8) == []
    row = find(store, "mix")
    assert (row.head, row.state, row.asked, row.answer) == (8, "stopped", 2, "{}")


def test_studies_have_journals_of_their_own(store):
    one, two = enter(store, "one"), enter(store, "two")
    append(store, one, *EVENTS)
    append(store, two, EVENTS[0])
    assert read(store, two) == EVENTS[:1]
    with store.reading() as connection:
        assert store.pulls(connection, two, [1, 2]) == EVENTS[:1]
        assert store.keys(connection, two, ["k"]) == EVENTS[:1]


def test_events_are_found_by_pull_and_by_key(store):
    study = enter(store)
    append(store, study, *EVENTS)
    with store.reading() as connection:
        found = store.pulls(connection, study, [2, 7])
        assert sorted(found, key=lambda event: event.seq) == [EVENTS[1], *EVENTS[3:5]]
        assert store.keys(connection, study, ["k"]) == EVENTS[:2]
        assert store.keys(connection, study, ["ä🙂'\"%", "none"]) == [EVENTS[5]]
        assert store.pulls(connection, study, []) == store.keys(connection, study, []) == []


def test_more_pulls_than_a_statement_takes(store):
    study = enter(store)
    many = [Event("asked", i, 0, key=f"k{i}", seq=i) for i in range(1, 2001)]
    append(store, study, *many)
    with store.reading() as connection:
        found = store.pulls(connection, study, range(1, 3000))
        assert sorted(found, key=lambda event: event.seq) == many
        assert len(store.keys(connection, study, [f"k{i}" for i in range(3000)])) == 2000


@pytest.mark.parametrize(
    "event",
    [
        Event("noted", seq=3),  # the number is taken
        Event("asked", 1, 0, seq=9),  # so is the pull
        Event("told", 1, 0, 1.0, seq=9),  # it has its reward
        Event("late", 1, 0, 1.0, seq=9),
        Event("told", 2, 1, 1.0, seq=9),
        Event("expired", 2, 1, seq=9),
    ],
)
def test_nothing_is_recorded_twice(store, event):
    study = enter(store)
    append(store, study, *EVENTS)
    with pytest.raises(sx.StoreError):
        append(store, study, event, head=99)
    assert read(store, study) == EVENTS
    assert find(store, "mix").head == 8


def test_one_reward_takes_the_place_of_another(store):
    study = enter(store)
    told = next(event for event in EVENTS if event.kind in ("told", "late"))
    append(store, study, *EVENTS)
    again = told._replace(data={"replaces": told.seq}, key=None, seq=9)
    append(store, study, again)
    assert read(store, study, after=8) == [again]
    with pytest.raises(sx.StoreError):
        append(store, study, again._replace(seq=10))


def test_a_transaction_happens_as_a_whole_or_not_at_all(store):
    study = enter(store)

    def half():
        with store.writing() as connection:
            store.append(connection, study, EVENTS, {**HEAD, "head": 8})
            store.add_point(connection, study, point(1))
            store.save_snapshot(connection, study, "code", 8, b"data")
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        half()
    assert (read(store, study), find(store, "mix").head) == ([], 0)
    with store.reading() as connection:
        assert store.points(connection, study) == []
        assert store.snapshot(connection, study, "code") is None


def test_what_was_written_outlasts_the_connection(store, url):
    study = enter(store)
    append(store, study, *EVENTS)
    store.flush()
    store.close()
    assert read(Store(url, must_exist=True), study) == EVENTS
    assert read(store, study) == EVENTS  # closed, it opens again


# ---------------------------------------------------------------------- locks


def test_a_study_is_told_from_one_that_took_its_number(store):
    study = enter(store)
    append(store, study, *EVENTS)
    with store.reading() as connection:
        head = store.head(connection, study)
        assert head[:3] == (8, 7, "abc123")
        assert len(head.identity) == 32
        assert store.find(connection, "mix").identity == head.identity
        assert store.head(connection, study + 1) is None
    with store.writing() as connection:
        keys = [event.key for event in EVENTS if event.key is not None]
        keyed = [event for event in EVENTS if event.key is not None]
        assert keyed
        assert store.lock(connection, study, 6) == (head, EVENTS[6:], [])
        assert store.lock(connection, study, 6, [*keys, "'); --"]) == (head, EVENTS[6:], keyed)
        assert store.lock(connection, study + 1, 0, keys) == (None, [], [])


def test_every_store_has_an_identity(store, tmp_path):
    study, other = enter(store), Store(tmp_path / "other.db")
    number = enter(other)
    with store.reading() as connection, other.reading() as there:
        here, elsewhere = store.head(connection, study), other.head(there, number)
    assert here[:3] == elsewhere[:3]
    assert here.identity != elsewhere.identity


def test_writers_of_a_study_wait_for_each_other(url):
    study = enter(Store(url))

    def work():
        store = Store(url)
        for _ in range(10):
            with store.writing() as connection:
                head, *_ = store.lock(connection, study, 0)
                event = Event("noted", seq=head.seq + 1)
                store.append(connection, study, [event], {**HEAD, "head": head.seq + 1})
        store.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.seq for event in read(Store(url), study)] == list(range(1, 61))


# ---------------------------------------------------------------------- history, snapshots


def point(seq):
    return {
        "seq": seq,
        "at": seq / 3,
        "rewards": 10 * seq,
        "statistic": seq + 0.5,
        "threshold": 9.0,
        "policy": [0.1 + 0.2, 0.0, 1 / 3],
        "counts": [seq, 0, 2],
    }


def test_history(store):
    study = enter(store)
    with store.writing() as connection:
        for seq in (3, 1, 2):
            store.add_point(connection, study, point(seq))
        known = {**point(4), "means": [[0.1, 1 / 3, None]]}
        store.add_point(connection, study, known)
    with store.reading() as connection:
        assert store.points(connection, study) == [point(1), point(2), point(3), known]
        assert store.points(connection, study, after=2) == [point(3), known]


def test_the_last_snapshot_of_each_program_is_kept(store):
    study = enter(store)
    for code, data in (("old", b"\0first"), ("new", b"other"), ("old", b"\0second\xff")):
        with store.writing() as connection:
            store.save_snapshot(connection, study, code, 1, data)
    with store.reading() as connection:
        assert store.snapshot(connection, study, "old") == b"\0second\xff"
        assert store.snapshot(connection, study, "new") == b"other"
        assert store.snapshot(connection, study, "none") is None


# ---------------------------------------------------------------------- versions


def test_tables_are_as_queries_see_them(store):
    with store.reading() as connection:
        found = sa.inspect(connection)
        for table in METADATA.tables.values():
            columns = {one["name"]: one["type"] for one in found.get_columns(table.name)}
            assert list(columns) == [column.name for column in table.columns]
            for column in table.columns:
                kind = column.type.dialect_impl(connection.dialect)
                assert columns[column.name]._type_affinity is kind._type_affinity, column


# Of every version that was released: a store out there took exactly these steps.
RELEASED = [
    "4874323ac920c264",
    "88c983e40b7da284",
    "1e9750446969f04e",
]


def test_steps_that_were_released_stay_as_they_were():
    found = []

    class Recorder:
        def __init__(self, name):
            self.dialect = type("Dialect", (), {"name": name})
            self.text = ""

        def exec_driver_sql(self, statement):
            self.text += " ".join(statement.split()) + ";"

        def execute(self, statement, parameters=None):
            return self  # there is nothing to copy

        def all(self):
            return []

    for step in migrations.MIGRATIONS[: len(RELEASED)]:
        recorders = [Recorder(name) for name in ("sqlite", "postgresql")]
        for recorder in recorders:
            step(recorder)
        text = "\n".join(recorder.text for recorder in recorders)
        found.append(hashlib.sha256(text.encode()).hexdigest()[:16])
    assert found == RELEASED


# A study as the first version wrote it.
OLD_SETTINGS = {
    "sampler": "ctns",
    "threshold": "mixture",
    "tracking": None,
    "seed": 3,
    "expire_after": 60.0,
}
OLD_EVENTS = (
    [("asked", i, i - 1, None, None, None) for i in range(1, 6)]
    + [("told", i, i - 1, 0.5 * i, None, None) for i in range(1, 5)]
    + [
        ("expired", 5, 4, None, None, None),
        ("late", 5, 4, 0.25, None, None),
        ("elsewhere", None, 0, 1.5, "k", None),
        ("noted", None, None, None, None, '{"text": "hello"}'),
        ("extended", None, None, None, None, '{"delta": 0.05, "before": 0.1}'),
    ]
)


def checksum_3(previous, row):
    """Checksums of version 3: kind, six little-endian numbers of 64 bits, key and data if any."""
    arm, reward = row["arm"], row["reward"]
    numbers = [previous, row["seq"], row["pull"] or -1, -1 if arm is None else arm]
    text = row["kind"].encode() + b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)
    for value in (float("nan") if reward is None else reward, row["at"]):
        text += np.array(value, "<f8").tobytes()
    if row["key"] or row["data"]:
        text += f"{row['key']!r} {row['data']!r}".encode()
    return zlib.crc32(text)


@pytest.mark.parametrize("version", range(1, len(migrations.MIGRATIONS) + 1))
def test_a_study_of_every_version_goes_on(url, version, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:version])
        store = Store(url)
    problem, settings = star(delta=0.1).to_text(), json.dumps(OLD_SETTINGS)
    with store.writing() as connection:  # written out: not by today's tables
        connection.execute(
            sa.text(
                "INSERT INTO studies (name, code, created, problem, settings, head, changed, state,"
                " delta, asked, rewards, pending, answer) VALUES ('mix', 'e6f11b', 1.0, :problem,"
                " :settings, 14, 2.0, 'running', 0.05, 5, 6, 0, NULL)"
            ),
            {"problem": problem, "settings": settings},
        )
        number = connection.execute(sa.text("SELECT id FROM studies")).scalar_one()
        checksum = number
        for seq, event in enumerate(OLD_EVENTS, start=1):
            names = ("kind", "pull", "arm", "reward", "key", "data")
            row = {"study": number, "seq": seq, "at": seq / 2}
            row |= dict(zip(names, event, strict=True))
            columns = 'study, seq, at, kind, pull, arm, reward, "key", data'
            if version > 2:
                checksum = row["checksum"] = checksum_3(checksum, row)
                columns += ", checksum"
            places = f":{columns.replace(', ', ', :')}".replace(':"key"', ":key")
            connection.execute(sa.text(f"INSERT INTO events ({columns}) VALUES ({places})"), row)
        if version > 2:
            fixed = zlib.crc32(f"('e6f11b', 1.0, {problem!r}, {settings!r})".encode())
            connection.execute(
                sa.text("UPDATE studies SET fixed = :fixed, checksum = :checksum"),
                {"fixed": fixed, "checksum": checksum},
            )
    store.close()
    study = Study.open(url, "mix")
    with study.store.reading() as connection:
        assert migrations.version_of(connection) == len(migrations.MIGRATIONS)
    assert [event["event"] for event in study.events()] == [event[0] for event in OLD_EVENTS]
    status = study.status()
    assert (status["rewards"], status["pending"], status["delta"]) == (6, 0, 0.05)
    assert [arm["mean"] for arm in status["arms"]] == [1.0, 1.0, 1.5, 2.0, 0.25]
    study.tell_many([(pull, 0.5) for pull in study.ask(3)])
    assert study.verify()
