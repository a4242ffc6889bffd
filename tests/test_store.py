"""Stores: URLs and versions."""

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading

import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from simplexplore.study import migrations
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from stores import answered


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
    study = answered(url)
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
    study = answered("x.db")
    monkeypatch.chdir("elsewhere")
    flushed = []
    monkeypatch.setattr("os.fsync", lambda file: flushed.append(os.fstat(file).st_ino))
    study.ask()
    assert flushed == [(tmp_path / "x.db-wal").stat().st_ino]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_system_without_file_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("simplexplore.study.sqlite_file.fcntl", None)
    monkeypatch.delattr("os.O_CLOEXEC")
    study = answered(tmp_path / "x.db")
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
    study = answered(url)
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
    study = answered(url)
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
    answered(url).close()

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
