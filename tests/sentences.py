"""Arms, groups and constraints in words, for tests of the language."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence

import pytest
from hypothesis import strategies as st

from simplexplore import Constraint, ConstraintError, Problem

INF = math.inf
ARMS = ["a", "b", "c", "The Net", "e3"]
GROUPS = {"front": ["a", "b"], "the rest": ["c", "e3"]}


def parse(
    text: str,
    arms: Sequence[str] = ARMS,
    groups: dict[str, list[str]] | None = None,
    name: str = "mix",
) -> Constraint:
    (found,) = Problem(arms, {name: text}, groups=GROUPS if groups is None else groups).constraints
    return found


def message(text: str, arms: list[str] = ARMS, groups: dict[str, list[str]] | None = None) -> str:
    with pytest.raises(ConstraintError) as caught:
        parse(text, arms, groups)
    return str(caught.value)


def written(
    constraints: list[Constraint], arms: Sequence[str], groups: dict[str, list[str]] | None = None
) -> dict[str, str]:
    """The texts of constraints in a problem file."""
    text = Problem(arms, constraints, groups=groups or {}).to_text()
    return tomllib.loads(text)["constraints"]


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
