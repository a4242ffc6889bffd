"""Arguments and options that several commands have."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplexplore.errors import MeansError, SettingError

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem

ProblemFile = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="The problem, a TOML file.")
]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="D",
        show_default=False,
        help="Allowed probability of a wrong answer, instead of the file's.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(metavar="W", show_default="all cores", help="Runs at a time.")
]
Device = Annotated[
    str, typer.Option(metavar="cpu|gpu", help="Where to run: cpu, or this machine's gpu.")
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        show_default=False,
        help="Make the runs on a Dask cluster: its scheduler, such as tcp://host:8786.",
    ),
]
StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="SIMPLEXPLORE_STORE",
        help="Where studies are kept: sqlite:///file.db, a file's path, or "
        "postgresql://user@host/database.",
    ),
]
DEFAULT_STORE = "simplexplore.db"
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="OUT.png",
        show_default=False,
        help="Save a picture (png, pdf, svg, or pgf for LaTeX).",
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
StopRegret = Annotated[
    float | None,
    typer.Option(
        metavar="R",
        show_default=False,
        help="Stop once no mix earns so much more than the answer, instead of the file's "
        "stop_when.",
    ),
]

Budget = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        show_default=False,
        help="A fixed number of samples: stop there whatever the evidence, instead of the file's "
        "stop_when.",
    ),
]
SigmaGuess = Annotated[
    str | None,
    typer.Option(
        metavar="SD[,SD...]",
        show_default=False,
        help="A guess of unknown standard deviations, one for all arms or one each, instead of "
        "the file's sigma_guess.",
    ),
]


def with_goal(problem: "Problem", regret: float | None, budget: int | None) -> "Problem":
    """The problem with what the options say ends an exploration."""
    if regret is not None and budget is not None:
        raise SettingError("--stop-regret and --budget both say when to stop; keep one of them.")
    if regret is not None:
        problem = problem.replace(stop_when={"regret": regret})
    if budget is not None:
        problem = problem.replace(stop_when={"budget": budget})
    return problem


def with_guess(problem: "Problem", text: str | None) -> "Problem":
    """The problem with a guess of unknown standard deviations."""
    if text is None:
        return problem
    from simplexplore.problem.families import Gaussian

    if not isinstance(problem.rewards, Gaussian) or problem.rewards.knows_sigma:
        raise SettingError('--sigma-guess is for problems with sigma = "unknown".')
    guess = parse_means(text, "--sigma-guess")
    rewards = replace(problem.rewards, sigma_guess=guess[0] if len(guess) == 1 else tuple(guess))
    return problem.replace(rewards=rewards)


def quoting(error: typer.BadParameter, given: Sequence[str]) -> str:
    """What is wrong with the value of an option, which the message quotes.

    Parameters
    ----------
    error : typer.BadParameter
    given : sequence of str
        All arguments of the program.
    """
    names = tuple(getattr(error.param, "opts", ()))
    value = None
    for i, argument in enumerate(given):
        name, sign, after = argument.partition("=")
        if argument in names and i + 1 < len(given):
            value = given[i + 1]
        elif sign and name in names:
            value = after
    if value is None or value in error.message:
        return error.message
    share = re.fullmatch(r"(\d+\.?\d*)\s*%", value)
    if share:
        return f"{value!r} is not a number; write {float(share[1]) / 100:g}."
    if "integer" in error.message:
        return f"{value!r} is not a whole number."
    if "number" in error.message:
        return f"{value!r} is not a number."
    return f"{value!r}: {error.message}"


def parse_means(text: str, option: str = "--means") -> list[float]:
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
                f"{option} {text!r}: item {i}, {part.strip()!r}, is not a number; write one number "
                "per arm, separated by commas."
            ) from None
    return numbers
