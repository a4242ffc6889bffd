"""What could be said along simulated runs."""

import csv
import json

import pytest

import simplexplore as sx
from commands import run
from simplexplore import Bernoulli, Bounded, Problem, SettingError
from simplexplore.simulation.trace import trace

PROBLEMS = {
    "rows": Problem(4, ["a1 + a2 <= 0.5", "2*a2 + a3 <= 0.8"], means=[1.0, 0.8, 0.5, 0.0]),
    "coins": Problem(3, ["a1 <= 0.5"], Bernoulli(), means=[0.8, 0.5, 0.2]),
    "regret": Problem(3, ["a1 <= 0.5"], means=[1.0, 0.5, 0.2], stop_when={"regret": 0.2}),
    "epsilon": Problem(3, ["a1 <= 0.5"], means=[1.0, 0.5, 0.2], epsilon=0.2),
    "costs": Problem(3, ["a1 <= 0.5"], means=[1.0, 0.5, 0.2], costs=[1, 4, 0.5]),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_it_is_the_same_run(name):
    results = sx.simulate(PROBLEMS[name], runs=3, seed=2)
    looks = list(trace(results, 2))
    last = {look["run"]: look for look in looks}
    assert [look["samples"] for look in last.values()] == results.stopping_times[:2].tolist()
    assert [look["cost"] for look in last.values()] == results.costs[:2].tolist()
    assert all(look["stopped"] for look in last.values())
    for look in looks:
        assert 0 <= look["confidence"] < 1
        assert look["p_value"] == pytest.approx(1 - look["confidence"])
        assert all(0 <= edge["p_best"] <= 1 for edge in look["edges"])
        assert look["regret_bound"] is None or look["regret_bound"] >= 0
    if name in ("rows", "coins"):
        assert min(look["confidence"] for look in last.values()) >= 0.9
    assert sum(look["run"] == 0 for look in looks) > 10


def test_noise_and_caps():
    problem = Problem(2, rewards=Bounded(0, 10), means=[5, 6])
    results = sx.simulate(problem, runs=1, noise=[1.0, 1.0], max_steps=25)
    *_, look = trace(results)
    assert results.capped[0] == (not look["stopped"])
    assert look["samples"] == results.stopping_times[0]


def test_files(tmp_path):
    problem = tmp_path / "mix.toml"
    PROBLEMS["rows"].to_file(problem)
    for name in ("looks.csv", "looks.json"):
        done = run("simulate", problem, "--runs", 2, "--trace", tmp_path / name)
        assert "Traces:" in done.output
    with (tmp_path / "looks.csv").open() as file:
        rows = list(csv.DictReader(file))
    looks = json.loads((tmp_path / "looks.json").read_text())
    assert len(rows) == len(looks) > 20
    for row, look in zip(rows, looks, strict=True):
        assert {key: str(value) for key, value in look.items() if key in row} == row
    assert {row["run"] for row in rows} == {"0", "1"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--trace", "looks.txt"], "the ending says how to write it: .csv or .json"),
        (["--trace", "nowhere/looks.csv"], "there is no folder nowhere"),
        (["--trace", "looks.csv", "--threshold", "gk16"], "only the threshold 'tilt'"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    PROBLEMS["rows"].to_file("mix.toml")
    done = run("simulate", "mix.toml", "--runs", 1, *options, code=2)
    assert says in done.output.replace("\n", " ")


def test_other_thresholds():
    with pytest.raises(SettingError, match="only the threshold 'tilt'"):
        next(trace(sx.simulate(PROBLEMS["rows"], runs=1, threshold="gk16")))
