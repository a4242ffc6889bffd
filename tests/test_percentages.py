"""Limits on shares that look like percentages: people are asked, programs are not."""

import pytest

import simplexplore as sx
from commands import run

FILE = 'arms = ["a", "b", "c"]\nmeans = [1, 0.5, 0]\n[%s]\nmost = "%s"\n'


@pytest.mark.parametrize(
    ("table", "text", "words"),
    [
        ("constraints", "each <= 40", "a limit of 40 never binds. 40%? Write 0.4."),
        ("constraints", "a + b <= 12.5", "a limit of 12.5 never binds. 12.5%? Write 0.125."),
        ("constraints", "30 >= a", "a limit of 30 never binds. 30%? Write 0.3."),
        ("exploration", "a <= 5", "a limit of 5 never binds. 5%? Write 0.05."),
    ],
)
@pytest.mark.parametrize("command", [("bound",), ("simulate",), ("study", "create")])
def test_a_limit_that_was_meant_as_a_percentage(tmp_path, command, table, text, words):
    path = tmp_path / "mix.toml"
    path.write_text(FILE % (table, text), encoding="utf-8")
    store = ["--store", tmp_path / "studies.db"] if command[0] == "study" else []
    said = " ".join(run(*command, path, *store, code=2).stderr.split())
    noun = "constraint" if table == "constraints" else "exploration limit"
    assert said == f"Error: {path}: {noun} 'most': the shares of a mix sum to 1, so {words}"


@pytest.mark.parametrize(
    "text", ["a <= 1", "2 a <= 40", "a - b <= 2", "a <= 101", "-1 <= a <= 2", "a >= 0"]
)
def test_other_limits_are_no_percentages(tmp_path, text):
    path = tmp_path / "mix.toml"
    path.write_text(FILE % ("constraints", text), encoding="utf-8")
    run("bound", path, "--no-forecast")


def test_programs_are_not_asked(tmp_path):
    problem = sx.Problem(["a", "b"], {"most": "a <= 40"}, means=[1, 0])
    problem.to_file(tmp_path / "mix.toml")
    assert sx.Problem.from_file(tmp_path / "mix.toml") == problem
    assert sx.lower_bound(problem).redundant == ("most",)
