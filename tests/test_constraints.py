"""The constraint language: what it reads, what it refuses and where it points."""

from __future__ import annotations

import copy
import math
import pickle
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from simplexplore.errors import ConstraintError, ProblemError
from simplexplore.problem import language
from simplexplore.problem.constraint import Constraint, format_constraint, format_constraints
from simplexplore.problem.language import MOST_COEFFICIENTS, Operands, parse_constraint
from simplexplore.problem.problem import Problem
from simplexplore.problem.spelling import listed, nearest, pointed

INF = math.inf
ARMS = ["a", "b", "c", "The Net", "e3"]
GROUPS = {"front": ["a", "b"], "the rest": ["c", "e3"]}


def parse(text: str) -> Constraint:
    return parse_constraint(text, "mix", ARMS, GROUPS)


def message(text: str, arms: list[str] = ARMS, groups: dict[str, list[str]] | None = None) -> str:
    with pytest.raises(ConstraintError) as caught:
        parse_constraint(text, "mix", arms, GROUPS if groups is None else groups)
    return str(caught.value)


# What is read


@pytest.mark.parametrize(
    ("text", "coefficients", "lower", "upper"),
    [
        ("a <= 0.5", [1, 0, 0, 0, 0], -INF, 0.5),
        ("a >= 0.5", [1, 0, 0, 0, 0], 0.5, INF),
        ("a == 0.5", [1, 0, 0, 0, 0], 0.5, 0.5),
        ("a = 0.5", [1, 0, 0, 0, 0], 0.5, 0.5),
        ("a ≤ 0.5", [1, 0, 0, 0, 0], -INF, 0.5),
        ("a ≥ 0.5", [1, 0, 0, 0, 0], 0.5, INF),
        ("0.5 >= a", [1, 0, 0, 0, 0], -INF, 0.5),
        ("0.5 <= a", [1, 0, 0, 0, 0], 0.5, INF),
        ("0.5 = a", [1, 0, 0, 0, 0], 0.5, 0.5),
        ("4*a - e3 <= 1", [4, 0, 0, 0, -1], -INF, 1),
        ("4 a - e3 <= 1", [4, 0, 0, 0, -1], -INF, 1),
        ("4a-e3<=1", [4, 0, 0, 0, -1], -INF, 1),
        ("a*4 - e3 <= 1", [4, 0, 0, 0, -1], -INF, 1),
        ("\ta * 4\n - e3 <= 1 ", [4, 0, 0, 0, -1], -INF, 1),
        ("front <= 0.5", [1, 1, 0, 0, 0], -INF, 0.5),
        ("front - `the rest` <= 0", [1, 1, -1, 0, -1], -INF, 0),
        ("front + a <= 1", [2, 1, 0, 0, 0], -INF, 1),
        ("`The Net` + `a` <= 0.3", [1, 0, 0, 1, 0], -INF, 0.3),
        ("1/3*a <= 1/7", [1 / 3, 0, 0, 0, 0], -INF, 1 / 7),
        ("1/3 a <= 1/7", [1 / 3, 0, 0, 0, 0], -INF, 1 / 7),
        ("a/3 <= 1/7", [1 / 3, 0, 0, 0, 0], -INF, 1 / 7),
        ("3/2/4*a <= 1", [0.375, 0, 0, 0, 0], -INF, 1),
        ("(1/2)(a + b) <= 1", [0.5, 0.5, 0, 0, 0], -INF, 1),
        ("2*(a + b) - c <= 1", [2, 2, -1, 0, 0], -INF, 1),
        ("2*((a - (b - c))/4) <= 1", [0.5, -0.5, 0.5, 0, 0], -INF, 1),
        ("-a <= -0.1", [-1, 0, 0, 0, 0], -INF, -0.1),
        ("--a - -b + +c <= 1", [1, 1, 1, 0, 0], -INF, 1),
        ("2*-a <= 1", [-2, 0, 0, 0, 0], -INF, 1),
        ("a − b <= 1", [1, -1, 0, 0, 0], -INF, 1),
        (".5*a + 2.*b + 1e-3*c + 1.5E+2*e3 <= 1", [0.5, 2, 0.001, 0, 150], -INF, 1),
        ("a <= b", [1, -1, 0, 0, 0], -INF, 0),
        ("a + 0.1 <= 2*b + 0.3", [1, -2, 0, 0, 0], -INF, 0.2),
        ("1 - a <= b", [-1, -1, 0, 0, 0], -INF, -1),
        ("2*a - a <= 1", [1, 0, 0, 0, 0], -INF, 1),
        ("a/(b - b + 2) <= 1", [0.5, 0, 0, 0, 0], -INF, 1),
        ("0.1 <= front <= 0.5", [1, 1, 0, 0, 0], 0.1, 0.5),
        ("0.5 >= front >= 0.1", [1, 1, 0, 0, 0], 0.1, 0.5),
        ("0.1 <= front + 0.1 <= 1/3", [1, 1, 0, 0, 0], 0, float(Fraction(7, 30))),
        ("0.1 <= a <= 0.1", [1, 0, 0, 0, 0], 0.1, 0.1),
        # Exact arithmetic: floats would give 0.30000000000000004 and 0.09999999999999998.
        ("a <= 0.1 + 0.2", [1, 0, 0, 0, 0], -INF, 0.3),
        ("a + 0.9 <= 1", [1, 0, 0, 0, 0], -INF, 0.1),
        ("a <= 0.3333333333333333", [1, 0, 0, 0, 0], -INF, 1 / 3),
    ],
)
def test_reads(text: str, coefficients: list[float], lower: float, upper: float) -> None:
    assert parse(text) == Constraint("mix", np.array(coefficients), lower, upper)


