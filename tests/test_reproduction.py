"""The reproduction: a small run of every part against pinned numbers, and being killed.

    PYTHONPATH=. python tests/test_reproduction.py

pins the numbers anew, into tests/data/reproduction.json, after a change that is meant to
change them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from paper.algorithms import Algorithms
from paper.asymptotics import Asymptotics
from paper.films import Films
from paper.hardness import Hardness
from paper.lower_bounds import LowerBounds
from paper.meal import Curve
from paper.overview import overview_figure
from paper.parts import PARTS, find_parts
from paper.reproduce import reproduce
from paper.speed import Speed
from paper.statements import Statements
from paper.theorems import Theorems
from paper.work import Work
from pictures import assert_texts_apart
from simulated import group

PINNED = Path(__file__).parent / "data" / "reproduction.json"
ROOT = Path(__file__).parent.parent
RUNS = 3

# Smaller than the real thing, with the points that findings speak of.
SMALL = PARTS | {
    part.name: part
    for part in (
        Hardness(means=(0.4, 0.5, 0.8, 0.95)),
        Curve(second_means=(-0.5, 0.26, 0.5, 0.94, 0.98)),
        LowerBounds(instances=("star",), random=1, deltas=(0.2, 0.01)),
        Theorems(problems=8),
        Algorithms(instances=("star",)),
        Asymptotics(instances=("star",), deltas=(1e-1, 1e-5, 1e-20)),
        Statements(runs=20, steps=500),
        Speed(batches=2, runs=2),
        Films(),
    )
}


def find_all(folder):
    """What every part finds, in little of it."""
    work = Work(folder, runs=RUNS, workers=1)
    return {name: part.find(work) for name, part in SMALL.items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return find_all(tmp_path_factory.mktemp("all"))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A report of a few parts of each kind."""
    folder = tmp_path_factory.mktemp("reproduction")
    parts = [SMALL[name] for name in ("fig4", "fig3ab", "table1")]
    return folder, reproduce(parts, Work(folder, runs=RUNS, workers=1))


def summary_numbers(found):
    """What is pinned: of every simulation the bound, the mean and the errors; else all."""
    pinned = {}
    for name, part in SMALL.items():
        results = part.results(found[name])
        pinned[name] = {
            "simulations": {
                f"{r.plan.scenario}, {r.plan.sampler.name}": [
                    r.lower_bound,
                    float(r.stopping_times.mean()),
                    float(r.correct.mean()),
                ]
                for r in results
            },
            "numbers": {} if results else found[name],
        }
    return {name: value for name, value in pinned.items() if not SMALL[name].measured}


