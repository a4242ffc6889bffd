"""`simulate`, as a user meets it."""

import json
import math
import os
import re
import shutil

import numpy as np
import pytest

import simplexplore as sx
from commands import MOVIES, STAR, run
from instances import EXAMPLES
from simulated import RESULT_KEYS

TRIAL = str(EXAMPLES / "trial.toml")
QUICK = ("--sampler", "uniform", "--runs", "20")


def refuse(*args):
    """Run a command that must fail with one message; return the message."""
    result = run("simulate", *args, code=2)
    assert result.stdout == ""
    message = [x for x in result.stderr.splitlines() if not x.startswith("compiling ")]
    assert message[0].startswith("Error: ")
    return "\n".join(message)


def report(*args):
    text = run("simulate", *args, "--json").stdout
    assert text.count("\n") == 1
    return json.loads(text)


def words(text):
    return " ".join(text.split())


TIE = 'arms = ["a", "b", "c"]\nmeans = [1, 1, 0]\n[constraints]\nx = "c >= 0.2"'


# ---------------------------------------------------------------------- --json


def test_json_is_that_of_the_contract():
    told = report(STAR, *QUICK, "--seed", "3")
    assert told["arms"] == ["a", "b", "c", "d", "e"]
    (entry,) = told["results"]
    assert entry.keys() >= RESULT_KEYS
    assert entry["stopping_time"].keys() == {"mean", "stderr", "median", "q05", "q95", "max"}
    assert entry["correct"].keys() == {"fraction", "low", "high"}
    assert entry["microseconds_per_step"] > 0
    expected = sx.simulate(sx.Problem.from_file(STAR), sampler="uniform", runs=20, seed=3)
    mine = expected.summary()
    del entry["microseconds_per_step"], mine["microseconds_per_step"]
    assert entry == mine


def test_settings_reach_the_simulation():
    options = ["--delta", "0.3", "--means", "0.2,0.5,0.4,0.95,0.1", "--threshold", "mixture"]
    options += ["--max-steps", "300", "--tracking", "direct", "--scenario", "end-of-time"]
    (entry,) = report(STAR, *QUICK, *options)["results"]
    expected = sx.simulate(
        sx.Problem.from_file(STAR),
        [0.2, 0.5, 0.4, 0.95, 0.1],
        "uniform",
        delta=0.3,
        runs=20,
        scenario="end-of-time",
        threshold="mixture",
        tracking="direct",
        max_steps=300,
    ).summary()
    del entry["microseconds_per_step"], expected["microseconds_per_step"]
    assert entry == expected
    assert entry["threshold"] == "mixture"
    assert entry["scenario"] == "end-of-time"


def test_noise(problem_file):
    file = problem_file(
        'arms = ["a", "b"]\nmeans = [4.0, 3.0]\n[rewards]\nfamily = "bounded"\nlow = 0\nhigh = 5\n'
    )
    (one,) = report(file, *QUICK, "--noise", "0.5")["results"]
    assert one["noise"] == [0.5, 0.5]
    text = words(run("simulate", file, *QUICK, "--noise", "0.5").stdout)
    assert "bounded rewards (Beta laws), delta" in text
    problem = sx.Problem.from_file(file)
    same = sx.simulate(problem, sampler="uniform", runs=20, noise=[0.5, 0.5])
    assert one["stopping_time"]["mean"] == same.stopping_times.mean()
    (each,) = report(file, *QUICK, "--noise", "0.5,1")["results"]
    assert each["noise"] == [0.5, 1.0]
    assert "noise 3 is too much for arm 'a'" in refuse(file, *QUICK, "--noise", "3")
    assert "--noise '1,x': item 2" in refuse(file, *QUICK, "--noise", "1,x")
    assert "one for each of the 2 arms" in refuse(file, *QUICK, "--noise", "1,1,1")


def test_one_entry_per_scenario_and_sampler():
    told = report(MOVIES, "--sampler", "uniform, top-two", "--runs", 3, "--scenario", "both")
    pairs = [(entry["scenario"], entry["sampler"]) for entry in told["results"]]
    assert pairs == [
        ("end-of-time", "uniform"),
        ("end-of-time", "top-two"),
        ("anytime", "uniform"),
        ("anytime", "top-two"),
    ]
    bounds = [entry["lower_bound"] for entry in told["results"]]
    assert bounds[0] == bounds[1] < bounds[2] == bounds[3]


