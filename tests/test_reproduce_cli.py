"""The command `simplexplore reproduce`."""

import errno
import json
import re

import pytest
from typer.testing import CliRunner

from simplexplore.cli.app import app
from simplexplore.reproduction import PARTS, find_parts


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_list():
    done = run("--list")
    assert done.exit_code == 0
    rows = done.stdout.splitlines()[3:]
    assert [row.split()[0] for row in rows if not row.startswith(" ")] == list(PARTS)
    assert max(map(len, rows)) <= 80
    names = [part["name"] for part in json.loads(run("--list", "--json").stdout)["parts"]]
    assert names == list(PARTS)


def test_without_names_it_is_the_whole_paper():
    assert find_parts([]) == find_parts(["all"]) == list(PARTS.values())
    assert [part.name for part in find_parts(["fig2", "fig1"])] == ["fig1", "fig2"]


def test_json(tmp_path):
    done = run("fig1", "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["page"] == str(tmp_path / "index.html")
    assert said["verdicts"]["reproduced"] == 1
    assert "fig1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig33c",), "there is no part 'fig33c'. Did you mean 'fig3c'?"),
        (("fig1", "--runs", "0"), "--runs must be 1 or more; got 0"),
        (("fig1", "--workers", "-1"), "--workers must be 1 or more; got -1"),
    ],
)
def test_command_says_what_is_wrong(tmp_path, arguments, message):
    done = run(*arguments, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    assert "it is a file, not a folder" in run("fig1", "--out", tmp_path / "file").stderr
    done = run("fig1", "--out", tmp_path / "file" / "below")
    assert done.exit_code == 2
    assert "cannot make the folder" in done.stderr


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("simplexplore.simulation.cells.write_whole", full)
    done = run("fig1", "--out", tmp_path)
    assert done.exit_code == 2
    assert re.search(r"cannot write .*fig1-\w+\.json': No space left on device", done.stderr)


def test_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("simplexplore.reproduction.run_plan", stop)
    done = run("fig3d", "--runs", 2, "--out", tmp_path)
    assert done.exit_code == 130
    assert "the same command resumes" in done.stderr
