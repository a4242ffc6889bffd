"""Ask and tell over HTTP: pairs per second and latencies; one server or two, one study or 16.

    python benchmarks/service_load.py [--seconds S] [--only TEXT]

Clients are plain sockets in one process (lean_clients.py): they send what `sx.connect` sends, with
a token and idempotency keys, and take little of the machine, which they share with server and
database. Studies have 5 arms within constraints (ctns); before the clock starts each has 900
rewards, so that machine code is loaded and points of the history are rare. Latencies are of one
request, for a whole batch. Processors are seconds of processor time per second. Figures:
benchmarks/service.md.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import lean_clients
import numpy as np

import postgres
import simplexplore as sx
import workers
from servers import Process
from simplexplore.service.tokens import create_token
from simplexplore.study.store import Store

# Servers, studies, clients, pulls in a batch.
LOADS = (
    *((1, 1, 1, 1), (1, 1, 8, 10), (1, 1, 32, 1), (1, 1, 32, 10)),
    *((1, 16, 32, 1), (1, 16, 32, 10)),
    *((2, 1, 32, 1), (2, 1, 32, 10), (2, 16, 32, 1), (2, 16, 32, 10)),
)


def used(pids: list[int]) -> float:
    """Seconds of processor time of processes and of those that they started."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:  # it has ended
            continue
        fields = text.rpartition(")")[2].split()
        if int(path.parent.name) in pids:
            ticks += sum(map(int, fields[11:15]))  # those that have ended included
        elif int(fields[1]) in pids:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def prepare(store: Store) -> None:
    """Compile what live studies need, if it is not there."""
    with sx.Study.create(store, "first", workers.star(), "ctns").replica.latest() as state:
        for entry in ("fold", "evidence"):
            state.engine.compile(entry)


def begin(urls: list[str], token: str, names: list[str]) -> None:
    """Let every server load the studies, and use machine code for them."""
    rng = np.random.default_rng(0)
    for url in urls:
        with sx.connect(url, token=token) as service:
            for name in names:
                study = service.open(name)
                for _ in range(3):
                    pulls = study.ask(300 // len(urls))
                    study.tell_many([(p, float(rng.normal(workers.MEANS[p.arm]))) for p in pulls])


def load(
    running: list[Process],
    database: postgres.Server | None,
    token: str,
    names: list[str],
    clients: int,
    batch: int,
    seconds: float,
) -> str:
    """One line: pairs per second, latencies, processors."""
    urls = [one.url for one in running]
    begin(urls, token, names)
    places = [x for name in names for url in urls for x in (url, name)]
    if len(names) > 1:  # studies over servers
        places = [x for i, name in enumerate(names) for x in (urls[i % len(urls)], name)]
    served = [one._process.pid for one in running]
    stored = [] if database is None else [database._process.pid]
    before, began = [used(served), used(stored)], time.perf_counter()
    arguments = [str(clients), str(batch), str(seconds), token, *places]
    done = subprocess.run(
        [sys.executable, lean_clients.__file__, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    taken = time.perf_counter() - began
    shares = [(used(x) - y) / taken for x, y in zip((served, stored), before, strict=True)]
    found = json.loads(done.stdout)
    marks = [1000 * np.quantile(found[kind], q) for kind in ("ask", "tell") for q in (0.5, 0.99)]
    shares.insert(0, found["used"] / seconds)
    return " | ".join(
        [
            f"{found['pairs'] / seconds:7,.0f}",
            *(f"{mark:5.1f}" for mark in marks),
            *(f"{share:.2f}" for share in shares),
            f"{os.getloadavg()[0]:.1f}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--only", default="", help="lines that begin with this, e.g. 'SQLite'")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(
        "| store | servers | studies | clients | batch | pairs/s | ask p50 ms | p99 | tell p50 ms "
        "| p99 | processors: clients | servers | database | load average |"
    )
    print("|" + "---|" * 14)
    with tempfile.TemporaryDirectory() as folder:
        server = postgres.Server(durable=True) if postgres.binaries() else None
        stores = [("SQLite", f"sqlite:///{folder}/load.db", None)]
        if server is not None:
            stores.append(("PostgreSQL", server.database(), server))
        for kind, url, database in stores:
            loads = [one for one in LOADS if one[0] == 1 or database is not None]
            lines = [(one, f"| {kind} | {' | '.join(map(str, one))} | ") for one in loads]
            lines = [line for line in lines if line[1].startswith(f"| {options.only}")]
            if not lines:
                continue
            store = Store(url)
            prepare(store)
            _, token = create_token(store, "run")
            for (count, studies, clients, batch), line in lines:
                names = [f"{count}-{studies}-{clients}-{batch}-{i}" for i in range(studies)]
                for name in names:
                    sx.Study.create(store, name, workers.star(), "ctns").close()
                running = [Process(url, Path(folder, f"log{i}")) for i in range(count)]
                found = load(running, database, token, names, clients, batch, options.seconds)
                print(f"{line}{found} |", flush=True)
                for one in running:
                    one.stop()
        if server is not None:
            server.close()


if __name__ == "__main__":
    main()
