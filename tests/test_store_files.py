"""Files of a store that go away, may only be read, or are locked; servers that restart."""

import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from permissions import open_folder, ordinary_user
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from stores import execute, fill

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
