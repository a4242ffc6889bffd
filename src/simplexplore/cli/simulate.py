"""The command ``simulate``: samplers run many times where the means are known."""

from contextlib import nullcontext, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.files import is_file
from simplexplore.report.json_text import to_json

from . import options
from .terminal import progress, show

if TYPE_CHECKING:
    from simplexplore.exploration.plan import Plan
    from simplexplore.problem.problem import Problem
    from simplexplore.problem.stop_when import StopWhen
    from simplexplore.simulation.results import Results


def simulate(
    file: options.ProblemFile,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="top-two, ctns, cge, ptns, uniform, oracle, or a file.",
        ),
    ] = defaults.SAMPLER,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of each sampler.")] = 100,
    seed: options.Seed = 0,
    scenario: options.Scenario = None,
    means: options.Means = None,
    delta: options.Delta = None,
    epsilon: options.Epsilon = None,
    stop_regret: options.StopRegret = None,
    budget: options.Budget = None,
    threshold: options.Threshold = defaults.THRESHOLD,
    tracking: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cumulative, direct, sampled or focused; or its own."),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="SD[,SD...]",
            help="Of rewards drawn, if samplers are told another. Bounded ones have Beta laws.",
        ),
    ] = None,
    workers: options.Workers = None,
    device: options.Device = "cpu",
    cluster: options.ClusterAddress = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            metavar="T",
            show_default=f"{defaults.MAX_STEPS:,}",
            help="End runs by then; they count as capped.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save all runs in a folder, to load again.")
    ] = None,
    plot: options.Plot = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="OUT.csv", help="Save how the first 10 runs went, as csv or json."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Run samplers many times where the means are known: how many samples, how often right."""
    from simplexplore.exploration.plan import prepare_simulation
    from simplexplore.problem.problem import SCENARIOS
    from simplexplore.report.results_report import results_document
    from simplexplore.simulation.blocks import cluster as cluster_at
    from simplexplore.simulation.results import save_results
    from simplexplore.simulation.results_files import ResultsFolder
    from simplexplore.simulation.simulate import check_counts
    from simplexplore.simulation.trace import check_threshold, check_trace_path, write_trace

    check_counts(runs=runs, seed=seed, workers=workers, max_steps=max_steps)
    given, drawn = options.parse_means(means), options.parse_means(noise, "--noise")
    samplers = parse_samplers(sampler)
    options.check_plot(plot)
    if trace is not None:
        check_trace_path(trace)
        check_threshold(threshold)
    if out is not None:
        ResultsFolder(out).check_writable()
    problem = options.read_problem(file, epsilon, stop_regret, budget)
    scenarios = SCENARIOS if scenario == "both" else (scenario,)
    plans = [
        prepare_simulation(
            problem,
            given,
            name,
            threshold,
            tracking=tracking,
            is_capped=max_steps is not None,
            delta=delta,
            scenario=where,
            stop_when=goal,
        )
        for goal, where, name in product(_goals(problem, plot), scenarios, samplers)
    ]
    with cluster_at(cluster) if cluster is not None else nullcontext() as executor:
        results = run_all(
            plans,
            runs=runs,
            seed=seed,
            noise=drawn,
            workers=workers,
            max_steps=max_steps,
            device=device,
            executor=executor,
        )
    if trace is not None:
        goal = problem.stop_when
        write_trace([one for one in results if one.plan.problem.stop_when == goal], trace)
    if out is not None:
        save_results(results, out)
    if plot is not None:
        from simplexplore.report.results_figure import plot_results

        plot_results(results, plot)
    if as_json:
        arms = list(problem.arms)
        typer.echo(to_json({"arms": arms, "results": [result.summary() for result in results]}))
    else:
        show(results_document(results))
        for name, path in (("Picture", plot), ("All runs", out), ("Traces", trace)):
            if path is not None:
                typer.echo(f"\n{name}: {path}")
    exit_if_unfinished(results, plans)


def _goals(problem: "Problem", plot: Path | None) -> "list[StopWhen | None]":
    """What ends runs; a picture also shows an eighth, a quarter and a half of a budget."""
    from simplexplore.problem.stop_when import StopWhen

    if plot is None or problem.budget is None:
        return [problem.stop_when]
    budgets = (problem.budget // part for part in (8, 4, 2))
    smaller = [StopWhen(budget=samples) for samples in budgets if samples >= problem.size]
    return [*smaller, problem.stop_when]


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


def run_all(plans: "list[Plan]", *, runs: int, **how: Any) -> "list[Results]":
    """Simulate plans one after the other; Ctrl-C keeps the runs that are finished."""
    from simplexplore.simulation.simulate import run_plan

    results: list[Results] = []
    with progress() as bars, suppress(KeyboardInterrupt):
        for i, plan in enumerate(plans, 1):
            place = f"{i}/{len(plans)} " if len(plans) > 1 else ""
            task = bars.add_task(f"{place}{_named(plan)}", total=runs)

            def show(done: int, _: int, task: Any = task) -> None:
                bars.update(task, completed=done)

            result = run_plan(plan, runs=runs, progress=show, **how)
            if result.runs:
                results.append(result)
            if result.runs < runs:
                break
    if not results:
        raise KeyboardInterrupt
    return results


def exit_if_unfinished(results: "list[Results]", plans: "list[Plan]") -> None:
    """Say what is missing after an interruption, and leave."""
    asked = results[0].runs_asked
    made = [result.runs for result in results] + [0] * (len(plans) - len(results))
    missing = [
        f"{asked - done:,} of {asked:,} runs of {_named(plan)}"
        for done, plan in zip(made, plans, strict=True)
        if done < asked
    ]
    if missing:
        typer.echo(f"Interrupted. Missing: {'; '.join(missing)}.", err=True)
        raise typer.Exit(130)


def _named(plan: "Plan") -> str:
    return f"{plan.sampler.name}, {plan.scenario}"
