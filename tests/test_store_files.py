"""Files of a store that go away, may only be read, or are locked; servers that restart."""

import contextlib
import itertools
import os
import shutil
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
from nightly import nightly
from permissions import bound
from servers import Process
from stores import execute, fill, rows

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
        assert sx.Study.open(path, "mix").status()["rewards"] == 7


def test_a_file_that_goes_just_before_it_is_acknowledged(tmp_path):
    path = tmp_path / "x.db"
    study = fill(path)
    ends = itertools.count()

    def late(_):
        if next(ends) == 1:  # of the transaction that writes, after the one that reads
            for one in tmp_path.glob("x.db*"):
                one.unlink()

    sa.event.listen(sa.Engine, "commit", late)
    try:
        with pytest.raises(sx.StoreError, match="was deleted or replaced while it was open"):
            study.tell(arm="a", reward=1.0)
    finally:
        sa.event.remove(sa.Engine, "commit", late)
    assert next(ends) == 2


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
    execute(url, "UPDATE simplexplore_store SET identity = 'another'")
    for wrong in (study.ask, study.status, lambda: study.tell(arm="a", reward=0.5)):
        with pytest.raises(sx.UnknownStudyError, match=r"study 'mix' is not in .* any more"):
            wrong()
    assert sx.Study.open(url, "mix").verify()


# ---------------------------------------------------------------------- read-only stores


def look_at(path, folder):
    """Everything that needs no writing."""
    assert [one["name"] for one in sx.Study.list(path)] == ["mix"]
    study = sx.Study.open(path, "mix")
    assert study.status()["rewards"] == 6
    assert len(study.events()) == 15
    assert study.verify()
    study.export(folder / "x.csv")
    study.close()


def try_to_write(path):
    study = sx.Study.open(path, "mix")
    for wrong in (study.ask, lambda: study.tell(arm="a", reward=1.0), lambda: study.note("x")):
        with pytest.raises(sx.StoreError, match=r"cannot be written.*Nothing was recorded"):
            wrong()
    with pytest.raises(sx.StoreError, match=r"cannot be written.*Nothing was recorded"):
        sx.Study.create(path, "new", workers.star())
    study.close()


