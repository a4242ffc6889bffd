"""Standard output that may end early or be full."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO


class _Output(io.FileIO):
    """A file that keeps quiet when nobody reads it any more, and knows why writing failed."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        if self.failure is not None:
            return len(data)  # the first message is enough
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)  # `| head` has seen enough
        except OSError as error:
            self.failure = error
            raise


def run_with_output(program: Callable[[], object]) -> None:
    """Run a program; what cannot be printed ends in one message and status 2.

    A reader that goes away, as in ``| head``, is no failure: the rest is not shown.
    """
    try:
        output = _Output(sys.stdout.fileno(), "wb", closefd=False)
    except (AttributeError, OSError, ValueError):  # not a file: a notebook, or closed
        program()
        return
    sys.stdout.flush()
    before, sys.stdout = sys.stdout, _as_text(output, sys.stdout)
    try:
        try:
            program()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error is not output.failure:
            raise
        sys.stderr.write(f"Error: cannot write the output: {error.strerror}.\n")
        sys.exit(2)
    finally:
        sys.stdout = before


def _as_text(output: _Output, like: TextIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=like.encoding,
        errors="replace",
        line_buffering=os.isatty(output.fileno()),
    )