def test_plain_names_may_be_any_letters() -> None:
    constraint = parse_constraint("größe + 映画 + _x1 <= 1", "c", ["größe", "映画", "_x1"], {})
    assert constraint.coefficients.tolist() == [1, 1, 1]


def test_a_name_that_looks_like_an_operator_is_a_name_in_backticks() -> None:
    arms = ["*", "<=", "(", "2"]
    constraint = parse_constraint("2*`*` + `<=` - `(` + `2` <= 1", "c", arms, {})
    assert constraint.coefficients.tolist() == [2, 1, -1, 1]


def test_reads_a_thousand_arms() -> None:
    arms = [f"a{i}" for i in range(1000)]
    text = " + ".join(f"{i + 1}*{arm}" for i, arm in enumerate(arms)) + " <= 1"
    assert parse_constraint(text, "c", arms, {}).coefficients.tolist() == list(range(1, 1001))


# What is refused: each text, where the message points, and what it says

REFUSED = r"""
frnt <= 0.5
^^^^
unknown arm 'frnt'; did you mean 'front'?

a + B <= 0.5
    ^
unknown arm 'B'; did you mean 'b'?

a + zzz <= 0.5
    ^^^
unknown arm 'zzz'; the arms are a, b, c, `The Net`, e3, the groups front, `the rest`.

a + `The Ned` <= 1
    ^^^^^^^^^
unknown arm 'The Ned'; did you mean `The Net`?

a + The Net <= 1
    ^^^^^^^
the name 'The Net' goes in backticks: `The Net`.

a + the net <= 1
    ^^^^^^^
the name 'The Net' goes in backticks: `The Net`.

each frnt <= 0.2
     ^^^^
unknown arm 'frnt'; did you mean 'front'?

each a <= 0.2
^^^^^^
'a' is an arm; after 'each' goes a group, or nothing for all arms.

each front <= each
              ^^^^
'each' stands for one arm at a time, here of two different lists; write two constraints.

each * front <= 0.2
^^^^^^^^^^^^
a product of arms is not linear; one side of each '*' must be a number.

each (a + b) <= 0.2
^^^^^^
an operator is missing between 'each' and '('.

each 2 <= 0.2
^^^^^^
an operator is missing between 'each' and '2'.

`each` <= 0.2
^^^^^^
unknown arm 'each'; the arms are a, b, c, `The Net`, e3, the groups front, `the rest`.

each - each <= 1
^^^^^^^^^^^^^^^^
no arm is left in it: they cancel out; correct or drop it.

each + 0.1 <= a
^^^^^^^^^^^^^^^
for 'a' all arms cancel out, and the rest does not hold; correct it.

0.1 <= each <= 2*a
               ^^^
the outer sides of a range must be numbers; write two constraints.

each
    ^
there is no relation; add '<=', '>=' or '==' and what to compare with.

each <= 0.4
^^^^^^^^^^^
'each' makes 5 constraints of it; only one is wanted here.

The Nett <= 0.3
^^^^^^^^
unknown arm 'The Nett'; did you mean `The Net`? Names of several words go in backticks.

`` <= 1
^^
unknown arm ''; the arms are a, b, c, `The Net`, e3, the groups front, `the rest`.

a + `The Net <= 1
    ^^^^^^^^^^^^^
this backtick is never closed; add another after the name.

a <= 1 + `
         ^
this backtick is never closed; add another after the name.

a <= inf
     ^^^
'inf' is not a finite number; leave out a bound that does not exist.

a <= NaN
     ^^^
'NaN' is not a finite number; leave out a bound that does not exist.

c + a*b <= 1
    ^^^
a product of arms is not linear; one side of each '*' must be a number.

2*a*(b + 1) <= 1
^^^^^^^^^^^
a product of arms is not linear; one side of each '*' must be a number.

front/b <= 1
^^^^^^^
dividing by an arm is not linear; what follows '/' must be a number.

1/a <= 3
^^^
dividing by an arm is not linear; what follows '/' must be a number.

a**2 <= 1
 ^^
powers are not linear; a constraint adds up numbers times arms.

a^2 <= 1
 ^
powers are not linear; a constraint adds up numbers times arms.

a/0 <= 1
  ^
this divides by zero; correct the divisor.

a/(b - b) <= 1
  ^^^^^^^
this divides by zero; correct the divisor.

a + b
     ^
there is no relation; add '<=', '>=' or '==' and what to compare with.

0 <= a <= b <= 1
            ^^
there are more than two relations; write separate constraints.

0.1 <= a >= 0.5
         ^^
'<=' and '>=' do not make a range; use '<=' twice or '>=' twice, or write two constraints.

0.1 = a = 0.1
        ^
'==' and '==' do not make a range; use '<=' twice or '>=' twice, or write two constraints.

a <= b <= 1
^
the outer sides of a range must be numbers; write two constraints.

0.5 <= a <= 1/3
^^^^^^^^^^^^^^^
the lower bound 0.5 exceeds the upper bound 1/3; no mix can satisfy both.

0.3 >= a + 0.1 >= 0.4
^^^^^^^^^^^^^^^^^^^^^
the lower bound 0.4 exceeds the upper bound 0.3; no mix can satisfy both.

a < 1
  ^
a strict '<' is not supported, as the best mix lies on the boundary; write '<='.

a > 1
  ^
a strict '>' is not supported, as the best mix lies on the boundary; write '>='.

a =< 1
  ^^
'=<' is not a relation; write '<='.

a => 1
  ^^
'=>' is not a relation; write '>='.

a != 1
  ^^
'!=' is not a linear constraint; use '<=', '>=' or '=='.

a ≠ 1
  ^
'≠' is not a linear constraint; use '<=', '>=' or '=='.

a + <= 1
  ^
'+' has nothing after it; add an arm or a number, or remove it.

a <= 1 -
       ^
'-' has nothing after it; add an arm or a number, or remove it.

(a * ) <= 1
   ^
'*' has nothing after it; add an arm or a number, or remove it.

/ a <= 1
^
'/' has nothing before it; add an arm or a number, or remove it.

(* a) <= 1
 ^
'*' has nothing before it; add an arm or a number, or remove it.

<= 1
^^
nothing stands before '<='; add an arm or a number.

a ≤
  ^
nothing stands after '<='; add an arm or a number.

a <= <= 1
  ^^
nothing stands after '<='; add an arm or a number.

2*(a + b <= 1
  ^
this '(' is never closed; add a ')', or remove it.

( <= 1
^
this '(' is never closed; add a ')', or remove it.

a + b) <= 1
     ^
this ')' closes nothing; add a '(' before it, or remove it.

) <= 1
^
this ')' closes nothing; add a '(' before it, or remove it.

a <= 1)
      ^
this ')' closes nothing; add a '(' before it, or remove it.

a + ( ) <= 1
    ^^^
nothing stands between these parentheses; fill or remove them.

a b <= 1
^^^
an operator is missing between 'a' and 'b'. Names of several words go in backticks.

a 4 <= 1
^^^
an operator is missing between 'a' and '4'.

a(b) <= 1
^^
an operator is missing between 'a' and '('.

a <= 1 000
     ^^^^^
an operator is missing between '1' and '000'.

a - a <= 1
^^^^^^^^^^
no arm is left in it: they cancel out; correct or drop it.

front <= a + b
^^^^^^^^^^^^^^
no arm is left in it: they cancel out; correct or drop it.

0*a <= 1
^^^^^^^^
no arm is left in it: they cancel out; correct or drop it.

0.2 <= 0.5
^^^^^^^^^^
it names no arm; the arms are a, b, c, `The Net`, e3.

1e999*a <= 1
^^^^^
1e999 is too large for a float; rescale the constraint.

1e-99999999999*a <= 1
^^^^^^^^^^^^^^
1e-99999999999 is too small for a float; rescale the constraint.

9999999999999999999999999999999999e999*a <= 1
^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
99999999999999999999... (38 characters) is too large for a float; rescale the constraint.

1e200*1e200*a <= 1
^^^^^^^^^^^^^^^^^^
the coefficient of 'a' is too large for a float; rescale the constraint.

`The Net`/1e200/1e200 <= 1
^^^^^^^^^^^^^^^^^^^^^^^^^^
the coefficient of `The Net` is too small for a float; rescale the constraint.

a <= 1e200*1e200
^^^^^^^^^^^^^^^^
a bound is too large for a float; rescale the constraint.

1e200*1e200 <= a <= 1
^^^^^^^^^^^^^^^^^^^^^
a bound is too large for a float; rescale the constraint.

2e3 + a <= 1
^^^
'2e3' could be a number or 2*e3; write 2*e3 for the product, or the number without an exponent.

0,5*a <= 1
 ^
unexpected ','; write decimals with a point, as in 0.5.

50% a <= 1
  ^
unexpected '%'; write 50% as 0.5 or 1/2.

'a' <= 1
^
unexpected quote; put a name that is not a plain word in backticks: `The Net`.

a & b <= 1
  ^
unexpected '&'; if it is part of a name, put the name in backticks.
"""


