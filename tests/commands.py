"""Running commands in this process."""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from instances import EXAMPLES
from simplexplore.cli.app import main

STAR = str(EXAMPLES / "star.toml")
MOVIES = str(EXAMPLES / "movies.toml")


@dataclass
class Done:
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self):
        return self.stdout + self.stderr


def invoke(*args):
    """Run a command; 80 columns, as when output is not a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([str(arg) for arg in args])
    assert "Traceback" not in err.getvalue()
    return Done(end.value.code, out.getvalue(), err.getvalue())


def run(*args, code=0):
    """Run a command that must end with that status."""
    result = invoke(*args)
    assert result.exit_code == code, result.output
    if code == 0:
        # Nothing but the first compilation on a machine is worth a word there.
        assert all(line.startswith("compiling") for line in result.stderr.splitlines()), (
            result.stderr
        )
    return result
