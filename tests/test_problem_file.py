"""Problem files: both forms, there and back, and what is refused in which words."""

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
from permissions import open_folder, ordinary_user
from simplexplore.errors import ConstraintError, MeansError, ProblemError, SettingError
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.families import Bernoulli, Bounded, Family, Gaussian, Poisson
from simplexplore.problem.problem import Problem

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
            'family = "gaussian"\nsigma = "unknown"\nequal_sigma = true\nsigma_guess = 2',
            Gaussian("unknown", equal_sigma=True, sigma_guess=2.0),
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
def test_every_family_is_read_and_written(table: str, rewards: Family) -> None:
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
rewards_keys = ["family", "sigma", "sigma_guess", "equal_sigma", "low", "high", "domain", "delta"]
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


# What is refused, from a file: the content below three arms, and the message or its beginning

REFUSED = r"""
delta = 2
delta must lie strictly between 0 and 1; got 2.

detla = 0.1
unknown key 'detla'; did you mean 'delta'?

colour = "red"
unknown key 'colour'; use 'arms', 'means', 'delta', 'epsilon', 'stop_when', 'scenario', ...

room = -1
room must be 0 or a positive number of pulls; got -1.

stop_when = {regert = 0.1}
unknown key 'regert' in stop_when; it takes regret or budget.

stop_when = 0.1
stop_when must be a table such as {regret = 0.05}; got 0.1.

stop_when = {}
stop_when must be a table such as {regret = 0.05}; got {}.

stop_when = {regret = 0.1, budget = 20}
stop_when takes regret or budget, not both; remove one.

stop_when = {budget = 2.5}
the budget of stop_when must be a whole number of samples, 1 to 1,000,000,000,000; got 2.5.

stop_when = {budget = 0}
the budget of stop_when must be a whole number of samples, 1 to 1,000,000,000,000; got 0.

epsilon = 0.1
stop_when = {budget = 20}
epsilon and a budget do not go together: a budget asks for the best policy that its samples ...

stop_when = {regret = 0}
the regret of stop_when must be a positive number, in the unit of rewards; got 0.

stop_when = {regret = inf}
the regret of stop_when must be a positive number, in the unit of rewards; got inf.

stop_when = {regret = "little"}
the regret of stop_when must be a number; got 'little'.

epsilon = 0.1
stop_when = {regret = 0.1}
epsilon and stop_when both say what is good enough; keep one of them: ...

sigma = 1.0
'sigma' belongs below the line [rewards]; move it there.

rewards = "bernoulli"
rewards must be a table, a line [rewards] with its entries below; got 'bernoulli'.

constraints = ["a <= 1"]
constraints must be a table, a line [constraints] with its entries below; got ['a <= 1'].

scenario = "end of time"
unknown scenario 'end of time'; did you mean 'end-of-time'?

means = [1, 2]
means has 2 numbers for 3 arms; give one per arm.

means = [1, 2, nan]
the mean of arm 'c' is nan; it must be finite.

[rewards]
sigma = 1
family is missing in [rewards]; use 'gaussian', 'bernoulli', 'poisson' or 'bounded'.

[rewards]
family = "gausian"
unknown family 'gausian' in [rewards]; did you mean 'gaussian'?

[rewards]
family = ["gaussian"]
unknown family ['gaussian'] in [rewards]; did you mean 'gaussian'?

[rewards]
family = "gaussian"
sgima = 1
unknown key 'sgima' in [rewards]; did you mean 'sigma'?

[rewards]
family = "bernoulli"
sigma = 1
'sigma' in [rewards] is not for bernoulli rewards, which take only domain; remove ...

[rewards]
family = "gaussian"
high = 1
'high' in [rewards] is not for gaussian rewards, which take only sigma, equal_sigma, ...

[rewards]
family = "gaussian"
sigma = 0
sigma must be positive; got 0.

[rewards]
family = "gaussian"
sigma = [1, 1]
sigma has 2 numbers for 3 arms; give one number, or one per arm.

[rewards]
family = "gaussian"
sigma = true
sigma must be a number; got True.

[rewards]
family = "gaussian"
sigma = "unkown"
sigma must be a number; got 'unkown'. Where nobody knows it, write 'unknown'.

[rewards]
family = "gaussian"
sigma_guess = 1
sigma_guess is for sigma = 'unknown'; remove it, or sigma's numbers.

[rewards]
family = "gaussian"
equal_sigma = true
equal_sigma is for sigma = 'unknown'; write that, or remove it: numbers say if they are equal.

[rewards]
family = "gaussian"
sigma = "unknown"
equal_sigma = 1
equal_sigma must be true or false; got 1.

[rewards]
family = "gaussian"
sigma = "unknown"
equal_sigma = true
sigma_guess = [1, 2, 1]
with equal_sigma, sigma_guess must be one number.

[rewards]
family = "gaussian"
sigma = "unknown"
sigma_guess = [1, 2]
sigma_guess has 2 numbers for 3 arms; give one number, or one per arm.

[rewards]
family = "gaussian"
sigma = "unknown"
sigma_guess = -1
sigma_guess must be positive; got -1.

[rewards]
family = "gaussian"
sigma = "unknown"
domain = [0, 1]
a domain goes with a known sigma; remove it, or give sigma's numbers.

[rewards]
family = "bounded"
low = 1
high = 1
bounded rewards need low < high; got low = 1, high = 1.

[rewards]
family = "gaussian"
delta = 0.1
'delta' stands below the line [rewards] and so became part of it; move it above ...

[groups]
means = [1, 2, 3]
'means' stands below the line [groups] and so became part of it; move it above ...

[constraints]
scenario = "anytime"
'scenario' stands below the line [constraints] and so became part of it; move it above ...

[groups]
front = ["a", "x"]
group 'front' contains 'x', which is not an arm; the arms are a, b, c.

[groups]
front = "a"
group 'front' must be a list of arms; got 'a'.

[groups]
b = ["a"]
group 'b' has the name of an arm; rename it.

[constraints]
mix = 0.5
constraint 'mix' must be a text such as 'a <= 0.5'; got 0.5.

[constraints]
mix.x = "a <= 1"
'mix' in [constraints] is a table; put a name with dots in quotes.

[constraints]
upper = [1]
'upper' in [constraints] needs a matrix beside it; add matrix.

[constraints]
matrix = [[1, 0, 0]]
the matrix in [constraints] has no bounds; add upper, lower or equal.

[constraints]
matrix = [[1, 0, 0]]
uper = [1]
unknown key 'uper' in [constraints]; did you mean 'upper'?

[constraints]
matrix = [[1, 0, 0]]
upper = "a <= 1"
upper must be a list of numbers; got 'a <= 1'.

[constraints]
matrix = 3
upper = [1]
matrix must be a list of rows; got 3.

[constraints]
matrix = [[1, 0, 0]]
equal = [1, 2]
equal has 2 numbers for 1 row; give one per row.

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
equal = [1]
the matrix in [constraints] has equal beside upper or lower; drop ...

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
lower = [1.5]
constraint 'row1': the lower bound 1.5 exceeds the upper bound 1; no mix can satisfy both.

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
names = "x"
names must be a list with one name for each of the matrix's 1 row; got 'x'.

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
names = [7]
the name of row 1 of matrix must be text; got 7.

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
row1 = "a <= 1"
two constraints are named 'row1'; rename one.

[constraints]
matrix = [[1, 0, 0]]
upper = [1]
mix = 3
constraint 'mix' must be a text such as 'a <= 0.5'; got 3.
"""