@pytest.mark.parametrize("case", REFUSED.strip("\n").split("\n\n"))
def test_refuses(case: str) -> None:
    text, carets, says = case.split("\n")
    assert message(text) == f"constraint 'mix': {says}\n    {text}\n    {carets}"


def test_refuses_an_empty_text() -> None:
    assert message(" ") == "constraint 'mix' is empty; write for instance 'a <= 0.5'."


def test_refuses_deep_nesting() -> None:
    says = "constraint 'mix': parentheses are nested more than 50 deep; write the sum out."
    assert message("(" * 5000 + "a" + ")" * 5000 + " <= 1").startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "*".join(["9e300"] * 4000) + "*a <= 1",
            "an exact number in it has more than 1,505 digits",
        ),
        (
            " + ".join(f"1/{n}" for n in range(1, 10_000)) + " + a <= 1",
            "an exact number in it has more than 1,505 digits",
        ),
        ("a" + "/9e300" * 4000 + " <= 1", "an exact number in it has more than 1,505 digits"),
        ("-" * 1_000_000 + "a <= 1", "more than 50 signs follow each other; write one."),
        ("- +" * 26 + "a <= 1", "more than 50 signs follow each other; write one."),
        ("9" * 5001 + "*a <= 1", "this number has 5,001 characters; at most 5,000 are read."),
        ("0." + "0" * 1_000_000 + "1*a <= 1", "this number has 1,000,003 characters"),
        ("a <= 1" + " " * 2**22, "it has 4,194,310 characters; at most 4,194,304 are read."),
        (
            "x" * 1_000_000 + " <= 1",
            f"unknown arm '{'x' * 200}... (1,000,000 characters)'; the arms",
        ),
    ],
    ids=lambda text: text[:12],
)
def test_refuses_work_without_end(text: str, says: str) -> None:
    found = message(text)
    assert says in found
    assert len(found) < 1000