def flat(value, path=""):
    if isinstance(value, dict):
        return {k: v for key, x in value.items() for k, v in flat(x, f"{path}/{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, x in enumerate(value) for k, v in flat(x, f"{path}/{i}").items()}
    return {path: value}


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", [name for name, part in PARTS.items() if not part.measured])
def test_numbers_are_those_pinned(found, name):
    pinned, ours = (
        flat(numbers[name]) for numbers in (json.loads(PINNED.read_text()), summary_numbers(found))
    )
    assert ours.keys() == pinned.keys()
    for key, value in pinned.items():
        exact = value is None or isinstance(value, str | bool)
        assert ours[key] == (value if exact else pytest.approx(value, rel=1e-7, abs=1e-9)), key


def test_times_are_measured_apart(done):
    folder, _ = done
    numbers = (folder / "numbers" / "numbers.json").read_text()
    assert "microseconds" not in numbers
    assert "table1" not in json.loads(numbers)["parts"]
    times = json.loads((folder / "numbers" / "times.json").read_text())
    for sampler in ("ctns", "cge", "uniform", "top-two"):
        for mean, deviation in times["parts"]["table1"]["numbers"][sampler].values():
            assert 0 < mean < 1
            assert deviation >= 0
    assert all(value > 0 for value in times["steps"].values())
    assert len(times["steps"]) == 12


def test_every_part_appears_with_what_it_promises(done):
    folder, said = done
    assert [part["name"] for part in said["parts"]] == ["fig3ab", "fig4", "table1"]
    assert all(part["findings"] for part in said["parts"])
    figures = {path.name for path in (folder / "figures").iterdir()}
    names = ("fig3ab", "fig4", "overview")
    assert figures == {f"{name}.{kind}" for name in names for kind in ("png", "pdf")}
    assert {"fig3ab.csv", "fig4.csv", "table1.csv"} <= {p.name for p in folder.glob("numbers/*")}
    rows = (folder / "numbers" / "fig4.csv").read_text().splitlines()
    assert len(rows) == 1 + 12
    assert rows[0].startswith("instance,scenario,sampler")


@pytest.mark.parametrize("name", ["fig2", "fig3ab", "allocations", "asymptotics"])
def test_texts_in_figures_stay_apart(found, name):
    assert_texts_apart(FigureCanvasAgg(SMALL[name].figure(found[name])).figure)


def test_texts_in_the_overview_stay_apart():
    every = {r.plan.sampler.name: r for r in group(ctns=2, cge=3, ptns=30, uniform=8, oracle=4)}
    figure = overview_figure({"fig4": {"anytime": every}, "bernoulli-1": {"end-of-time": every}})
    assert_texts_apart(FigureCanvasAgg(figure).figure)
    # One mark for each sampler of each row, the bound beside them.
    marks = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert len(marks) == 10


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its elements are closed."""

    VOID = ("meta", "img", "br", "link", "hr")

    def __init__(self):
        super().__init__()
        self.open, self.links, self.sources, self.alternatives, self.ids = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        found = dict(attributes)
        self.ids.append(found.get("id"))
        self.links.append(found.get("href"))
        if "src" in found:
            self.sources.append(found["src"])
            self.alternatives.append(found.get("alt"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(done):
    folder, _ = done
    text = (folder / "index.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.sources
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert all(page.alternatives)
    for link in filter(None, page.links):
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (folder / link).is_file(), link
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "$" not in re.sub(r"data:[^\"]*", "", text)


def test_the_documentation_has_every_claim(found):
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    for name, part in SMALL.items():
        findings = part.judge(found[name])
        assert findings
        for finding in findings:
            assert f"| {finding.claim} |" in text, "make reproduce; cp .../findings.md docs/"


# ---------------------------------------------------------------------- interruption


def test_killed_half_way_it_goes_on_to_the_same_numbers(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def run(folder):
        reproduce(find_parts(["fig3c"]), Work(folder, runs=50, workers=1))

    run(whole)
    command = [sys.executable, "-m", "paper", "fig3c", "--runs", "50", "--out", str(broken)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    finished = []
    while len(finished) < 2 and process.poll() is None:
        finished = list(broken.glob("cells/*/results.json"))
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    finished = {p: p.stat().st_mtime_ns for p in broken.glob("cells/*/results.json")}
    assert 2 <= len(finished) < 6
    assert not (broken / "index.html").exists()
    run(broken)
    # What was finished was not run again, and all the rest is as if nothing had happened.
    assert {p: p.stat().st_mtime_ns for p in finished} == finished
    one, other = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and "cells" not in path.parts and path.name != "times.json"
        }
        for folder in (whole, broken)
    )
    assert {Path("index.html"), Path("findings.md"), Path("numbers/numbers.json")} <= one.keys()
    assert one == other
    cells, others = (
        sorted(path.name for path in folder.glob("cells/*")) for folder in (whole, broken)
    )
    assert cells == others


def test_parts_finished_before_are_in_the_report_too(tmp_path):
    reproduce(find_parts(["fig1"]), Work(tmp_path))
    said = reproduce(find_parts(["allocations"]), Work(tmp_path))
    assert [part["name"] for part in said["parts"]] == ["fig1", "allocations"]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(summary_numbers(find_all(Path(place))), indent=1, ensure_ascii=False)
        PINNED.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"wrote {os.path.relpath(PINNED)}\n")
