"""Forks of a process that has a store open."""

import fcntl
import os
import signal
import time

import simplexplore as sx
from stores import fill


def in_child(work):
    """What a child says of some work: nothing, or its error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is killed
        try:
            work()
        except sx.StoreError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_a_child_opens_a_study_of_its_own(url):
    study = fill(url)
    for work in (study.ask, study.status, study.verify, lambda: sx.Study.open(study.store, "mix")):
        assert in_child(work).endswith("was opened before a fork; open it in the child process.")
    assert in_child(study.close) == ""

    def work():
        with sx.Study.open(url, "mix") as own:
            own.tell(arm="a", reward=0.25)
            assert own.verify()

    assert in_child(work) == ""
    assert study.events()[-1]["reward"] == 0.25
    assert study.verify()


def test_a_file_that_is_in_use_at_the_fork(sqlite_url):
    study = fill(sqlite_url)
    with study.store.reading():
        said = in_child(lambda: sx.Study.open(sqlite_url, "mix"))
    assert "was in use when this process was forked" in said
    assert study.verify()


def test_a_child_leaves_its_parents_connections_alone(server):
    store = sx.Study.create(server.database(), "mix", sx.Problem(2)).store

    def session():
        with store.reading() as connection:
            return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()

    before = session()
    assert in_child(store.close) == ""
    assert session() == before


def test_a_child_does_not_keep_the_lock(tmp_path):
    # It has the lock file open as its parent had, and lives for longer than the transaction.
    store = fill(tmp_path / "x.db").store
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
