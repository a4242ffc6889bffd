"""Problems in Python: what they take, and what is refused in which words."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from contract import PROBLEM_FILE
from simplexplore import (
    Bernoulli,
    Constraint,
    ConstraintError,
    Gaussian,
    MeansError,
    Problem,
    ProblemError,
)

INF = math.inf


def test_python_takes_texts_mappings_and_constraints() -> None:
    arms = ["a", "b"]
    row = Constraint("row", np.array([1.0, 0.0]), upper=0.5)
    assert Problem(arms, ["a <= 0.5", "b <= 0.5"]).names == ("c1", "c2")
    # Two texts in a tuple are two texts, not a matrix and its bounds.
    assert Problem(arms, ("a <= 0.5", "b <= 0.5")).names == ("c1", "c2")
    assert Problem(arms, {"x": "a <= 0.5"}).names == ("x",)
    assert Problem(arms, [row, "b <= 0.5"]).names == ("row", "c2")
    assert Problem(arms, (row, row.__class__("other", row.coefficients, 0.1))).names == (
        "row",
        "other",
    )


def test_arms_may_be_counted() -> None:
    assert Problem(3).arms == Problem(np.int64(3)).arms == ("a1", "a2", "a3")  # type: ignore[arg-type]
    assert Problem(np.array(["x", "y"])).arms == ("x", "y")  # type: ignore[arg-type]


def test_a_problem_cannot_be_changed() -> None:
    problem = Problem.from_text(PROBLEM_FILE)
    with pytest.raises(AttributeError, match="cannot assign to field 'delta'"):
        problem.delta = 0.5  # type: ignore[misc]
    for array in (problem.matrix, problem.lower, problem.upper, problem.means):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(TypeError, match="does not support item assignment"):
        problem.groups["x"] = ("a",)  # type: ignore[index]


def test_arguments_are_copied() -> None:
    means, groups = np.array([1.0, 2.0]), {"both": ["a1", "a2"]}
    problem = Problem(2, means=means, groups=groups)
    means[0] = 7.0
    groups["both"].pop()
    assert problem == Problem(2, means=[1, 2], groups={"both": ["a1", "a2"]})


CHANGES: list[dict[str, Any]] = [
    {"arms": ["a", "b", "c", "d", "f"], "constraints": []},
    {"constraints": ["a <= 0.5"]},
    {"rewards": Gaussian(1.0)},
    {"scenario": "end-of-time"},
    {"delta": 0.2},
    {"groups": {}},
    {"means": None},
    {"means": [1.0, 0.5, 0.4, 0.95, 0.7]},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_problems_compare_by_content(changes: dict[str, Any]) -> None:
    problem = Problem.from_text(PROBLEM_FILE)
    other = problem.replace(**changes)
    assert other != problem
    for name in changes.keys() - {"constraints", "means"}:
        expected = tuple(changes[name]) if name == "arms" else changes[name]
        assert getattr(other, name) == expected
    twin = Problem.from_text(PROBLEM_FILE)
    assert twin == problem == problem.replace()
    assert hash(twin) == hash(problem)
    assert problem != "problem"


def test_order_of_groups_does_not_matter() -> None:
    one = Problem(3, groups={"x": ["a1", "a2"], "y": ["a2", "a3"]})
    other = Problem(3, groups={"y": ["a2", "a3"], "x": ["a1", "a2"]})
    assert one == other
    assert hash(one) == hash(other)


def test_copies_are_equal_and_read_only() -> None:
    problem = Problem.from_text(PROBLEM_FILE)
    for twin in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert twin == problem
        assert not twin.matrix.flags.writeable


def test_repr_is_short() -> None:
    shown = "<Problem: 5 arms, 3 constraints, gaussian rewards, anytime, delta 0.05>"
    assert repr(Problem.from_text(PROBLEM_FILE)) == shown
    shown = "<Problem: 1 arm, 1 constraint, bernoulli rewards, end-of-time, delta 0.1>"
    assert repr(Problem(1, ["a1 <= 1"], Bernoulli())) == shown


# Means


def test_means_are_checked_and_returned() -> None:
    means = Problem(["a", "b"]).check_means([1, 2.5])
    assert means.dtype == float
    assert means.tolist() == [1.0, 2.5]
    assert not means.flags.writeable
    given = np.array([1.0, 2.0])
    Problem(2).check_means(given)
    given[0] = 3.0  # the argument itself stays writeable


@pytest.mark.parametrize(
    ("means", "says"),
    [
        ([0.5], "means has 1 number for 2 arms; give one per arm."),
        ([0.5, 0.5, 0.5], "means has 3 numbers for 2 arms; give one per arm."),
        ([0.5, math.nan], "the mean of arm 'b' is nan; it must be finite."),
        ([INF, 0.5], "the mean of arm 'a' is inf; it must be finite."),
        ([0.5, "x"], "means: the entry for arm 'b' must be a number; got 'x'."),
        ([0.5, True], "means: the entry for arm 'b' must be a number; got True."),
        ([0.5, 10**400], "means: the entry for arm 'b' is too large for a float."),
        (0.5, "means must be a list of numbers; got 0.5."),
        (np.array(0.5), "means must be a list of numbers; got array(0.5)."),
        ("ab", "means must be a list of numbers; got 'ab'."),
        (np.zeros((2, 2)), "means: the entry for arm 'a' must be a number; got array([0., 0.])."),
        (
            [0.5, 1.0],
            "the mean of arm 'b' is 1, but a bernoulli mean must be strictly between 0 and 1.",
        ),
    ],
)
def test_bad_means_are_refused(means: Any, says: str) -> None:
    with pytest.raises(MeansError) as caught:
        Problem(["a", "b"], rewards=Bernoulli()).check_means(means)
    assert str(caught.value) == says
    with pytest.raises(MeansError) as caught:
        Problem(["a", "b"], rewards=Bernoulli(), means=means)
    assert str(caught.value) == says


# What is refused, from Python


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arms": []}, "arms is empty; name at least one arm."),
        ({"arms": 0}, "there must be at least one arm; got arms = 0."),
        ({"arms": 10**12}, "there are 1,000,000,000,000 arms; at most 100,000 are possible."),
        ({"arms": ["a"] * 100_001}, "there are 100,001 arms; at most 100,000 are possible."),
        (
            {"arms": ["a", "b" * 1001]},
            "the name of arm 2 has 1,001 characters; at most 1,000 are possible.",
        ),
        (
            {"constraints": {"c" * 1001: "a <= 1"}},
            "the name of constraint 1 has 1,001 characters; at most 1,000 are possible.",
        ),
        (
            {"arms": 1000, "constraints": {f"c{i}": "each <= 0.5*a1" for i in range(501)}},
            (
                "the constraints have more than 10,000,000 coefficients that are not zero (20 are "
                "counted where one has fewer); use fewer."
            ),
        ),
        (
            {"arms": 5_000, "exploration": (np.ones((2001, 5000)), np.ones(2001))},
            (
                "the exploration limits have more than 10,000,000 coefficients that are not zero "
                "(20 are counted where one has fewer); use fewer."
            ),
        ),
        ({"delta": 1e-320}, "delta must be at least 1e-300; got 9.99989e-321."),
        ({"delta": 9.9e-301}, "delta must be at least 1e-300; got 9.9e-301."),
        ({"arms": True}, "arms must be a list of names; got True."),
        ({"arms": "abc"}, "arms must be a list of names; got 'abc'."),
        ({"arms": ["a", 3]}, "the name of arm 2 must be text; got 3."),
        ({"arms": ["a", " "]}, "the name of arm 2 is empty; give it one."),
        ({"arms": ["a", "b", "a"]}, "arms 1 and 3 are both named 'a'; names must differ."),
        (
            {"arms": ["a`b"]},
            (
                "the name of arm 1, 'a`b', contains a backtick, which quotes names in constraints; "
                "remove it."
            ),
        ),
        (
            {"arms": ["a\nb"]},
            "the name of arm 1, 'a\\nb', contains a line break or control character; remove it.",
        ),
        (
            {"arms": ["a\ud800"]},
            "the name of arm 1, 'a\\ud800', contains a line break or control character; remove it.",
        ),
        (
            {"arms": ["a\u202eb"]},
            (
                "the name of arm 1, 'a\\u202eb', contains a character that changes the direction "
                "of writing; remove it. Words that are written from right to left need none."
            ),
        ),
        ({"groups": ["a"]}, "groups must map names to lists of arms; got ['a']."),
        ({"groups": {"a": ["b"]}}, "group 'a' has the name of an arm; rename it."),
        ({"groups": {3: ["b"]}}, "the name of group 1 must be text; got 3."),
        (
            {"groups": {"`": ["b"]}},
            (
                "the name of group 1, '`', contains a backtick, which quotes names in constraints; "
                "remove it."
            ),
        ),
        ({"groups": {"g": "ab"}}, "group 'g' must be a list of arms; got 'ab'."),
        ({"groups": {"g": []}}, "group 'g' is empty; list its arms, or drop it."),
        ({"groups": {"g": ["a", "a"]}}, "group 'g' contains 'a' twice; remove one."),
        (
            {"groups": {"g": ["x"]}},
            "group 'g' contains 'x', which is not an arm; the arms are a, b, alpha.",
        ),
        (
            {"groups": {"g": [["a"]]}},
            "group 'g' contains ['a'], which is not an arm; the arms are a, b, alpha.",
        ),
        (
            {"groups": {"g": ["Alfa"]}},
            "group 'g' contains 'Alfa', which is not an arm; did you mean 'alpha'?",
        ),
        (
            {"groups": {"g": ["a"], "h": ["g"]}},
            "group 'h' contains 'g', which is not an arm; list its arms instead.",
        ),
        (
            {"constraints": "a <= 1"},
            (
                "constraints must be a list of texts, a mapping from names to texts, or a tuple "
                "(matrix, upper bounds); got 'a <= 1'."
            ),
        ),
        ({"constraints": [3]}, "constraint 'c1' must be a text such as 'a <= 0.5'; got 3."),
        ({"constraints": {3: "a <= 1"}}, "the name of constraint 1 must be text; got 3."),
        ({"constraints": {"": "a <= 1"}}, "the name of constraint 1 is empty; give it one."),
        (
            {"constraints": [Constraint("x\ty", np.ones(3), upper=1)]},
            (
                "the name of constraint 1, 'x\\ty', contains a line break or control character; "
                "remove it."
            ),
        ),
        (
            {"constraints": [Constraint("x", np.ones(2), upper=1)]},
            "constraint 'x' has 2 numbers for 3 arms; give one per arm.",
        ),
        (
            {"constraints": [Constraint("c2", np.ones(3), upper=1), "a <= 1"]},
            "two constraints are named 'c2'; rename one.",
        ),
        (
            {"constraints": {"total": "a <= 1"}},
            (
                "the name 'total' belongs to a rule that always holds: shares are at "
                "least 0 and sum to 1; rename the constraint."
            ),
        ),
        (
            {"constraints": {"b >= 0": "a <= 1"}},
            (
                "the name 'b >= 0' belongs to a rule that always holds: shares are at "
                "least 0 and sum to 1; rename the constraint."
            ),
        ),
        ({"constraints": (3, [1])}, "matrix must be a list of rows; got 3."),
        ({"constraints": ([3], [1])}, "row 1 of matrix must be a list of numbers; got 3."),
        (
            {"constraints": ([[1, 1, 1], [1, 1]], [1, 1])},
            "row 2 of matrix has 2 numbers for 3 arms; give one per arm.",
        ),
        (
            {"constraints": (np.ones((1, 2)), [1])},
            "row 1 of matrix has 2 numbers for 3 arms; give one per arm.",
        ),
        (
            {"constraints": ([[1, True, 1]], [1])},
            "row 1 of matrix: the entry for arm 'b' must be a number; got True.",
        ),
        ({"constraints": ([[1, 1, 1]], 1)}, "upper must be a list of numbers; got 1."),
        (
            {"constraints": ([[1, 1, 1]], [1, 2])},
            "upper has 2 numbers for 1 row; give one per row.",
        ),
        (
            {"constraints": ([[1, 1, 1]], ["1"])},
            "upper: the entry for row 'row1' must be a number; got '1'.",
        ),
        (
            {"rewards": "bernoulli"},
            (
                "rewards must be Gaussian(...), Bernoulli(...), Poisson(...) or Bounded(...); got "
                "'bernoulli'."
            ),
        ),
        (
            {"rewards": Gaussian((1.0, 2.0))},
            "sigma has 2 numbers for 3 arms; give one number, or one per arm.",
        ),
        ({"scenario": "any-time"}, "unknown scenario 'any-time'; did you mean 'anytime'?"),
        ({"scenario": 3}, "unknown scenario 3; use 'end-of-time', 'anytime' or 'exploration'."),
        ({"delta": 0}, "delta must lie strictly between 0 and 1; got 0."),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1; got 1."),
        ({"delta": -0.1}, "delta must lie strictly between 0 and 1; got -0.1."),
        ({"delta": math.nan}, "delta must lie strictly between 0 and 1; got nan."),
        ({"delta": True}, "delta must be a number; got True."),
        ({"delta": "0.1"}, "delta must be a number; got '0.1'."),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        Problem(**({"arms": ["a", "b", "alpha"]} | arguments))
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("row", "upper", "says"),
    [
        ([1, math.nan], 1, "constraint 'row1': coefficients must be finite; number 2 is nan."),
        ([0, 0], 1, "constraint 'row1': all coefficients are zero; give some arm a number"),
        ([1, 0], INF, "constraint 'row1': neither side has a bound; give one, or drop it."),
        ([1, 0], -INF, "constraint 'row1': bounds must be numbers, or -inf below and inf above"),
        ([1, 0], math.nan, "constraint 'row1': bounds must be numbers, or -inf below and inf"),
    ],
)
def test_bad_rows_are_named(row: list[float], upper: float, says: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        Problem(2, ([row], [upper]))
    assert str(caught.value).startswith(says)
