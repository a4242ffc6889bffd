"""Exact numbers out of floats.

Problems are stored as floats, decisions about vertices are made in fractions. The
fraction meant is not the float's own binary value: whoever writes 0.1 means 1/10,
and three constraints that meet in a point must still meet there.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

# Fractions with denominators up to here are recognised in floats below 1. They are so
# few that fewer than one arbitrary float in 10,000 equals one by chance.
_LARGEST_DENOMINATOR = 10**6

# Fractions recognised in floats that rounding has moved a little.
_LARGEST_DRIFTED = 1000

# Every decimal of this many significant digits has a float of its own.
_EXACT_DIGITS = 15


def rational(x: float | int | str | Fraction, ulps: int = 0) -> Fraction:
    """Return the simplest fraction that rounds to a float.

    The result always rounds back: ``float(rational(x)) == x`` for every finite float, unless
    `ulps` are allowed.

    Parameters
    ----------
    x : float, int, str or Fraction
        A float is read as a fraction with a small denominator if one rounds to it,
        and otherwise as the shortest decimal that does. A text is a decimal such as
        ``"0.1"`` or ``"2e-3"``, or a quotient of two. It is exact up to 15
        significant digits; a longer one, such as ``"0.3333333333333333"``, is read
        like the float it stands for.
    ulps : int
        How many units in the last place a computed float, such as 0.1 + 0.2, may have
        drifted from a fraction with a denominator up to 1000.

    Raises
    ------
    ValueError
        If `x` is not finite, is not a number, or is a text too large or too small for
        a float.
    ZeroDivisionError
        If `x` is a quotient by zero.

    Examples
    --------
    >>> rational(0.1), rational(1 / 3), rational("0.3333333333333333")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 3))
    >>> rational(0.1 + 0.2, ulps=4)
    Fraction(3, 10)
    """
    if isinstance(x, int | Fraction):
        return Fraction(x)
    if isinstance(x, str):
        over, slash, under = x.partition("/")
        return _decimal(over) / _decimal(under) if slash else _decimal(over)
    x = float(x)  # numpy's floats do not print as literals
    if not math.isfinite(x):
        raise ValueError(f"{x} is not a finite number")
    if x.is_integer():
        return Fraction(int(x))
    # Floats thin out as they grow; the denominators must, too, for a fraction that
    # fits to be more than a coincidence.
    largest = int(_LARGEST_DENOMINATOR / math.sqrt(max(1.0, abs(x))))
    simple = Fraction(x).limit_denominator(max(1, largest))
    if float(simple) == x:
        return simple
    # The closest fraction of all is no farther than one with a small denominator.
    if ulps and abs(float(simple) - x) <= (ulps + 1) * math.ulp(x):
        # Such fractions lie at least 1e-6 apart: no float is a few ulps from two of them.
        simple = Fraction(x).limit_denominator(_LARGEST_DRIFTED)
        if abs(float(simple) - x) <= ulps * math.ulp(x):
            return simple
    return Fraction(repr(x))


def _decimal(text: str) -> Fraction:
    # The float comes first: it bounds the exponent before anything is expanded.
    nearest = float(text)
    mantissa = text.lower().partition("e")[0]
    digits = "".join(filter(str.isdigit, mantissa)).strip("0")
    if math.isnan(nearest) or (math.isinf(nearest) and not digits):
        raise ValueError(f"{text.strip()} is not a finite number")
    if math.isinf(nearest) or (digits and not nearest):
        shown = text.strip()
        shown = shown if len(shown) <= 30 else f"{shown[:20]}... ({len(shown)} characters)"
        raise ValueError(f"{shown} is too {'small' if not nearest else 'large'} for a float")
    if len(digits) > _EXACT_DIGITS:
        return rational(nearest)
    return Fraction(Decimal(text)) if digits else Fraction(0)
