"""The reproduction: a small run of every part against pinned numbers, and being interrupted.

    python tests/test_reproduction.py

pins the numbers anew, into tests/data/reproduction.json, after a change that is meant to
change them.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

from pictures import assert_texts_apart
from simplexplore.report.page import INK
from simplexplore.report.results_group import COLOURS
from simplexplore.reproduction import (
    PARTS,
    find_parts,
    good_enough,
    hardness,
    meal,
    promises,
    report,
    reproduce,
    statements,
)
from simplexplore.reproduction.overview import overview_figure
from simplexplore.reproduction.part import Evidence
from simulated import group

pytestmark = pytest.mark.usefixtures("bounds_once")

PINNED = Path(__file__).parent / "data" / "reproduction.json"
DOCS = Path(__file__).parent.parent / "docs"
RUNS = 3

# Smaller than the real thing, with the points that findings speak of.
SMALL = {
    (hardness, "MEANS"): [0.4, 0.5, 0.8, 0.95],
    (meal, "SECOND_MEANS"): [-0.5, 0.26, 0.5, 0.94, 0.98],
    (statements, "TWIN_RUNS"): 20,
    (statements, "TWIN_STEPS"): 500,
    (good_enough, "INSTANCES"): ("triangle",),
    (good_enough, "EPSILONS"): (0.0, 0.02),
    (good_enough, "RUNS"): 5,
    (promises, "INSTANCES"): ("meal-b", "bernoulli-1"),
    (promises, "DELTAS"): (0.3, 0.1),
    (promises, "TIE_STEPS"): 500,
    (promises, "TIE_RUNS"): 10,
}


def small_reproduction(folder, names=("all",), pictures=None):
    """Everything, but little of it."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in SMALL.items():
            patch.setattr(module, name, value)
        if pictures is not None:
            patch.setattr(report, "pictures", pictures)
        return reproduce(find_parts(names), folder, runs=RUNS, workers=1)


def no_pictures(*_, **__):
    """Drawing takes longest; the pictures of simulations are tested elsewhere."""
    return b"png", b"pdf", b"<svg/>"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction")
    return folder, small_reproduction(folder, pictures=no_pictures)


def summary_numbers(folder):
    """What is pinned: of every simulation the bound, the mean and the errors; else all."""
    found = json.loads((folder / "numbers" / "numbers.json").read_text())
    return {
        name: {
            "simulations": {
                f"{s['scenario']}, {s['sampler']}": [
                    s["lower_bound"],
                    s["stopping_time"]["mean"],
                    s["correct"]["fraction"],
                ]
                for s in part["simulations"]
            },
            "numbers": part["numbers"],
        }
        for name, part in found["parts"].items()
    }


def flat(value, path=""):
    if isinstance(value, dict):
        return {k: v for key, x in value.items() for k, v in flat(x, f"{path}/{key}").items()}
    if isinstance(value, list):
        return {k: v for i, x in enumerate(value) for k, v in flat(x, f"{path}/{i}").items()}
    return {path: value}


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", [name for name, part in PARTS.items() if not part.measured])
def test_numbers_are_those_pinned(done, name):
    pinned, found = (
        flat(numbers[name])
        for numbers in (json.loads(PINNED.read_text()), summary_numbers(done[0]))
    )
    assert found.keys() == pinned.keys()
    for key, value in pinned.items():
        exact = value is None or isinstance(value, str | bool)
        assert found[key] == (value if exact else pytest.approx(value, rel=1e-7, abs=1e-9)), key


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
    assert len(times["steps"]) == sum(len(part.jobs) for part in PARTS.values())


def test_again_is_the_same_to_the_byte(done, tmp_path):
    def content(place):
        return {
            path.relative_to(place): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file() and "cells" not in path.parts and path.name != "times.json"
        }

    names = ("fig1",)  # simulations: see the one that is killed half way
    one, other = tmp_path / "one", tmp_path / "other"
    small_reproduction(one, names)
    # In another folder all was computed again; in the same folder nothing is.
    (other / "cells").mkdir(parents=True)
    for cell in (one / "cells").iterdir():
        shutil.copy2(done[0] / "cells" / cell.name, other / "cells")
    cells = {path: path.stat().st_mtime_ns for path in (other / "cells").rglob("*")}
    small_reproduction(other, names)
    assert content(one) == content(other)
    assert {path: path.stat().st_mtime_ns for path in (other / "cells").rglob("*")} == cells


def test_every_part_appears_with_what_it_promises(done):
    folder, said = done
    assert [part["name"] for part in said["parts"]] == list(PARTS)
    assert all(part["findings"] for part in said["parts"])
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".png", ".pdf"}
    drawn = set(PARTS) - {"table1", "table2", "statements"}
    assert names == drawn | {"overview"}
    assert {"fig3ab.csv", "fig4.csv", "table1.csv"} <= {p.name for p in folder.glob("numbers/*")}
    rows = (folder / "numbers" / "fig4.csv").read_text().splitlines()
    assert len(rows) == 1 + 12
    assert rows[0].startswith("instance,scenario,sampler")


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3ab", "allocations", "epsilon", "promises"])
def test_texts_in_figures_stay_apart(done, name):
    numbers = json.loads((done[0] / "numbers" / "numbers.json").read_text())["parts"][name]
    with pytest.MonkeyPatch.context() as patch:
        for (module, setting), value in SMALL.items():
            patch.setattr(module, setting, value)
        (drawing,) = PARTS[name].figures(Evidence((), numbers["numbers"]))
        assert_texts_apart(drawing.draw())