def test_workers_change_nothing():
    def results(workers):
        told = report(STAR, "--sampler", "uniform,top-two", "--runs", 60, "--workers", workers)
        return [
            {k: v for k, v in e.items() if k != "microseconds_per_step"} for e in told["results"]
        ]

    assert results(1) == results(3)


def test_capped_runs_are_counted():
    (entry,) = report(STAR, *QUICK, "--max-steps", 50)["results"]
    assert entry["capped"] == 20
    assert entry["stopping_time"]["max"] == 50
    assert entry["stopping_time"]["stderr"] == 0


def test_a_tie_with_max_steps(problem_file):
    text = run("simulate", problem_file(TIE), *QUICK, "--max-steps", 400, "--json").stdout
    assert '"lower_bound": 1e999' in text
    (entry,) = json.loads(text)["results"]
    assert entry["capped"] > 0


def test_one_run():
    (entry,) = report(STAR, "--sampler", "uniform", "--runs", 1)["results"]
    assert entry["stopping_time"]["stderr"] is None


# ---------------------------------------------------------------------- for people


def test_table():
    told = report(STAR, "--sampler", "uniform,top-two", "--runs", 20)["results"]
    text = run("simulate", STAR, "--sampler", "uniform,top-two", "--runs", 20).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "delta 0.1, threshold tilt, 20 runs each, seed 0" in words(text)
    assert "Samples until stopping, anytime (lower bound: 774.4)" in text
    for entry in told:
        times = entry["stopping_time"]
        row = f"{entry['sampler']} {times['mean']:,.0f} ± {times['stderr']:,.0f} "
        row += f"{times['median']:,.0f} {times['q95']:,.0f} {times['mean'] / 774.387:.3g} "
        assert row in words(text)
        shares = np.array(entry["mean_allocation"])
        assert f"{shares[0] + shares[1]:.3f}" in text  # use of the first constraint
    assert "tilt is proven for gaussian rewards" in words(text)
    assert "capped" not in text


def test_table_of_both_scenarios_and_long_names():
    sampler = f"uniform,{EXAMPLES / 'weakest_edge.py'}"
    text = run("simulate", MOVIES, "--sampler", sampler, "--runs", 2, "--scenario", "both").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "end-of-time (lower bound: 2,020)" in text
    assert "anytime (lower bound: 3,807)" in text
    assert text.count("Mean use by the samples") == 1  # limits matter anytime only


def test_table_says_what_is_capped_and_what_is_proven():
    text = words(run("simulate", STAR, *QUICK, "--max-steps", 50).stdout)
    assert "capped: ended by --max-steps (50)" in text
    assert "tilt is proven for gaussian rewards: a wrong answer has probability at most" in text
    text = words(run("simulate", STAR, *QUICK, "--threshold", "gk16").stdout)
    assert "gk16 is not proven for gaussian rewards" in text


def test_out_and_plot(tmp_path):
    picture, folder = tmp_path / "x.svg", tmp_path / "deep" / "out"
    text = run("simulate", STAR, *QUICK, "--plot", picture, "--out", folder).stdout
    assert str(picture) in text.replace("\n", "")
    assert str(folder) in text.replace("\n", "")
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    (loaded,) = sx.load_results(folder)
    expected = sx.simulate(sx.Problem.from_file(STAR), sampler="uniform", runs=20)
    np.testing.assert_array_equal(loaded.stopping_times, expected.stopping_times)
    np.testing.assert_array_equal(loaded.pulls, expected.pulls)
    told = report(STAR, "--sampler", "top-two", "--runs", 2, "--out", folder, "--plot", picture)
    assert [r.plan.sampler.name for r in sx.load_results(folder)] == ["top-two"]
    assert len(told["results"]) == 1


# ---------------------------------------------------------------------- one's own


@pytest.mark.parametrize("name", ["weakest_edge", "cautious"])
def test_the_page_shows_the_example(name):
    page = (EXAMPLES.parent / "docs" / "write_your_own_sampler.md").read_text(encoding="utf-8")
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert text[text.index("import math") :].strip() in page


