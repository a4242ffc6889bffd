"""Compute parts, or find them computed, and write the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .part import Part
from .parts import PARTS
from .report import write_report
from .work import Work


def reproduce(parts: Sequence[Part], work: Work) -> dict[str, Any]:
    """Compute parts, or find them computed, and write the report; return what `--json` prints.

    Others that are finished in the folder, with the same number of runs, appear in the report too.
    """
    wanted = {part.name: part for part in parts}
    finished = (part for part in PARTS.values() if work.has(part.name, part.settings(work)))
    every = {part.name: part for part in finished} | wanted
    order = sorted(every.values(), key=lambda part: list(PARTS).index(part.name))
    found = {part: part.find(work) for part in order}
    work.tell("report")
    return write_report(found, work.folder, work.runs)