@pytest.mark.parametrize("what", ["file", "folder", "both"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_read_only_store_can_be_read(tmp_path, what, is_open):
    folder = tmp_path / "store"
    folder.mkdir()
    path = folder / "x.db"
    study = fill(path)
    if not is_open:
        study.close()
    if what != "folder":
        for file in folder.glob("x.db*"):
            file.chmod(0o444)
    if what != "file":
        folder.chmod(0o555)
    with bound():
        if is_open or what == "file":
            look_at(path, tmp_path)
            if (what, is_open) != ("folder", True):  # there, all files it needs are there
                try_to_write(path)
        else:  # SQLite needs files beside it
            with pytest.raises(sx.StoreError, match=r"permissions of the file and its folder"):
                sx.Study.open(path, "mix")
            copy = tmp_path / "copy.db"
            copy.write_bytes(path.read_bytes())
            look_at(copy, tmp_path)
    study.close()


def test_a_program_that_cannot_be_read(tmp_path):
    path = tmp_path / "x.db"
    fill(path).close()
    package = tmp_path / "simplexplore"
    shutil.copytree(Path(sx.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    sampler = package / "samplers" / "ctns.py"
    sampler.chmod(0)
    code = f"""
        import simplexplore as sx
        from permissions import bound
        with bound():
            try:
                sx.Study.open({str(path)!r}, "mix")
            except sx.SettingError as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"cannot read {sampler}: Permission denied.\n", done.stderr


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
        assert sx.Study.open(url, "mix").verify()
    finally:
        back.join()


def test_serving_waits_for_a_database_that_starts(server, tmp_path):
    url = server.database()
    server.stop()
    back = threading.Timer(2.0, server.start)
    back.start()
    with Process(url, tmp_path / "log") as served, sx.connect(served.url) as service:
        assert service.list() == []
    back.join()


def test_what_waiting_does_not_help(server):
    start = time.monotonic()
    with pytest.raises(sx.StoreError, match="does not exist"):
        sx.Study.open(server.database() + "x", "mix")
    assert time.monotonic() - start < 25


# ---------------------------------------------------------------------- power and locks


def test_what_was_acknowledged_is_in_the_servers_log_on_disk(server):
    url = server.database()
    study = fill(url)
    for _ in range(5):
        study.note("hello")
        behind = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn())"
        assert rows(url, behind)[0][0] <= 0


# ---------------------------------------------------------------------- copies and modes


def test_files_are_for_their_owner(tmp_path):
    """A store holds digests of tokens; who opens it to others does so for all its files."""
    path = tmp_path / "x.db"
    before = os.umask(0o022)
    try:
        study = fill(path)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert modes == dict.fromkeys(("x.db", "x.db-lock", "x.db-shm", "x.db-wal"), 0o600)
        study.close()
        path.chmod(0o660)
        (tmp_path / "x.db-lock").unlink()
        study.note("shared")
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        assert set(modes.values()) == {0o660}
    finally:
        os.umask(before)


def test_a_plain_copy_of_a_store_in_use(tmp_path):
    """It holds what SQLite had moved out of the log; where that is nothing, the message helps."""
    study = sx.Study.create(tmp_path / "x.db", "mix", workers.star())
    study.ask(5)
    shutil.copy(tmp_path / "x.db", tmp_path / "copy.db")
    assert sx.Study.open(tmp_path / "copy.db", "mix").verify()
    with contextlib.closing(sqlite3.connect(tmp_path / "empty.db")) as empty:
        empty.execute("CREATE TABLE other (x)")
    with pytest.raises(sx.StoreError, match=r"plain copy .* ends in -wal: .*study backup FILE"):
        sx.Study.open(tmp_path / "empty.db", "mix")


def test_a_backup_is_the_store_at_one_moment(tmp_path):
    study = fill(tmp_path / "x.db")
    pulls = study.ask(200)

    def work():
        for pull in pulls:
            study.tell(pull, 0.5)

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        for turn in range(5):
            study.backup(tmp_path / f"{turn}.db")
        working.result()
    study.backup(tmp_path / "0.db")  # takes the place of the first
    assert not (tmp_path / "0.db").stat().st_mode & 0o077
    heads = []
    for turn in (*range(1, 5), 0):
        copy = sx.Study.open(tmp_path / f"{turn}.db", "mix")
        assert copy.verify()
        heads.append(copy.head)
    assert heads == sorted(heads)
    assert heads[-1] == study.head
    assert {file.suffix for file in tmp_path.iterdir()} == {".db", ".db-lock", ".db-shm", ".db-wal"}
    with pytest.raises(sx.SettingError, match="that is the store itself"):
        study.backup(tmp_path / "x.db")
    problem = tmp_path / "mix.toml"
    problem.write_text("arms = 3")
    with pytest.raises(sx.SettingError, match="it is no store, and would be lost"):
        study.backup(problem)
    assert problem.read_text() == "arms = 3"
    with pytest.raises(sx.SettingError, match=r"cannot write the copy: .*No such file"):
        study.backup(tmp_path / "no" / "x.db")


def test_a_database_is_copied_with_its_own_tools(server, tmp_path):
    study = sx.Study.create(server.database(), "mix", workers.star())
    with pytest.raises(sx.SettingError, match="use PostgreSQL's pg_dump"):
        study.backup(tmp_path / "x.db")


def test_who_writes_waits_for_the_disk(tmp_path):
    study = fill(tmp_path / "x.db")
    with study.store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1


def test_who_writes_is_alone_before_it_has_read(tmp_path):
    # Also a program that knows nothing of ours: taken later, two would decide on the same state.
    study = fill(tmp_path / "x.db")
    watching = sx.Study.open(tmp_path / "x.db", "mix")
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.execute("BEGIN IMMEDIATE")
        other.execute("SELECT head FROM studies").fetchall()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(study.ask)
            time.sleep(0.5)
            assert not asked.done()
            assert watching.status()["rewards"] == 6  # who reads does not wait
            other.rollback()
            assert asked.result()
    assert study.verify()


@nightly
def test_who_keeps_a_store_locked_is_named(tmp_path):
    study = fill(tmp_path / "x.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sx.StoreError, match="another program kept it locked"):
            study.ask()
    assert study.ask()
