"""`simplexplore demo`, as a user meets it."""

import json
from pathlib import Path

import simplexplore as sx
from commands import STAR, run
from nightly import nightly


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = run("demo").stdout
    assert "Best mix: 0.5 a, 0.5 d" in text
    assert "Samples until stopping, anytime" in text
    for picture in ("star.png", "samplers.png"):
        assert Path("demo-output", picture).read_bytes().startswith(b"\x89PNG")
    # Everything it says to try can be tried; fewer runs and samplers do here.
    commands = [line.split()[1:] for line in text.splitlines() if " demo-output/star.toml" in line]
    commands = [command for command in commands if command[0] in ("bound", "simulate")]
    assert [command[0] for command in commands] == ["bound", "simulate", "simulate", "bound"]
    for command in commands:
        short = [
            part.replace("ctns,cge,ptns,uniform,oracle,top-two", "uniform") for part in command
        ]
        short = [part.replace("1000", "3").replace("top-two", "uniform") for part in short]
        run(*short, *(["--max-steps", "100"] if command[0] == "simulate" else []))
    assert sx.Problem.from_file("demo-output/star.toml") == sx.Problem.from_file(STAR)
    assert Path("demo-output/mine.png").exists()
    assert Path("demo-output/all.png").exists()


@nightly
def test_demo_json(tmp_path):
    told = json.loads(run("demo", "--out", tmp_path / "out", "--json").stdout)
    assert told["bound"]["policy"] == [0.5, 0, 0, 0.5, 0]
    assert Path(told["picture"]).exists()
    assert Path(told["results_picture"]).exists()
    samplers = [entry["sampler"] for entry in told["results"]]
    assert samplers == ["ctns", "cge", "top-two", "uniform"]
    assert sx.Problem.from_file(told["problem"]) == sx.Problem.from_file(STAR)


def test_demo_cannot_write(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", tmp_path / "file", code=2)
    assert "cannot make the folder" in result.stderr
