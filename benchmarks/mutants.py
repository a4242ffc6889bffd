"""Mutation tests: break one line at a time and see whether a test notices.

    python benchmarks/mutants.py [--only WORD] [--seconds S]

They are listed in mutants.toml. Each is applied to a copy of the tree, where only the tests run
that should notice it. One that is not noticed survives: a test is missing, or the line does
nothing. The table goes to mutants.md; mutants that were not tried this time (``--only``) keep
their rows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).with_name("mutants.toml")
REPORT = ROOT / "benchmarks" / "mutants.md"


class Mutant(NamedTuple):
    """A change of one place, and the tests that should fail with it."""

    file: str
    old: str
    new: str
    tests: str  # arguments of pytest
    equivalent: str = ""  # why nothing can notice it, where that was shown


MUTANTS = {
    area: [Mutant(**mutant) for mutant in mutants]
    for area, mutants in tomllib.loads(LIST.read_text(encoding="utf-8")).items()
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="areas, files or lines that hold this text")
    parser.add_argument("--untried", action="store_true", help="only those without a result")
    parser.add_argument("--seconds", type=float, default=600.0, help="for the tests of one mutant")
    options = parser.parse_args()
    rows = _known_rows()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "site", "docs")
        shutil.copytree(ROOT, tree, ignore=ignored)
        for area, mutants in MUTANTS.items():
            for mutant in mutants:
                known = options.untried and rows[_key(area, mutant)]
                if options.only in f"{area} {mutant.file} {mutant.old}" and not known:
                    row = _row(area, mutant, _try(mutant, tree, options.seconds))
                    rows[_key(area, mutant)] = row
                    print(row, flush=True)
                    _write(rows)


def _try(mutant: Mutant, tree: Path, seconds: float) -> str:
    """What became of a mutant."""
    path = tree / "src" / "simplexplore" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"not tried: its line is there {text.count(mutant.old)} times"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    command = f"-m pytest -x -q --no-header -p no:cacheprovider --tb=no {mutant.tests}"
    start = time.monotonic()
    try:
        done = subprocess.run(
            f"{sys.executable} {command}",
            shell=True,  # the tests are written as one types them
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # A hang is a way to notice; a busy machine is none.
        return f"no end within {seconds:.0f} s"
    finally:
        path.write_text(text, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if done.returncode in (1, 2) and failed:
        return f"noticed by `{failed[1].split('::')[-1]}`, {time.monotonic() - start:.0f} s"
    if done.returncode == 0:
        if mutant.equivalent:
            return f"equivalent: {mutant.equivalent}"
        return f"**survived** `{mutant.tests}`"
    if done.returncode < 0:
        return f"noticed: the tests died of signal {-done.returncode}"
    return f"not tried: pytest ended with {done.returncode}"


def _key(area: str, mutant: Mutant) -> str:
    return f"| {area} | {mutant.file} | {_code(mutant.old)} | {_code(mutant.new)} |"


def _row(area: str, mutant: Mutant, fate: str) -> str:
    return f"{_key(area, mutant)} {fate} |"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`" if text.strip() else ""


def _known_rows() -> dict[str, str]:
    """Rows of the last report whose mutants are still there."""
    lines = REPORT.read_text(encoding="utf-8").splitlines() if REPORT.exists() else []
    rows = {}
    for area, mutants in MUTANTS.items():
        for mutant in mutants:
            key = _key(area, mutant)
            rows[key] = next((line for line in lines if line.startswith(key)), "")
    return rows


def _write(rows: dict[str, str]) -> None:
    tried = [row for row in rows.values() if row and "| not tried" not in row]
    survived = sum("**survived**" in row for row in tried)
    noticed = sum("| noticed" in row for row in tried)
    endless = sum("| no end" in row for row in tried)
    equivalent = sum("| equivalent" in row for row in tried)
    REPORT.write_text(
        "# Mutants: lines broken one at a time\n\n"
        f"Made by `make mutants`. Of {len(rows)} mutants {len(tried)} were tried: {noticed} were "
        f"noticed by a test, {equivalent} are equivalent, {endless} did not end in time, "
        f"{survived} survived.\n\n"
        "| area | file | instead of | stands | fate |\n|---|---|---|---|---|\n"
        + "".join(f"{row}\n" for row in rows.values() if row),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
