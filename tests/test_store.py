"""Stores: URLs, versions, faults. Clear errors, nothing lost, recovery without hand work."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from permissions import open_folder, ordinary_user
from service_client import until
from simplexplore.study import migrations, queries, replica
from simplexplore.study.state import State
from simplexplore.study.store import Store
from simplexplore.study.study import Study


def fill(url, pairs=20):
    study = Study.create(url, "mix", workers.star(), "ctns")
    for pull in study.ask(pairs):
        study.tell(pull, 0.5)
    return study


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
    with pytest.raises(sx.SettingError, match=message):
        Store(url)


def test_a_path_is_a_url(tmp_path):
    Study.create(tmp_path / "x.db", "mix", workers.star(), "ctns")
    assert [row["name"] for row in Study.list(f"sqlite:///{tmp_path / 'x.db'}")] == ["mix"]


def test_a_drive_is_no_protocol(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Store("c:x.db")
    assert (tmp_path / "c:x.db").exists()


def test_names_that_are_no_text(url):
    # What a terminal makes of bytes that are not UTF-8.
    study = fill(url)
    for wrong in (
        lambda: Study.open(url, "\udcff"),
        lambda: study.ask(key="\udcff"),
        lambda: study.tell(arm="a", reward=0.5, key="\udcff"),
    ):
        with pytest.raises(sx.SettingError, match=r"'\\udcff' is no text that can be stored"):
            wrong()
    assert study.verify()


def test_a_relative_path_is_where_it_was(tmp_path, monkeypatch):
    # A program that goes elsewhere must still queue at, and flush, the files beside the database.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    study = fill("x.db")
    monkeypatch.chdir("elsewhere")
    flushed = []
    monkeypatch.setattr("os.fsync", lambda file: flushed.append(os.fstat(file).st_ino))
    study.ask()
    assert flushed == [(tmp_path / "x.db-wal").stat().st_ino]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_system_without_file_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("simplexplore.study.sqlite_file.fcntl", None)
    monkeypatch.delattr("os.O_CLOEXEC")
    study = fill(tmp_path / "x.db")
    assert study.verify()


def test_a_child_leaves_its_parents_connections_alone(server):
    store = Store(server.database())

    def session():
        with store.reading() as connection:
            return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()

    before = session()
    child = os.fork()
    if child == 0:
        store.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert session() == before


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(sx.StoreError, match="there is no folder"):
        Store(tmp_path / "no" / "x.db")


def test_passwords_are_not_shown():
    with pytest.raises(sx.StoreError) as caught:
        Store("postgresql://me:hunter2@127.0.0.1:1/base")
    assert "hunter2" not in str(caught.value)
    assert "cannot be reached" in str(caught.value)


# ---------------------------------------------------------------------- versions


def version(store):
    with store.reading() as connection:
        return connection.execute(sa.text("SELECT version FROM simplexplore_schema")).scalar_one()


def test_a_newer_store_is_left_alone(url):
    study = fill(url)
    with study.store.writing() as connection:
        connection.execute(sa.text("UPDATE simplexplore_schema SET version = 99"))
    known = len(migrations.MIGRATIONS)
    message = (
        rf"made by a newer simplexplore \(store version 99; this program knows {known}\); upgrade"
    )
    with pytest.raises(sx.StoreError, match=message):
        Study.open(url, "mix")
    with study.store.writing() as connection:
        connection.execute(sa.text(f"UPDATE simplexplore_schema SET version = {known}"))
    assert Study.open(url, "mix").verify()


def test_an_older_store_is_brought_up_to_date(url, monkeypatch):
    study = fill(url)
    before = study.events()
    study.close()

    def add_column(connection):
        connection.execute(sa.text("ALTER TABLE studies ADD COLUMN owner TEXT"))

    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, add_column])
    store = Store(url)
    assert version(store) == len(migrations.MIGRATIONS)
    Store(url)  # once is enough
    with store.reading() as connection:
        assert "owner" in {
            column["name"] for column in sa.inspect(connection).get_columns("studies")
        }
    assert Study.open(store, "mix").events() == before
    assert Study.open(store, "mix").verify()


def test_a_migration_that_fails_changes_nothing(url, monkeypatch):
    fill(url).close()

    def fail(connection):
        connection.execute(sa.text("ALTER TABLE studies ADD COLUMN owner TEXT"))
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, fail])
        with pytest.raises(RuntimeError, match="out of luck"):
            Store(url)
    store = Store(url)
    assert version(store) == len(migrations.MIGRATIONS)
    assert Study.open(store, "mix").verify()


def test_tables_of_another_program(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE studies (id INTEGER)")
    connection.close()
    with pytest.raises(sx.StoreError, match="holds tables of another program"):
        Store(tmp_path / "other.db")


def test_looking_makes_no_tables(tmp_path, server):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
    connection.close()
    for url in (path, server.database()):
        for look in (Study.list, lambda url: Study.open(url, "mix")):
            with pytest.raises(sx.StoreError, match="holds no studies; 'simplexplore study create"):
                look(url)
        Store(url)  # tables of others are no obstacle
        assert Study.list(url) == []


def test_first_ones_at_the_same_time(url):
    code = textwrap.dedent(
        f"""
        import simplexplore.study.store as stores
        stores.Store({url!r})
        """
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
    assert version(Store(url)) == len(migrations.MIGRATIONS)


def test_any_number_of_threads_may_look(url):
    store = Store(url)
    together = threading.Barrier(20, timeout=120)

    def look():
        with store.reading() as connection:
            connection.exec_driver_sql("SELECT 1")
            together.wait()

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken


# ---------------------------------------------------------------------- faults


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, only some text that is long enough to be one" * 50)
    with pytest.raises(sx.StoreError, match="damaged or is no database"):
        Study.list(path)
    assert "only some text" in path.read_text()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_truncated_file(tmp_path, share):
    path = tmp_path / "x.db"
    study = fill(path, 300)
    with study.store.reading() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    study.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(sx.StoreError, match=r"damaged or is no database|is empty; put back"):
        read(path)
    path.write_bytes(whole)  # the copy is put back
    read(path)


def read(path):
    with Study.open(path, "mix") as study:
        assert study.status()["rewards"] == 300
        assert study.verify()


@pytest.mark.parametrize("more", [1, 10, 30])
def test_an_older_copy_under_a_running_program(tmp_path, more):
    # What was in memory is not what is in the store any more, though it may be as long.
    path = tmp_path / "x.db"
    study = fill(path)
    study.close()
    copy = path.read_bytes()
    pulls = study.ask(10)
    assert study.status()["pending"] == 10
    study.close()
    for beside in tmp_path.glob("x.db-*"):
        beside.unlink()
    path.write_bytes(copy)
    with Study.open(path, "mix") as other:
        other.tell_many([sx.Reward(0.1, arm="b")] * more)
    assert study.status()["elsewhere"] == more
    with pytest.raises(sx.PullError, match="put back from an older copy, tell the reward with"):
        study.tell(pulls[0], 0.5)
    study.tell(arm=pulls[0].arm, reward=0.5)
    assert study.status()["rewards"] == 20 + more + 1
    assert study.verify()


def test_a_store_that_was_made_anew(tmp_path):
    # A worker goes on with a study that is gone: another one must not get its pulls.
    study = fill(tmp_path / "x.db")
    study.close()
    for file in tmp_path.glob("x.db*"):
        file.unlink()
    other = Study.create(tmp_path / "x.db", "mix", workers.star(), "ctns")
    for wrong in (study.ask, study.status, lambda: study.tell(arm="a", reward=0.5)):
        with pytest.raises(sx.UnknownStudyError, match=r"study 'mix' is not in .* any more"):
            wrong()
    assert other.events() == []


def test_a_disk_that_fills(tmp_path):
    # A limit on the size of files makes writes fail half-way; the process that has it is not
    # this one.
    path = tmp_path / "x.db"
    fill(path).close()
    code = textwrap.dedent(
        f"""
        import resource, signal, sys
        import simplexplore as sx
        study = sx.Study.open({str(path)!r}, "mix")
        study.status()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        told = 20
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
            while told < 100_000:
                pulls = study.ask(50)
                study.tell_many([(pull, 0.5) for pull in pulls])
                told += 50
        except sx.StoreError as error:
            print(error)
        # Room is made, and the same object goes on.
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert study.verify()
        assert study.status()["rewards"] == told, (study.status()["rewards"], told)
        study.tell_many([(pull, 0.5) for pull in study.ask(50)])
        print(told + 50)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    message, told = done.stdout.splitlines()
    assert "the disk failed" in message
    assert "Nothing was recorded" in message
    study = Study.open(path, "mix")
    assert study.status()["rewards"] == int(told)
    assert study.verify()


