"""Servers killed under load: nothing acknowledged is lost, and clients recover by themselves.

    python benchmarks/service_kills.py [--kills N]

Eight clients ask and tell in batches of 5 through `sx.connect` while the server is killed
(SIGKILL) at random moments and started again, half of the times on SQLite, half on
PostgreSQL. Each time it has answered every client: where starting takes long, killing it sooner
would only show for how long clients wait. Afterwards every acknowledged reward must be in the
journal exactly once, and the state must be that of a replay. Figures: benchmarks/service.md.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import os
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
from servers import Process

CLIENTS = 8
CREW_SECONDS = 60.0


def wait_for_answers(crew: workers.Crew, until: float) -> bool:
    """Wait until every client was answered; False if that took too long."""
    before = [log.stat().st_size if log.exists() else 0 for log in crew.logs]
    while time.monotonic() < until:
        time.sleep(0.01)
        after = [log.stat().st_size if log.exists() else 0 for log in crew.logs]
        if all(x < y for x, y in zip(before, after, strict=True)):
            return True
    return False


def kill(store: str, url: str, kills: int, folder: Path) -> None:
    study = sx.Study.create(url, "killed", workers.star(), "ctns")
    study.ask()
    served = Process(url, folder / "log")
    rng = np.random.default_rng(0)
    started = time.monotonic()
    told = 0
    done = 0
    # Crews work for a while; a client that gave up would end its crew with an error.
    while done < kills:
        place = Path(tempfile.mkdtemp(dir=folder))
        crew = workers.Crew(served.url, "killed", CLIENTS, 5, CREW_SECONDS, place)
        until = time.monotonic() + CREW_SECONDS
        while done < kills and wait_for_answers(crew, until):
            time.sleep(rng.uniform(0.05, 1.5))
            served.stop(signal.SIGKILL)
            served = Process(url, folder / "log", served.port)
            done += 1
        crew.wait()
        pairs = workers.acknowledged(crew.logs)
        told += len(pairs)
        assert workers.is_sound(study, pairs)
    served.stop()
    print(
        f"| {store} | {kills} | {told:,} | 0 | {study.head:,} | "
        f"{time.monotonic() - started:.0f} s |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of the server, in all")
    options = parser.parse_args()
    print("| store | kills | rewards acknowledged | lost or doubled | events | time |")
    print("|---|---|---|---|---|---|")
    server = postgres.Server(durable=True) if postgres.binaries() else None
    with tempfile.TemporaryDirectory() as folder:
        stores = [("SQLite", f"sqlite:///{folder}/kills.db")]
        if server is not None:
            stores.append(("PostgreSQL", server.database()))
        for store, url in stores:
            place = Path(folder, store)
            place.mkdir()
            kill(store, url, options.kills // len(stores), place)
    if server is not None:
        server.close()


if __name__ == "__main__":
    main()
