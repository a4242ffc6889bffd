"""Numbers and names as people read them in tables and pictures."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable

from rich.cells import cell_len

# A share this small would read 0.000.
VISIBLE = 5e-4

# Smaller numbers are what rounding leaves of 0.
ROUNDING = 5e-13

# Joins two characters into one, as in pictures of people at work.
_JOINER = "\u200d"


def number(value: float | None) -> str:
    """Write a number with four significant digits, thousands separated; nothing for None.

    Examples
    --------
    >>> number(774.387), number(0.15), number(1234567.8), number(1.5e11), number(float("inf"))
    ('774.4', '0.15', '1,234,568', '1.5e+11', 'infinite')
    >>> number(1.23e-12), number(-1e-16)
    ('1.23e-12', '0')
    """
    if value is None:
        return ""
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if abs(value) >= 1e10:  # longer ones would not fit into columns
        return f"{value:.4g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= ROUNDING else "0"


def rough(value: float) -> str:
    """Write a number with two digits: simulated runs know no more.

    Examples
    --------
    >>> rough(1234.5), rough(0.0123)
    ('1,200', '0.012')
    """
    return number(float(f"{value:.2g}"))


def share(value: float) -> str:
    """Write a share of 1 with three decimals, an absent one as a dash.

    Examples
    --------
    >>> share(0.5), share(0.0), share(0.0002)
    ('0.500', '-', '<0.001')
    """
    if value <= 0:
        return "-"
    return f"{value:.3f}" if value >= VISIBLE else "<0.001"


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is wider than so many letters of a terminal.

    Examples
    --------
    >>> shorten("Star Trek: The Motion Picture", 16), shorten("Das Boot", 16)
    ('Star Tre…Picture', 'Das Boot')
    >>> shorten("七人の侍と隠し砦の三悪人", 16)
    '七人の侍…三悪人'
    """
    if cell_len(text) <= width:
        return text
    characters: list[str] = []
    for one in text:  # accents stay with their letters
        is_part = one == _JOINER or unicodedata.category(one).startswith("M")
        if characters and (is_part or characters[-1].endswith(_JOINER)):
            characters[-1] += one
        else:
            characters.append(one)
    tail = (width - 1) // 2
    head = width - 1 - tail
    first, last = _fitting(characters, head), _fitting(characters[::-1], tail)
    return "".join([*first, "…", *last[::-1]])


def _fitting(characters: list[str], width: int) -> list[str]:
    """The first characters, as many as are at most so wide."""
    room = width
    for k, character in enumerate(characters):
        room -= cell_len(character)
        if room < 0:
            return characters[:k]
    return characters


def mean_and_error(mean: float | None, stderr: float | None) -> str:
    """Write a mean with its standard error, to the digits that make sense.

    Examples
    --------
    >>> mean_and_error(1984.53, 21.4), mean_and_error(12.345, 0.5), mean_and_error(7.0, None)
    ('1,985 ± 21', '12.3 ± 0.5', '7.0')
    """
    if mean is None:
        return "-"
    digits = 0 if mean >= 100 else 1
    error = "" if stderr is None else f" ± {stderr:,.{digits}f}"
    return f"{mean:,.{digits}f}{error}"


def percent(share: float | None) -> str:
    """Write a share as a percentage to one decimal; only all is 100%, only none is 0%.

    Examples
    --------
    >>> percent(1.0), percent(0.9996), percent(29 / 30), percent(1e-9), percent(None)
    ('100%', '>99.9%', '96.7%', '<0.1%', '-')
    """
    if share is None:
        return "-"
    if 0.9995 <= share < 1:
        return ">99.9%"
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{round(100 * share, 1):g}%"


def rough_percent(value: float) -> str:
    """Write a percentage with two digits, or with those before the point where these are more.

    Examples
    --------
    >>> rough_percent(0.005), rough_percent(12.3), rough_percent(100.0), rough_percent(1834.25)
    ('0.005%', '12%', '100%', '1,834.2%')
    """
    if value < 99.5:
        return f"{value:.2g}%"
    return f"{value:,.1f}".removesuffix(".0") + "%"


def percent_between(low: float, high: float) -> str:
    """Write an interval of shares, rounded outwards.

    Examples
    --------
    >>> percent_between(0.98172, 1.0), percent_between(0.5, 0.98172)
    ('98.1-100%', '50-98.2%')
    """
    return f"{_rounded(low, math.floor)}-{_rounded(high, math.ceil)}%"


def _rounded(share: float, direction: Callable[[float], int]) -> str:
    """Percents to one decimal, always up or always down; the last bit of a float does not count."""
    return f"{direction(round(1000 * share, 9)) / 10:g}"


def ratio(mean: float | None, lower_bound: float) -> str:
    """Say how many times the lower bound a mean is.

    Examples
    --------
    >>> ratio(1984.5, 774.4), ratio(1234567.0, 1.0), ratio(10.0, math.inf)
    ('2.56', '1,234,567', '-')
    """
    if mean is None or not 0 < lower_bound < math.inf:
        return "-"
    times = mean / lower_bound
    return f"{times:.3g}" if times < 1000 else number(times)
