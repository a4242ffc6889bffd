"""The command ``simulate``: samplers run many times where the means are known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.files import is_file
from simplexplore.report.json_text import to_json

from .options import (
    AsJson,
    Budget,
    ClusterAddress,
    Delta,
    Device,
    Epsilon,
    Means,
    Plot,
    ProblemFile,
    StopRegret,
    Workers,
    parse_means,
    with_goal,
)
from .terminal import console, progress

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simplexplore.exploration.plan import Plan
    from simplexplore.problem.problem import Problem
    from simplexplore.simulation.results import Results

Samplers = Annotated[
    str,
    typer.Option(
        metavar="NAME[,NAME...]",
        help="top-two, ctns, cge, ptns, uniform, oracle, with a budget halving, or a file of "
        "your own.",
    ),
]
Runs = Annotated[int, typer.Option(metavar="N", help="Runs of each sampler.")]
Seed = Annotated[int, typer.Option(metavar="S", help="The same seed gives the same runs.")]
Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="end-of-time, anytime, both of these or, where the file has limits on exploration, "
        "exploration; instead of the file's.",
    ),
]
Threshold = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="When to stop: tilt, mixture, kk21 (proven), gk16, paper (not), or a file of your "
        "own.",
    ),
]
Tracking = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="How pulls follow the allocation (cumulative, averaged, direct, sampled), instead "
        "of the sampler's own way.",
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar="SD[,SD...]",
        show_default=False,
        help="Standard deviation of the rewards drawn, one for all arms or one each, if it differs "
        "from what samplers are told. Bounded rewards then have Beta distributions.",
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        metavar="T",
        show_default=f"{defaults.MAX_STEPS:,}",
        help="End runs that have not stopped by then; they count as capped.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", show_default=False, help="Save all runs in a folder, to load again."
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(
        metavar="OUT.csv",
        show_default=False,
        help="Save how the first 10 runs went (csv or json): confidence, regret bound, p-values.",
    ),
]


def simulate(
    file: ProblemFile,
    sampler: Samplers = defaults.SAMPLER,
    runs: Runs = 100,
    seed: Seed = 0,
    scenario: Scenario = None,
    means: Means = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    stop_regret: StopRegret = None,
    budget: Budget = None,
    threshold: Threshold = defaults.THRESHOLD,
    tracking: Tracking = None,
    noise: Noise = None,
    workers: Workers = None,
    device: Device = "cpu",
    cluster: ClusterAddress = None,
    max_steps: MaxSteps = None,
    out: Folder = None,
    plot: Plot = None,
    trace: Trace = None,
    as_json: AsJson = False,
) -> None:
    """Run samplers many times where the means are known: how many samples, how often right."""
    from simplexplore.problem.problem import Problem
    from simplexplore.samplers import find_sampler
    from simplexplore.simulation.cluster import executor_at
    from simplexplore.simulation.results_files import ResultsFolder
    from simplexplore.simulation.trace import check_threshold, check_trace_path, write_trace

    given = None if means is None else parse_means(means)
    drawn = None if noise is None else parse_means(noise, "--noise")
    names = parse_samplers(sampler)
    for name in names:
        find_sampler(name)
    if plot is not None:
        from simplexplore.report.page import check_plot_path

        check_plot_path(plot)
    if trace is not None:
        check_trace_path(trace)
        check_threshold(threshold)
    if out is not None:
        ResultsFolder(out).check_writable()
    problem = Problem.from_file(file)
    if epsilon is not None:
        problem = problem.replace(epsilon=epsilon)
    problem = with_goal(problem, stop_regret, budget)
    jobs = [(name, place) for place in _scenarios(scenario, problem) for name in names]
    earlier: list[Results] = []
    with executor_at(cluster) as executor:
        for samples in (*_smaller_budgets(problem, plot), problem.budget):
            if samples is not None:
                problem = problem.replace(stop_when={"budget": samples})
            results = simulate_all(
                problem,
                jobs,
                runs=runs,
                means=given,
                delta=delta,
                seed=seed,
                threshold=threshold,
                tracking=tracking,
                noise=drawn,
                workers=workers,
                max_steps=max_steps,
                device=device,
                executor=executor,
            )
            earlier += results
    shown = earlier if plot is not None else results
    if trace is not None:
        write_trace(results, trace)
    _show(shown, out, plot, as_json)
    if trace is not None and not as_json:
        console().print(f"\nTraces: {trace}")
    exit_if_unfinished(results, jobs)


def _smaller_budgets(problem: "Problem", plot: Path | None) -> list[int]:
    """Budgets for a curve: an eighth, a quarter and a half of the problem's, if it has one."""
    if plot is None or problem.budget is None:
        return []
    parts = (problem.budget // part for part in (8, 4, 2))
    return [samples for samples in parts if samples >= problem.size]


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
    """Read comma-separated names of samplers, or one file with commas in its name.

    Examples
    --------
    >>> parse_samplers("ctns, top-two,./mine.py")
    ['ctns', 'top-two', './mine.py']
    """
    if is_file(Path(text)):
        return [text]
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
    from simplexplore.problem.problem import EXPLORATION, SCENARIOS
    from simplexplore.problem.spelling import unknown

    if name is None:
        return (problem.scenario,)
    if name == "both":
        return SCENARIOS
    if name not in (*SCENARIOS, EXPLORATION):
        raise SettingError(unknown("scenario", name, (*SCENARIOS, "both")))
    return (name,)


def simulate_all(
    problem: "Problem",
    jobs: list[tuple[str, str]],
    *,
    means: list[float] | None = None,
    delta: float | None = None,
    threshold: str = defaults.THRESHOLD,
    tracking: str | None = None,
    noise: list[float] | None = None,
    runs: int,
    seed: int = 0,
    workers: int | None = None,
    max_steps: int | None = None,
    device: str = "cpu",
    executor: "Executor | None" = None,
) -> "list[Results]":
    """Simulate samplers one after the other; Ctrl-C keeps the runs that are finished."""
    from simplexplore.exploration.plan import prepare_simulation
    from simplexplore.simulation.simulate import check_counts, run_plan

    check_counts(runs=runs, seed=seed, workers=workers, max_steps=max_steps)
    plans: list[Plan] = []
    for name, scenario in jobs:
        plan = prepare_simulation(
            problem,
            means,
            name,
            threshold,
            delta=delta,
            scenario=scenario,
            tracking=tracking,
            is_capped=max_steps is not None,
            known=plans[0].bound if plans else None,
        )
        plans.append(plan)
    results: list[Results] = []
    with progress("runs") as bars:
        for number, (plan, (name, scenario)) in enumerate(zip(plans, jobs, strict=True), 1):
            place = f"{number}/{len(jobs)} " if len(jobs) > 1 else ""
            task = bars.add_task(f"{place}{name}, {scenario}", total=runs)

            def show(done: int, total: int, task: Any = task) -> None:
                bars.update(task, completed=done, total=total)

            try:
                result = run_plan(
                    plan,
                    runs=runs,
                    seed=seed,
                    noise=noise,
                    workers=workers,
                    max_steps=max_steps,
                    progress=show,
                    device=device,
                    executor=executor,
                )
            except KeyboardInterrupt:
                break
            if result.runs:
                results.append(result)
            if result.runs < result.runs_asked:
                break
    if not results:
        raise KeyboardInterrupt
    return results


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