def test_a_database_that_may_not_grow(tmp_path):
    study = fill(tmp_path / "x.db")

    def limit(pages):
        with study.store.reading() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    def go_on():
        for _ in range(1000):
            told.extend(study.tell_many([(pull, 0.5) for pull in study.ask(50)]))

    told = []
    limit(1)  # which is: no more than there are
    with pytest.raises(sx.StoreError, match=r"no room is left .* Nothing was recorded; make room"):
        go_on()
    limit(1_000_000)
    assert study.status()["rewards"] == 20 + len(told)
    assert study.verify()
    study.tell_many([(pull, 0.5) for pull in study.ask(50)])
    assert study.verify()


def test_a_database_that_goes_away_and_comes_back(server):
    study = fill(server.database())
    (pull,) = study.ask()
    server.stop(signal.SIGQUIT)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("simplexplore.study.retries.RETRY_FOR", 0.0)
            with pytest.raises(sx.StoreError, match="cannot be reached") as caught:
                study.tell(pull, 0.5)
        assert caught.value.passing
    finally:
        server.start()
    assert study.tell(pull, 0.5).outcome == "told"
    assert study.status()["rewards"] == 21
    assert study.verify()


def test_a_restart_is_waited_for(server, monkeypatch):
    # However short it is: connections are used without asking whether the server is still there.
    monkeypatch.setattr("simplexplore.study.database._IDLE", 60.0)
    study = fill(server.database())
    pulls = study.ask(3)
    server.stop()
    back = threading.Timer(1.0, server.start)
    back.start()
    try:
        assert study.tell(pulls[0], 0.5).outcome == "told"
    finally:
        back.join()
    study.ask(2)
    assert study.verify()
    server.stop()
    server.start()
    assert study.status()["pending"] == 4  # a connection from before the restart is no trouble
    assert len(list(study.each_event())) == study.head


