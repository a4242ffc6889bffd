"""The command ``simulate``: samplers run many times where the means are known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from .options import AsJson, Delta, Epsilon, Means, Plot, ProblemFile, Workers, parse_means
from .terminal import console, progress

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem
    from simplexplore.simulation.results import Results

Samplers = Annotated[
    str,
    typer.Option(
        metavar="NAME[,NAME...]",
        show_default=False,
        help="ctns, cge, ptns, uniform, oracle, top-two, or a file of your own.",
    ),
]
Runs = Annotated[int, typer.Option(metavar="N", help="Runs of each sampler.")]
Seed = Annotated[int, typer.Option(metavar="S", help="The same seed gives the same runs.")]
Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="end-of-time, anytime or both, instead of the file's.",
    ),
]
Threshold = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="When to stop: gk16, paper, kk21, mixture (the last two are proven), or a file of "
        "your own.",
    ),
]
Tracking = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="How arms follow the allocation (cumulative, averaged, direct, sampled), instead "
        "of the sampler's own way.",
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        metavar="T",
        show_default="10,000,000",
        help="Cap runs that have not stopped by then; they are counted.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", show_default=False, help="Save all runs in a folder, to load again."
    ),
]


def simulate(
    file: ProblemFile,
    sampler: Samplers,
    runs: Runs = 100,
    seed: Seed = 0,
    scenario: Scenario = None,
    means: Means = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    threshold: Threshold = "gk16",
    tracking: Tracking = None,
    workers: Workers = None,
    max_steps: MaxSteps = None,
    out: Folder = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Run samplers many times where the means are known: how many samples, how often right."""
    from simplexplore.problem.problem import Problem
    from simplexplore.report.page import check_plot_path
    from simplexplore.samplers import find_sampler
    from simplexplore.simulation.results_files import ResultsFolder

    given = None if means is None else parse_means(means)
    names = parse_samplers(sampler)
    for name in names:
        find_sampler(name)
    if plot is not None:
        check_plot_path(plot)
    if out is not None:
        ResultsFolder(out).check_writable()
    problem = Problem.from_file(file)
    if epsilon is not None:
        problem = problem.replace(epsilon=epsilon)
    jobs = [(name, place) for place in _scenarios(scenario, problem) for name in names]
    results = simulate_all(
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
    _show(results, out, plot, as_json)
    exit_if_unfinished(results, jobs)


def _show(results: "list[Results]", out: Path | None, plot: Path | None, as_json: bool) -> None:
    """Save, draw and print results."""
    if out is not None:
        from simplexplore.simulation.results import save_results

        save_results(results, out)
    if plot is not None:
        from simplexplore.report.results_plot import plot_results

        plot_results(results, plot)
    if as_json:
        arms = list(results[0].plan.problem.arms)
        typer.echo(to_json({"arms": arms, "results": [result.summary() for result in results]}))
        return
    from simplexplore.report.results_table import print_results

    screen = console()
    print_results(results, screen)
    if plot is not None:
        screen.print(f"\nPicture: {plot}")
    if out is not None:
        screen.print(f"\nAll runs: {out} (simplexplore.load_results reads it)")


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


def simulate_all(
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


def exit_if_unfinished(results: "list[Results]", jobs: list[tuple[str, str]]) -> None:
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
