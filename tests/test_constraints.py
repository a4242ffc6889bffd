"""Constraints as text that is read back, and as objects."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightly import examples
from sentences import ARMS, GROUPS, INF, names, numbers, parse, written
from simplexplore import Constraint, ConstraintError

# As text


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
    assert written([constraint], ARMS, GROUPS) == {"mix": text}
    assert parse(text) == constraint
    assert parse(written([constraint], ARMS)["mix"]) == constraint


def test_writes_the_largest_group_that_fits() -> None:
    groups = {"pair": ["a", "b"], "three": ["a", "b", "c"], "one": ["d"]}
    constraint = Constraint("c", np.array([1.0, 1.0, 1.0, 1.0]), upper=0.5)
    assert written([constraint], ["a", "b", "c", "d"], groups) == {"c": "three + d <= 0.5"}


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
    for text in (written([constraint], arms), written([constraint], arms, groups)):
        assert parse(text["odd"], arms, groups, "odd") == constraint


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
