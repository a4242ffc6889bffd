"""A part of the reproduction: one figure or table, its numbers, and what they say.

The other files of this package each hold the computation, the drawing and the judgement of
one kind of part; `parts` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simplexplore.problem.catalog import instance
from simplexplore.simulation.results import Results

from .criteria import SEED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
CORRECTED, OPEN = "corrected", "not decided"
VERDICTS = (REPRODUCED, CORRECTED, NOT_REPRODUCED, OPEN)

THRESHOLD = "gk16"


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
    """A figure to be drawn: the name of its files, and words for who cannot see it."""

    name: str
    words: str
    draw: Callable[[], Figure]


@dataclass(frozen=True)
class Table:
    """Numbers for a file, and what the report shows of them.

    Attributes
    ----------
    name : str
        Of the file, without its suffix.
    columns, rows
        All numbers, as they are.
    heading, shown
        Column heads and cells for readers; empty if the numbers are too many to read.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    heading: Sequence[str] = ()
    shown: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Job:
    """One simulation: a sampler on an instance of the catalogue."""

    instance: str
    sampler: str
    scenario: str

    @property
    def name(self) -> str:
        """For files and progress."""
        return f"{self.instance}-{self.scenario}-{self.sampler}"

    def runs(self, wanted: int | None) -> int:
        """How many: as wanted, or as in the paper."""
        return instance(self.instance).runs if wanted is None else wanted

    def settings(self, runs: int | None) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        found = instance(self.instance)
        return {
            "problem": found.problem.replace(scenario=self.scenario).to_text(),
            "noise": None if found.noise is None else list(found.noise),
            "sampler": self.sampler,
            "threshold": THRESHOLD,
            "seed": SEED,
            "runs": self.runs(runs),
        }


@dataclass(frozen=True)
class Evidence:
    """What a part has to show and to judge by."""

    results: Sequence[Results] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def _nothing(_: Evidence) -> list[Any]:
    return []


@dataclass(frozen=True)
class Part:
    """One figure or table of the paper.

    Attributes
    ----------
    name, title, source
        What to call it, what it shows, where it is in the paper.
    note : str
        What we had to choose, for readers of the report.
    jobs : tuple of Job
        Simulations it needs.
    compute : function
        Other numbers it needs, given the number of workers and, where it has `own_runs`, that of
        runs; None if there are none.
    own_runs : int
        Runs of each simulation in `compute` unless another number is asked for; 0: it has none,
        or always as many.
    settings : mapping
        What those numbers depend on, runs apart.
    figures : function
        What to draw.
    tables, findings : function
        Numbers to write down, and claims to judge.
    measured : bool
        Whether its numbers are times of this machine, which differ from run to run.
    """

    name: str
    title: str
    source: str
    note: str = ""
    jobs: tuple[Job, ...] = ()
    compute: Callable[..., dict[str, Any]] | None = None
    own_runs: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    figures: Callable[[Evidence], list[Drawing]] = _nothing
    tables: Callable[[Evidence], list[Table]] = _nothing
    findings: Callable[[Evidence], list[Finding]] = _nothing
    measured: bool = False

    def runs(self, wanted: int | None) -> dict[str, int]:
        """Runs of each simulation in `compute`, if that can be asked for."""
        return {"runs": wanted or self.own_runs} if self.own_runs else {}
