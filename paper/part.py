"""A part of the reproduction: one figure or table, its numbers, and what they say.

The other files of this package each hold one kind of part; `parts` lists them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simplexplore as sx

from .criteria import SEED
from .work import Work

THRESHOLD = "gk16"

# The paper's, whose samples follow the sum of all allocations.
CTNS = str(Path(__file__).with_name("ctns.py"))
SCENARIOS = ("end-of-time", "anytime")

# Who makes a claim that the paper makes of other experiments, or not at all.
OURS = "ours"


@dataclass(frozen=True)
class Finding:
    """A claim, and how it fares here.

    Attributes
    ----------
    claim, verdict, evidence : str
    where : str
        Where the paper makes the claim; `OURS` if it does not. Empty: where the part is.
    """

    claim: str
    verdict: str
    evidence: str
    where: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure: the name of its files, words for who cannot see it, and what writes a file."""

    name: str
    words: str
    write: Callable[[Path], None]


@dataclass(frozen=True)
class Table:
    """Numbers for a file, and for the page.

    Attributes
    ----------
    name : str
        Of the file, without its suffix.
    columns, rows
        All numbers, as they are.
    shown : sequence of str, optional
        The columns that the page shows; all of them unless given, none if the rows are too many.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    shown: Sequence[str] | None = None


class Part(ABC):
    """One figure or table of the paper: find its numbers, judge by them, show them.

    Subclasses are data classes: their fields are settings that the numbers depend on.

    Attributes
    ----------
    name, title, source
        What to call it, what it shows, where it is in the paper.
    note : str
        What we had to choose, for readers of the report.
    measured : bool
        Whether its numbers are times of this machine, which differ from run to run.
    """

    name: str
    title: str
    source: str
    note: str = ""
    measured: bool = False

    def settings(self, work: Work) -> dict[str, Any]:
        """What its numbers depend on, the program apart."""
        return {**vars(self), "at most": work.runs, "seed": SEED}

    @abstractmethod
    def compute(self, work: Work) -> dict[str, Any]:
        """Its numbers, which must be plain JSON."""

    def find(self, work: Work) -> Any:
        """Its numbers, kept or computed."""
        return work.keep(self.name, self.settings(work), lambda: self.compute(work))

    def results(self, found: Any) -> list[sx.Results]:
        """Simulations among what was found."""
        return []

    @abstractmethod
    def judge(self, found: Any) -> list[Finding]:
        """How the paper's claims fare."""

    def tables(self, found: Any) -> list[Table]:
        """Numbers to write down."""
        return []

    def figures(self, found: Any) -> list[Drawing]:
        """What to draw."""
        return []
