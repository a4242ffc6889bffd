"""Problem files that are refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import PROBLEM_FILE
from permissions import bound
from simplexplore import ConstraintError, MeansError, Problem, ProblemError, SettingError

# What is refused, from a file: the content below three arms, and the message or its beginning

REFUSED = r"""
delta = 2
delta must lie strictly between 0 and 1; got 2.

detla = 0.1
unknown key 'detla'; did you mean 'delta'?

colour = "red"
unknown key 'colour'; use 'arms', 'means', 'delta', 'epsilon', 'stop_when', 'scenario', ...

initial_excess = -1
initial_excess must be 0 or a positive number of pulls; got -1.

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
'high' in [rewards] is not for gaussian rewards, which take only sigma, sigma_guess, ...

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
sigma must be a number; got 'unkown'. If it is unknown, write 'unknown'.

[rewards]
family = "gaussian"
sigma_guess = 1
sigma_guess is for sigma = 'unknown'; remove it, or sigma's numbers.

[rewards]
family = "gaussian"
equal_sigma = true
unknown key 'equal_sigma' in [rewards]; did you mean 'sigma'?

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
a domain needs a known sigma; remove it, or give sigma's numbers.

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
        (".".join("a" * 100_000) + " = 1", "more than 50 names are joined by dots"),
        ("[" + " . ".join(["'a b'", '"c"'] * 60) + "]", "more than 50 names are joined by dots"),
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
        (
            "epsilon = 10%",
            "the value ends here; write 10% as 0.1, decimals with a point, texts in quotes",
            "            ^",
        ),
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


def test_a_forbidden_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mix.toml"
    path.write_text(Problem(2).to_text())
    path.chmod(0o000)
    with bound():
        assert refusal(path) == f"{path}: cannot read it: Permission denied."


def test_unwritable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        Problem(2).to_file(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot write it: Is a directory."


def test_a_misspelt_family_gets_a_hint() -> None:
    text = 'arms = ["a", "b"]\n[rewards]\nfamly = "gaussian"\n'
    with pytest.raises(ProblemError, match=r"unknown key 'famly' .*; did you mean 'family'\?"):
        Problem.from_text(text)