def test_signs_and_exact_numbers_within_reason_are_read() -> None:
    """Exact up to the limit: the sum of 1/n for n up to 1500 has a denominator of 650 digits."""
    harmonic = sum(Fraction(1, n) for n in range(1, 1501))
    read = parse_constraint(
        "a <= " + " + ".join(f"1/{n}" for n in range(1, 1501)), "mix", ["a", "b"], {}
    )
    assert read.upper == float(harmonic)
    assert parse_constraint("-" * 50 + "a <= 1", "mix", ["a", "b"], {}).coefficients[0] == 1
    huge = "*".join(["9e300"] * 2) + "/9e300/9e300"
    assert parse_constraint(huge + "*a <= 1", "mix", ["a", "b"], {}).coefficients[0] == 1


@pytest.mark.parametrize("word", ["a+", "front+"])
def test_refuses_too_many_steps(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "_MOST_STEPS", 50_000)
    found = message(word * 25_000 + "a <= 1")
    assert "takes more than 50,000 steps" in found
    assert len(found) < 1000


def test_a_weighted_sum_of_all_arms_is_read() -> None:
    arms = [f"a{i}" for i in range(1, 100_001)]
    text = " + ".join(f"{i}*{arm}" for i, arm in enumerate(arms, 1)) + " <= 7"
    read = parse_constraint(text, "mix", arms, {})
    assert read.coefficients.tolist() == list(range(1, 100_001))


