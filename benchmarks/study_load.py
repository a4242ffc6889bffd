"""Ask and tell under load: pairs per second, latencies, long journals, opening, memory.

    python benchmarks/study_load.py [--seconds S] [--quick]

Workers are processes that ask for a batch and tell its rewards, on one study of 5 arms within
constraints (ctns, mixture), on SQLite and on PostgreSQL (a server of its own, fsync on; left
out where its binaries are missing). Latencies are of one call, for a whole batch.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
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


def disk(folder: Path) -> float:
    """Milliseconds that the disk takes to make a page durable."""
    with (folder / "page").open("wb") as file:
        start = time.perf_counter()
        for _ in range(100):
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - start) * 10


def load(url: str, name: str, count: int, batch: int, seconds: float) -> str:
    """One line: pairs per second and latencies."""
    with tempfile.TemporaryDirectory() as folder:
        times = workers.Crew(url, name, count, batch, seconds, folder).wait()
    asks = np.concatenate([np.array(one[0]) for one in times]) * 1000
    tells = np.concatenate([np.array(one[1]) for one in times]) * 1000
    rate = len(tells) * batch / seconds
    marks = [np.quantile(part, q) for part in (asks, tells) for q in (0.5, 0.99)]
    return f"{rate:8,.0f} | " + " | ".join(f"{mark:6.1f}" for mark in marks)


def grow(study: sx.Study, total: int) -> None:
    """Bring a study to this many pulls, in large batches; a near tie keeps it from stopping."""
    rng = np.random.default_rng(1)
    means = workers.MEANS | {"e": 0.949}
    while (left := total - study.status()["rewards"]) > 0:
        pulls = study.ask(min(left, 20_000))
        study.tell_many([(pull, float(rng.normal(means[pull.arm]))) for pull in pulls])


def opening(url: str, name: str) -> tuple[float, float, float]:
    """Seconds to open a study and ask once, in a fresh process, and its peak memory in MiB."""
    code = (
        "import time, simplexplore as sx, simplexplore.exploration.engine\n"
        "import simplexplore.study.study\n"
        "start = time.perf_counter()\n"
        f"study = sx.Study.open({url!r}, {name!r})\n"
        "study.ask()\n"
        "first = time.perf_counter() - start\n"
        "start = time.perf_counter()\n"
        "for _ in range(200): study.ask()\n"
        "later = (time.perf_counter() - start) / 200\n"
        # Not getrusage: a child starts with its parent's peak there.
        "peak = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(first, later, int(peak.split()[1]) / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, later, memory = map(float, done.stdout.split())
    return first, later, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--quick", action="store_true", help="no study of a million pulls")
    options = parser.parse_args()
    server = postgres.Server(durable=True) if postgres.binaries() else None
    with tempfile.TemporaryDirectory() as folder:
        urls = {"SQLite": f"sqlite:///{folder}/load.db"}
        if server is not None:
            urls["PostgreSQL"] = server.database()
        print(
            f"{platform.machine()}, {os.cpu_count()} cores, load average "
            f"{os.getloadavg()[0]:.1f} at the start, Python {platform.python_version()}; "
            f"fsync of one page: {disk(Path(folder)):.1f} ms"
        )
        print("\n| store | workers | batch | pairs/s | ask p50 ms | p99 | tell p50 ms | p99 |")
        print("|---|---|---|---|---|---|---|---|")
        for store, url in urls.items():
            for count in (1, 8, 32):
                for batch in (1, 10):
                    name = f"load {count} {batch}"
                    sx.Study.create(url, name, workers.star(), "ctns")
                    line = load(url, name, count, batch, options.seconds)
                    print(f"| {store} | {count} | {batch} | {line} |", flush=True)
        print("\n| store | pulls | opening s | ask ms | memory MiB |\n|---|---|---|---|---|")
        sizes = (1_000, 10_000, 100_000) if options.quick else (1_000, 10_000, 100_000, 1_000_000)
        for store, url in urls.items():
            study = sx.Study.create(url, "long", workers.star(), "ctns")
            for size in sizes:
                start = time.perf_counter()
                grow(study, size)
                grown = time.perf_counter() - start
                first, later, memory = opening(url, "long")
                print(
                    f"| {store} | {size:,} | {first:.2f} | {later * 1000:.2f} | {memory:.0f} |",
                    flush=True,
                )
            print(f"(the last step of growing took {grown:.0f} s)")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"\nPeak memory of the process that grew them: {peak:.0f} MiB.")
    if server is not None:
        server.close()


if __name__ == "__main__":
    main()
