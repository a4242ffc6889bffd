"""Running commands in this process."""

from typer.testing import CliRunner

from instances import EXAMPLES
from simplexplore.cli import app as cli

STAR = str(EXAMPLES / "star.toml")
MOVIES = str(EXAMPLES / "movies.toml")


def run(*args, code=0):
    """Run a command; 80 columns, as when output is not a terminal."""
    result = CliRunner().invoke(cli.app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.stderr
    if code == 0:
        # Nothing but the first compilation on a machine is worth a word there.
        assert all(line.startswith("compiling ") for line in result.stderr.splitlines())
    return result
