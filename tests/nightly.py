"""What waits for the night: `make test-all` runs every test, with more examples.

Each heavy test has a smaller sister that runs every time.
"""

import itertools
import os

import pytest
from hypothesis import settings

NIGHTLY = os.environ.get("SIMPLEXPLORE_NIGHTLY", "0") not in ("", "0")

nightly = pytest.mark.nightly


def examples(few):
    """How many examples Hypothesis draws: some every time, many at night."""
    return settings(max_examples=10 * few if NIGHTLY else few)


def crossed(*axes, every=2):
    """Combinations of parameters: one in some every time, with each value; all at night."""
    return [
        pytest.param(*values, marks=() if sum(place) % every == 0 else nightly)
        for place, values in zip(
            itertools.product(*(range(len(axis)) for axis in axes)),
            itertools.product(*axes),
            strict=True,
        )
    ]


def some(values, *always):
    """Parameters of a test: these every time, the others at night."""
    return [value if value in always else pytest.param(value, marks=nightly) for value in values]
