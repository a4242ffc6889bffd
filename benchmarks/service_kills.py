"""Servers killed under load: nothing acknowledged is lost, and clients recover by themselves.

    python benchmarks/service_kills.py [--kills N] [--studies N]

Eight clients of one study, or as many shared out over several, ask and tell in batches of 5 through
`sx.connect` while the server is killed
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


def wait_for_answers(crews: list[workers.Crew], until: float) -> bool:
    """Wait until every client was answered; False if that took too long."""

    def sizes() -> list[int]:
        logs = [log for crew in crews for log in crew.logs]
        return [log.stat().st_size if log.exists() else 0 for log in logs]

    before = sizes()
    while time.monotonic() < until:
        time.sleep(0.01)
        after = sizes()
        if all(x < y for x, y in zip(before, after, strict=True)):
            return True
    return False


def kill(store: str, url: str, kills: int, count: int, folder: Path) -> None:
    names = [f"killed {i}" for i in range(count)]
    studies = [sx.Study.create(url, name, workers.star(), "ctns") for name in names]
    for study in studies:
        study.ask()
    served = Process(url, folder / "log")
    rng = np.random.default_rng(0)
    started = time.monotonic()
    told = 0
    done = 0
    # Crews work for a while; a client that gave up would end its crew with an error.
    while done < kills:
        crews = [
            workers.Crew(
                *(served.url, name, CLIENTS // count, 5, CREW_SECONDS, tempfile.mkdtemp(dir=folder))
            )
            for name in names
        ]
        until = time.monotonic() + CREW_SECONDS
        while done < kills and wait_for_answers(crews, until):
            time.sleep(rng.uniform(0.05, 1.5))
            served.stop(signal.SIGKILL)
            served = Process(url, folder / "log", served.port)
            done += 1
        for crew, study in zip(crews, studies, strict=True):
            crew.wait()
            pairs = workers.acknowledged(crew.logs)
            told += len(pairs)
            assert workers.is_sound(study, pairs)
    served.stop()
    events = sum(study.head for study in studies)
    print(
        f"| {store} | {count} | {kills} | {told:,} | 0 | {events:,} | "
        f"{time.monotonic() - started:.0f} s |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="of the server, in all")
    parser.add_argument("--studies", type=int, choices=(1, 2, 4, 8), default=1)
    options = parser.parse_args()
    print("| store | studies | kills | rewards acknowledged | lost or doubled | events | time |")
    print("|---|---|---|---|---|---|---|")
    server = postgres.Server(durable=True) if postgres.binaries() else None
    with tempfile.TemporaryDirectory() as folder:
        stores = [("SQLite", f"sqlite:///{folder}/kills.db")]
        if server is not None:
            stores.append(("PostgreSQL", server.database()))
        for store, url in stores:
            place = Path(folder, store)
            place.mkdir()
            kill(store, url, options.kills // len(stores), options.studies, place)
    if server is not None:
        server.close()


if __name__ == "__main__":
    main()