def test_steps_are_counted_for_all_constraints_together() -> None:
    """Each of these is short, and all of them together are not."""
    groups = {"all": [f"a{i}" for i in range(1, 1001)]}
    rows = {f"c{i}": "all" + " + all" * 50 + " <= 99" for i in range(50)}
    with pytest.raises(ConstraintError, match="up to here takes more than 1,000,000 steps"):
        Problem(1000, rows, groups=groups)


def test_an_unknown_word_among_many_names() -> None:
    """Neither looking for a name without backticks nor guessing takes long."""
    arms = [f"the film {i}" for i in range(10_000)]
    says = message("y" * 1_000_000 + " <= 1", arms, {})
    assert "unknown arm 'yyy" in says
    assert "did you mean 'long name'?" in message(
        "`long nam` <= 1", ["long name", *arms], {}
    ).replace("`", "'")
    says = message("The FILM 7 <= 1", arms, {})
    assert "the name 'the film 7' goes in backticks" in says


@pytest.mark.parametrize(
    ("arm", "text", "pointing"),
    [
        ("front-end", "b + front-end <= 1", "    ^^^^^^^^^"),
        ("12 Monkeys", "12 Monkeys <= 1", "^^^^^^^^^^"),
        ("A.I.", "0.5*A.I. <= 1", "    ^^^^"),
        ("Ocean's 11", "Ocean's 11 <= 1", "^^^^^^^^^^"),
        ("b 2", "b 2 <= 1", "^^^"),
    ],
)
def test_recognises_a_name_without_its_backticks(arm: str, text: str, pointing: str) -> None:
    says = f"constraint 'mix': the name {arm!r} goes in backticks: `{arm}`."
    assert message(text, ["b", arm], {}) == f"{says}\n    {text}\n    {pointing}"


def test_lists_at_most_a_dozen_arms() -> None:
    says = message("zzz <= 1", [f"a{i}" for i in range(1, 1001)], {})
    assert (
        "the arms are a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, ... (1000 in all)." in says
    )
    assert listed(["a", "b c"]) == "a, `b c`"


def test_nearest_ignores_case_and_gives_up() -> None:
    assert nearest("FRONT", ["front", "back"]) == "front"
    assert nearest("x", ["front", "back"]) is None
    assert nearest("front" * 100_000, ["front" * 100_000]) is None  # too long to compare
    assert nearest("front", ["back"] * 1000 + ["frnt"]) == "frnt"


def test_points_into_long_wide_and_broken_texts() -> None:
    assert pointed("映画 + x", 5, 6) == "    映画 + x\n           ^"
    assert pointed("e\u0301 + x", 5, 6) == "    e\u0301 + x\n        ^"
    assert pointed("a +\n\tq <= 1", 5, 6) == "    a +  q <= 1\n         ^"
    text = "x" * 200 + "!" + "y" * 200
    shown, carets = pointed(text, 200, 201).split("\n")
    assert shown.startswith("    ...xxx")
    assert shown.endswith("yyy...")
    assert len(shown) == 110
    assert shown[carets.index("^")] == "!"
    shown, carets = pointed(text, 0, len(text)).split("\n")
    assert shown == "    " + "x" * 100 + "..."
    assert carets == "    " + "^" * 100


# The other way


