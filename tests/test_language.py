"""The constraint language: what it reads, what it refuses and where it points."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples, some
from sentences import INF, message, parse
from simplexplore.errors import ConstraintError
from simplexplore.problem import tokens
from simplexplore.problem.checks import MOST_ARMS
from simplexplore.problem.constraint import Constraint
from simplexplore.problem.language import parse_constraint
from simplexplore.problem.problem import Problem
from simplexplore.problem.spelling import listed, nearest, pointed

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
    monkeypatch.setattr(tokens, "_MOST_STEPS", 50_000)
    found = message(word * 25_000 + "a <= 1")
    assert "takes more than 50,000 steps" in found
    assert len(found) < 1000


@pytest.mark.parametrize("count", some([10_000, MOST_ARMS], 10_000))
def test_a_weighted_sum_of_all_arms_is_read(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_MOST_STEPS", tokens._MOST_STEPS * count // MOST_ARMS)
    arms = [f"a{i}" for i in range(1, count + 1)]
    text = " + ".join(f"{i}*{arm}" for i, arm in enumerate(arms, 1)) + " <= 7"
    read = parse_constraint(text, "mix", arms, {})
    assert read.coefficients.tolist() == list(range(1, count + 1))


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


@examples(80)
@given(st.text(st.sampled_from("ab`()+-*/<=>≤ 0123.e,\n") | st.characters(), max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with suppress(ConstraintError):
        constraint = parse_constraint(text, "odd", ["a", "b"], {"ab": ["a", "b"]})
        assert constraint.coefficients.any()
