"""Nothing lost: workers are killed at random moments, hundreds of times, on both stores.

    python benchmarks/study_kills.py [--kills N]

Eight workers at a time ask and tell in batches of 4 and are killed with SIGKILL, one after the
other; then the next eight start. Afterwards every reward that the store acknowledged must be
in the journal exactly once, no pull may have been given out twice, the state must be that of
a replay to the last bit, and the study must go on to the right answer.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))
os.environ["PYTHONPATH"] = str(ROOT / "src")

import numpy as np

import postgres
import simplexplore as sx
import workers

CREW = 8


def finish(study: sx.Study) -> None:
    """Ask and tell in large batches until the answer is there."""
    rng = np.random.default_rng(0)
    while not study.stopped:
        pulls = study.ask(2000)
        study.tell_many([(pull, float(rng.normal(workers.MEANS[pull.arm]))) for pull in pulls])


def kill_workers(url: str, kills: int, folder: Path) -> str:
    """One line: what was killed, acknowledged, found."""
    dice = random.Random(11)
    study = sx.Study.create(url, "kills", workers.star(delta=1e-150), "ctns")
    told = []
    start = time.perf_counter()
    for turn in range(-(-kills // CREW)):
        place = folder / str(turn)
        place.mkdir()
        crew = workers.Crew(url, "kills", CREW, 4, 3600.0, place)
        for pid, log in zip(crew.pids, crew.logs, strict=True):
            # A worker that has not begun yet would die of nothing: a busy machine is slow.
            until = time.monotonic() + 30
            while not (log.exists() and log.stat().st_size) and time.monotonic() < until:
                time.sleep(0.005)
            time.sleep(0.02 + 0.1 * dice.random())
            os.kill(pid, signal.SIGKILL)
        crew.wait()
        told += workers.acknowledged(crew.logs)
        if study.stopped:
            study.extend(study.answer["delta"] * 1e-30)
    seconds = time.perf_counter() - start
    sound = workers.is_sound(study, told)
    status = study.status()
    finish(study)
    right = sx.lower_bound(workers.star(), list(workers.MEANS.values())).policy
    correct = study.answer["policy"] == right.tolist()
    return (
        f"{turn * CREW + CREW} kills in {seconds:.0f} s; {len(told):,} rewards acknowledged, all "
        f"of them in the journal exactly once (of {status['rewards']:,}; {status['pending']} pulls "
        f"were in flight at the last kill or died with a worker); state equals a replay: {sound}; "
        f"right answer after {study.answer['rewards']:,} rewards: {correct}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=304, help="on each store")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for store in ("SQLite", "PostgreSQL"):
            (place / store).mkdir()
            server = None
            if store == "PostgreSQL":
                if postgres.binaries() is None:
                    print("PostgreSQL: left out, no binaries")
                    continue
                server = postgres.Server(durable=True)
            url = server.database() if server else f"sqlite:///{place}/kills.db"
            print(f"{store}: {kill_workers(url, options.kills, place / store)}", flush=True)
            if server is not None:
                server.close()


if __name__ == "__main__":
    main()
