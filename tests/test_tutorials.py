"""Tutorials are scripts; here the one that does a researcher's work, with what it leaves behind.

The others run when the documentation is built.
"""

import csv
import importlib
import io
from pathlib import Path

import pytest

from nightly import nightly

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"


@pytest.fixture(scope="module")
def runner():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TUTORIALS)
        yield importlib.import_module("runner")


@nightly  # the documentation is built from it every time
def test_twenty_instances_with_a_sampler_of_ones_own(runner):
    page = runner.run(TUTORIALS / "compare_samplers.py")
    files = {name.removeprefix("compare_samplers-"): data for name, data in page.files.items()}
    assert set(files) == {"profile.png", "profile.pdf", "table.tex", "runs.csv"}
    rows = list(csv.DictReader(io.StringIO(files["runs.csv"].decode())))
    samplers = {"top-two", "uniform", "weakest_edge"}
    assert {row["sampler"] for row in rows} == samplers
    assert len({row["instance"] for row in rows}) == 20
    assert len(rows) == 20 * 20 * 3
    table = files["table.tex"].decode()
    for sampler in samplers:  # the table is what the raw data say
        own = [row for row in rows if row["sampler"] == sampler]
        right = sum(row["correct"] == "True" for row in own) / len(own)
        start = sampler.replace("_", "\\_") + " & "
        (line,) = (line for line in table.splitlines() if line.startswith(start))
        assert line.split(" & ")[5] == f"{right:.4g}"
    assert files["profile.pdf"].startswith(b"%PDF")
    assert "![profile](compare_samplers-profile.png)" in page.text
    assert "</table>" in page.text  # as a notebook would show it


def test_pages_show_what_came_of_running(runner, tmp_path):
    script = tmp_path / "x.py"
    script.write_text(
        "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nprint(6 * 7)\n"
        "# %%\nx = 3\nx + 1\n# %% [hidden]\ny = 10 * x\nprint(y)\n# %% [shell]\n# ls star.toml\n"
    )
    page = runner.run(script)
    assert page.text.startswith("# Title\n\nWords.\n\n```python\nprint(6 * 7)\n```")
    assert "```text\n42\n```" in page.text
    assert "```text\n4\n```\n\n```text\n30\n```" in page.text  # the code is hidden
    assert "y = 10" not in page.text
    assert "```console\n$ ls star.toml\nstar.toml\n```" in page.text
    for broken, message in (
        ("# %%\n1 / 0\n", "division by zero"),
        ("# %% [shell]\n# simplexplore bound no.toml\n", "no.toml"),
    ):
        script.write_text(broken)
        with pytest.raises(Exception, match=message):
            runner.run(script)


def test_every_tutorial_is_in_the_navigation(runner):
    site = (TUTORIALS.parent.parent / "mkdocs.yml").read_text()
    for script in runner.scripts():
        assert f"tutorials/{script.stem}.md" in site
