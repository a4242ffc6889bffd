"""Numbers and names as tables and pictures write them."""

from fractions import Fraction

import numpy as np
import pytest

from simplexplore.report.numbers import number, percent, rough_percent, share, shorten


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (-0.2, "-0.2"),
        (999.96, "1000"),
        (123456.7, "123,457"),
        (1e-7, "1e-07"),
        (1.2341e-12, "1.234e-12"),
        (-1e-16, "0"),
        (3e17, "3e+17"),
        (np.inf, "infinite"),
        (-np.inf, "-infinite"),
    ],
)
def test_number(value, text):
    assert number(value) == text


def test_share():
    assert [share(x) for x in (1.0, 0.12345, 0.0005, 0.0004, 0.0)] == [
        "1.000",
        "0.123",
        "0.001",
        "<0.001",
        "-",
    ]


@pytest.mark.parametrize("width", range(1, 12))
def test_shorten_keeps_to_the_width(width):
    short = shorten("abcdefghij", width)
    assert len(short) == min(width, 10)
    assert ("…" in short) == (width < 10)


def test_percentages_are_rounded_to_the_nearest_and_only_all_is_all():
    for n in (7, 30, 2000):
        for k in range(n + 1):
            text = percent(k / n)
            exact = Fraction(100 * k, n)
            if text.startswith((">", "<")):
                assert exact not in (0, 100)
                assert text in (">99.9%", "<0.1%")
                assert min(exact, 100 - exact) <= Fraction(1, 20)
            else:
                assert abs(Fraction(text[:-1]) - exact) <= Fraction(1, 20)
                assert (text == "100%") == (k == n)
                assert (text == "0%") == (k == 0)
    assert percent(29 / 30) == "96.7%"


@pytest.mark.parametrize("value", [1e-9, 0.05, 9.96, 99.4, 99.49, 99.5, 99.96, 100.0, 123.4, 9e5])
def test_percentages_have_no_exponent(value):
    """From a thousandth on they read as people write them, and close to what they are."""
    text = rough_percent(value)
    assert text.endswith("%")
    assert "e" not in text or value < 1e-3
    assert float(text[:-1].replace(",", "")) == pytest.approx(value, rel=0.05)
