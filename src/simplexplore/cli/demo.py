"""The command ``demo``: a short tour."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from .options import AsJson
from .simulate import exit_if_unfinished, run_all
from .terminal import console, show

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
    from simplexplore.exploration.lower_bound import lower_bound
    from simplexplore.exploration.plan import prepare_simulation
    from simplexplore.problem.catalog import instance
    from simplexplore.report.bound_figure import plot_bound
    from simplexplore.report.bound_report import bound_document, bound_to_dict
    from simplexplore.report.results_figure import plot_results
    from simplexplore.report.results_report import results_document

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {str(out)!r}: {error.strerror}.") from None
    problem = instance("star").problem  # Figure 3d of Carlsson et al.
    file, picture, comparison = out / "star.toml", out / "star.png", out / "samplers.png"
    problem.to_file(file)
    bound = lower_bound(problem)
    plot_bound(bound, picture)
    if not as_json:
        _say("A problem, as you would write it in a file:\n", "bold")
        _say(file.read_text(encoding="utf-8"), "dim")
        _say("What is known about it before a single sample is taken:\n", "bold")
        show(bound_document(bound))
        _say(f"\nA picture of this is in {picture}.\n")
        _say(f"Four samplers that do not know the means, {RUNS} times each:\n", "bold")
    plans = [prepare_simulation(problem, None, name, defaults.THRESHOLD) for name in SAMPLERS]
    results = run_all(plans, runs=RUNS)
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
        show(results_document(results))
        _say(f"\nA picture of this is in {comparison}.\n")
        _say_what_next(file)
    exit_if_unfinished(results, plans)


def _say_what_next(file: Path) -> None:
    """Commands to try, to be pasted."""
    program = "simplexplore" if shutil.which("simplexplore") else sys.argv[0]
    every = "ctns,cge,ptns,uniform,oracle,top-two --scenario both --runs 1000"
    _say("What to try next:", "bold")
    _say(f"""\
  Make e nearly as good as d. How much harder does it get?
    {program} bound {file} --means 1,0.5,0.4,0.95,0.9
  Use the threshold of the paper's figures, which is not proven. What does tilt cost?
    {program} simulate {file} --sampler top-two --threshold gk16
  Run all samplers in both scenarios, 1000 times each, and draw a picture:
    {program} simulate {file} --sampler {every} --plot {file.parent / "all.png"}
  Try limits of your own: edit {file}, then
    {program} bound {file} --plot {file.parent / "mine.png"}""")


def _say(text: str, style: str | None = None) -> None:
    # Long lines are left to the terminal, so that a command can be pasted.
    console().print(text, style=style, soft_wrap=True)
