"""Limits on shares that were probably meant as percentages, in problems that people write."""

from __future__ import annotations

import math

from simplexplore.errors import ConstraintError

from .constraint import Constraint, expanded_name
from .locations import error_context, in_file
from .parser import NOUNS
from .problem import Problem


def ask_about_percentages(problem: Problem, source: str) -> None:
    """Refuse limits on sums of shares that no shares can reach, with a question.

    Programs may make such limits, and they do no harm; who writes one meant something else.

    Parameters
    ----------
    problem : Problem
    source : str
        What the error calls the file.

    Raises
    ------
    ConstraintError
        If a limit is above 1 and at most 100.
    """
    for table, noun in NOUNS.items():
        for row in getattr(problem, table):
            looks_so = row.lower == -math.inf and 1 < row.upper <= 100
            if looks_so and (row.values == 1).all():
                name = _written_name(row, problem)
                with in_file(source), error_context(table), error_context(name):
                    raise ConstraintError(
                        f"{noun} {name!r}: the shares of a mix sum to 1, so a limit of "
                        f"{row.upper:g} never binds. {row.upper:g}%? Write {row.upper / 100:.10g}."
                    )


def _written_name(row: Constraint, problem: Problem) -> str:
    """The name in the file: that of one arm where the text says `each`."""
    arm = problem.arms[row.arms[0]]
    return row.name.removesuffix(expanded_name("", arm))
