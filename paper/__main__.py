"""Reproduce figures and tables of the paper; what is finished in the folder is not run again."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import simplexplore as sx

from .parts import PARTS, find_parts
from .reproduce import reproduce
from .work import Work


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to reproduce; default: all")
    parser.add_argument("--list", action="store_true", help="name all parts and exit")
    parser.add_argument("--runs", type=int, help="runs of each sampler; default: as in the paper")
    parser.add_argument("--workers", type=int, help="threads; default: all cores")
    parser.add_argument("--out", type=Path, default=Path("reproduction-output"), metavar="DIR",
                        help="for the report and all numbers; default: %(default)s")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    given = parser.parse_args(arguments)
    if given.list:
        for part in PARTS.values():
            say(f"{part.name:12} {part.title} ({part.source})")
        return 0
    try:
        for name in ("runs", "workers"):
            value = getattr(given, name)
            if value is not None and value < 1:
                raise sx.SettingError(f"--{name} must be 1 or more; got {value}.")
        work = Work(given.out, given.runs, given.workers, lambda what: say(what, sys.stderr))
        report = reproduce(find_parts(given.names), work)
    except sx.SimplexploreError as error:
        say(f"Error: {error}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        say(f"Interrupted. What is finished stays in {given.out}; the same command resumes.",
            sys.stderr)  # fmt: skip
        return 130
    if given.json:
        say(json.dumps(report))
        return 0
    verdicts = ", ".join(f"{count} {name}" for name, count in report["verdicts"].items() if count)
    say(f"Claims: {verdicts}.\nReport: {report['page']}")
    return 0


def say(text: str, stream: TextIO | None = None) -> None:
    """Write a line, to the output unless told otherwise."""
    (stream or sys.stdout).write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
