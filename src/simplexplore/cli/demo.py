"""The command ``demo``: a short tour."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from .options import AsJson
from .simulate import exit_if_unfinished, simulate_all
from .terminal import console

if TYPE_CHECKING:
    from simplexplore.bound.result import Bound
    from simplexplore.problem.problem import Problem
    from simplexplore.simulation.results import Results

# What the demo simulates: enough runs to see a difference, few enough not to wait.
SAMPLERS = ("ctns", "cge", "top-two", "uniform")
RUNS = 400


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for what the demo makes.")
    ] = Path("demo-output"),
    as_json: AsJson = False,
) -> None:
    """Take a short tour: a small problem, its bound, a simulation of four samplers."""
    from simplexplore.bound.bound import lower_bound
    from simplexplore.report.bound_json import bound_to_dict
    from simplexplore.report.bound_plot import plot_bound
    from simplexplore.report.results_plot import plot_results

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {str(out)!r}: {error.strerror}.") from None
    problem = star()
    file, picture, comparison = out / "star.toml", out / "star.png", out / "samplers.png"
    problem.to_file(file)
    bound = lower_bound(problem)
    plot_bound(bound, picture)
    if not as_json:
        _introduce(bound, file, picture)
    jobs = [(name, problem.scenario) for name in SAMPLERS]
    results = simulate_all(problem, jobs, runs=RUNS)
    plot_results(results, comparison)
    if as_json:
        report = {
            "problem": str(file),
            "picture": str(picture),
            "bound": bound_to_dict(bound),
            "results_picture": str(comparison),
            "results": [r.summary() for r in results],
        }
        typer.echo(to_json(report))
    else:
        _conclude(results, file, comparison)
    exit_if_unfinished(results, jobs)


def _introduce(bound: "Bound", file: Path, picture: Path) -> None:
    """Show the problem and what is known about it."""
    from simplexplore.report.bound_table import print_bound

    _say("A problem, as you would write it in a file:\n", "bold")
    _say(file.read_text(encoding="utf-8"), "dim")
    _say("What is known about it before a single sample is taken:\n", "bold")
    print_bound(bound, console())
    _say(f"\nA picture of this is in {picture}.\n")
    _say(
        f"Four samplers that do not know the means, {RUNS} times each (the first time on a "
        "machine, each is compiled first):\n",
        "bold",
    )


def _conclude(results: "list[Results]", file: Path, comparison: Path) -> None:
    """Show the comparison and what to try next."""
    from simplexplore.report.results_table import print_results

    print_results(results, console())
    _say(f"\nA picture of this is in {comparison}.\n")
    program = "simplexplore" if shutil.which("simplexplore") else sys.argv[0]
    _say("What to try next:", "bold")
    _say("  Make e nearly as good as d. How much harder does it get?")
    _say(f"    {program} bound {file} --means 1,0.5,0.4,0.95,0.9")
    _say("  Use the threshold of the paper's figures, which is not proven. What does tilt cost?")
    _say(f"    {program} simulate {file} --sampler top-two --threshold gk16")
    _say("  Run all samplers in both scenarios, 1000 times each, and draw a picture:")
    _say(
        f"    {program} simulate {file} --sampler ctns,cge,ptns,uniform,oracle,top-two "
        f"--scenario both --runs 1000 --plot {file.parent / 'all.png'}"
    )
    _say(f"  Try limits of your own: edit {file}, then")
    _say(f"    {program} bound {file} --plot {file.parent / 'mine.png'}")


def _say(text: str, style: str | None = None) -> None:
    # Long lines are left to the terminal, so that a command can be pasted.
    console().print(text, style=style, soft_wrap=True)


def star() -> "Problem":
    """The "star" instance of Carlsson et al., Figure 3d, on which the demo runs."""
    from simplexplore.problem.catalog import instance

    return instance("star").problem
