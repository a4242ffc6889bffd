"""The command ``bound``: how many samples it takes, before any is taken."""

import typer

from simplexplore.report.json_text import to_json

from .options import (
    AsJson,
    Budget,
    Delta,
    Epsilon,
    Means,
    Plot,
    ProblemFile,
    SigmaGuess,
    parse_means,
    with_goal,
    with_guess,
)
from .terminal import console


def bound(
    file: ProblemFile,
    means: Means = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    budget: Budget = None,
    sigma_guess: SigmaGuess = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Say which mix is best for given means, and how many samples it takes to find out."""
    from simplexplore.bound.bound import lower_bound
    from simplexplore.problem.problem import Problem
    from simplexplore.report.bound_json import bound_to_dict

    given = None if means is None else parse_means(means)
    if plot is not None:
        from simplexplore.report.bound_plot import plot_bound
        from simplexplore.report.page import check_plot_path

        check_plot_path(plot)
    problem = with_guess(with_goal(Problem.from_file(file), None, budget), sigma_guess)
    result = lower_bound(problem, given, delta, epsilon)
    if plot is not None:
        plot_bound(result, plot)
    if as_json:
        typer.echo(to_json(bound_to_dict(result)))
        return
    from simplexplore.report.bound_table import print_bound

    screen = console()
    print_bound(result, screen)
    if plot is not None:
        screen.print(f"\nPicture: {plot}")