def test_a_lost_answer_is_not_taken_twice(sqlite_url, monkeypatch):
    # The connection breaks while a transaction is made final: it may have been, or not.
    study = fill(sqlite_url)
    (pull,) = study.ask()
    writing = study.store.writing
    broken = []

    def breaking():
        class Broken:
            def __enter__(self):
                self.inner = writing()
                return self.inner.__enter__()

            def __exit__(self, *problem):
                self.inner.__exit__(*problem)
                if not broken and problem[0] is None:
                    broken.append(True)
                    raise sx.StoreError("the connection was lost", passing=True)

        return Broken()

    monkeypatch.setattr(study.store, "writing", breaking)
    assert study.tell(pull, 0.5).outcome == "repeated"  # tried again: safe
    broken.clear()
    assert study.tell(arm="a", reward=0.5, key="k").outcome == "repeated"
    broken.clear()
    message = r"the connection was lost.* This may have been recorded all the same: look before"
    with pytest.raises(sx.StoreError, match=message):
        study.tell(arm="a", reward=0.5)  # not safe: the user must look
    monkeypatch.undo()
    assert study.status()["elsewhere"] == 2
    assert study.verify()


def test_a_read_only_file():
    with open_folder() as folder:
        path = folder / "x.db"
        study = fill(path)
        study.close()
        with ordinary_user(folder):
            Study.open(path, "mix").ask()
            path.chmod(0o400)
            with pytest.raises(sx.StoreError, match="cannot be written"):
                Study.open(path, "mix").ask()


def test_a_lock_that_is_none(tmp_path):
    study = fill(tmp_path / "x.db")
    lock = tmp_path / "x.db-lock"
    lock.unlink()
    lock.mkdir()
    with pytest.raises(sx.StoreError) as caught:
        study.ask()
    assert str(caught.value) == f"{lock}: Is a directory."
    lock.rmdir()
    assert study.ask()


def test_machine_code_in_memory_is_enough(tmp_path, monkeypatch, capsys):
    # A process that gave up its rights may not see the cache of who started it.
    fill(tmp_path / "x.db").verify()  # reads the journal, which compiles the rest
    study = Study.open(tmp_path / "x.db", "mix")
    monkeypatch.setattr(Path, "glob", lambda *_: pytest.fail("looked at the disk"))
    capsys.readouterr()
    assert study.ask()
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- decisions that take long


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
    assert study._replica._is_long(events=1)
    until(lambda: study.ask() and not study._replica._is_long(events=1))


@pytest.mark.parametrize("column", ["key", "pull"])
def test_what_is_recorded_is_found_without_reading_the_journal(sqlite_url, column):
    """SQLite guesses which index is best, and guessed that the whole study is."""
    store = Store(sqlite_url)
    statement, places = queries.Statements(is_sqlite=True).events_by(column, 2)
    with store.reading() as connection:
        plan = store.run(connection, f"EXPLAIN QUERY PLAN {statement}", (1, *["x"] * places))
        plan = [row[-1] for row in plan.fetchall()]
    assert plan[0] == f"SEARCH events USING INDEX events_by_{column} (study=? AND {column}=?)"


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
