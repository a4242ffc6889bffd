"""What differs between another commit and this one, case by case.

    python benchmarks/digests.py COMMIT [--groups NAME ...] [--jobs N]

The other commit is checked out into a temporary folder. This script and its cases (`digest_*.py`
in `tests/`, public names only) run on both source trees, and every case whose value differs is
named, with the first place that differs. Bounds may differ by 1e-9, relatively; everything else is
compared to the last bit. The exit status is 1 if something differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from figures import ROOT, checked_out, name_of

sys.path.insert(0, str(ROOT / "tests"))

import simplexplore as sx
from digest_values import differences, value_of

# From names of cases to what they gave.
Found = dict[str, Any]

# Groups, by the file of their cases; parts that may run side by side.
GROUPS = {
    "catalogue": ("digest_runs", 8),
    "families": ("digest_runs", 2),
    "settings": ("digest_runs", 4),
    "unknowns": ("digest_runs", 2),
    "own_files": ("digest_runs", 1),
    "random": ("digest_runs", 1),
    "explorers": ("digest_runs", 1),
    "bounds": ("digest_bounds", 2),
    "random_bounds": ("digest_bounds", 1),
    "studies": ("digest_studies", 1),
    "studies_on_postgresql": ("digest_studies", 1),
    "commands": ("digest_service", 2),
    "answers": ("digest_service", 1),
}
TOLERANCES = {"bounds": 1e-9, "random_bounds": 1e-9}

# ---------------------------------------------------------------------- one tree


def cases_of(group: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of a group; some need those before them."""
    cases: Iterator[tuple[str, Callable[[], Any]]] = getattr(__import__(GROUPS[group][0]), group)()
    return cases


def part(group: str, number: int) -> tuple[Found, float]:
    """Every so many cases of a group, and the processor time that they took."""
    began, of, found = _spent(), GROUPS[group][1], {}
    try:
        for i, (name, case) in enumerate(cases_of(group)):
            if i % of == number:
                found[f"{group}: {name}"] = value_of(case)
    except Exception as error:  # the cases cannot even be made: a public name is missing, say
        found[f"{group}: part {number}"] = {"failed": f"{type(error).__name__}: {error}"}
    return found, _spent() - began


def _spent() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def run_groups(groups: list[str], jobs: int, out: Path) -> None:
    """Run groups with the package that is found, and write what they give."""
    print(sx.__file__, file=sys.stderr, flush=True)
    # A process for each part: what one leaves behind, another does not find.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1)
    with pool:
        waiting = [
            (group, pool.submit(part, group, number))
            for group in groups
            for number in range(GROUPS[group][1])
        ]
        found: Found = {}
        times: Counter[str] = Counter()
        for group, one in waiting:
            values, seconds = one.result()
            found |= values
            times[group] += seconds
    out.write_text(json.dumps({"found": found, "seconds": times}))


# ---------------------------------------------------------------------- both


def run_tree(tree: Path, groups: list[str], jobs: int, folder: Path) -> tuple[Found, Found]:
    """What the groups give with the package of a tree, and how long they took."""
    out = folder / "found.json"
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    changes = {"PYTHONPATH": str(tree / "src"), **one_thread}
    command = [sys.executable, __file__, "--here", str(out), "--jobs", str(jobs), "--groups"]
    subprocess.run([*command, *groups], env={**os.environ, **changes}, cwd=folder, check=True)
    kept = json.loads(out.read_text())
    return kept["found"], kept["seconds"]


def compare(before: Found, now: Found) -> list[str]:
    """A line for every case that differs, or that failed."""
    lines = []
    for name in before | now:
        pair = [x.get(name, {"failed": "no such case"}) for x in (before, now)]
        one, other = (_error(value) for value in pair)
        if one and other and "failed" in (*pair[0], *pair[1]):
            lines.append(f"{name}: in neither; before: {one}; now: {other}")
        elif one and not other:
            lines.append(f"{name}: only now; before: {one}")
        elif other and not one:
            lines.append(f"{name}: only before; now: {other}")
        else:
            found = list(differences(*pair, TOLERANCES.get(name.partition(":")[0], 0.0)))
            # Words first, then the numbers that are farthest apart.
            found.sort(key=lambda it: -it[1] if isinstance(it[1], float) else -math.inf)
            shown = "; ".join(f"{at} {what}" for at, what in found[:3])
            lines += [f"{name}: {len(found)} differ: {shown}"] if found else []
    return lines


def _error(value: Any) -> str | None:
    """The error of a case that gave nothing else."""
    is_error = isinstance(value, dict) and value and value.keys() <= {"refused", "failed"}
    return " ".join(value.values()) if is_error else None


def digest_of(found: Found) -> str:
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def table(before: Found, now: Found, seconds: tuple[Found, Found]) -> str:
    """Cases, digests and processor time by group."""
    lines = [f"{'group':<24}{'cases':>6}  {'before':<18}{'now':<18}{'CPU s before':>12}{'now':>8}"]
    for group in GROUPS:
        parts = [{k: v for k, v in x.items() if k.startswith(f"{group}:")} for x in (before, now)]
        if any(parts):
            spent = [one.get(group, 0.0) for one in seconds]
            digests = "".join(f"{digest_of(one):<18}" for one in parts)
            lines.append(
                f"{group:<24}{len(parts[1]):>6}  {digests}{spent[0]:>12.1f}{spent[1]:>8.1f}"
            )
    totals = [sum(one.values()) for one in seconds]
    lines.append(f"{'all':<24}{len(now):>6}  {'':<36}{totals[0]:>12.1f}{totals[1]:>8.1f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="COMMIT", nargs="?", help="compare with this commit")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.here:
        run_groups(chosen.groups, chosen.jobs, chosen.here)
        return 0
    if not chosen.base:
        parser.error("say which commit to compare with: make digests BASE=<commit>")
    try:
        base = name_of(chosen.base)
    except subprocess.CalledProcessError:
        parser.error(f"there is no commit {chosen.base!r}.")
    with tempfile.TemporaryDirectory() as folder, checked_out(base) as tree:
        before, seconds_before = run_tree(tree, chosen.groups, chosen.jobs, Path(folder))
        now, seconds_now = run_tree(ROOT, chosen.groups, chosen.jobs, Path(folder))
    print(table(before, now, (seconds_before, seconds_now)))
    lines = compare(before, now)
    print("\n".join(["", *lines, ""]))
    total = len(before | now)
    print(f"{total - len(lines)} of {total} cases are as in {base}, {len(lines)} are not.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
