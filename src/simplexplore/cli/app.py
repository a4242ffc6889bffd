"""The program: its commands, and what becomes of errors.

Heavy imports wait inside the commands, so that ``--help`` and mistakes answer at once.
"""

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from simplexplore import __version__
from simplexplore.errors import SimplexploreError

from .bound import bound
from .demo import demo
from .service import serve, token_commands
from .simulate import simulate
from .study import commands as study_commands

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Find the best mix of arms under linear constraints, with a stated confidence.",
)

app.add_typer(study_commands, name="study")
app.add_typer(token_commands, name="token")
for command in (serve, bound, simulate, demo):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simplexplore {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the program; what a user can cause ends in one message and status 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a replacement instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    try:
        app(args)
    except SimplexploreError as error:
        message = str(error)
    except OSError as error:
        if error.filename is not None:
            message = f"{error.filename}: cannot use it: {error.strerror}."
        elif error.errno == errno.ENOSPC:
            message = f"cannot write the output: {error.strerror}."
            # What Python still holds of it goes nowhere when the program ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        else:
            raise
    typer.echo(f"Error: {message}", err=True)
    sys.exit(2)