@pytest.mark.parametrize("case", REFUSED.strip("\n").split("\n\n"))
def test_bad_files_are_refused(case: str) -> None:
    content, says = case.rsplit("\n", 1)
    with pytest.raises((ProblemError, MeansError)) as caught:
        Problem.from_text(f'arms = ["a", "b", "c"]\n{content}\n', source="mix.toml")
    message = str(caught.value).removeprefix("mix.toml: ")
    assert message.startswith(says[:-3]) if says.endswith("...") else message == says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", 'arms is missing; begin with a line such as arms = ["a", "b"].'),
        ("arms = []", "arms is empty; name at least one arm."),
        ('arms = ["a", "a"]', "arms 1 and 2 are both named 'a'; names must differ."),
        ('arms = ["a", 1979-05-27]', "the name of arm 2 must be text; got datetime.date("),
        ('[groups]\narms = ["a"]', "'arms' stands below the line [groups] and so became part of"),
        ("arms = 3\ndelta = 0x" + "f" * 400, "delta is too large for a float."),
        ("arms = 3\ndelta = 1" + "0" * 5000, "a number in it has too many digits; round it."),
        ("arms = " + "[" * 5000, "not valid TOML: brackets are nested too deeply."),
        ("arms = 3\ndelta = 1e-301", "delta must be at least 1e-300; got 1e-301."),
        ("arms = 3\ndelta = 1e99999", "delta must lie strictly between 0 and 1; got inf."),
        ("#" * (2**24 + 1), "a problem has at most 16,777,216 characters."),
        (".".join("a" * 100_000) + " = 1", "more than 100 names are joined by dots"),
        ("[" + " . ".join(["'a b'", '"c"'] * 60) + "]", "more than 100 names are joined by dots"),
    ],
)
def test_bad_beginnings_are_refused(content: str, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        Problem.from_text(content, source="mix.toml")
    assert str(caught.value).startswith(f"mix.toml: {says}")


def test_a_bad_constraint_keeps_its_caret_and_class() -> None:
    with pytest.raises(ConstraintError) as caught:
        Problem.from_text(PROBLEM_FILE + 'bad = "4*a - f <= 1"', source="mix.toml")
    assert str(caught.value) == (
        "mix.toml: constraint 'bad': unknown arm 'f'; the arms are a, b, c, d, e, "
        "the groups front.\n"
        "    4*a - f <= 1\n"
        "          ^"
    )


@pytest.mark.parametrize(
    ("line", "says", "carets"),
    [
        ("arms [", "expected '=' after a key in a key/value pair", "     ^"),
        ("scenario = anytime", "this is not a value; put texts in quotes", "           ^"),
        ("delta = 0.2", "this name is given twice; remove one", "           ^"),
        (
            'arms2 = ["a", "b"',
            "unclosed array: here a comma or ']' is missing, or something is not a number",
            "                 ^",
        ),
        ('{"arms": 3}', "this is neither 'name = value' nor a '[table]'", "^"),
        ('x = "a', "unterminated string", "      ^"),
    ],
)
@pytest.mark.parametrize("end", ["", "\r\n\n"])
def test_toml_errors_show_the_line(line: str, says: str, carets: str, end: str) -> None:
    if end and "unclosed" not in says:
        end = "\r\nz = 1"
    if end and "unterminated" in says:
        says = r"illegal character '\n'"
    with pytest.raises(ProblemError) as caught:
        Problem.from_text(f"# a comment\r\ndelta = 0.1\r\n{line}{end}", source="mix.toml")
    assert str(caught.value) == (
        f"mix.toml, line 3: not valid TOML: {says}.\n    {line}\n    {carets}"
    )


def test_a_table_that_stands_twice() -> None:
    with pytest.raises(ProblemError) as caught:
        Problem.from_text(f"{PROBLEM_FILE}[groups]\n", source="mix.toml")
    assert str(caught.value).startswith(
        "mix.toml, line 18: not valid TOML: the line [groups] stands twice; join what is below.\n"
    )


# Files that cannot be read or written


def refusal(path: Path | str) -> str:
    with pytest.raises(ProblemError) as caught:
        Problem.from_file(path)
    return str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal("no.toml") == f"no.toml: there is no such file in {tmp_path}."
    assert refusal(tmp_path / "no.toml") == f"{tmp_path / 'no.toml'}: there is no such file."
    assert refusal(tmp_path) == f"{tmp_path}: this is a folder; name a file in it."
    assert refusal("a\0b") == "a\0b: cannot read it: embedded null byte."
    Path("file").touch()
    assert refusal("file/mix.toml") == "file/mix.toml: cannot read it: Not a directory."
    Path("latin.toml").write_bytes(b'# one\narms = ["caf\xe9"]\n')
    assert refusal("latin.toml") == (
        "latin.toml, line 2: byte 0xe9 is not UTF-8 text; save the file as UTF-8."
    )


def test_a_forbidden_file_is_refused() -> None:
    with open_folder() as folder:
        path = folder / "mix.toml"
        path.write_text(Problem(2).to_text())
        with ordinary_user(folder):
            assert path.read_bytes()
            path.chmod(0o000)
            assert refusal(path) == f"{path}: cannot read it: Permission denied."


def test_unwritable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        Problem(2).to_file(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot write it: Is a directory."


def test_a_misspelt_family_gets_a_hint() -> None:
    text = 'arms = ["a", "b"]\n[rewards]\nfamly = "gaussian"\n'
    with pytest.raises(ProblemError, match=r"unknown key 'famly' .*; did you mean 'family'\?"):
        Problem.from_text(text)
