"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

ProblemFile = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="The problem, a TOML file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="D",
        show_default=False,
        help="Allowed probability of a wrong answer, instead of the file's.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(metavar="W", show_default="all cores", help="Runs at a time."),
]
