"""What goes wrong around a store: clear errors, no loss, recovery without hand work.

    python benchmarks/study_faults.py

Workers (threads, a study each, as separate programs would have) go on asking and telling
through each fault and try again after an error, as a worker should. Afterwards everything
acknowledged must be in the journal once and the state that of a replay. The full disk is a
small file system in memory, which takes root; without, that part is left out.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np
import sqlalchemy as sa

import postgres
import simplexplore as sx
import workers
from simplexplore.study import replica
from simplexplore.study.store import Store


class Team:
    """Workers that do not give up."""

    def __init__(self, url: str, name: str, size: int = 4) -> None:
        self.told: list[tuple[str, float]] = []
        self.errors: dict[str, int] = {}
        self._going = True
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(url, name, i)) for i in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, url: str, name: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        study = sx.Study.open(url, name)
        rewards: list[tuple[str, float]] = []
        while self._going:
            try:
                if not rewards:
                    rewards = [
                        (pull.id, float(rng.normal(workers.MEANS[pull.arm])))
                        for pull in study.ask(5)
                    ]
                study.tell_many(rewards)
            except sx.StoreError as error:
                with self._lock:
                    text = str(error).partition(": ")[2]
                    self.errors[text] = self.errors.get(text, 0) + 1
                time.sleep(0.1)
                continue
            with self._lock:
                self.told += rewards
            rewards = []
        study.close()

    def wait_for(self, count: int, seconds: float = 60) -> None:
        """Until so many more rewards are acknowledged."""
        goal = len(self.told) + count
        until = time.monotonic() + seconds
        while len(self.told) < goal:
            if time.monotonic() > until:
                raise TimeoutError(f"stuck; errors so far: {self.errors}")
            time.sleep(0.02)

    def stop(self) -> None:
        self._going = False
        for thread in self._threads:
            thread.join()


def report(fault: str, study: sx.Study, team: Team) -> None:
    sound = workers.is_sound(study, team.told)
    print(
        f"- **{fault}**: {len(team.told):,} rewards acknowledged, all there once; state equals a "
        f"replay: {sound}. What workers were told:"
    )
    for text, times in team.errors.items() or {"nothing": 1}.items():
        print(f"    - {text} ({times} times)" if text != "nothing" else "    - nothing")
    sys.stdout.flush()


@contextlib.contextmanager
def small_disk(size: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def full_disk() -> None:
    with small_disk("4m") as folder:
        url = f"sqlite:///{folder}/x.db"
        study = sx.Study.create(url, "x", workers.star(), "ctns")
        team = Team(url, "x")
        while not team.errors:
            time.sleep(0.05)
        time.sleep(1.0)
        subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True)
        team.wait_for(500)
        team.stop()
        report("SQLite on a disk that fills, and has room again", study, team)
        study.close()


def restarts(server: postgres.Server, how: int, fault: str, patience: float) -> None:
    url = server.database()
    study = sx.Study.create(url, "x", workers.star(), "ctns")
    replica.RETRY_FOR = patience
    team = Team(url, "x")
    for _ in range(5):
        team.wait_for(200)
        server.stop(how)
        time.sleep(0.5)
        server.start()
    team.wait_for(200)
    team.stop()
    report(fault, study, team)
    study.close()


def moving_clock(folder: Path) -> None:
    url = f"sqlite:///{folder}/clock.db"
    hours = [0.0]
    store = Store(url, clock=lambda: time.time() + 3600 * hours[0])
    study = sx.Study.create(store, "x", workers.star(), "ctns", expire_after=600)
    rng = np.random.default_rng(0)
    told = []
    for turn in range(200):
        hours[0] = float(rng.integers(-48, 48)) if turn % 10 == 0 else hours[0]
        pulls = study.ask(20)
        some = [(pull.id, float(rng.normal(workers.MEANS[pull.arm]))) for pull in pulls]
        study.tell_many(some[:15])
        told += some[:15]
    status = study.status()
    print(
        f"- **A clock that jumps by up to four days, back and forth, 20 times**: "
        f"{len(told):,} rewards, {status['expired']} pulls given up, {status['pending']} pending; "
        f"sound: {workers.is_sound(study, told)}"
    )


def truncated(folder: Path) -> None:
    path = folder / "short.db"
    study = sx.Study.create(path, "x", workers.star(), "ctns")
    study.tell_many([(pull, 0.5) for pull in study.ask(2000)])
    study.close()
    whole = path.read_bytes()
    messages: dict[str, int] = {}
    for share in np.linspace(0, 0.95, 20):
        path.write_bytes(whole[: int(share * len(whole))])
        try:
            with sx.Study.open(path, "x") as short:
                short.verify()
            text = "NOTHING"
        except sx.StoreError as error:
            text = str(error).rpartition("short.db")[2]
        messages[text] = messages.get(text, 0) + 1
        for beside in folder.glob("short.db-*"):
            beside.unlink()
    path.write_bytes(whole)
    print(
        f"- **A SQLite file cut off at 20 places**: {messages}; the copy put back is whole: "
        f"{sx.Study.open(path, 'x').verify()}"
    )


def newer_version(url: str) -> None:
    study = sx.Study.create(url, "new", workers.star(), "ctns")
    study.tell_many([(pull, 0.5) for pull in study.ask(100)])
    with study.store.writing() as connection:
        connection.execute(sa.text("UPDATE simplexplore_store SET version = 2"))
    try:
        sx.Study.open(url, "new")
        text = "NOTHING"
    except sx.StoreError as error:
        text = str(error).partition(" was ")[2]
    with study.store.writing() as connection:
        connection.execute(sa.text("UPDATE simplexplore_store SET version = 1"))
    print(f"- **A store of a newer version**: 'was {text}'; sound: {study.verify()}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.getuid() == 0:
            full_disk()
        else:
            print("- full disk: left out, it takes root")
        truncated(folder)
        moving_clock(folder)
        newer_version(f"sqlite:///{folder}/new.db")
    if postgres.binaries() is None:
        print("- PostgreSQL: left out, no binaries")
        return
    server = postgres.Server(durable=True)
    restarts(server, signal.SIGINT, "PostgreSQL restarted 5 times under load", 30.0)
    restarts(server, signal.SIGQUIT, "PostgreSQL crashed 5 times under load, no patience", 0.0)
    newer_version(server.database())
    server.close()


if __name__ == "__main__":
    main()
