"""How names, numbers and places in a text are written in messages."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .rational import rational

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Array = npt.NDArray[np.float64]

# A name that a constraint may use without backticks.
PLAIN_NAME = re.compile(r"[^\W\d]\w*")

# Longer texts are cut around the offending place, so that the caret stays under it.
_MAX_COLUMNS = 100

# Pairs of characters that are compared in order to guess what was meant: a second at most.
_MAX_PAIRS = 4_000_000


def closest_match(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped word was probably meant to be, if any."""
    pairs = 0
    folded = {}
    for name in known:
        pairs += len(word) * (len(name) + 5)
        if pairs > _MAX_PAIRS:
            break
        folded[name.casefold()] = name
    matches = difflib.get_close_matches(word.casefold(), folded, n=1)
    return folded[matches[0]] if matches else None


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return how a message about an unknown word goes on."""
    if near := closest_match(word, known):
        return f"; did you mean {near!r}?"
    return f"; use {', '.join(map(repr, known[:-1]))} or {known[-1]!r}."


def unknown(kind: str, name: str, known: Sequence[str], also: str = "") -> str:
    """Say that there is nothing of a name, what was probably meant, and what there is.

    Examples
    --------
    >>> unknown("scenario", "any-time", ["end-of-time", "anytime"])
    "there is no scenario 'any-time'. Did you mean 'anytime'? Known: end-of-time, anytime."
    """
    near = closest_match(name, known)
    hint = f" Did you mean {near!r}?" if near else ""
    return (
        f"there is no {kind} {shortened(name)!r}.{hint} Known: {', '.join(known) or 'none'}{also}."
    )


def listed(names: Iterable[str], most: int = 12) -> str:
    """Return names as a constraint would spell them, cut short where they are many."""
    names = list(names)
    shown = ", ".join(backticked(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def backticked(name: str) -> str:
    """Write a name as constraints do."""
    return name if PLAIN_NAME.fullmatch(name) else f"`{name}`"


def quote(name: str) -> str:
    """Write a name in a sentence about a constraint."""
    return f"'{name}'" if PLAIN_NAME.fullmatch(name) else f"`{name}`"


def shortened(text: str, most: int = 200) -> str:
    """A text that a message quotes, cut where it is long.

    Examples
    --------
    >>> shortened("lentils"), shortened("x" * 1000, 5)
    ('lentils', 'xxxxx... (1,000 characters)')
    """
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def found_as(name: str, text: str, place: int) -> tuple[int, int] | None:
    """Where a name stands around a place of a text, in small or capital letters, as a whole."""
    first = max(0, place - len(name) + 1)
    around, name = _small(text[first : place + len(name)]), _small(name)
    start = around.find(name)
    while start >= 0:
        begin, end = first + start, first + start + len(name)
        sides = text[max(0, begin - 1) : begin] + text[end : end + 1]
        if begin <= place < end and not re.search(r"\w", sides):
            return begin, end
        start = around.find(name, start + 1)
    return None


def _small(text: str) -> str:
    """Small letters, each in its place: some would become two."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def count(total: int, noun: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> count(1, "arm"), count(2, "arm")
    ('1 arm', '2 arms')
    """
    return f"{total:,} {noun}" if total == 1 else f"{total:,} {noun}s"


def exactly(x: float | Fraction) -> str:
    """Shortest exact text: a decimal, or a fraction where the decimal would not end."""
    exact = rational(x)
    decimal = repr(float(exact)).removesuffix(".0")
    return decimal if Fraction(decimal) == exact else str(exact)


def pointed(text: str, start: int, end: int) -> str:
    """Show a text with carets under one stretch of it."""
    before, after = "", ""
    if len(text) > _MAX_COLUMNS:
        first = max(0, min(start - _MAX_COLUMNS // 3, len(text) - _MAX_COLUMNS))
        last = first + _MAX_COLUMNS
        before, after = "..." if first else "", "..." if last < len(text) else ""
        text, start, end = text[first:last], start - first, min(end, last) - first
    # Line breaks would part the carets from their place.
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    indent = "    " + before
    carets = "^" * max(1, _columns(text[start:end]))
    return f"{indent}{text}{after}\n{' ' * (len(indent) + _columns(text[:start]))}{carets}"


def _columns(text: str) -> int:
    """Width in a terminal, where some characters take two columns and some none."""
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(c) in ("W", "F")
        else 1
        for c in text
    )


def policy_in_words(policy: Array, arms: Sequence[str], limit: int = 6) -> str:
    """Write a policy as a list of shares and arms, the largest if they are too many.

    Examples
    --------
    >>> policy_in_words(np.array([0.5, 0.0, 0.5]), ["a", "b", "c"])
    '0.5 a, 0.5 c'
    """
    used = np.flatnonzero(policy > 0)
    if len(used) == 1:
        return f"{arms[used[0]]} alone"
    if len(used) > limit:
        used = used[np.argsort(-policy[used], kind="stable")]
    parts = [f"{policy[a]:.3g} {arms[a]}" for a in used[:limit]]
    if len(used) > limit:
        parts.append(f"{len(used) - limit} more")
    return ", ".join(parts)


def at_least(share: float) -> str:
    """A confidence as a percentage, rounded down: never more than is known.

    Examples
    --------
    >>> at_least(0.9499), at_least(1.0), at_least(0.5)
    ('94.9%', '100%', '50%')
    """
    return f"{math.floor(round(1000 * share, 9)) / 10:g}%"


def at_most(bound: float) -> str:
    """A bound to three digits, rounded up.

    Examples
    --------
    >>> at_most(0.12341), at_most(1234.5), at_most(0.5), at_most(0.0)
    ('0.124', '1,240', '0.5', '0')
    """
    if not 0 < bound < math.inf:
        return f"{bound:g}"
    digit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    # The last bit of a float does not count.
    raised = math.ceil(round(bound / digit, 9)) * digit
    return f"{raised:,.0f}" if raised >= 1000 else f"{raised:.3g}"
