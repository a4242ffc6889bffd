"""The command `python -m paper`, which `make reproduce` runs."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import simplexplore as sx
from paper.__main__ import main
from paper.parts import PARTS, find_parts
from paper.work import Work, write

ROOT = Path(__file__).parent.parent


def run(*arguments):
    return main([*map(str, arguments)])


def test_list(capsys):
    assert run("--list") == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == list(PARTS)


def test_without_names_it_is_the_whole_paper():
    assert find_parts([]) == find_parts(["all"]) == list(PARTS.values())
    assert [part.name for part in find_parts(["fig2", "fig1"])] == ["fig1", "fig2"]


def test_json(tmp_path, capsys):
    assert run("fig1", "--out", tmp_path, "--json") == 0
    written = capsys.readouterr()
    said = json.loads(written.out)
    assert said["page"] == str(tmp_path / "index.html")
    assert said["verdicts"]["reproduced"] == 1
    assert "fig1" in written.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig33c",), "there is no part 'fig33c'. Did you mean 'fig3c'?"),
        (("fig1", "--runs", "0"), "--runs must be 1 or more; got 0"),
        (("fig1", "--workers", "-1"), "--workers must be 1 or more; got -1"),
    ],
)
def test_command_says_what_is_wrong(tmp_path, capsys, arguments, message):
    assert run(*arguments, "--out", tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_places_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run("fig1", "--out", tmp_path / "file") == 2
    assert "cannot make the folder" in capsys.readouterr().err
    with pytest.raises(sx.SettingError, match=r"cannot write .*x\.json': No such file"):
        write(tmp_path / "none" / "x.json", "text")
    (tmp_path / "numbers").touch()
    assert run("fig1", "--out", tmp_path) == 2
    assert "cannot write the report" in capsys.readouterr().err


def test_interrupted_command_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "paper", "fig3d", "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert "ctns.py, anytime" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert "Traceback" not in said


def test_a_changed_setting_is_computed_anew(tmp_path):
    work, made = Work(tmp_path), []

    def make(value):
        return lambda: made.append(value) or {"value": value}

    assert work.keep("x", {"a": 1}, make(1)) == {"value": 1}
    assert work.keep("x", {"a": 1}, make(2)) == {"value": 1}
    assert work.keep("x", {"a": 2}, make(3)) == {"value": 3}
    assert made == [1, 3]
    assert work.has("x", {"a": 2})
    assert not work.has("x", {"a": 3})


def test_damaged_numbers_are_named(tmp_path):
    work = Work(tmp_path)
    work.keep("x", {}, dict)
    (path,) = (tmp_path / "cells").iterdir()
    path.write_text("{")
    with pytest.raises(sx.SettingError, match=r"x-\w+\.json is damaged .*; delete it to run it"):
        work.keep("x", {}, dict)
