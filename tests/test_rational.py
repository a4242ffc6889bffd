"""Floats and decimal texts are read as the fractions people mean."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from simplexplore.problem.rational import rational

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.1, Fraction(1, 10)),
        (-0.1, Fraction(-1, 10)),
        (0.1 + 0.2, Fraction("0.30000000000000004")),
        (1 / 3, Fraction(1, 3)),
        (-2 / 7, Fraction(-2, 7)),
        (100 + 1 / 3, Fraction(301, 3)),
        (0.0, Fraction(0)),
        (-0.0, Fraction(0)),
        (3.0, Fraction(3)),
        (2.0**60, Fraction(2**60)),
        (1e-10, Fraction(1, 10**10)),
        (5e-324, Fraction("5e-324")),
        (12345.6789, Fraction("12345.6789")),
        # Some fraction with a denominator below 10**6 rounds to it too, by chance.
        (123456.1234567, Fraction("123456.1234567")),
        (7, Fraction(7)),
        (10**400, Fraction(10**400)),
        (Fraction(2, 3), Fraction(2, 3)),
        (np.float64(0.1), Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 2e-3 ", Fraction(1, 500)),
        ("-.5", Fraction(-1, 2)),
        ("1/3", Fraction(1, 3)),
        ("1/0.3", Fraction(10, 3)),
        ("0.3333333333333333", Fraction(1, 3)),
        ("123456789012.345", Fraction("123456789012.345")),
        ("1" + "0" * 30, Fraction(10**30)),
        ("0." + "0" * 5000 + "e9", Fraction(0)),
        ("0e-999999999999", Fraction(0)),
        ("1." + "0" * 5000, Fraction(1)),
    ],
)
def test_reads_what_was_meant(x: float | int | str | Fraction, expected: Fraction) -> None:
    result = rational(x)
    assert isinstance(result, Fraction)
    assert result == expected


@examples(150)
@given(finite)
def test_every_float_rounds_back(x: float) -> None:
    assert float(rational(x)) == x
    assert rational(-x) == -rational(x)


@examples(150)
@given(st.integers(-(10**6), 10**6), st.integers(1, 999), st.integers(-3, 3))
def test_small_fractions_survive_their_float(p: int, q: int, shift: int) -> None:
    x = Fraction(p, q) * Fraction(10) ** shift
    if abs(x) <= 1000 and x.denominator <= 1000:
        assert rational(float(x)) == x


@examples(150)
@given(st.integers(-(10**9), 10**9), st.integers(0, 9))
def test_decimals_of_nine_digits_survive_their_float(n: int, places: int) -> None:
    # Two different fractions p/q and n/10**9 are at least 1 / (q 10**9) apart, which is
    # more than the spacing of floats for every q that is tried.
    x = Fraction(n, 10**places)
    assert rational(float(x)) == x


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, "inf", "-Infinity", "nan"])
def test_refuses_what_is_not_finite(x: float | str) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        rational(x)


def test_refuses_other_texts() -> None:
    with pytest.raises(ValueError, match="1e-999999999999 is too small for a float"):
        rational("1e-999999999999")
    with pytest.raises(ValueError, match="-1e999999999999 is too large for a float"):
        rational("-1e999999999999")
    with pytest.raises(ValueError, match="could not convert string to float: 'ten'"):
        rational("ten")
    with pytest.raises(ZeroDivisionError):
        rational("1/0")
