"""Forks of a process that has a store open."""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
import time

import sqlalchemy as sa

import simplexplore as sx
from simplexplore.study.store import Store
from simplexplore.study.study import Study
from stores import fill

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


def test_a_child_has_connections_of_its_own(server):
    store = Store(server.database())

    def backend():
        with store.reading() as connection:
            return connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()

    mine = backend()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(int(backend() == mine))
    assert os.waitpid(child, 0)[1] == 0
    assert backend() == mine  # which the child has left alone


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
