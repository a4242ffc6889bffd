"""What is wrong with a request, as a problem document: also where no web server is loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from simplexplore.errors import MeansError, ProblemError, SimplexploreError
from simplexplore.problem.places import line_of
from simplexplore.protocol import to_problem


class FileError(ProblemError):
    """Something is wrong in a problem file, at a line of it if that can be told."""

    def __init__(self, error: ProblemError | MeansError, text: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.line = line_of(text, error.place)


class DocumentError(Exception):
    """A refusal that came from another process as a problem document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document["detail"])
        self.document = document


@contextlib.contextmanager
def naming_lines(text: str) -> Iterator[None]:
    """Let errors of a problem file say which line of it they are about."""
    try:
        yield
    except (ProblemError, MeansError) as error:
        raise FileError(error, text) from None


def document_of(error: SimplexploreError) -> dict[str, Any]:
    """An error as a problem document."""
    if isinstance(error, FileError):
        return to_problem(error.error) | {"line": error.line}
    return to_problem(error)
