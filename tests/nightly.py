"""What waits for the night: `make test-all` runs every test, with more examples.

Each heavy test has a smaller sister that runs every time.
"""

import os

import pytest
from hypothesis import settings

NIGHTLY = os.environ.get("SIMPLEXPLORE_NIGHTLY", "0") not in ("", "0")

nightly = pytest.mark.nightly


def examples(few):
    """How many examples Hypothesis draws: some every time, many at night."""
    return settings(max_examples=10 * few if NIGHTLY else few)


def some(values, *always):
    """Parameters of a test: these every time, the others at night."""
    return [value if value in always else pytest.param(value, marks=nightly) for value in values]
