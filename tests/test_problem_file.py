"""Problem files: both forms, and there and back."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import PROBLEM_FILE
from nightly import examples
from simplexplore import (
    Bernoulli,
    Bounded,
    Constraint,
    Gaussian,
    MeansError,
    Poisson,
    Problem,
    ProblemError,
)

INF = math.inf


# Files


def test_reads_the_example_of_the_contract() -> None:
    problem = Problem.from_text(PROBLEM_FILE)
    assert problem.arms == ("a", "b", "c", "d", "e")
    assert problem.size == 5
    assert problem.means is not None
    assert problem.means.tolist() == [1.0, 0.5, 0.4, 0.95, 0.8]
    assert problem.delta == 0.05
    assert problem.scenario == "anytime"
    assert problem.rewards == Gaussian(2.0)
    assert dict(problem.groups) == {"front": ("a", "b")}
    assert problem.names == ("first", "second", "mix")
    assert problem.matrix.tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [4, 0, 0, 0, -1]]
    assert problem.lower.tolist() == [-INF] * 3
    assert problem.upper.tolist() == [0.5, 0.5, 1]


def test_writes_a_readable_file() -> None:
    written = Problem.from_text(PROBLEM_FILE).to_text()
    assert written == (
        'arms = ["a", "b", "c", "d", "e"]\n'
        "means = [1.0, 0.5, 0.4, 0.95, 0.8]\n"
        "delta = 0.05\n"
        'scenario = "anytime"\n'
        "\n"
        "[rewards]\n"
        'family = "gaussian"\n'
        "sigma = 2.0\n"
        "\n"
        "[groups]\n"
        'front = ["a", "b"]\n'
        "\n"
        "[constraints]\n"
        'first = "front <= 0.5"\n'
        'second = "c + d <= 0.5"\n'
        'mix = "4*a - e <= 1"\n'
    )


def test_a_file_needs_only_arms() -> None:
    problem = Problem.from_text('arms = ["a"]')
    assert problem == Problem(["a"])
    assert problem.rewards == Gaussian(1.0)
    assert problem.scenario == "end-of-time"
    assert problem.delta == 0.1
    assert problem.means is None
    assert problem.matrix.shape == (0, 1)
    assert problem.lower.shape == problem.upper.shape == (0,)


@pytest.mark.parametrize(
    ("table", "rewards"),
    [
        ('family = "gaussian"', Gaussian(1.0)),
        ('family = "gaussian"\nsigma = [1, 2.5]', Gaussian((1.0, 2.5))),
        ('family = "gaussian"\nsigma = "unknown"', Gaussian(None)),
        (
            'family = "gaussian"\nsigma = "unknown"\nsigma_guess = 2',
            Gaussian("unknown", sigma_guess=2.0),
        ),
        ('family = "gaussian"\ndomain = [-5, 5]', Gaussian(domain=(-5.0, 5.0))),
        ('family = "bernoulli"', Bernoulli()),
        ('family = "poisson"\ndomain = [1, 5]', Poisson(domain=(1.0, 5.0))),
        ('family = "bounded"\nlow = -1\nhigh = 1', Bounded(-1.0, 1.0)),
        (
            'family = "bounded"\nlow = 0\nhigh = 5\ndomain = [1, 2]',
            Bounded(0.0, 5.0, domain=(1.0, 2.0)),
        ),
    ],
)
def test_every_family_is_read_and_written(
    table: str, rewards: Gaussian | Bernoulli | Poisson | Bounded
) -> None:
    problem = Problem.from_text(f'arms = ["a", "b"]\n[rewards]\n{table}')
    assert problem.rewards == rewards
    assert Problem.from_text(problem.to_text()) == problem


def test_long_lists_are_wrapped() -> None:
    problem = Problem([f"arm number {i}" for i in range(100)], means=np.arange(100) / 7)
    text = problem.to_text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith('arms = [\n    "arm number 0", "arm number 1",')
    assert Problem.from_text(text) == problem


def test_files_go_there_and_back(tmp_path: Path) -> None:
    problem = Problem.from_text(PROBLEM_FILE)
    path = tmp_path / "mix.toml"
    problem.to_file(path)
    assert Problem.from_file(path) == Problem.from_file(str(path)) == problem
    assert path.read_bytes() == problem.to_text().encode()


def test_windows_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_bytes(b"\xef\xbb\xbf" + PROBLEM_FILE.replace("\n", "\r\n").encode())
    assert Problem.from_file(path) == Problem.from_text(PROBLEM_FILE)


# The matrix form


def in_text(constraints: str, arms: str = '["a", "b", "c"]') -> Problem:
    return Problem.from_text(f"arms = {arms}\n[constraints]\n{constraints}")


def same_numbers(left: Problem, right: Problem) -> bool:
    return (
        np.array_equal(left.matrix, right.matrix)
        and np.array_equal(left.lower, right.lower)
        and np.array_equal(left.upper, right.upper)
    )


@pytest.mark.parametrize(
    ("matrix_form", "text_form"),
    [
        (
            "matrix = [[1, 1, 0], [4, 0, -1]]\nupper = [0.5, 1]",
            'x = "a + b <= 1/2"\ny = "4*a - c <= 1"',
        ),
        ("matrix = [[1, 0, 0]]\nlower = [0.1]", 'x = "a >= 0.1"'),
        ("matrix = [[1, 1, 0]]\nequal = [0.3]", 'x = "a + b == 0.1 + 0.2"'),
        (
            (
                "matrix = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]\n"
                "lower = [0.1, -inf, 0.2]\nupper = [0.5, 0.25, inf]"
            ),
            'x = "0.1 <= a <= 0.5"\ny = "b <= 1/4"\nz = "c >= 0.2"',
        ),
        (
            "matrix = [[0.3333333333333333, -1, 0]]\nupper = [0.14285714285714285]",
            'x = "a/3 - b <= 1/7"',
        ),
    ],
)
def test_both_forms_give_equal_numbers(matrix_form: str, text_form: str) -> None:
    problem = in_text(matrix_form)
    assert same_numbers(problem, in_text(text_form))
    assert problem.names == ("row1", "row2", "row3")[: len(problem.names)]
    assert Problem.from_text(problem.to_text()) == problem


def test_rows_may_be_named_and_texts_may_stand_beside_them() -> None:
    problem = in_text('cap = "a <= 0.5"\nmatrix = [[0, 1, 0]]\nupper = [0.5]\nnames = ["my row"]')
    assert problem.names == ("my row", "cap")
    assert problem.matrix.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert Problem.from_text(problem.to_text()) == problem


def test_an_empty_matrix_is_no_constraint() -> None:
    assert in_text("matrix = []\nupper = []").names == ()


def test_constraints_may_be_named_like_keys() -> None:
    names = [
        "matrix",
        "upper",
        "lower",
        "equal",
        "names",
        "arms",
        "delta",
        "sigma",
        "a.b",
        'x"y',
        "`",
    ]
    problem = Problem(3, dict.fromkeys(names, "a1 <= 0.5"), groups={"means": ["a1", "a2"]})
    assert Problem.from_text(problem.to_text()) == problem


@pytest.mark.parametrize(
    "B",
    [[[1, 1, 0], [4, 0, -1]], np.array([[1, 1, 0], [4, 0, -1]]), ((1, 1, 0), [4.0, 0, -1])],
)
def test_python_takes_a_matrix(B: Any) -> None:
    problem = Problem(3, (B, [0.5, 1]))
    assert problem.names == ("row1", "row2")
    assert same_numbers(problem, Problem(3, ["a1 + a2 <= 0.5", "4*a1 - a3 <= 1"]))


# There and back, whatever the names and numbers


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], exclude_characters="`"),
    min_size=1,
    max_size=8,
).filter(str.strip)
numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1 / 3, -2 / 7, 1e-9, 12345.678]),
    st.floats(-1e6, 1e6),
)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    arms = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    size = len(arms)
    vectors = st.lists(numbers, min_size=size, max_size=size)
    reserved = {"total", *(f"{arm} >= 0" for arm in arms)}
    names_of_rows = st.lists(names.filter(lambda x: x not in reserved), max_size=3, unique=True)

    def rows() -> list[Constraint]:
        found = []
        for name in draw(names_of_rows):
            low, high = sorted(draw(st.tuples(numbers, numbers)))
            bounds = [(low, high), (-INF, high), (low, INF), (high, high)]
            row = np.array(draw(vectors.filter(any)))
            found.append(Constraint(name, row, *draw(st.sampled_from(bounds))))
        return found

    exploration = rows()
    scenarios = ["end-of-time", "anytime", *(["exploration"] if exploration else [])]
    group_names = draw(st.lists(names.filter(lambda x: x not in arms), max_size=2, unique=True))
    members = st.lists(st.sampled_from(arms), min_size=1, unique=True)
    positive = st.floats(1e-6, 1e6)
    sigmas = st.lists(positive, min_size=size, max_size=size).map(tuple)
    return Problem(
        arms,
        rows(),
        rewards=Gaussian(draw(positive | sigmas)),
        scenario=draw(st.sampled_from(scenarios)),
        delta=draw(st.floats(1e-12, 0.999)),
        groups={group: draw(members) for group in group_names},
        means=draw(st.none() | vectors),
        exploration=exploration,
        costs=draw(st.none() | sigmas),
    )


@examples(60)
@given(problems())
def test_what_is_written_is_read_back(problem: Problem) -> None:
    text = problem.to_text()
    again = Problem.from_text(text)
    assert again == problem
    assert same_numbers(again, problem)
    assert again.to_text() == text


@examples(40)
@given(problems())
def test_the_matrix_form_reads_the_same_numbers(problem: Problem) -> None:
    head = problem.replace(constraints=[]).to_text()
    form = f"matrix = {problem.matrix.tolist()}\nlower = {problem.lower.tolist()}\n"
    form += f"upper = {problem.upper.tolist()}\n"
    assert same_numbers(Problem.from_text(f"{head}\n[constraints]\n{form}"), problem)


values = st.recursive(
    st.booleans()
    | st.integers(-2, 3)
    | st.floats()
    | st.sampled_from(
        [
            *("a", "b", "a <= 1", "each <= 1", "anytime", "exploration", "gaussian", "bounded"),
            *("unknown", "", "`"),
        ]
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
settings_keys = ["means", "delta", "scenario", "x"]
rewards_keys = ["family", "sigma", "sigma_guess", "low", "high", "domain", "delta"]
constraint_keys = ["matrix", "upper", "lower", "equal", "names", "x", "delta"]


@examples(120)
@given(st.data())
def test_any_values_are_read_or_refused_in_words(data: st.DataObject) -> None:
    lines = ['arms = ["a", "b"]']
    for header, keys in (
        ("", settings_keys),
        ("[rewards]", rewards_keys),
        ("[groups]", settings_keys),
        ("[costs]", ["a", "b", "delta", "x"]),
        ("[constraints]", constraint_keys),
        ("[exploration]", constraint_keys),
    ):
        entries = data.draw(st.dictionaries(st.sampled_from(keys), values, max_size=3))
        lines += [header] if entries else []
        # JSON writes these values as TOML does, but for two words.
        lines += [f"{key} = {json.dumps(value)}" for key, value in entries.items()]
    text = "\n".join(lines).replace("Infinity", "inf").replace("NaN", "nan")
    with suppress(ProblemError, MeansError):
        problem = Problem.from_text(text)
        assert Problem.from_text(problem.to_text()) == problem
