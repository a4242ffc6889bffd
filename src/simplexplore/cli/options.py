"""Arguments and options that several commands have."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplexplore.errors import MeansError, SettingError
from simplexplore.tabular import read_number

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem

ProblemFile = Annotated[Path, typer.Argument(metavar="FILE", help="The problem, a TOML file.")]


def number(name: str, metavar: str, text: str) -> Any:
    """An option whose value is a number, with a decimal point or a decimal comma."""
    return typer.Option(metavar=metavar, help=text, parser=lambda given: read_number(given, name))


Delta = Annotated[
    float | None,
    number("--delta", "D", "Allowed probability of a wrong answer, instead of the file's."),
]
Workers = Annotated[
    int | None, typer.Option(metavar="W", show_default="all cores", help="Runs at a time.")
]
Device = Annotated[
    str, typer.Option(metavar="cpu|gpu", help="Where to run: cpu, or this machine's gpu.")
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="A Dask scheduler to run on, as tcp://host:8786."),
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
    Path | None, typer.Option("--plot", metavar="OUT.png", help="Save a picture (png, pdf or svg).")
]
Means = Annotated[
    str | None,
    typer.Option(metavar="1,0.5,...", help="Mean reward of each arm, instead of the file's."),
]
Epsilon = Annotated[
    float | None, number("--epsilon", "E", "The loss of reward to accept, instead of the file's.")
]
StopRegret = Annotated[
    float | None,
    number("--stop-regret", "R", "Stop once no mix earns so much more than the answer."),
]

Budget = Annotated[
    int | None, typer.Option(metavar="N", help="Stop after so many samples, whatever the evidence.")
]
Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Instead of the file's: end-of-time, anytime, exploration; both (simulate).",
    ),
]
Threshold = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="When to stop: tilt, mixture, kk21 (proven), gk16, paper (not), a file (simulate).",
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="S", help="Of random choices: the same seed makes the same ones.")
]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_problem(
    file: Path, epsilon: float | None = None, regret: float | None = None, budget: int | None = None
) -> "Problem":
    """The problem in a file that somebody wrote, with what options say instead."""
    from simplexplore.problem.percentages import ask_about_percentages
    from simplexplore.problem.problem import Problem

    if regret is not None and budget is not None:
        raise SettingError("--stop-regret and --budget both say when to stop; keep one of them.")
    problem = Problem.from_file(file)
    ask_about_percentages(problem, str(file))
    changes: dict[str, object] = {} if epsilon is None else {"epsilon": epsilon}
    goal = {"regret": regret} if budget is None else {"budget": budget}
    if goal != {"regret": None}:
        changes["stop_when"] = goal
    return problem.replace(**changes)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be written, before there is anything to draw."""
    if path is not None:
        from simplexplore.report.canvas import check_plot_path

        check_plot_path(path)


def parse_means(text: str | None, option: str = "--means") -> list[float] | None:
    """Read comma-separated numbers, if any are given.

    Examples
    --------
    >>> parse_means("1, 0.5,-2e-1")
    [1.0, 0.5, -0.2]
    """
    if text is None:
        return None
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


def parse_time(text: str, option: str) -> float | None:
    """Read a length of time; None for "never".

    Examples
    --------
    >>> [parse_time(text, "--timeout") for text in ("15m", "1.5h", "30", "never")]
    [900.0, 5400.0, 30.0, None]
    """
    if text == "never":
        return None
    found = re.fullmatch(r"(\d+\.?\d*)([smhd]?)", text.strip())
    if found is None:
        raise SettingError(f"{option} {text!r}: write 90s, 15m, 12h, 7d or never.")
    return float(found[1]) * _UNITS[found[2] or "s"]


def parse_measurements(texts: list[str]) -> dict[str, float]:
    """Read measurements.

    Examples
    --------
    >>> parse_measurements(["toxicity=0.2", "response=-1e-3"])
    {'toxicity': 0.2, 'response': -0.001}
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = (part.strip() for part in text.rpartition("="))
        if not name:
            raise SettingError(f"--measured {text!r}: write a name and a number, toxicity=0.2.")
        if name in found:
            raise SettingError(f"--measured {name!r} is given twice.")
        found[name] = read_number(number, f"--measured {name}:")
    return found
