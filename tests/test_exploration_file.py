"""Limits on exploration in a problem: read, written, and refused with their place."""

import copy
import pickle

import numpy as np
import pytest

import simplexplore as sx
from instances import LIMITED
from simplexplore import SAMPLERS, Constraint, InfeasibleError, Problem, ProblemError


def test_a_file_with_limits_has_a_third_scenario_which_is_the_default():
    problem = Problem.from_text(LIMITED)
    assert problem.scenario == "exploration"
    assert problem.scenarios == ("end-of-time", "anytime", "exploration")
    assert problem.names == ("cap",)
    assert [row.name for row in problem.exploration] == ["fair[a]", "fair[b]", "fair[c]", "lab"]
    assert repr(problem) == (
        "<Problem: 3 arms, 1 constraint, 4 exploration limits, gaussian rewards, exploration, "
        "delta 0.1>"
    )
    other = Problem.from_text('scenario = "anytime"\n' + LIMITED)
    assert other.scenario == "anytime"
    assert other.exploration == problem.exploration
    assert Problem(3).scenarios == ("end-of-time", "anytime")
    assert Problem(3).scenario == "end-of-time"


def test_python_takes_limits_in_all_forms():
    problem = Problem.from_text(LIMITED)
    changes = {
        "exploration": {"fair": "each >= 0.05", "lab": "front <= 0.6"},
        "scenario": None,
    }
    assert problem.replace(**changes) == problem
    assert Problem(3, exploration=["each <= 0.5"]).exploration[0].name == "c1[a1]"
    assert Problem(3, exploration=([[1, 1, 0]], [0.5])).exploration == (
        Constraint("row1", [1, 1, 0], upper=0.5),
    )
    text = "arms = 3\n[exploration]\nmatrix = [[1, 1, 0]]\nupper = [0.5]\n"
    assert Problem.from_text(text) == Problem(3, exploration=([[1, 1, 0]], [0.5]))
    with pytest.raises(TypeError, match="does not support item assignment"):
        problem.exploration[0] = None


def test_problems_with_limits_are_copied_compared_and_written():
    problem = Problem.from_text(LIMITED)
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert twin == problem
        assert hash(twin) == hash(problem)
    assert problem.to_text().endswith(
        '[exploration]\nfair = "each >= 0.05"\nlab = "front <= 0.6"\n'
    )
    assert Problem.from_text(problem.to_text()) == problem
    without = problem.replace(exploration=(), scenario="end-of-time")
    assert without != problem.replace(scenario="end-of-time")
    assert "exploration" not in without.to_text()


@pytest.mark.parametrize(
    ("lines", "says", "field", "line"),
    [
        (
            'scenario = "exploration"',
            "the scenario 'exploration' has no limits; write them",
            "scenario",
            2,
        ),
        (
            'scenario = "explore"',
            "unknown scenario 'explore'; did you mean 'exploration'?",
            "scenario",
            2,
        ),
        (
            '[exploration]\nlab = "a + z <= 1"',
            "exploration limit 'lab': unknown arm 'z'",
            "exploration.lab",
            3,
        ),
        ('[exploration]\nlab = ""', "exploration limit 'lab' is empty", "exploration.lab", 3),
        (
            "[exploration]\nlab = 3",
            "exploration limit 'lab' must be a text such as",
            "exploration.lab",
            3,
        ),
        (
            '[exploration]\ntotal = "a <= 1"',
            "the name 'total' belongs to a rule",
            "exploration.total",
            3,
        ),
        (
            '[exploration]\n"x[a]" = "a <= 1"\nx = "each <= 1"',
            "two exploration limits are named 'x[a]'",
            "exploration.x[a]",
            3,
        ),
        (
            "[exploration]\ndelta = 0.1",
            "'delta' stands below the line [exploration]",
            "exploration.delta",
            3,
        ),
        (
            "[exploration]\nupper = [1]",
            "'upper' in [exploration] needs a matrix beside it",
            "exploration.upper",
            3,
        ),
        ("exploration = 1", "exploration must be a table", "exploration", 2),
        (
            '[explorations]\nx = "a <= 1"',
            "unknown key 'explorations'; did you mean 'exploration'?",
            "explorations",
            2,
        ),
    ],
)
def test_mistakes_are_named_with_their_place(lines, says, field, line):
    with pytest.raises(ProblemError) as caught:
        Problem.from_text(f'arms = ["a", "b"]\n{lines}', source="mix.toml")
    assert str(caught.value).startswith(f"mix.toml: {says}")
    place = caught.value.place
    assert (place.file, place.line, place.field) == ("mix.toml", line, field)


