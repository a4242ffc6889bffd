"""The command ``bound``: how many samples it takes, before any is taken."""

from typing import Annotated

import typer

from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from . import options
from .terminal import show


def bound(
    file: options.ProblemFile,
    means: options.Means = None,
    delta: options.Delta = None,
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    plot: options.Plot = None,
    no_forecast: Annotated[
        bool,
        typer.Option("--no-forecast", help="Leave out what to expect, a second of simulations."),
    ] = False,
    trade_off: Annotated[
        bool,
        typer.Option(
            "--trade-off", help="Also samples by epsilon and delta, in 20 seconds at most."
        ),
    ] = False,
    per_week: Annotated[
        float | None,
        options.number("--per-week", "N", "With --trade-off: the samples of a week."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say which mix is best for given means, and how many samples it takes to find out."""
    from simplexplore.exploration import trade_off as trade_offs
    from simplexplore.exploration.lower_bound import lower_bound
    from simplexplore.report.bound_report import bound_document, bound_to_dict
    from simplexplore.report.trade_off_report import trade_off_document

    if per_week is not None and not trade_off:
        raise SettingError("--per-week is the pace of --trade-off; add that, or leave it out.")
    if no_forecast and trade_off:
        raise SettingError("--trade-off is a table of forecasts; leave out --no-forecast.")
    given = options.parse_means(means)
    options.check_plot(plot)
    problem = options.read_problem(file, epsilon, budget=budget)
    result = lower_bound(problem, given, delta)
    if plot is not None:
        from simplexplore.report.bound_figure import plot_bound

        plot_bound(result, plot)
    found = None
    if trade_off:
        asked = result.problem.replace(delta=result.delta)
        found = trade_offs.trade_off(asked, result.means, per_week=per_week)
    if as_json:
        data = bound_to_dict(result, forecasts=not no_forecast)
        typer.echo(to_json(data if found is None else {**data, "trade_off": found.to_dict()}))
        return
    document = bound_document(result, forecasts=not no_forecast)
    show(document if found is None else [*document, *trade_off_document(found)])
    if plot is not None:
        typer.echo(f"\nPicture: {plot}")
