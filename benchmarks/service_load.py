"""Ask and tell over HTTP: pairs per second and latencies; one server, or two on PostgreSQL.

    python benchmarks/service_load.py [--seconds S]

Clients are processes that ask for a batch and tell its rewards through `sx.connect`, on one
study of 5 arms within constraints (ctns, mixture). Clients, server and database share the
machine. Latencies are of one request, for a whole batch. Figures: benchmarks/service.md.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import threading
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


def load(urls: list[str], name: str, count: int, batch: int, seconds: float) -> str:
    """One line: pairs per second and latencies, of clients spread over servers."""
    with tempfile.TemporaryDirectory() as folder:
        crews = []
        for i, url in enumerate(urls):
            place = Path(folder, str(i))
            place.mkdir()
            crews.append(workers.Crew(url, name, count // len(urls), batch, seconds, place))
        times: list[list[list[float]]] = []
        waiting = [threading.Thread(target=lambda c=c: times.extend(c.wait())) for c in crews]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join()
    asks = np.concatenate([np.array(one[0]) for one in times]) * 1000
    tells = np.concatenate([np.array(one[1]) for one in times]) * 1000
    rate = len(tells) * batch / seconds
    marks = [np.quantile(part, q) for part in (asks, tells) for q in (0.5, 0.99)]
    return f"{rate:8,.0f} | " + " | ".join(f"{mark:6.1f}" for mark in marks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    options = parser.parse_args()
    server = postgres.Server(durable=True) if postgres.binaries() else None
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at "
        f"the start, Python {platform.python_version()}"
    )
    print(
        "\n| store | servers | clients | batch | pairs/s | ask p50 ms | p99 | tell p50 ms | p99 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        stores = [("SQLite", f"sqlite:///{folder}/load.db", 1)]
        if server is not None:
            url = server.database()
            stores += [("PostgreSQL", url, 1), ("PostgreSQL", url, 2)]
        for store, url, servers in stores:
            running = [Process(url, Path(folder, f"log{i}")) for i in range(servers)]
            for count in (1, 8, 32) if servers == 1 else (8, 32):
                for batch in (1, 10):
                    name = f"load {servers} {count} {batch}"
                    sx.Study.create(url, name, workers.star(), "ctns").close()
                    for one in running:  # loaded before the clock starts
                        with sx.connect(one.url) as service:
                            service.open(name).ask()
                    urls = [one.url for one in running]
                    line = load(urls, name, count, batch, options.seconds)
                    print(f"| {store} | {servers} | {count} | {batch} | {line} |", flush=True)
            for one in running:
                one.stop()
    if server is not None:
        server.close()


if __name__ == "__main__":
    main()
