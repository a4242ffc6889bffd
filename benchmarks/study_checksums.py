"""What checksums of events cost: asks and tells with and without them, in turns.

    python benchmarks/study_checksums.py [--blocks N] [--pairs N]

Two studies in SQLite files, one pull at a time. Blocks alternate, so that whatever else the machine
does meets both; the processor time of this process is compared, since the clock measures the
others' work. Without: the function that links an event to the last one gives 0, and everything else
is as it is. Figures: benchmarks/studies.md.
"""

# ruff: noqa: E402 - the path must be set before the package is imported

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np

import simplexplore as sx
import workers
from simplexplore.study import checksums, journal, state


def block(study: sx.Study, pairs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Processor time and time by the clock of so many asks and tells."""
    began = time.process_time(), time.perf_counter()
    for _ in range(pairs):
        pull = study.ask()[0]
        study.tell(pull, float(rng.normal(workers.MEANS[pull.arm])))
    return time.process_time() - began[0], time.perf_counter() - began[1]


def switch(on: bool) -> None:
    link = checksums.link if on else lambda *_: 0
    journal.link = state.link = link  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=40, help="of each kind")
    parser.add_argument("--pairs", type=int, default=50, help="in a block")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        studies = {}
        for on in times:
            switch(on)
            studies[on] = sx.Study.create(f"sqlite:///{folder}/{on}.db", "x", workers.star())
            block(studies[on], 600, rng)  # until it is compiled
        for i in range(options.blocks):
            for on in (True, False) if i % 2 else (False, True):
                switch(on)
                times[on].append(block(studies[on], options.pairs, rng))
        switch(True)
    with_, without = (np.array(times[on]) / options.pairs for on in (True, False))
    ratios = with_[:, 0] / without[:, 0]
    spread = np.std(ratios, ddof=1) / np.sqrt(len(ratios))
    print(
        f"load average {os.getloadavg()[0]:.1f}; {options.blocks} blocks of {options.pairs} pairs"
    )
    for name, found in (("with", with_), ("without", without)):
        cpu, wall = 1000 * np.median(found, axis=0)
        print(f"{name}: {cpu:.3f} ms of processor time a pair, {1000 / wall:.0f} pairs/s (medians)")
    print(f"processor time, with / without, block by block: median {np.median(ratios):.4f}, "
          f"mean {np.mean(ratios):.4f} ± {spread:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
