"""The commands: arguments in, text or JSON out; nothing is computed here.

Heavy imports wait inside the commands, so that ``--help`` and mistakes answer at once.
"""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from simplexplore import __version__
from simplexplore.errors import MeansError, SettingError, SimplexploreError
from simplexplore.report.json_text import to_json

from .options import AsJson, Delta, ProblemFile, Workers
from .ratings import ratings
from .reproduce import reproduce
from .service import serve, token_commands
from .study import commands as study_commands
from .terminal import console as _console
from .terminal import progress

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem
    from simplexplore.simulation.results import Results


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

app.add_typer(study_commands, name="study")
app.command()(serve)
app.add_typer(token_commands, name="token")

Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="OUT.png", show_default=False, help="Save a picture (png, pdf or svg)."
    ),
]
Means = Annotated[
    str | None,
    typer.Option(
        metavar="1,0.5,...",
        show_default=False,
        help="Mean reward of each arm, instead of the file's.",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="E",
        show_default=False,
        help="How much less than the best is good enough, in the unit of rewards, instead of the "
        "file's.",
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
    means: Means = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Say what is best if the means were known, and how many samples it takes to find out."""
    from simplexplore.bound.bound import lower_bound
    from simplexplore.problem.problem import Problem

    given = None if means is None else parse_means(means)
    if plot is not None:
        from simplexplore.report.bound_plot import plot_bound
        from simplexplore.report.page import check_plot_path

        check_plot_path(plot)
    problem = Problem.from_file(file)
    result = lower_bound(problem, given, delta, epsilon)
    if plot is not None:
        plot_bound(result, plot)
    if as_json:
        typer.echo(to_json(result.to_dict()))
        return
    from simplexplore.report.bound_table import print_bound

    console = _console()
    print_bound(result, console)
    if plot is not None:
        console.print(f"\nPicture: {plot}")


@app.command()
def simulate(
    file: ProblemFile,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            show_default=False,
            help="ctns, cge, ptns, uniform, oracle, top-two, or a file of your own.",
        ),
    ],
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of each sampler.")] = 100,
    seed: Annotated[int, typer.Option(metavar="S", help="The same seed gives the same runs.")] = 0,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="end-of-time, anytime or both, instead of the file's.",
        ),
    ] = None,
    means: Means = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="When to stop: gk16, paper, kk21, mixture (the last two are proven), or a file of "
            "your own.",
        ),
    ] = "gk16",
    tracking: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="How arms follow the allocation (cumulative, averaged, direct, sampled), instead "
            "of the sampler's own way.",
        ),
    ] = None,
    workers: Workers = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            metavar="T",
            show_default="10,000,000",
            help="Cap runs that have not stopped by then; they are counted.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", show_default=False, help="Save all runs in a folder, to load again."
        ),
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Run samplers many times where the means are known: how many samples, how often right."""
    from simplexplore.problem.problem import Problem
    from simplexplore.report.page import check_plot_path
    from simplexplore.samplers import find_sampler
    from simplexplore.simulation.results import check_results_folder, save_results

    given = None if means is None else parse_means(means)
    names = parse_samplers(sampler)
    for name in names:
        find_sampler(name)
    if plot is not None:
        check_plot_path(plot)
    if out is not None:
        check_results_folder(out)
    problem = Problem.from_file(file)
    if epsilon is not None:
        problem = problem.replace(epsilon=epsilon)
    jobs = [(name, place) for place in _scenarios(scenario, problem) for name in names]
    results = _simulate_all(
        problem,
        jobs,
        runs,
        means=given,
        delta=delta,
        seed=seed,
        threshold=threshold,
        tracking=tracking,
        workers=workers,
        max_steps=max_steps,
    )
    if out is not None:
        save_results(results, out)
    if plot is not None:
        from simplexplore.report.results_plot import plot_results

        plot_results(results, plot)
    if as_json:
        summaries = [result.summary() for result in results]
        typer.echo(to_json({"arms": list(problem.arms), "results": summaries}))
    else:
        from simplexplore.report.results_table import print_results

        console = _console()
        print_results(results, console)
        if plot is not None:
            console.print(f"\nPicture: {plot}")
        if out is not None:
            console.print(f"\nAll runs: {out} (simplexplore.load_results reads it)")
    _exit_if_unfinished(results, jobs)


def parse_samplers(text: str) -> list[str]:
    """Read comma-separated names of samplers.

    Examples
    --------
    >>> parse_samplers("ctns, top-two,./mine.py")
    ['ctns', 'top-two', './mine.py']
    """
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if not name:
            raise SettingError(
                f"--sampler {text!r}: a name is empty; write names separated by commas."
            )
        if names.count(name) > 1:
            raise SettingError(f"--sampler {text!r}: {name!r} is named twice.")
    return names


def _scenarios(name: str | None, problem: "Problem") -> tuple[str, ...]:
    """The scenarios to simulate."""
    from simplexplore.problem.problem import SCENARIOS
    from simplexplore.problem.spelling import unknown

    if name is None:
        return (problem.scenario,)
    if name == "both":
        return SCENARIOS
    if name not in SCENARIOS:
        raise SettingError(unknown("scenario", name, (*SCENARIOS, "both")))
    return (name,)


def _simulate_all(
    problem: "Problem", jobs: list[tuple[str, str]], runs: int, **settings: Any
) -> "list[Results]":
    """Simulate samplers one after the other; Ctrl-C keeps the runs that are finished."""
    from numba.core.errors import NumbaError

    from simplexplore.exploration.compile import compile_ahead, explained
    from simplexplore.simulation.simulate import simulate as run

    rule = settings.get("threshold", "gk16")
    if len(dict(jobs)) > 1 and _is_sound(problem, runs, settings):
        compile_ahead(jobs, problem, rule)
    results: list[Results] = []
    with progress("runs") as bars:
        for number, (name, scenario) in enumerate(jobs, 1):
            place = f"{number}/{len(jobs)} " if len(jobs) > 1 else ""
            task = bars.add_task(f"{place}{name}, {scenario}", total=runs)

            def show(done: int, total: int, task: Any = task) -> None:
                bars.update(task, completed=done, total=total)

            try:
                result = run(
                    problem, sampler=name, scenario=scenario, runs=runs, progress=show, **settings
                )
            except KeyboardInterrupt:
                break
            except NumbaError as error:
                raise explained(error, f"{name} with threshold {rule}") from error
            if result.runs:
                results.append(result)
            if result.runs < result.runs_asked:
                break
    if not results:
        raise KeyboardInterrupt
    return results


def _is_sound(problem: "Problem", runs: int, settings: dict[str, Any]) -> bool:
    """Whether nothing is wrong that the first simulation would refuse before it compiles."""
    from simplexplore.bound.bound import lower_bound
    from simplexplore.samplers import TRACKINGS

    bound = lower_bound(problem, settings.get("means"), settings.get("delta"))
    counts = [runs, settings.get("workers"), settings.get("max_steps")]
    return (
        all(count is None or count >= 1 for count in counts)
        and settings.get("seed", 0) >= 0
        and settings.get("tracking") in (None, *TRACKINGS)
        and not (bound.ties and not problem.epsilon and settings.get("max_steps") is None)
    )


def _exit_if_unfinished(results: "list[Results]", jobs: list[tuple[str, str]]) -> None:
    """Say what is missing after an interruption, and leave."""
    last = results[-1]
    parts = []
    if last.runs < last.runs_asked:
        parts.append(
            f"{last.runs_asked - last.runs} of {last.runs_asked} runs of "
            f"{last.plan.sampler.name}, {last.plan.scenario}, are missing"
        )
    if left := jobs[len(results) :]:
        parts.append(f"not simulated: {'; '.join(f'{name}, {place}' for name, place in left)}")
    if parts:
        typer.echo(f"Interrupted: {'; '.join(parts)}.", err=True)
        raise typer.Exit(130)


# What the demo simulates: enough runs to see a difference, few enough not to wait.
DEMO_SAMPLERS = ("ctns", "cge", "top-two", "uniform")
DEMO_RUNS = 400


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for what the demo makes.")
    ] = Path("demo-output"),
    as_json: AsJson = False,
) -> None:
    """Take a short tour: a small problem, its bound, a simulation of four samplers."""
    from simplexplore.bound.bound import lower_bound
    from simplexplore.report.bound_plot import plot_bound
    from simplexplore.report.bound_table import print_bound
    from simplexplore.report.results_plot import plot_results
    from simplexplore.report.results_table import print_results

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {str(out)!r}: {error.strerror}.") from None
    problem = star()
    file, picture, comparison = out / "star.toml", out / "star.png", out / "samplers.png"
    problem.to_file(file)
    result = lower_bound(problem)
    plot_bound(result, picture)
    jobs = [(name, problem.scenario) for name in DEMO_SAMPLERS]
    if as_json:
        results = _simulate_all(problem, jobs, DEMO_RUNS)
        plot_results(results, comparison)
        report = {
            "problem": str(file),
            "picture": str(picture),
            "bound": result.to_dict(),
            "results_picture": str(comparison),
            "results": [r.summary() for r in results],
        }
        typer.echo(to_json(report))
        _exit_if_unfinished(results, jobs)
        return
    console = _console()

    def say(text: str, style: str | None = None) -> None:
        # Long lines are left to the terminal, so that a command can be pasted.
        console.print(text, style=style, soft_wrap=True)

    say("A problem, as you would write it in a file:\n", "bold")
    say(file.read_text(encoding="utf-8"), "dim")
    say("What is known about it before a single sample is taken:\n", "bold")
    print_bound(result, console)
    say(f"\nA picture of this is in {picture}.\n")
    say(
        f"Four samplers that do not know the means, {DEMO_RUNS} times each (the first time on a "
        "machine, each is compiled first):\n",
        "bold",
    )
    results = _simulate_all(problem, jobs, DEMO_RUNS)
    print_results(results, console)
    plot_results(results, comparison)
    say(f"\nA picture of this is in {comparison}.\n")
    program = "simplexplore" if shutil.which("simplexplore") else sys.argv[0]
    say("What to try next:", "bold")
    say("  e nearly as good as d: how much harder does it get?")
    say(f"    {program} bound {file} --means 1,0.5,0.4,0.95,0.9")
    say("  a threshold that is proven: what does the promise cost?")
    say(f"    {program} simulate {file} --sampler top-two --threshold mixture")
    say("  all samplers, both scenarios, 1000 runs each, with a picture:")
    say(
        f"    {program} simulate {file} --sampler ctns,cge,ptns,uniform,oracle,top-two "
        f"--scenario both --runs 1000 --plot {out / 'all.png'}"
    )
    say(f"  your own limits: edit {file}, then")
    say(f"    {program} bound {file} --plot {out / 'mine.png'}")
    _exit_if_unfinished(results, jobs)


app.command()(reproduce)
app.command()(ratings)


def star() -> "Problem":
    """The "star" instance of Carlsson et al., Figure 3d, on which the demo runs."""
    from simplexplore.problem.catalog import instance

    return instance("star").problem


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


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a replacement instead of failing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()