@pytest.mark.parametrize(
    ("coefficients", "lower", "upper", "text"),
    [
        ([1, 0, 0, 0, 0], -INF, 0.5, "a <= 0.5"),
        ([-1, 0, 0, 2, 0], 0.1, INF, "-a + 2*`The Net` >= 0.1"),
        ([1 / 3, 0, -0.25, 0, 0], 1 / 7, 1 / 7, "1/3*a - 0.25*c == 1/7"),
        ([1, 0, 0, 0, 0], -1, 2, "-1 <= a <= 2"),
        ([1e-7, 0, 0, 0, 1e22], -INF, 0, "1e-07*a + 1e+22*e3 <= 0"),
        ([2, 2, -1, 0, -1], -INF, 1, "2*front - `the rest` <= 1"),
        ([2, 2, -1, 0, 1], -INF, 1, "2*front - c + e3 <= 1"),
        ([-2 / 3, -2 / 3, 0, 0, 0], -INF, -0.5, "-2/3*front <= -0.5"),
    ],
)
def test_writes(coefficients: list[float], lower: float, upper: float, text: str) -> None:
    constraint = Constraint("mix", np.array(coefficients), lower, upper)
    assert format_constraint(constraint, ARMS, GROUPS) == text
    assert parse(text) == constraint
    assert parse(format_constraint(constraint, ARMS)) == constraint


def test_writes_the_largest_group_that_fits() -> None:
    groups = {"pair": ["a", "b"], "three": ["a", "b", "c"], "one": ["d"]}
    constraint = Constraint("c", np.array([1.0, 1.0, 1.0, 1.0]), upper=0.5)
    assert format_constraint(constraint, ["a", "b", "c", "d"], groups) == "three + d <= 0.5"


numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1 / 3, -2 / 7, 1e-9, 12345.678]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.fractions(-5, 5, max_denominator=1000).map(float),
)
names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], exclude_characters="`"),
    min_size=1,
    max_size=8,
)


@examples(80)
@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    arms = data.draw(st.lists(names, min_size=1, max_size=5, unique=True))
    group_names = data.draw(
        st.lists(names.filter(lambda x: x not in arms), max_size=2, unique=True)
    )
    members = st.lists(st.sampled_from(arms), min_size=1, unique=True)
    groups = {group: data.draw(members) for group in group_names}
    size = len(arms)
    row = data.draw(st.lists(numbers, min_size=size, max_size=size).filter(any))
    low, high = sorted(data.draw(st.tuples(numbers, numbers)))
    lower, upper = data.draw(st.sampled_from([(low, high), (-INF, high), (low, INF), (high, high)]))
    constraint = Constraint("odd", np.array(row), lower, upper)
    for text in (format_constraint(constraint, arms), format_constraint(constraint, arms, groups)):
        assert parse_constraint(text, "odd", arms, groups) == constraint


