"""What a reproduction leaves behind: one page to read, and files of all numbers and figures."""

from __future__ import annotations

import base64
import csv
import io
import json
import platform
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

import simplexplore as sx

from .criteria import ALIKE, CLOSE, MORE, SEED, SURE
from .drawing import save
from .overview import overview_figure
from .part import OURS, THRESHOLD, Drawing, Finding, Part, Table
from .simulations import Simulated
from .verdicts import VERDICTS
from .words import number
from .work import write

PAGE, FINDINGS = "index.html", "findings.md"

REMARKS = (
    "The bound is for small δ. At the δ of these experiments much of the distance to it is the "
    f"stopping threshold alone; up to {CLOSE:g} times that we call close. Equally good, and on "
    f"par, mean within a factor of {ALIKE:g}; better means by more than chance; differing more, by "
    f"a factor of {MORE:g} in both of two measures. What varies by chance decides by an interval "
    f"of {SURE:g} standard errors to either side, claim by claim: if it straddles its criterion, "
    "the claim is not decided. These criteria are ours. They were fixed on 15 November 2026, "
    "before anything was run with this seed; since 19 November they are applied to intervals in "
    "place of estimates. Read the numbers beside each verdict, and do "
    "not count verdicts. Sampling by the optimal allocation (oracle) makes all "
    "comparisons equally hard and waits for the unluckiest, while an adaptive rule feeds the one "
    "that lags: so it can be better than the oracle without being better than the optimum."
)

_SHOWN_AS = {
    "reproduced": "Reproduced",
    "corrected": "Corrected",
    "not reproduced": "Not reproduced",
    "not decided": "Not decided",
}


@dataclass(frozen=True)
class Chapter:
    """A finished part: what it found, judged and ready to be written down."""

    part: Part
    found: Any
    findings: Sequence[Finding]
    tables: Sequence[Table]

    @property
    def results(self) -> list[sx.Results]:
        """Its simulations."""
        return self.part.results(self.found)


def write_report(parts: Mapping[Part, Any], folder: Path, runs: int | None) -> dict[str, Any]:
    """Judge parts by what they found; write page, numbers and figures; return what `--json` prints.

    Files of an earlier report in the same folder are replaced.
    """
    chapters = [Chapter(p, found, p.judge(found), p.tables(found)) for p, found in parts.items()]
    summary = _summary(chapters, runs)
    drawn = {c.part.name: c.part.figures(c.found) for c in chapters}
    drawn["overview"] = _overview(chapters)
    try:
        for name in ("numbers", "figures"):
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)
        for drawing in (one for drawings in drawn.values() for one in drawings):
            for kind in (".png", ".pdf"):
                drawing.write(folder / "figures" / f"{drawing.name}{kind}")
        _write_numbers(chapters, folder, summary)
        write(folder / FINDINGS, _markdown(chapters, summary))
        write(folder / PAGE, _html(chapters, summary, drawn, folder))
    except OSError as error:
        raise sx.SettingError(
            f"cannot write the report in {str(folder)!r}: {error.strerror}."
        ) from error
    return {
        "page": str(folder / PAGE),
        "verdicts": summary["verdicts"],
        "parts": [
            {"name": c.part.name, "findings": [asdict(finding) for finding in c.findings]}
            for c in chapters
        ],
    }


