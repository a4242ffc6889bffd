"""The program: its commands, and what becomes of errors.

Heavy imports wait inside the commands, so that ``--help`` and mistakes answer at once.
"""

import sys
import warnings
from typing import Annotated, Any

import typer

from simplexplore import __version__
from simplexplore.errors import SimplexploreError

from .bound import bound
from .commands import Commands, Group
from .demo import demo
from .options import quoting
from .output import run_with_output
from .ratings import ratings
from .reproduce import reproduce
from .service import serve, token_commands
from .simulate import simulate
from .study import commands as study_commands


class _Commands(Group):
    """All commands; what a user can cause ends in one message and a status."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["simplexplore.args"] = tuple(args)  # super() takes them out of the list
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = quoting(error, ctx.meta["simplexplore.args"])
            raise
        except SimplexploreError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from None
        except OSError as error:
            if error.filename is None:  # the output's own (output.py), or no file that was named
                raise
            typer.echo(f"Error: {error.filename}: cannot use it: {error.strerror}.", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(130) from None


app = Commands(
    cls=_Commands,
    pretty_exceptions_enable=False,
    help="Find the best mix of arms under linear constraints, with a stated confidence.",
)

app.add_typer(study_commands, name="study")
app.add_typer(token_commands, name="token")
for command in (serve, bound, simulate, demo, reproduce, ratings):
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
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a replacement instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    run_with_output(app)
