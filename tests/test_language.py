"""The constraint language: what it reads, what it refuses and where it points."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from sentences import INF, message, parse
from simplexplore import Constraint, ConstraintError, Problem

# Binary digits of an exact number, at most
DIGITS = "8,192 binary digits"

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
    constraint = parse("größe + 映画 + _x1 <= 1", ["größe", "映画", "_x1"], {})
    assert constraint.coefficients.tolist() == [1, 1, 1]


def test_a_name_that_looks_like_an_operator_is_a_name_in_backticks() -> None:
    arms = ["*", "<=", "(", "2"]
    constraint = parse("2*`*` + `<=` - `(` + `2` <= 1", arms, {})
    assert constraint.coefficients.tolist() == [2, 1, -1, 1]


def test_reads_a_thousand_arms() -> None:
    arms = [f"a{i}" for i in range(1000)]
    text = " + ".join(f"{i + 1}*{arm}" for i, arm in enumerate(arms)) + " <= 1"
    assert parse(text, arms, {}).coefficients.tolist() == list(range(1, 1001))


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
'a' is an arm; after 'each' goes a group, or nothing.

each front <= each
              ^^^^
'each' runs over two different lists of arms; write two constraints.

each * front <= 0.2
^^^^^^^^^^^^
a product of arms is not linear; one side of each '*' must be a number.

each (a + b) <= 0.2
^^^^^^
expected an operator between 'each' and '('.

each 2 <= 0.2
^^^^^^
expected an operator between 'each' and '2'.

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
expected a relation; add '<=', '>=' or '==' and what to compare with.

The Nett <= 0.3
^^^^^^^^
unknown arm 'The Nett'; did you mean `The Net`? Names of several words go in backticks.

`` <= 1
^^
unknown arm ''; the arms are a, b, c, `The Net`, e3, the groups front, `the rest`.

a + `The Net <= 1
    ^^^^^^^^^^^^^
unclosed backtick; add another after the name.

a <= 1 + `
         ^
unclosed backtick; add another after the name.

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
dividing by an arm is not linear; after '/' goes a number.

1/a <= 3
^^^
dividing by an arm is not linear; after '/' goes a number.

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
expected a relation; add '<=', '>=' or '==' and what to compare with.

0 <= a <= b <= 1
            ^^
more than two relations; write separate constraints.

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
expected an expression after '+'; add an arm or a number.

a <= 1 -
       ^
expected an expression after '-'; add an arm or a number.

(a * ) <= 1
   ^
expected an expression after '*'; add an arm or a number.

/ a <= 1
^
expected an expression before '/'; add an arm or a number.

(* a) <= 1
 ^
expected an expression before '*'; add an arm or a number.

<= 1
^^
expected an expression before '<='; add an arm or a number.

a ≤
  ^
expected an expression after '<='; add an arm or a number.

a <= <= 1
  ^^
expected an expression after '<='; add an arm or a number.

2*(a + b <= 1
  ^
unclosed '('; add a ')', or remove it.

( <= 1
^
unclosed '('; add a ')', or remove it.

a + b) <= 1
     ^
unmatched ')'; add a '(' before it, or remove it.

) <= 1
^
unmatched ')'; add a '(' before it, or remove it.

a <= 1)
      ^
unmatched ')'; add a '(' before it, or remove it.

a + ( ) <= 1
    ^^^
empty parentheses; fill or remove them.

a b <= 1
^^^
expected an operator between 'a' and 'b'. Names of several words go in backticks.

a 4 <= 1
^^^
expected an operator between 'a' and '4'.

a(b) <= 1
^^
expected an operator between 'a' and '('.

a <= 1 000
     ^^^^^
expected an operator between '1' and '000'.

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
        ("*".join(["9e300"] * 4000) + "*a <= 1", f"number in it has more than {DIGITS}"),
        ("*".join(["a", *["1.1"] * 9000]) + " <= 1", f"number in it has more than {DIGITS}"),
        ("a" + "/9e300" * 4000 + " <= 1", f"number in it has more than {DIGITS}"),
        ("+".join(f"1e-300*{n}e-9" for n in range(1, 4000)) + "+ a*a <= 1", "a product of arms"),
        ("9" * 5001 + "*a <= 1", "9... (5001 characters) is too large for a float"),
        ("0." + "0" * 60_000 + "1*a <= 1", "(60003 characters) is too small for a float"),
        ("x" * 60_000 + " <= 1", f"unknown arm '{'x' * 200}... (60,000 characters)'; the arms"),
    ],
    ids=lambda text: text[:12],
)
def test_refuses_work_without_end(text: str, says: str) -> None:
    found = message(text)
    assert says in found
    assert len(found) < 1000


def calls(run) -> int:
    """How many functions it takes to refuse something."""
    found = 0

    def count(_frame, event, _arg) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with pytest.raises(ConstraintError, match="characters; at most 65,536 are read"):
            run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    "term", ["0.5*a + ", "(", "- ", "a\\n", "`", "each*", "1e9", "front+", "é"]
)
def test_a_constraint_of_400_kb_is_refused_at_once(term: str) -> None:
    """Whatever it consists of: not one token is looked at."""
    text = (term * 400_000)[:400_000]
    assert calls(lambda: parse(text)) < 2_000
    file = f'arms = ["a", "b"]\n[constraints]\nmix = \'{text}\''
    assert calls(lambda: Problem.from_text(file)) < 10_000


def test_signs_and_exact_numbers_within_reason_are_read() -> None:
    """Exact up to the limit: the sum of 1/n for n up to 1500 has a denominator of 650 digits."""
    harmonic = sum(Fraction(1, n) for n in range(1, 1501))
    read = parse("a <= " + " + ".join(f"1/{n}" for n in range(1, 1501)), ["a", "b"], {})
    assert read.upper == float(harmonic)
    assert parse("-" * 50 + "a <= 1", ["a", "b"], {}).coefficients[0] == 1
    huge = "*".join(["9e300"] * 2) + "/9e300/9e300"
    assert parse(huge + "*a <= 1", ["a", "b"], {}).coefficients[0] == 1


def test_a_weighted_sum_of_ten_thousand_arms_is_read() -> None:
    arms = [f"a{i}" for i in range(1, 10_001)]
    text = " + ".join(f"{i}*{arm}" for i, arm in enumerate(arms, 1)) + " <= 7"
    assert parse(text, arms, {}).coefficients.tolist() == list(range(1, 10_001))


def test_many_arms_in_one_row_of_a_file() -> None:
    """Decimals in a text are no names that dots join; long sums are read whatever they hold."""
    for size in (150, 1000):
        arms = [f"x{i}" for i in range(size)]
        row = " + ".join(f"{0.5 + i / 1000:g}*{arm}" for i, arm in enumerate(arms))
        text = f'arms = {json.dumps(arms)}\n[constraints]\nmix = "{row} <= 0.55"\n'
        found = Problem.from_text(text)
        assert found.matrix[0].tolist() == [float(f"{0.5 + i / 1000:g}") for i in range(size)]
        assert Problem.from_text(found.to_text()) == found


def test_what_is_written_is_short_enough_to_be_read() -> None:
    weights = np.random.default_rng(3).normal(size=6000) / 3e-7
    problem = Problem([f"the {i}th arm" for i in range(6000)], (weights[None], [1.0]))
    assert len(problem.to_text()) > 250_000
    assert Problem.from_text(problem.to_text()) == problem


def test_sums_of_large_groups_take_no_longer() -> None:
    groups = {"all": [f"a{i}" for i in range(1, 1001)]}
    rows = {f"c{i}": "all" + " + all" * 50 + " <= 99" for i in range(50)}
    assert (Problem(1000, rows, groups=groups).matrix == 51).all()


def test_an_unknown_word_among_many_names() -> None:
    """Neither looking for a name without backticks nor guessing takes long."""
    arms = [f"the film {i}" for i in range(10_000)]
    says = message("y" * 60_000 + " <= 1", arms, {})
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


def test_the_nearest_name_is_named() -> None:
    assert "did you mean 'front'?" in message("FRONT <= 1", ["front", "back"], {})
    assert "did you mean" not in message("x <= 1", ["front", "back"], {})
    many = [f"back{i}" for i in range(1000)]
    assert "did you mean 'frnt'?" in message("front <= 1", [*many, "frnt"], {})


def test_points_into_long_wide_and_broken_texts() -> None:
    def pointing(text: str, *arms: str) -> list[str]:
        return message(text, [*arms, "other"], {}).split("\n")[1:]

    assert pointing("映画 + x <= 1", "映画") == ["    映画 + x <= 1", "           ^"]
    assert pointing("`e\u0301` + x <= 1", "e\u0301") == [
        "    `e\u0301` + x <= 1",
        "          ^",
    ]
    assert pointing("a +\n\tq <= 1", "a") == ["    a +  q <= 1", "         ^"]
    text = "x" * 200 + "!" + "y" * 200 + " <= 1"
    shown, carets = pointing(text, "a")
    assert shown.startswith("    ...xxx")
    assert shown.endswith("yyy...")
    assert len(shown) == 110
    assert shown[carets.index("^")] == "!"
    shown, carets = pointing("x" * 401 + " <= 1", "a")
    assert shown == "    " + "x" * 100 + "..."
    assert carets == "    " + "^" * 100


@examples(80)
@given(st.text(st.sampled_from("ab`()+-*/<=>≤ 0123.e,\n") | st.characters(), max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with suppress(ConstraintError):
        constraint = parse(text, ["a", "b"], {"ab": ["a", "b"]})
        assert constraint.coefficients.any()
