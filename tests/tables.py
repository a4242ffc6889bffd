"""What is printed of bounds, results and studies, as text: all that tests know of the report."""

import io

from rich.console import Console

from simplexplore.report.bound_report import bound_document, bound_to_dict  # noqa: F401
from simplexplore.report.bound_words import (  # noqa: F401
    expectation,
    exploration_usage,
    headline,
    notes,
    times_alone,
)
from simplexplore.report.document import to_terminal
from simplexplore.report.results_report import results_document
from simplexplore.report.study_report import status_document


def _printed(document, width):
    out = io.StringIO()
    to_terminal(document, Console(file=out, width=width, markup=False))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


def bound_table(bound, width=80, *, forecasts=False):
    return _printed(bound_document(bound, forecasts=forecasts), width)


def results_table(results, width=80):
    return _printed(results_document(results), width)


def status_table(status, width=200):
    return _printed(status_document(status), width)
