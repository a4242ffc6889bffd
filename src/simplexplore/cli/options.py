"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

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
