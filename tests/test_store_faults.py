"""Faults of a store: clear errors, nothing lost, recovery without hand work."""

import contextlib
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

import simplexplore as sx
import workers
from permissions import bound
from stores import answered


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, only some text that is long enough to be one" * 50)
    with pytest.raises(sx.StoreError, match="damaged or is no database"):
        sx.Study.list(path)
    assert "only some text" in path.read_text()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_truncated_file(tmp_path, share):
    path = tmp_path / "x.db"
    study = answered(path, 300)
    study.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(sx.StoreError, match=r"damaged or is no database|is empty; put back"):
        read(path)
    path.write_bytes(whole)  # the copy is put back
    read(path)


def read(path):
    with sx.Study.open(path, "mix") as study:
        assert study.status()["rewards"] == 300
        assert study.verify()


@pytest.mark.parametrize("more", [1, 10, 30])
def test_an_older_copy_under_a_running_program(tmp_path, more):
    # What was in memory is not what is in the store any more, though it may be as long.
    path = tmp_path / "x.db"
    study = answered(path)
    study.close()
    copy = path.read_bytes()
    pulls = study.ask(10)
    assert study.status()["pending"] == 10
    study.close()
    for beside in tmp_path.glob("x.db-*"):
        beside.unlink()
    path.write_bytes(copy)
    with sx.Study.open(path, "mix") as other:
        other.tell_many([sx.Reward(0.1, arm="b")] * more)
    assert study.status()["elsewhere"] == more
    with pytest.raises(sx.PullError, match="restored from an older copy, tell the reward with"):
        study.tell(pulls[0], 0.5)
    study.tell(arm=pulls[0].arm, reward=0.5)
    assert study.status()["rewards"] == 20 + more + 1
    assert study.verify()


def test_a_store_that_was_made_anew(tmp_path):
    # A worker goes on with a study that is gone: another one must not get its pulls.
    study = answered(tmp_path / "x.db")
    study.close()
    for file in tmp_path.glob("x.db*"):
        file.unlink()
    other = sx.Study.create(tmp_path / "x.db", "mix", workers.star(), "ctns")
    for wrong in (study.ask, study.status, lambda: study.tell(arm="a", reward=0.5)):
        with pytest.raises(sx.UnknownStudyError, match=r"study 'mix' is not in .* any more"):
            wrong()
    assert other.events() == []


def test_a_disk_that_fills(tmp_path):
    # A limit on the size of files makes writes fail half-way; the process that has it is not
    # this one.
    path = tmp_path / "x.db"
    answered(path).close()
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
    study = sx.Study.open(path, "mix")
    assert study.status()["rewards"] == int(told)
    assert study.verify()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a disk")
def test_a_disk_without_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]
    if subprocess.run(made, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be made here")
    try:
        study = answered(disk / "x.db")
        told = []

        def go_on():
            for _ in range(1000):
                told.extend(study.tell_many([(pull, 0.5) for pull in study.ask(50)]))

        with pytest.raises(sx.StoreError, match=r"Nothing was recorded; make room"):
            go_on()
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        assert study.status()["rewards"] == 20 + len(told)
        assert study.verify()
        study.tell_many([(pull, 0.5) for pull in study.ask(50)])
        assert study.verify()
        study.close()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_database_that_goes_away_and_comes_back(server, monkeypatch):
    study = answered(server.database())
    (pull,) = study.ask()
    server.stop(signal.SIGQUIT)
    try:
        hurried = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: 100 * hurried())  # it is not waited for long
        with pytest.raises(sx.StoreError, match="cannot be reached"):
            study.tell(pull, 0.5)
        monkeypatch.undo()
    finally:
        server.start()
    assert study.tell(pull, 0.5).outcome == "told"
    assert study.status()["rewards"] == 21
    assert study.verify()


def test_a_restart_is_waited_for(server):
    study = answered(server.database())
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


class Wire:
    """Carries what a program and a PostgreSQL server say, and may lose an answer to COMMIT."""

    def __init__(self, url):
        self._there = sa.make_url(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = self._there.set(port=port).render_as_string()
        self.loses = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(here,), daemon=True).start()

    def _carry(self, here):
        there = socket.create_connection(("127.0.0.1", self._there.port))
        commits = False
        with here, there, contextlib.suppress(OSError):
            while True:
                for one in select.select([here, there], [], [])[0]:
                    piece = one.recv(2**16)
                    if not piece:
                        return
                    if one is there and commits:
                        self.loses = False
                        return
                    commits = self.loses and one is here and b"COMMIT" in piece
                    (there if one is here else here).sendall(piece)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_a_lost_answer_is_not_taken_twice(server):
    # The connection breaks while a transaction is made final: it may have been, or not.
    url = server.database()
    answered(url).close()
    wire = Wire(url)
    with sx.Study.open(wire.url, "mix") as study:
        (pull,) = study.ask()
        wire.loses = True
        assert study.tell(pull, 0.5).outcome == "repeated"  # tried again: safe
        wire.loses = True
        assert study.tell(arm="a", reward=0.5, key="k").outcome == "repeated"
        wire.loses = True
        message = r"This may have been recorded all the same: look before"
        with pytest.raises(sx.StoreError, match=message):
            study.tell(arm="a", reward=0.5)  # not safe: the user must look
        assert not wire.loses
        assert study.status()["elsewhere"] == 2
        assert study.verify()
    wire.close()


def test_a_read_only_file(tmp_path):
    path = tmp_path / "x.db"
    answered(path).close()
    with bound():
        sx.Study.open(path, "mix").ask()
        path.chmod(0o400)
        with pytest.raises(sx.StoreError, match="cannot be written"):
            sx.Study.open(path, "mix").ask()


def test_a_lock_that_is_none(tmp_path):
    study = answered(tmp_path / "x.db")
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
    answered(tmp_path / "x.db").verify()  # reads the journal, which compiles the rest
    study = sx.Study.open(tmp_path / "x.db", "mix")
    monkeypatch.setattr(Path, "glob", lambda *_: pytest.fail("looked at the disk"))
    capsys.readouterr()
    assert study.ask()
    assert capsys.readouterr().err == ""