def _summary(chapters: Sequence[Chapter], runs: int | None) -> dict[str, Any]:
    counts = Counter(finding.verdict for c in chapters for finding in c.findings)
    own = Counter(f.verdict for c in chapters for f in c.findings if f.where == OURS)
    packages = ("numpy", "scipy", "numba", "matplotlib")
    return {
        "settings": {
            "runs": "as in the paper" if runs is None else runs,
            "seed": SEED,
            "threshold": THRESHOLD,
        },
        "versions": {
            "simplexplore": sx.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "verdicts": {verdict: counts[verdict] for verdict in VERDICTS},
        "asked_by_us": {verdict: own[verdict] for verdict in VERDICTS},
    }


# ---------------------------------------------------------------------- files


def _overview(chapters: Sequence[Chapter]) -> list[Drawing]:
    groups = {c.part.name: c.found for c in chapters if isinstance(c.part, Simulated)}
    if not groups:
        return []
    words = "Mean stopping times of all samplers as multiples of the lower bound"
    return [Drawing("overview", words, lambda path: save(overview_figure(groups), path))]


def _write_numbers(chapters: Sequence[Chapter], folder: Path, summary: Mapping[str, Any]) -> None:
    """All numbers as CSV, one file per table, and as JSON; measured times apart."""
    for c in chapters:
        for table in c.tables:
            buffer = io.StringIO()
            writer = csv.writer(buffer, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows(table.rows)
            write(folder / "numbers" / f"{table.name}.csv", buffer.getvalue())

    def content(c: Chapter) -> dict[str, Any]:
        summaries = [result.summary() for result in c.results]
        for one in summaries:
            one.pop("microseconds_per_step")
        return {
            "title": c.part.title,
            "source": c.part.source,
            "findings": [asdict(finding) for finding in c.findings],
            "simulations": summaries,
            "numbers": {} if c.results else c.found,
        }

    steady = {c.part.name: content(c) for c in chapters if not c.part.measured}
    times = {
        "steps": {
            f"{c.part.name}, {r.plan.scenario}, {r.plan.sampler.name}": r.summary()[
                "microseconds_per_step"
            ]
            for c in chapters
            for r in c.results
        },
        "parts": {c.part.name: content(c) for c in chapters if c.part.measured},
    }
    for name, value in (
        ("numbers", {**_but_verdicts(summary), "parts": steady}),
        ("times", times),
    ):
        text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)
        write(folder / "numbers" / f"{name}.json", f"{text}\n")


def _but_verdicts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Their number depends on measured times."""
    return {key: value for key, value in summary.items() if key != "verdicts"}


# ---------------------------------------------------------------------- Markdown


def _markdown(chapters: Sequence[Chapter], summary: Mapping[str, Any]) -> str:
    """Findings claim by claim, for the documentation."""
    lines = [
        "# What we find",
        "",
        "<!-- Written by `make reproduce`; do not edit. -->",
        "",
        (
            "What the experiments, tables and statements of Carlsson, Basu, Johansson and Dubhashi "
            "(AISTATS 2024) claim, where, and how each claim fares in "
            "[our reproduction](reproduce.md). Where the paper says something of other "
            "experiments only, the question is marked as ours."
        ),
        "",
        _settings_in_words(summary),
        "",
        REMARKS,
        "",
        "| | the paper's claims | asked by us |",
        "|---|---|---|",
        *(
            f"| {_SHOWN_AS[v]} | {n - summary['asked_by_us'][v]} | {summary['asked_by_us'][v]} |"
            for v, n in summary["verdicts"].items()
            if n
        ),
        "",
    ]
    for c in chapters:
        lines += [f"## {c.part.source}: {c.part.title}", ""]
        if c.part.note:
            lines += [c.part.note, ""]
        lines += ["| claim | made in | | we find |", "|---|---|---|---|"]
        lines += [
            f"| {_cell(f.claim)} | {_cell(f.where or c.part.source)} | "
            f"**{_SHOWN_AS[f.verdict]}** | {_cell(f.evidence)} |"
            for f in c.findings
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings_in_words(summary: Mapping[str, Any]) -> str:
    runs = summary["settings"]["runs"]
    counts = sorted({sx.catalog.instance(name).runs for name in ("star", "movies")})
    if isinstance(runs, int):
        often = f"{runs:,} runs of each sampler (the paper: {' or '.join(map(str, counts))})"
    else:
        often = (
            f"{' or '.join(f'{n:,}' for n in counts)} runs of each sampler, as in the paper, or "
            "four or eight times as many"
        )
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    return f"{often}, seed {SEED}, threshold {THRESHOLD} (what the authors' code uses); {versions}."


# ---------------------------------------------------------------------- HTML


def _html(
    chapters: Sequence[Chapter],
    summary: Mapping[str, Any],
    drawn: Mapping[str, Sequence[Drawing]],
    folder: Path,
) -> str:
    template = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
    verdicts = "".join(
        f'<li class="{_css(verdict)}"><strong>{count}</strong> {escape(verdict)}</li>'
        for verdict, count in summary["verdicts"].items()
        if count
    )
    contents = "".join(
        f'<li><a href="#{c.part.name}">{escape(c.part.source)}</a> {escape(c.part.title)}</li>'
        for c in chapters
    )
    return template.substitute(
        settings=escape(_settings_in_words(summary)),
        verdicts=verdicts,
        remarks=escape(REMARKS),
        contents=contents,
        overview="".join(_figure(one, folder) for one in drawn["overview"]),
        chapters="".join(_section(c, drawn[c.part.name], folder) for c in chapters),
    )


def _section(c: Chapter, figures: Sequence[Drawing], folder: Path) -> str:
    part = c.part
    findings = "".join(
        f"<tr><td>{escape(f.claim)}<small>{escape(f.where or part.source)}</small></td>"
        f'<td class="verdict {_css(f.verdict)}">'
        f"{escape(_SHOWN_AS[f.verdict])}</td><td>{escape(f.evidence)}</td></tr>"
        for f in c.findings
    )
    note = f'<p class="note">{escape(part.note)}</p>' if part.note else ""
    if processor := c.found.get("processor"):
        note += f'<p class="note">This machine: {escape(processor)}.</p>'
    return (
        f'<section id="{part.name}"><h2><span>{escape(part.source)}</span> {escape(part.title)}'
        f"</h2>{note}"
        '<table class="findings"><thead><tr><th>Claim, and where it is made</th><th></th>'
        "<th>We find</th></tr>"
        f"</thead><tbody>{findings}</tbody></table>"
        f"{''.join(_figure(one, folder) for one in figures)}"
        f"{''.join(map(_table, c.tables))}</section>"
    )


def _figure(drawing: Drawing, folder: Path) -> str:
    name, words = drawing.name, escape(drawing.words)
    data = base64.b64encode((folder / "figures" / f"{name}.png").read_bytes()).decode()
    links = " ".join(
        f'<a href="figures/{name}.{kind}">{kind.upper()}</a>' for kind in ("png", "pdf")
    )
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{words}">'
        f"<figcaption>{words} {links}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    link = f'<a href="numbers/{table.name}.csv">CSV</a>'
    names = table.columns if table.shown is None else table.shown
    if not names:
        return f'<p class="note">{number(len(table.rows))} rows of numbers: {link}</p>'
    at = [table.columns.index(name) for name in names]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_written(row[i]))}</td>" for i in at) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table class="numbers"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="note">All digits: {link}</p>'
    )


def _written(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")
