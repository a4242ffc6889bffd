"""The command line, as a user meets it."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from commands import MOVIES, STAR, run
from contract import BOUND_KEYS, SCENARIO_KEYS
from instances import EXAMPLES


def refuse(*args):
    """Run a command that must fail with a message; return the message."""
    result = run(*args, code=2)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def shell(*args, **options):
    """Run the installed program in a process of its own."""
    program = Path(sys.executable).parent / "simplexplore"
    return subprocess.run(
        [program, *map(str, args)], capture_output=True, text=True, check=False, **options
    )


# ---------------------------------------------------------------------- the program


def test_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "simplexplore", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"simplexplore {sx.__version__}\n"


def test_version():
    assert run("--version").stdout == f"simplexplore {sx.__version__}\n"


def test_installed_program():
    done = shell("bound", STAR, "--json")
    assert done.returncode == 0
    # The first time on a machine it compiles, and says so there.
    assert set(done.stderr.splitlines()) <= {"compiling, once on this machine ..."}
    assert done.stdout.count("\n") == 1
    assert json.loads(done.stdout)["policy"] == [0.5, 0, 0, 0.5, 0]


def test_installed_program_fails_without_traceback(tmp_path):
    done = shell("bound", "missing.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: missing.toml: ")
    assert done.stderr.count("\n") == 1


def test_output_into_a_closed_pipe():
    program = Path(sys.executable).parent / "simplexplore"
    command = f'"{program}" bound "{MOVIES}" --no-forecast | head -n 1'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("12 arms")
    assert done.stderr == ""


def test_terminal_that_knows_no_unicode(problem_file):
    path = problem_file('arms = ["é", "b"]\nmeans = [1, 0]')
    done = shell("bound", path, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "Best mix: ? alone" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Usage"),
        (["bound"], "Missing argument 'FILE'"),
        (["bnd", STAR], "Did you mean 'bound'?"),
        (["bound", STAR, "--deltas", "0.1"], "--deltas"),
        (["bound", STAR, "--delta", "10%"], "--delta"),
        (["simulate", STAR, "--runs", "1e3"], "--runs"),
    ],
)
def test_usage_errors(args, message):
    assert message in run(*args, code=2).output


# ---------------------------------------------------------------------- bound --json


def test_json_has_the_keys_of_the_contract():
    report = json.loads(run("bound", STAR, "--json").stdout)
    assert report.keys() >= BOUND_KEYS
    assert report["scenarios"].keys() == {"end-of-time", "anytime"}
    for scenario in report["scenarios"].values():
        assert scenario.keys() >= SCENARIO_KEYS
    for edge in report["edges"]:
        assert edge.keys() == {"direction", "gap", "neighbour"}
    unconstrained = {"arm", "characteristic_time", "allocation", "lower_bound"}
    assert report["unconstrained"].keys() == unconstrained
    assert report["bounds"].keys() == {"distance_lower", "distance_upper", "kappa", "H"}


def test_json_of_the_star():
    report = json.loads(run("bound", STAR, "--json").stdout)
    assert report["arms"] == ["a", "b", "c", "d", "e"]
    assert report["family"] == "gaussian"
    assert report["value"] == pytest.approx(0.975)
    for scenario in report["scenarios"].values():
        assert scenario["characteristic_time"] == pytest.approx(440.548458011, rel=1e-8)
        assert scenario["lower_bound"] == pytest.approx(774.3871196, rel=1e-8)
        assert 0 <= scenario["relative_gap"] <= 1e-8
    assert report["unconstrained"]["arm"] == "a"
    assert report["unconstrained"]["characteristic_time"] == pytest.approx(3265.22778472, rel=1e-8)


def test_means_and_delta_replace_those_of_the_file():
    report = json.loads(
        run("bound", STAR, "--means", "-1, 0.5,.4,9.5e-1,0.8", "--delta", "0.01", "--json").stdout
    )
    assert report["means"] == [-1, 0.5, 0.4, 0.95, 0.8]
    assert report["delta"] == 0.01
    assert report["policy"] == [0, 0, 0, 0.5, 0.5]
    bound = sx.lower_bound(sx.Problem.from_file(STAR), [-1, 0.5, 0.4, 0.95, 0.8], delta=0.01)
    own = bound.to_dict()
    for name, scenario in own["scenarios"].items():
        shown = report["scenarios"][name]
        assert {key: shown[key] for key in scenario} == scenario
        assert shown["expected_samples"] > scenario["lower_bound"]
    assert {**report, "scenarios": None} == {**own, "scenarios": None}


def test_json_writes_infinity_as_a_number(problem_file):
    path = problem_file('arms = ["a", "b", "c"]\nmeans = [1, 1, 0]')
    text = run("bound", path, "--json").stdout
    assert '"characteristic_time": 1e999' in text
    assert "Infinity" not in text
    assert "NaN" not in text
    report = json.loads(text)
    assert report["scenarios"]["anytime"]["characteristic_time"] == math.inf
    assert report["scenarios"]["anytime"]["lower_bound"] is None


def test_json_writes_any_name(tmp_path):
    name = 'quote " backslash \\ 1e999 Infinity é'
    sx.Problem([name, "b"], means=[1, 1]).to_file(tmp_path / "odd.toml")
    report = json.loads(run("bound", tmp_path / "odd.toml", "--json").stdout)
    assert report["arms"] == [name, "b"]
    assert report["scenarios"]["anytime"]["characteristic_time"] == math.inf


# ---------------------------------------------------------------------- bound, for people


def words(text):
    return " ".join(text.split())


def test_table_of_the_star():
    text = words(run("bound", STAR).stdout)
    assert "Best mix: 0.5 a, 0.5 d (earns 0.975)" in text
    assert "At least 774.4 samples on average to find it with confidence 0.9 (anytime)." in text
    assert "first 0.5 at most 0.5 none" in text
    # 8 sigma^2 kl(0.1, 0.9) / gap^2 samples alone
    assert "d -> e 0.15 625 yes a -> e 0.2 351.6 yes a -> b 0.5 56.25 yes" in text
    assert "samples, at least 774.4 774.4 characteristic time" in text
    assert "a 1 0.500 0.156 0.156 b" in text
    assert "e 0.8 - 0.419 0.419 characteristic time:" in text
    assert "Without constraints: the best arm is a, at least 5,740 samples to find it." in text


def test_table_shows_slack():
    text = words(run("bound", MOVIES).stdout)
    assert "little action 0.3 at most 0.3 none" in text
    assert "some drama 0.7 at least 0.3 0.4" in text


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_tables_fit_80_columns(example):
    lines = run("bound", example).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if "end-of-time" in line and "anytime" in line]
    assert all("mean" in line for line in headings)


def test_limits_on_exploration_and_costs():
    found = json.loads(run("bound", EXAMPLES / "laboratory.toml", "--json").stdout)
    assert list(found["scenarios"]) == ["end-of-time", "anytime", "exploration"]
    own = found["scenarios"]["exploration"]
    assert own["lower_bound"] == pytest.approx(own["lower_bound_samples"] * own["cost_per_sample"])
    says = refuse("simulate", STAR, "--scenario", "exploration", "--runs", "1")
    assert says.startswith("Error: the scenario 'exploration' has no limits; write them below")


def test_table_of_many_arms(tmp_path):
    size = 200
    problem = sx.Problem(
        [f"a rather long name of arm number {a}" for a in range(size)],
        (np.eye(20, size, k=size - 20), np.full(20, 0.15)),  # none of the best 20 too often
        means=np.linspace(0, 1, size),
    )
    path = tmp_path / "many.toml"
    problem.to_file(path)
    text = run("bound", path).stdout
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 120
    assert "... and 185 more with fewer samples" in text
    assert "... and 5 more with more slack" in text
    edges = len(sx.lower_bound(problem).edges)
    assert f"... and {edges - 15} more that are easier" in text


def test_names_are_printed_as_they_are(problem_file):
    path = problem_file('arms = ["[bold]x[/bold]", ":smile:", "[/]"]\nmeans = [3, 2, 1]')
    text = run("bound", path).stdout
    assert "[bold]x[/bold] -> :smile:" in text
    assert "[bold]x[/bold] -> [/]" in text


def test_ties_are_named(problem_file):
    path = problem_file('arms = ["a", "b", "c"]\nmeans = [1, 1, 0]\n[constraints]\nx = "c >= 0.2"')
    text = words(run("bound", path).stdout)
    assert "One of 2 best mixes: 0.8 a, 0.2 c" in text
    assert "no number of samples can tell which is best" in text
    assert "As good as the policy shown: 0.8 b, 0.2 c." in text
    assert "samples, at least infinite infinite" in text
    assert "a -> b tie" in text


def test_a_scenario_that_fails_leaves_the_others_alone(problem_file):
    text = 'arms = ["a", "b", "c"]\nmeans = [3, 2, 1]\n[constraints]\nx = "{}"'
    path = problem_file(text.format("0.3 <= a + b <= 0.3000000000000016"))
    shown = words(run("bound", path).stdout)
    assert "At least 15.07 samples on average" in shown
    assert "No bound in the scenario anytime: the constraints leave a set of policies" in shown
    found = json.loads(run("bound", path, "--json").stdout)["scenarios"]
    assert "no wider than rounding errors" in found["anytime"]["error"]
    assert found["end-of-time"]["relative_gap"] < 1e-8
    own = path.with_name("own.toml")
    own.write_text(path.read_text().replace("[con", 'scenario = "anytime"\n[con'))
    assert run("bound", own, "--json", code=2).stdout == ""


def test_one_feasible_policy(problem_file):
    path = problem_file('arms = ["a", "b"]\nmeans = [1, 0]\n[constraints]\nx = "a == 1/4"')
    text = words(run("bound", path).stdout)
    assert "Only one mix is feasible: there is nothing to find out, 0 samples." in text
    assert "samples, at least 0 0" in text
    assert "Comparisons" not in text


def test_one_arm(problem_file):
    text = run("bound", problem_file('arms = ["only"]\nmeans = [1]')).stdout
    assert "Best mix: only alone (earns 1)" in text


def test_allocation_that_is_not_unique(problem_file):
    # The paper's first Bernoulli instance: anytime, only arms c and d are pinned down.
    path = problem_file("""
        arms = ["a", "b", "c", "d", "e", "f", "g"]
        means = [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
        scenario = "anytime"
        [rewards]
        family = "bernoulli"
        [constraints]
        x = "a + b <= 0.5"
        y = "c + d <= 0.5"
    """)
    text = words(run("bound", path).stdout)
    assert "Other allocations need as few samples (anytime); one is shown." in text


def test_redundant_constraints_and_useless_arms_are_said(problem_file):
    path = problem_file(
        'arms = ["a", "b", "c"]\nmeans = [3, 2, 1]\n[constraints]\nx = "a <= 0"\ny = "a + b <= 1"'
    )
    text = words(run("bound", path).stdout)
    assert "Redundant, since others imply them: y." in text
    assert "No feasible policy uses: a." in text


def test_confidence_that_asks_for_nothing():
    text = run("bound", STAR, "--delta", "0.5").stdout
    assert "A confidence of 0.5 needs no evidence: the lower bound is 0 samples." in text


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--means", "1,2,x,4,5"], "item 3, 'x', is not a number"),
        (["--means", ""], "item 1, '', is not a number"),
        (["--means", "1,2"], "means has 2 numbers for 5 arms"),
        (["--means", "1,2,3,4,nan"], "the mean of arm 'e' is nan"),
        (["--means", "1,2,3,4,inf"], "the mean of arm 'e' is inf"),
        (["--delta", "0"], "delta must lie strictly between 0 and 1; got 0"),
        (["--delta", "nan"], "delta must lie strictly between 0 and 1; got nan"),
    ],
)
def test_bad_options(args, message):
    error = refuse("bound", STAR, *args)
    assert error.startswith("Error: ")
    assert message in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('arms = ["a"', "line 1"),
        ('arms = ["a", "b"]\nmeens = [1, 2]', "did you mean 'means'?"),
        ('arms = ["a", "b"]', "no means given"),
        ('arms = ["a", "b"]\nmeans = [1e-200, 0]', "choose units"),
        ("arms = 1000000000000", "at most 100,000"),
        ('arms = ["a", "b"]\nmeans = [1, 0]\n[constraints]\nx = "a + z <= 1"', "'z'"),
        (
            'arms = ["a", "b"]\nmeans = [1, 0]\n[constraints]\nx = "a >= 1"\ny = "b >= 1/2"',
            "no policy satisfies all constraints",
        ),
    ],
)
def test_bad_problems(problem_file, tmp_path, text, message):
    error = refuse("bound", problem_file(text), "--json", "--plot", tmp_path / "x.png")
    assert message in error
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.gif", "must end in one of .pdf, .png, .svg"),
        ("x.pgf", "must end in one of .pdf, .png, .svg"),
        ("picture", "must end in one of .pdf, .png, .svg"),
        ("missing/x.png", "there is no folder"),
        ("folder.png", "it is a folder"),
    ],
)
def test_bad_plot_paths_are_refused_before_any_work(tmp_path, problem_file, name, message):
    # Work would find that no mix is feasible.
    problem = problem_file('arms = ["a", "b"]\nmeans = [1, 0]\nconstraints.x = "a >= 2"')
    folder = tmp_path / "pictures"
    (folder / "folder.png").mkdir(parents=True)
    assert message in refuse("bound", problem, "--plot", folder / name)
    assert [path.name for path in folder.iterdir()] == ["folder.png"]


def test_disk_that_fails_while_drawing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    error = refuse("bound", STAR, "--plot", tmp_path / "x.png")
    assert "No space left on device" in error


# ---------------------------------------------------------------------- pictures


def test_plot_with_json_prints_only_json(tmp_path):
    picture = tmp_path / "star.svg"
    result = run("bound", STAR, "--plot", picture, "--json")
    assert json.loads(result.stdout)["policy"] == [0.5, 0, 0, 0.5, 0]
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_plot_says_where_it_is(tmp_path):
    picture = tmp_path / "star.png"
    text = run("bound", STAR, "--plot", picture).stdout
    assert str(picture) in text.replace("\n", "")
    assert picture.read_bytes().startswith(b"\x89PNG")


def program(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "simplexplore", *args],
        text=True,
        stderr=subprocess.PIPE,
        check=False,
        **options,
    )


def test_a_reader_that_has_seen_enough_is_told_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = program("--help", stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("args", [["--version"], ["bound", STAR, "--json"]])
def test_a_full_disk_is_one_message(args):
    with Path("/dev/full").open("w") as full:
        done = program(*args, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "Error: cannot write the output: No space left on device.\n"


@pytest.mark.parametrize(
    "args",
    [
        ["bound", "{}.toml"],
        ["bound", STAR, "--plot", "{}.png"],
        ["simulate", STAR, "--out", "{}"],
        ["simulate", STAR, "--sampler", "{}.py"],
        ["simulate", STAR, "--sampler", "{0},{0}"],
        ["simulate", STAR, "--threshold", "{}.py"],
        ["study", "list", "--store", "{}.db"],
    ],
    ids=lambda args: " ".join(args[:1] + args[2:]),
)
def test_names_that_no_file_can_have(args):
    name = "x" * 300
    message = run(*(arg.format(name) for arg in args), code=2).stderr
    assert message.startswith("Error: ")
    assert name in message


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("bash", {"COMP_WORDS": "simplexplore study ver", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "simplexplore study ver"}),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "simplexplore study ver",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
        ),
    ],
)
def test_shells_complete_commands(name, asked):
    assert "--install-completion" in run("--help").stdout
    env = {**os.environ, **asked, "_SIMPLEXPLORE_COMPLETE": f"complete_{name}"}
    done = shell(env=env)
    assert "verify" in done.stdout
    assert "void" not in done.stdout


def test_shells_complete_names_of_studies(tmp_path):
    for name in ("meal", "menu", "other"):
        sx.Study.create(tmp_path / "s.db", name, sx.Problem(["a", "b"])).close()

    def completed(store):
        asked = {"COMP_WORDS": "simplexplore study status me", "COMP_CWORD": "3"}
        env = {**os.environ, **asked, "_SIMPLEXPLORE_COMPLETE": "complete_bash"}
        return shell(env={**env, "SIMPLEXPLORE_STORE": str(store)})

    assert sorted(completed(tmp_path / "s.db").stdout.split()) == ["meal", "menu"]
    nothing = completed(tmp_path / "not there.db")
    assert (nothing.stdout.strip(), nothing.stderr) == ("", "")


@pytest.mark.parametrize("use", [sx.simulate, sx.lower_bound, sx.Explorer])
def test_a_path_is_no_problem(use):
    with pytest.raises(sx.ProblemError, match=r"Problem\.from_file\('x\.toml'\) reads a file"):
        use("x.toml")
    with pytest.raises(sx.ProblemError, match=r"it has one: \.problem"):
        use(sx.catalog.instance("star"))
