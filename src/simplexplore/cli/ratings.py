"""The command ``ratings``: a problem of films to recommend, from a table of genres."""

import json
from pathlib import Path
from typing import Annotated

import typer

from simplexplore.errors import SettingError

from .options import AsJson


def ratings(
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TABLE.csv]",
            show_default="films of our own",
            help="Genres of films: a column 'title', and 'genres' (a|b|c) or a column of 0 and 1 "
            "for each genre.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE.toml", help="The problem file to write.")
    ] = Path("films.toml"),
    films: Annotated[
        int | None,
        typer.Option(metavar="N", show_default="all", help="How many films to draw."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            show_default="action <= 0.3, drama >= 0.3, family >= 0.3",
            help="A constraint that uses genres; may be given several times.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="The same seed gives the same ratings.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a problem file of films that simulated users rate, as in the paper's experiment."""
    from simplexplore.problem.ratings import LIMITS, environment

    made = environment(table, limit or LIMITS, films=films, seed=seed)
    problem, noise = made.problem, made.deviations.tolist()
    told = f"{problem.rewards.sigmas(problem.size)[0]:.4g}"
    deviations = ", ".join(f"{x:.4g}" for x in noise)
    try:
        out.write_text(
            f"# Films to recommend: {made.source}.\n# Standard deviations of the ratings, in the "
            f"order of the arms: {deviations}.\n# As in the paper, samplers are told the largest "
            f"of them.\n{problem.to_text()}",
            encoding="utf-8",
        )
    except OSError as error:
        raise SettingError(f"cannot write {str(out)!r}: {error.strerror}.") from None
    if as_json:
        rated = [
            {
                "title": title,
                "mean": mean,
                "deviation": deviation,
                "genres": [genre for genre, of in problem.groups.items() if title in of],
            }
            for title, mean, deviation in zip(
                problem.arms,
                made.means.tolist(),
                noise,
                strict=True,
            )
        ]
        typer.echo(json.dumps({"problem": str(out), "seed": seed, "films": rated}))
        return
    typer.echo(f"{problem.size} films, {made.source}; stated standard deviation {told}: {out}")
    typer.echo(f"Next: simplexplore bound {out}")
