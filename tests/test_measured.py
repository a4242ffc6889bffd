"""Measured limits: what a problem says about them, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.problem.measured import measured_means

TOXICITY = sx.Measured("toxicity", "<= 0.3", sigma=0.5, tolerance=0.02, means=[0.1, 0.4, 0.5])

FILE = """\
arms = ["a", "b", "c"]
means = [0.2, 0.5, 0.9]
delta = 0.1
epsilon = 0.1
scenario = "end-of-time"

[rewards]
family = "gaussian"
sigma = 1.0

[constraints]
cap = "c <= 0.5"

[measured.toxicity]
limit = "<= 0.3"
sigma = 0.5
tolerance = 0.02
means = [0.1, 0.4, 0.5]

[measured."response rate"]
limit = ">= 0.2"
low = 0.0
high = 1.0
"""


def test_a_file_is_read_and_written_back():
    problem = sx.Problem.from_text(FILE)
    assert problem.to_text() == FILE
    toxicity, response = problem.measured
    assert toxicity == TOXICITY
    assert (response.name, response.sign, response.bound, response.level) == (
        "response rate",
        -1,
        -0.2,
        0.2,
    )
    assert sx.Problem.from_text(FILE) == problem
    assert hash(sx.Problem.from_text(FILE)) == hash(problem)
    assert problem != problem.replace(measured=())
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert "2 measured limits" in repr(problem)
    assert problem.rows()[1]["toxicity"] == 0.4
    assert problem.rows()[1]["response rate"] is None
    assert "&gt;= 0.2" in problem._repr_html_()


@pytest.mark.parametrize(
    ("limit", "text", "bound"),
    [
        ("<= 0.3", "<= 0.3", 0.3),
        (" >= 1/3 ", ">= 1/3", -1 / 3),
        ("≤ 2e-3", "<= 0.002", 0.002),
        ("≥ -1", ">= -1", 1.0),
        (0.25, "<= 0.25", 0.25),
        ("<= 0.1234567890123456789", "<= 0.12345678901234568", 0.12345678901234568),
    ],
)
def test_limits_are_read_exactly(limit, text, bound):
    row = sx.Measured("x", limit, sigma=1)
    assert (row.limit, row.bound) == (text, bound)
    assert sx.Measured("x", row.limit, sigma=1) == row
    np.testing.assert_array_equal(row.signed([1, 2]), [row.sign * 1.0, row.sign * 2.0])


def test_forms_in_python_say_the_same():
    table = {"limit": "<= 0.3", "sigma": 0.5, "tolerance": 0.02, "means": [0.1, 0.4, 0.5]}
    for measured in ([TOXICITY], {"toxicity": TOXICITY}, {"toxicity": table}):
        assert sx.Problem(3, measured=measured).measured == (TOXICITY,)


def test_what_is_known_of_dependence_is_kept():
    row = replace(TOXICITY, independent=True)
    problem = sx.Problem(3, measured=[row], epsilon=0.1)
    assert "independent = true" in problem.to_text()
    assert sx.Problem.from_text(problem.to_text()).measured == (row,)
    assert "independent" not in sx.Problem(3, measured=[TOXICITY], epsilon=0.1).to_text()


def test_noise_of_measurements():
    assert sx.Measured("x", 1).sigma == "unknown"
    assert not sx.Measured("x", 1).noise.knows_sigma
    np.testing.assert_array_equal(
        sx.Measured("x", 1, sigma=[1, 2]).deviations(2), np.array([1.0, 2.0])
    )
    assert sx.Measured("x", 1, low=1, high=5).deviations(2).tolist() == [2.0, 2.0]
    assert sx.Measured("x", 1, sigma_guess=3).deviations(2).tolist() == [3.0, 3.0]
    with pytest.raises(sx.ProblemError, match=r"add 'sigma_guess = ...' to \[measured.x\]"):
        sx.Measured("x", 1).deviations(2)


def test_means_are_given_or_guessed():
    problem = sx.Problem.from_text(FILE)
    with pytest.raises(sx.MeansError, match="'response rate' has no means"):
        measured_means(problem.measured, problem.arms)
    found = measured_means(problem.measured, problem.arms, {"response rate": [0.0, 0.5, 1.0]})
    np.testing.assert_array_equal(found, [[0.1, 0.4, 0.5], [0.0, 0.5, 1.0]])
    with pytest.raises(sx.MeansError, match=r"'response rate': the mean of arm 'c' is 2, outside"):
        measured_means(problem.measured, problem.arms, {"response rate": [0.0, 0.5, 2.0]})
    with pytest.raises(sx.MeansError, match="there is no measured row 'cap'"):
        measured_means(problem.measured, problem.arms, {"cap": [0.0, 0.5, 2.0]})
    with pytest.raises(sx.MeansError, match="means has 2 numbers for 3 arms"):
        measured_means(problem.measured, problem.arms, {"response rate": [0.0, 0.5]})


def test_measurements_are_checked():
    assert TOXICITY.check_value(-3) == -3.0
    bounded = sx.Measured("x", 1, low=0, high=1)
    assert bounded.check_value(np.float64(1.0)) == 1.0
    for value, message in (
        (1.5, "lie between 0 and 1; got 1.5"),
        ("1", "'x' must be a number; got '1'"),
        (float("nan"), "lie between"),
        (True, "must be a number"),
    ):
        with pytest.raises(sx.RewardError, match=message):
            bounded.check_value(value)
    with pytest.raises(sx.RewardError, match="finite numbers, at most 5e"):
        TOXICITY.check_value(float("inf"))


@pytest.mark.parametrize(
    ("old", "new", "message", "line"),
    [
        ("sigma = 0.5", "sigma = -1", "'toxicity': sigma must be positive; got -1", 16),
        ("sigma = 0.5", 'sigma = "unkown"', "sigma must be a number; got 'unkown'", 16),
        ("sigma = 0.5", "sigma = [1, 2]", "sigma has 2 numbers for 3 arms", 16),
        ("sigma = 0.5", "sigma = 0.5\nlow = 0", "sigma does not go with low and high", 16),
        ("low = 0.0", "", "low is missing", 20),
        ("low = 0.0", "low = 2", "need low < high", 22),
        ('"<= 0.3"', '"< 0.3"', "limit must be '<=' or '>=' and a number.*got '< 0.3'", 15),
        ('"<= 0.3"', '"<= 1/0"', "limit must be", 15),
        ('"<= 0.3"', '"0.1 <= x <= 0.3"', "limit must be", 15),
        ('"<= 0.3"', "nan", "limit must be finite", 15),
        ('"<= 0.3"', "[1]", "limit must be a number", 15),
        (
            "tolerance = 0.02",
            "independent = 1",
            "independent of the rewards of their pulls, true",
            17,
        ),
        ("tolerance = 0.02", "tolerance = -1", "tolerance must be 0 or a positive", 17),
        ("tolerance = 0.02", "tolerance = inf", "tolerance must be 0 or a positive", 17),
        ("tolerance = 0.02", "tolerence = 1", "did you mean 'tolerance'", 17),
        ("tolerance = 0.02", "delta = 0.1", r"unknown key 'delta' in \[measured.toxicity\]", 17),
        ('limit = "<= 0.3"', "", r"limit is missing in \[measured.toxicity\]", 14),
        ("[0.1, 0.4, 0.5]", "[0.1, 0.4]", "'toxicity': means has 2 numbers for 3 arms", 18),
        ("[0.1, 0.4, 0.5]", '"x"', "means must be a list of numbers", 18),
        ("[0.1, 0.4, 0.5]", "[0.1, 0.4, inf]", "must be finite", 18),
        ("measured.toxicity", "measured.a", "'a' has the name of an arm", 14),
        ("measured.toxicity", "measured.cap", "'cap' has the name of a constraint", 14),
        ("measured.toxicity", "measured.Reward", "is that of another column", None),
        ("measured.toxicity", 'measured."a;b"', "contains ';'", None),
        ("measured.toxicity", 'measured."=x"', "spreadsheets change", None),
        ("[measured.toxicity]", "[measured]", "'means' stands below the line .measured.", 18),
        ('family = "gaussian"\nsigma = 1.0', 'family = "poisson"', "poisson rewards have none", 8),
        ("sigma = 1.0", "sigma = 1.0\ndomain = [0, 2]", "a domain does not go with", 10),
        ("epsilon = 0.1", "stop_when = {regret = 1}", "give epsilon instead", 4),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, message, line):
    assert old in FILE
    with pytest.raises((sx.ProblemError, sx.MeansError), match=message) as error:
        sx.Problem.from_text(FILE.replace(old, new, 1), "x.toml")
    if line is not None:
        assert error.value.place.line == line


def test_other_forms_are_refused():
    for measured, message in (
        ("x", "measured must be a list"),
        ([1], "measured takes Measured"),
        ({"x": 1}, "must be a table"),
        ({"y": TOXICITY}, "named 'toxicity'; give them the same name"),
        ([TOXICITY, TOXICITY], "has the name of another measured row"),
        ([sx.Measured(n, 1) for n in "xyz"], "3 measured rows; at most 2 are possible: what an"),
    ):
        with pytest.raises(sx.ProblemError, match=message):
            sx.Problem(3, measured=measured)
