"""The commands: arguments in, text or JSON out; nothing is computed here.

Heavy imports wait inside the commands, so that ``--help`` and mistakes answer at once.
"""

import json
import math
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from . import __version__
from .errors import MeansError, SettingError, SimplexploreError

if TYPE_CHECKING:
    from rich.console import Console

    from .problem import Problem


class _Commands(TyperGroup):
    """All commands; what a user can cause ends in one message and a status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SimplexploreError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find the best mix of arms under linear constraints, with a stated confidence.",
)

ProblemFile = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="The problem, a TOML file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="OUT.png", show_default=False, help="Save a picture (png, pdf or svg)."
    ),
]


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


@app.command()
def bound(
    file: ProblemFile,
    means: Annotated[
        str | None,
        typer.Option(
            metavar="1,0.5,...",
            show_default=False,
            help="Mean reward of each arm, instead of the file's.",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="D",
            show_default=False,
            help="Allowed probability of a wrong answer, instead of the file's.",
        ),
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Say what is best if the means were known, and how many samples it takes to find out."""
    from .bound import lower_bound
    from .problem import Problem

    given = None if means is None else parse_means(means)
    if plot is not None:
        from .pages import check_plot_path
        from .plots import plot_bound

        check_plot_path(plot)
    problem = Problem.from_file(file)
    result = lower_bound(problem, given, delta)
    if plot is not None:
        plot_bound(result, plot)
    if as_json:
        typer.echo(to_json(result.to_dict()))
        return
    from .tables import print_bound

    console = _console()
    print_bound(result, console)
    if plot is not None:
        console.print(f"\nPicture: {plot}")


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for what the demo makes.")
    ] = Path("demo-output"),
    as_json: AsJson = False,
) -> None:
    """Take a short tour: a small problem, its bound, a picture."""
    from .bound import lower_bound
    from .plots import plot_bound
    from .tables import print_bound

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {str(out)!r}: {error.strerror}.") from None
    problem = star()
    file, picture = out / "star.toml", out / "star.png"
    problem.to_file(file)
    result = lower_bound(problem)
    plot_bound(result, picture)
    if as_json:
        report = {"problem": str(file), "picture": str(picture), "bound": result.to_dict()}
        typer.echo(to_json(report))
        return
    console = _console()
    console.print("A problem, as you would write it in a file:", style="bold")
    console.print()
    console.print(file.read_text(encoding="utf-8"), style="dim")
    console.print("What is known about it before a single sample is taken:", style="bold")
    console.print()
    print_bound(result, console)
    console.print()
    console.print(f"A picture of this is in {picture}.")
    console.print("What to try next:", style="bold")
    program = "simplexplore" if shutil.which("simplexplore") else sys.argv[0]
    console.print("  e nearly as good as d: how much harder does it get?")
    console.print(f"    {program} bound {file} --means 1,0.5,0.4,0.95,0.9")
    console.print("  ten times surer:")
    console.print(f"    {program} bound {file} --delta 0.01")
    console.print(f"  your own limits: edit {file}, then")
    console.print(f"    {program} bound {file} --plot {out / 'mine.png'}")


def star() -> "Problem":
    """The "star" instance of Carlsson et al., Figure 3d, on which the demo runs."""
    from .families import Gaussian
    from .problem import Problem

    return Problem(
        arms=["a", "b", "c", "d", "e"],
        constraints={"first": "a + b <= 0.5", "second": "c + d <= 0.5"},
        rewards=Gaussian(1.0),
        scenario="anytime",
        delta=0.1,
        means=[1.0, 0.5, 0.4, 0.95, 0.8],
    )


def parse_means(text: str) -> list[float]:
    """Read comma-separated numbers.

    Examples
    --------
    >>> parse_means("1, 0.5,-2e-1")
    [1.0, 0.5, -0.2]
    """
    numbers = []
    for i, part in enumerate(text.split(","), start=1):
        try:
            numbers.append(float(part))
        except ValueError:
            raise MeansError(
                f"--means {text!r}: item {i}, {part.strip()!r}, is not a number; write one number "
                "per arm, separated by commas."
            ) from None
    return numbers


def to_json(value: Any) -> str:
    """Write JSON in which an infinite number is 1e999, which every parser reads as infinity.

    Examples
    --------
    >>> to_json({"time": math.inf, "arms": ["a"], "gap": 0.0, "none": None})
    '{"time": 1e999, "arms": ["a"], "gap": 0.0, "none": null}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)


def _console() -> "Console":
    from rich.console import Console

    # Names are printed as they are: brackets and colons in them mean nothing.
    return Console(highlight=False, markup=False, emoji=False)


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a replacement instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()
