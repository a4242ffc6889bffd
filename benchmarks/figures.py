"""One table of figures, beside those of another commit.

    python benchmarks/figures.py [--base COMMIT] [--rounds N] [--out FILE]

Times are CPU time, the least of N rounds, so that a busy machine changes them little; steps are by
the clock, as `simulate` says them. The other
commit is checked out into a temporary folder; its rounds and ours take turns, each with its own
source and its own machine code. Only public names are used: commits may be old.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEASURE = ROOT / "benchmarks" / "measure.py"
SAMPLERS = ("uniform", "top-two", "cge", "ctns", "ptns")

Figures = dict[str, float]

# ---------------------------------------------------------------------- one tree


class Tree:
    """A source tree, and where its machine code is kept."""

    def __init__(self, root: Path, cache: Path) -> None:
        self._root, self._cache = root, cache

    def _run(self, *command: str, cache: Path | None = None) -> str:
        """Run Python with this tree's package; returns what it prints."""
        changes = {
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
            "PYTHONPATH": str(self._root / "src"),
            "SIMPLEXPLORE_CACHE": str(cache or self._cache),
        }
        return subprocess.run(
            [sys.executable, *command],
            env={**os.environ, **changes},
            cwd=self._root,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def _group(self, name: str) -> Figures:
        found: Figures = json.loads(self._run(str(MEASURE), name))
        return found

    def _seconds(self, *command: str, cache: Path | None = None) -> float:
        """CPU seconds of a process and all that it started."""

        def spent() -> float:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        began = spent()
        self._run(*command, cache=cache)
        return spent() - began

    def _twice(self, what: str, *command: str) -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = (
                self._seconds(str(MEASURE), *command, cache=Path(folder)) for _ in range(2)
            )
        return {f"{what}, cold (s)": cold, f"{what}, warm (s)": warm}

    def figures(self) -> Iterator[Figures]:
        """Everything, in pieces; each is measured when it is asked for."""
        yield {"import (s)": self._seconds("-c", "import simplexplore")}
        yield self._group("bounds")
        for sampler in SAMPLERS:
            yield self._twice(f"first result, {sampler}", "first", sampler)
        yield self._twice("study created and asked", "create")
        yield self._group("live")
        yield self._group("steps")


# ---------------------------------------------------------------------- both


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A commit in a folder of its own."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(trees: dict[str, Tree], rounds: int) -> dict[str, Figures]:
    """The least of each figure, by tree; the trees take turns."""
    found: dict[str, Figures] = {name: {} for name in trees}
    for number in range(rounds):
        pieces = {name: tree.figures() for name, tree in trees.items()}
        for each in zip(*pieces.values(), strict=True):  # this is where they take turns
            for name, figures in zip(pieces, each, strict=True):
                for what, value in figures.items():
                    found[name][what] = min(value, found[name].get(what, math.inf))
            print(".", end="", file=sys.stderr, flush=True)
        print(f" round {number + 1} of {rounds}", file=sys.stderr)
    return found


def table(found: dict[str, Figures]) -> str:
    """Markdown: figure, each tree, and ours over the other's."""
    names = list(found)
    ratio = ["ratio"] if len(names) == 2 else []
    lines = ["| " + " | ".join(["figure", *names, *ratio]) + " |"]
    lines.append("|---|" + "---:|" * len([*names, *ratio]))
    for what in found[names[-1]]:
        values = [found[name][what] for name in names]
        cells = [f"{value:.3g}" for value in values]
        if ratio:
            cells.append(f"{values[1] / values[0]:.2f}")
        lines.append("| " + " | ".join([what, *cells]) + " |")
    return "\n".join(lines) + "\n"


def name_of(commit: str) -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", commit]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", metavar="COMMIT", help="compare with another commit")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the table to a file, too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as caches:
        trees = {"here": Tree(ROOT, Path(caches) / "here")}
        if chosen.base:
            base = name_of(chosen.base)
            with checked_out(chosen.base) as folder:
                trees = {base: Tree(folder, Path(caches) / "base"), **trees}
                found = compare(trees, chosen.rounds)
        else:
            found = compare(trees, chosen.rounds)
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    times = f"CPU time (steps: by the clock), the least of {chosen.rounds} rounds"
    text = f"{times}; {machine}.\n\n{table(found)}"
    print(text)
    if chosen.out:
        chosen.out.write_text(text)


if __name__ == "__main__":
    main()