def test_own_sampler_and_threshold(tmp_path):
    mine = tmp_path / "mine.py"
    shutil.copy(EXAMPLES / "weakest_edge.py", mine)
    options = ["--runs", 200, "--scenario", "both", "--threshold", "gk16"]
    told = report(STAR, "--sampler", f"{mine},uniform", *options)["results"]
    assert [entry["sampler"] for entry in told] == ["mine", "uniform"] * 2
    for own, uniform in (told[:2], told[2:]):
        assert own["correct"]["low"] > 0.9
        # It asks where it matters: far fewer samples than uniform, on this instance.
        assert own["stopping_time"]["mean"] < 0.65 * uniform["stopping_time"]["mean"]
    assert all(use <= 0.5 for use in told[2]["constraint_use"].values())
    cautious = ["--threshold", EXAMPLES / "cautious.py"]
    (slow,) = report(STAR, "--sampler", "uniform", "--runs", 200, *cautious)["results"]
    assert slow["threshold"] == "cautious"
    assert slow["proven"] is False
    assert slow["stopping_time"]["mean"] > 1.2 * told[3]["stopping_time"]["mean"]


def test_a_file_with_commas_in_its_name(tmp_path):
    own = shutil.copy(EXAMPLES / "weakest_edge.py", tmp_path / "weakest, again.py")
    (entry,) = report(STAR, "--sampler", own, "--runs", 1)["results"]
    assert entry["sampler"] == "weakest, again"


def test_own_sampler_runs_with_other_rewards():
    sampler = EXAMPLES / "weakest_edge.py"
    (entry,) = report(TRIAL, "--sampler", sampler, "--runs", 20)["results"]
    assert entry["correct"]["fraction"] >= 0.9
    assert entry["capped"] == 0


def sampler_file(folder, body, head="from numba import njit", name="mine.py"):
    path = folder / name
    path.write_text(
        f"{head}\n@njit\ndef allocate(config, table, run, scratch):\n    {body}\n", "utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", "mine.py, line 1: invalid syntax"),
        ("def other(): pass", "mine.py defines no function 'allocate("),
        ("def allocate(config, table, run): pass", "mine.py defines no function 'allocate("),
        (
            "TRACKING = 'blind'\ndef allocate(a, b, c, d): pass",
            "TRACKING must be one of cumulative",
        ),
        ("ARM_STATE = -1\ndef allocate(a, b, c, d): pass", "ARM_STATE must be a whole number"),
    ],
)
def test_sampler_files_that_are_no_samplers(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(text)
    assert message in refuse(STAR, "--sampler", path)


def test_sampler_that_does_not_compile(tmp_path):
    error = refuse(STAR, "--sampler", sampler_file(tmp_path, "run.w[0] = undefined(3)"))
    assert re.search(r"mine\.py, line \d+: NameError: name 'undefined'", error)
    assert error.count("\n") == 0


# What Python does, in the first steps or much later, and compiled code cannot.
LATER = "if run.integers[0] > 9_999: "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{LATER}run.ww[0] = 1.0", f"'ww' of type RunState, at '{LATER}run.ww[0] = 1.0'"),
        ("run.w[0] += 0.0 * [1.0, 2.0][0]", "an array, a list or another object"),
        (f"{LATER}print(run.w[0])", "machine code cannot print"),
        (f"{LATER}raise ValueError('no')", "raise"),
    ],
)
def test_what_numba_says_in_one_line(tmp_path, body, message):
    error = refuse(STAR, "--sampler", sampler_file(tmp_path, body))
    assert error.startswith("Error: mine.py does not compile: ")
    assert message in error
    assert error.count("\n") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", "rule.py, line 1: invalid syntax"),
        ("def other(): pass", "rule.py defines no function 'reached("),
    ],
)
def test_threshold_files_that_are_no_thresholds(tmp_path, text, message):
    path = tmp_path / "rule.py"
    path.write_text(text)
    assert message in refuse(STAR, *QUICK, "--threshold", path)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--sampler", "ctsn"],
            "there is no sampler 'ctsn'. Did you mean 'ctns'? Known: ctns, cge",
        ),
        (["--sampler", "uniform,magic"], "there is no sampler 'magic'."),
        (["--sampler", "nowhere.py"], "there is no sampler file 'nowhere.py'"),
        (["--sampler", "ctns,,cge"], "--sampler 'ctns,,cge': a name is empty"),
        (["--sampler", ""], "a name is empty"),
        (["--sampler", "ctns,ctns"], "'ctns' is named twice"),
        ([*QUICK, "--threshold", "mixtur"], "no threshold 'mixtur'. Did you mean 'mixture'?"),
        ([*QUICK, "--threshold", "nowhere.py"], "there is no threshold file 'nowhere.py'"),
        (
            [*QUICK, "--scenario", "any-time"],
            "unknown scenario 'any-time'; did you mean 'anytime'?",
        ),
        ([*QUICK, "--tracking", "blind"], "there is no tracking 'blind'. Known: cumulative"),
        (["--sampler", "uniform", "--runs", "0"], "runs must be a whole number, 1 or more; got 0"),
        ([*QUICK, "--workers", "0"], "workers must be a whole number, 1 or more; got 0"),
        ([*QUICK, "--workers", "-2"], "workers must be a whole number, 1 or more; got -2"),
        ([*QUICK, "--max-steps", "0"], "max_steps must be a whole number, 1 or more; got 0"),
        ([*QUICK, "--max-steps", 10**20], "max_steps must be at most 1,000,000,000,000; got 1000"),
        ([*QUICK, "--seed", "-1"], "seed must be a whole number, 0 or more; got -1"),
        ([*QUICK, "--means", "1,2"], "means has 2 numbers for 5 arms"),
        ([*QUICK, "--means", "1,2,x,4,5"], "item 3, 'x', is not a number"),
        ([*QUICK, "--delta", "1"], "delta must lie strictly between 0 and 1; got 1"),
        ([*QUICK, "--plot", "x.gif"], "must end in one of .pdf, .png, .svg"),
        ([*QUICK, "--plot", "nowhere/x.png"], "there is no folder 'nowhere'"),
        ([*QUICK, "--out", STAR], "is a file, not a folder"),
    ],
)
def test_bad_options(args, message):
    assert message in refuse(STAR, *args)