def test_python_mistakes():
    with pytest.raises(ProblemError, match=r"^exploration must be a list of texts, a mapping"):
        Problem(2, exploration=3)
    with pytest.raises(ProblemError, match=r"^the scenario 'exploration' has no limits"):
        Problem.from_text(LIMITED).replace(exploration=())


def test_limits_that_conflict_are_named_as_limits_on_exploration():
    text = LIMITED.replace("front <= 0.6", "c <= 0.04")
    with pytest.raises(InfeasibleError) as caught:
        sx.lower_bound(Problem.from_text(text))
    assert str(caught.value) == (
        "no allocation of samples satisfies all limits in [exploration]. With shares that are at "
        "least 0 and sum to 1, these 2 cannot hold together:\n"
        "  fair[c]: c >= 0.05\n"
        "  lab: c <= 0.04\n"
        "Relax one of them."
    )
    assert caught.value.conflict == ("fair[c]", "lab")
    assert caught.value.place.field == "exploration.fair[c]"
    with pytest.raises(
        InfeasibleError, match=r"no allocation .*this one cannot hold:\n  x: a >= 2"
    ):
        sx.lower_bound(Problem(["a", "b"], exploration={"x": "a >= 2"}), [1, 0])
    with pytest.raises(InfeasibleError, match=r"^no policy satisfies all constraints"):
        sx.lower_bound(Problem(["a", "b"], {"x": "a >= 2"}, exploration=["a >= 0.1"]), [1, 0])


def test_samples_keep_limits_of_their_own(tmp_path):
    problem = Problem(
        ["a", "b", "c"],
        {"cap": "a <= 0.6"},
        means=[1.0, 0.6, 0.0],
        exploration={"few": "a <= 0.2", "some": "c >= 0.1"},
    )
    for sampler in SAMPLERS:
        results = sx.simulate(problem, sampler=sampler, runs=20)
        assert results.summary()["scenario"] == "exploration"
        shares = results.allocations()
        assert (shares[:, 0] <= 0.2 + 1e-9).all()  # b alone is within it
        assert (shares[:, 2] >= 0.1 - results.excess_bound / results.stopping_times).all()
        assert set(results.constraint_use()) == {"few", "some"}
    with sx.Study.create(tmp_path / "x.db", "x", problem) as study:
        arms = [pull.arm for pull in study.ask(40)]
        counts = np.cumsum([[arm == "a", arm == "c"] for arm in arms], axis=0)
        assert (counts[:, 0] <= 0.2 * np.arange(1, 41)).all()
        status = study.status()
        assert [row["name"] for row in status["exploration"]] == ["few", "some"]
        assert status["exploration"][0]["explored"] == counts[-1, 0] / 40
        assert status["exploration"][0]["excess"] == 0
        assert status["constraints"][0]["excess"] is None


def test_an_arm_without_samples_is_refused():
    problem = Problem(["a", "b", "c"], exploration={"none": "b <= 0"}, means=[1.0, 0.5, 0.0])
    for work in (lambda: sx.Explorer(problem), lambda: sx.simulate(problem, runs=1)):
        with pytest.raises(sx.SimplexploreError, match="leave no samples to b"):
            work()