@examples(80)
@given(st.text(st.sampled_from("ab`()+-*/<=>≤ 0123.e,\n") | st.characters(), max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with suppress(ConstraintError):
        constraint = parse_constraint(text, "odd", ["a", "b"], {"ab": ["a", "b"]})
        assert constraint.coefficients.any()


# One constraint per arm


def rows(text: str, arms: list[str] = ARMS, groups: dict[str, list[str]] | None = None) -> list:
    found = Operands(arms, GROUPS if groups is None else groups).parse(text, "mix")
    return [(row.name, row.coefficients.tolist(), row.lower, row.upper) for row in found]


@pytest.mark.parametrize(
    ("text", "arms", "one_by_one"),
    [
        ("each <= 0.4", ARMS, "{} <= 0.4"),
        ("0.4 >= each", ARMS, "{} <= 0.4"),
        ("each front <= 0.2", ["a", "b"], "{} <= 0.2"),
        ("each `the rest` >= 0.2", ["c", "e3"], "{} >= 0.2"),
        ("0.1 <= each front <= 1/3", ["a", "b"], "0.1 <= {} <= 1/3"),
        ("3 each - 2*a <= 1/3 - front", ["b", "c", "The Net", "e3"], "3 {} - 2*a <= 1/3 - front"),
        ("(each front + c)/3 == 0.1*each front", ["a", "b"], "({} + c)/3 == 0.1*{}"),
        ("-each <= -0.01", ARMS, "-{} <= -0.01"),
    ],
)
def test_each_is_one_constraint_per_arm(text: str, arms: list[str], one_by_one: str) -> None:
    found = rows(text)
    for arm in arms:
        row = parse(one_by_one.replace("{}", f"`{arm}`"))
        assert (f"mix[{arm}]", row.coefficients.tolist(), row.lower, row.upper) in found
    assert len(found) == len(arms) + ("3 each" in text)


def test_each_leaves_out_what_cancels_and_holds() -> None:
    """That no arm has more than b says nothing of b itself."""
    assert [name for name, *_ in rows("each <= b", ["a", "b", "c"], {})] == ["mix[a]", "mix[c]"]
    says = message("each one <= b", ["a", "b"], {"one": ["b"]})
    assert "no arm is left in it: they cancel out" in says


def test_each_is_a_name_where_something_is_called_so() -> None:
    (found,) = rows("each <= 0.4", ["each", "b"], {})
    assert found == ("mix", [1.0, 0.0], -INF, 0.4)
    assert rows("each <= 0.4", ["a", "b"], {"each": ["a"]})[0] == ("mix", [1.0, 0.0], -INF, 0.4)
    problem = Problem(
        ["each", "b"], [Constraint("c[each]", [1, 0], 0.1), Constraint("c[b]", [0, 1], 0.1)]
    )
    assert Problem.from_text(problem.to_text()) == problem


def test_each_is_counted_row_by_row() -> None:
    arms = [f"a{i}" for i in range(3000)]
    operands = Operands(arms, {"few": arms[:300]})  # each row counts 3,300
    assert len(operands.parse("each >= 0.0001", "floor")) == 3000
    assert 3000 * 3300 < MOST_COEFFICIENTS < 3300 * 3300
    with pytest.raises(ConstraintError, match=r"'each' makes 300 constraints of it; all those"):
        operands.parse("each few <= 0.1", "cap")
    problem = {f"c{i}": "each <= 0.5" for i in range(1000)}
    with pytest.raises(ConstraintError, match=r"^constraint 'c10': 'each' makes 1,000 constr"):
        Problem([f"a{i}" for i in range(1000)], problem)


def test_each_in_problems_of_all_forms() -> None:
    arms, groups = ["a", "b", "c d"], {"front": ["b", "a"]}
    text = 'arms = ["a", "b", "c d"]\n[groups]\nfront = ["b", "a"]\n[constraints]\n'
    text += 'caps = "each <= 0.4"\nfloor = "each front >= 0.1"\nratio = "each front <= 2*`c d`"\n'
    problem = Problem.from_text(text)
    names = [f"caps[{arm}]" for arm in arms]
    names += [f"{name}[{arm}]" for name in ("floor", "ratio") for arm in ("b", "a")]
    assert list(problem.names) == names
    texts = {"caps": "each <= 0.4", "floor": "each front >= 0.1", "ratio": "each front <= 2*`c d`"}
    assert problem == Problem(arms, texts, groups=groups)
    assert Problem(arms, list(texts.values()), groups=groups).names[:3] == (
        "c1[a]",
        "c1[b]",
        "c1[c d]",
    )
    written = format_constraints(problem.constraints, arms, groups)
    assert written == texts | {"ratio": "each front - 2*`c d` <= 0"}
    assert Problem.from_text(problem.to_text()) == problem


def test_what_each_does_not_make_is_written_one_by_one() -> None:
    def row(name: str, *numbers: float, upper: float = 0.5) -> Constraint:
        return Constraint(name, numbers, upper=upper)

    kept = [
        [row("x[a]", 1, 0), row("x[b]", 0, 1, upper=0.4)],
        [row("x[a]", 1, 0), row("x[b]", 0, 2)],
        [row("x[b]", 0, 1), row("x[a]", 1, 0)],
        [row("x[a]", 1, 0), row("x", 1, 1), row("x[b]", 0, 1)],
        [row("x", 1, 1), row("x[a]", 1, 0), row("x[b]", 0, 1)],
        [row("[a]", 1, 0), row("[b]", 0, 1)],
        [row("x[a]", 1, 1), row("x[b]", 1, 1)],
        [row("x[a]", 1, 0)],
    ]
    for rows in kept:
        texts = format_constraints(rows, ["a", "b"], {"first": ["a"]})
        assert list(texts) == [r.name for r in rows]
    made = [row("x[a]", 0.3, 0.2), row("x[b]", 0.2, 0.3)]
    assert format_constraints(made, ["a", "b"], {}) == {"x": "0.1*each + 0.2*a + 0.2*b <= 0.5"}


def test_names_that_each_makes_are_not_too_long() -> None:
    with pytest.raises(
        ProblemError, match=r"the name of one row of constraint 'n+' has 1,001 char"
    ):
        Problem(["a", "b"], {"n" * 998: "each <= 0.5"})


@examples(60)
@given(st.data())
def test_what_each_makes_is_written_and_read_back(data: st.DataObject) -> None:
    arms = data.draw(st.lists(names.filter(str.strip), min_size=2, max_size=4, unique=True))
    members = st.lists(st.sampled_from(arms), min_size=1, unique=True)
    groups = {} if "g" in arms else {"g": data.draw(members)}
    numbers = st.sampled_from([0.1, 1 / 3, 2.0, -1.0, 0.7]) | st.floats(-9, 9).filter(bool)
    texts = {}
    for name in data.draw(st.lists(st.sampled_from(["x", "y", "x[a]"]), unique=True)):
        word = data.draw(st.sampled_from(["each", "each g"] if groups else ["each"]))
        more, rest, bound = data.draw(st.tuples(numbers, numbers, numbers))
        other = data.draw(st.sampled_from(["", f" + {Fraction(rest)}*`{arms[0]}`"]))
        texts[name] = f"{Fraction(more)}*{word}{other} <= {bound!r}"
    with suppress(ConstraintError):
        problem = Problem(arms, texts, groups=groups)
        text = problem.to_text()
        assert Problem.from_text(text) == problem
        assert Problem.from_text(text).to_text() == text


# Constraints as objects


def test_a_constraint_keeps_a_read_only_copy() -> None:
    row = np.array([1.0, -0.0])
    constraint = Constraint("c", row, upper=-0.0)
    row[0] = 7.0
    assert constraint.coefficients.tolist() == [1.0, 0.0]
    assert math.copysign(1, constraint.coefficients[1]) == math.copysign(1, constraint.upper) == 1
    with pytest.raises(ValueError, match="read-only"):
        constraint.coefficients[0] = 2.0
    with pytest.raises(AttributeError, match="cannot assign to field 'upper'"):
        constraint.upper = 1.0  # type: ignore[misc]


def test_constraints_compare_by_content() -> None:
    constraint = Constraint("c", np.array([1, 2]), upper=1)
    assert constraint == Constraint("c", np.array([1.0, 2.0]), -INF, 1.0)
    assert len({constraint, Constraint("c", np.array([1.0, 2.0]), upper=1.0)}) == 1
    assert constraint != Constraint("d", np.array([1, 2]), upper=1)
    assert constraint != Constraint("c", np.array([1, 3]), upper=1)
    assert constraint != Constraint("c", np.array([1, 2]), upper=2)
    assert constraint != "c"


def test_copies_are_equal_and_read_only() -> None:
    constraint = Constraint("c", np.array([1, 2]), upper=1)
    for twin in (pickle.loads(pickle.dumps(constraint)), copy.deepcopy(constraint)):
        assert twin == constraint
        assert not twin.coefficients.flags.writeable


BOUNDS = "bounds must be numbers, or -inf below and inf above for none; got "


@pytest.mark.parametrize(
    ("coefficients", "lower", "upper", "says"),
    [
        (["x"], 0, 1, "coefficients and bounds must be numbers (could not convert"),
        ([[1.0]], 0, 1, "coefficients must be one number per arm; got shape (1, 1)."),
        ([1.0, math.nan], 0, 1, "coefficients must be finite; number 2 is nan."),
        ([-INF, 1.0], 0, 1, "coefficients must be finite; number 1 is -inf."),
        ([0.0, 0.0], 0, 1, "all coefficients are zero; give some arm a number, or drop it."),
        ([1.0], math.nan, 1, BOUNDS + "lower = nan, upper = 1.0."),
        ([1.0], INF, INF, BOUNDS + "lower = inf, upper = inf."),
        ([1.0], -INF, -INF, BOUNDS + "lower = -inf, upper = -inf."),
        ([1.0], -INF, INF, "neither side has a bound; give one, or drop it."),
        ([1.0], 0.5, 0.1, "the lower bound 0.5 exceeds the upper bound 0.1; no mix can"),
    ],
)
def test_refuses_bad_numbers(
    coefficients: list[float], lower: float, upper: float, says: str
) -> None:
    with pytest.raises(ConstraintError) as caught:
        Constraint("c", coefficients, lower, upper)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"constraint 'c': {says}")