def test_samplers_have_their_colours(done):
    """As in all other figures, and the lower bound is black."""
    numbers = json.loads((done[0] / "numbers" / "numbers.json").read_text())["parts"]

    def colours(name):
        (drawing,) = PARTS[name].figures(Evidence((), numbers[name]["numbers"]))
        for axes in drawing.draw().axes:
            yield axes, {to_hex(one.get_color()) for one in axes.lines}

    with pytest.MonkeyPatch.context() as patch:
        for (module, setting), value in SMALL.items():
            patch.setattr(module, setting, value)
        for _, lines in colours("epsilon"):
            assert lines == {to_hex(COLOURS["top-two"]), to_hex(INK)}
    bars = [
        {to_hex(bar.get_facecolor()) for bar in axes.patches} for axes, _ in colours("allocations")
    ]
    oracle, ptns = ({to_hex(COLOURS[name])} for name in ("oracle", "ptns"))
    assert bars == [oracle, ptns, oracle, ptns]


def test_texts_in_the_overview_stay_apart():
    every = group(ctns=2, cge=3, ptns=30, uniform=8, oracle=4, top_two=2)
    figure = overview_figure({"fig4": [every, every[:2]], "bernoulli-1": [every[:4]]})
    assert_texts_apart(figure)
    (marks,) = (axes for axes in figure.axes if axes.get_label() == "overview")
    # One mark for each sampler of each row, the bound beside them.
    assert sum(line.get_marker() != "None" for line in marks.lines) == 6 + 2 + 4


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
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
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


def test_the_documentation_has_every_claim(done):
    _, said = done
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for part in said["parts"]:
        for finding in part["findings"]:
            assert f"| {finding['claim']} |" in text, "make reproduce; cp .../findings.md docs/"


def test_promises_take_as_many_runs_as_asked_for(tmp_path, done):
    part = PARTS["promises"]
    assert part.runs(None) == {"runs": promises.RUNS}
    assert part.runs(7) == {"runs": 7}
    assert PARTS["fig1"].runs(7) == {}
    numbers = json.loads((done[0] / "numbers" / "numbers.json").read_text())["parts"]["promises"]
    assert numbers["numbers"]["runs"] == RUNS
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in SMALL.items():
            patch.setattr(module, name, value)
        patch.setattr(report, "pictures", no_pictures)
        # One run has no standard error; nothing breaks.
        said = reproduce([part], tmp_path, runs=1, workers=1)
    assert len(said["parts"][0]["findings"]) == 4


# ---------------------------------------------------------------------- interruption


def test_killed_half_way_it_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "pictures", no_pictures)
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def run(folder):
        reproduce(find_parts(["fig3c"]), folder, runs=50, workers=1)

    run(whole)
    jobs = len(PARTS["fig3c"].jobs)
    code = "from simplexplore.cli.app import main; main()"
    names = ["reproduce", "fig3c", "--runs", "50", "--workers", "2", "--out", str(broken)]
    process = subprocess.Popen([sys.executable, "-c", code, *names], stderr=subprocess.PIPE)
    finished = []
    while len(finished) < 2 and process.poll() is None:
        finished = list(broken.glob("cells/*/results.json"))
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    finished = {p: p.stat().st_mtime_ns for p in broken.glob("cells/*/results.json")}
    assert 2 <= len(finished) < jobs
    assert not (broken / "index.html").exists()
    run(broken)
    # What was finished was not run again, and all the rest is as if nothing had happened.
    assert {p: p.stat().st_mtime_ns for p in finished} == finished
    assert len(list(broken.glob("cells/*/results.json"))) == jobs
    for pattern in (
        "index.html",
        "findings.md",
        "numbers/*.csv",
        "numbers/numbers.json",
    ):
        paths = sorted(whole.glob(pattern))
        assert paths
        for path in paths:
            assert (broken / path.relative_to(whole)).read_bytes() == path.read_bytes(), path
    one, other = (
        sorted(path.name for path in folder.glob("cells/*")) for folder in (whole, broken)
    )
    assert one == other


def test_parts_finished_before_are_in_the_report_too(tmp_path):
    small_reproduction(tmp_path, ["fig1"], pictures=no_pictures)
    said = small_reproduction(tmp_path, ["allocations"], pictures=no_pictures)
    assert [part["name"] for part in said["parts"]] == ["fig1", "allocations"]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        small_reproduction(Path(place), pictures=no_pictures)
        text = json.dumps(summary_numbers(Path(place)), indent=1, ensure_ascii=False)
        PINNED.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"wrote {os.path.relpath(PINNED)}\n")