def test_several_samplers_with_a_bad_option():
    for bad in (["--runs", 0], ["--workers", 0], ["--seed", -1], ["--tracking", "blind"]):
        refuse(STAR, "--sampler", "ctns,cge", *bad)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([STAR, "--sampler", "ctns", "--runs", "many"], "--runs"),
        (["--sampler", "ctns"], "FILE"),
    ],
)
def test_usage_errors(args, message):
    assert message in run("simulate", *args, code=2).output


def test_means_outside_the_familys_range():
    error = refuse(TRIAL, *QUICK, "--means", "0.3,0.4,0.5,0.6,1.2")
    assert "the mean of arm 'combination' is 1.2, but a bernoulli mean must be" in error


def test_no_means(problem_file):
    assert "no means given" in refuse(problem_file('arms = ["a", "b"]'), *QUICK)


def test_a_tie_names_the_policies(problem_file):
    error = refuse(problem_file(TIE), *QUICK)
    assert "the optimum is not unique" in error
    assert "0.8 a + 0.2 c" in error
    assert "0.8 b + 0.2 c" in error
    assert "--max-steps" in error


def test_a_bound_beyond_the_cap(problem_file):
    path = problem_file('arms = ["a", "b"]\nmeans = [1e-3, 0]\ndelta = 0.1')
    kl = 0.8 * math.log(9)  # of delta and 1 - delta; T = 8 / gap^2
    error = refuse(path, *QUICK)
    assert f"at least {8e6 * kl:,.0f} samples on average, and a run ends at 10,000,000" in error
    assert "--max-steps" in error
    for end in (("--max-steps", 50), ("--budget", 50)):
        (entry,) = report(path, *QUICK, *end)["results"]
        assert entry["stopping_time"]["max"] == 50
    path = problem_file('arms = ["a", "b"]\nmeans = [1e-3, 0]\ndelta = 0.1\n[costs]\na = 4.0')
    assert "takes some " in refuse(path, *QUICK)


def test_one_feasible_policy(problem_file):
    path = problem_file('arms = ["a", "b"]\nmeans = [1, 0]\n[constraints]\nx = "a == 1/4"')
    assert "nothing to explore" in refuse(path, *QUICK)


def test_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    access = os.access
    forbidden = str(tmp_path)
    monkeypatch.setattr(
        os, "access", lambda path, mode: str(path) != forbidden and access(path, mode)
    )
    error = refuse(STAR, *QUICK, "--out", tmp_path / "out")
    assert "cannot save results in" in error
    assert "permission denied" in error
    assert list(tmp_path.iterdir()) == []
