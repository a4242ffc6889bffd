"""Films, users and ratings: environments like the paper's IMDB experiment, from any genre table.

Simulated users have favourite genres and rate every film between 1 and 5. A film is an arm,
its ratings are the rewards, and genres are what limits speak of. A small table of films lies
beside this file.

>>> films = environment(films=12, seed=1)
>>> films.problem
<Problem: 12 arms, 3 constraints, gaussian rewards, anytime, delta 0.1>
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import simplexplore as sx

Array = npt.NDArray[np.float64]

# As in the paper: how much a user likes their favourites, in order; the score of a film that
# has them all; how much of a rating is chance; users.
WEIGHTS = (20.0, 10.0, 5.0, 2.0, 2.0)
LIKING, CHANCE = 5.0, 3.0
USERS = 600
LOWEST, HIGHEST = 1, 5

FILMS = Path(__file__).with_name("films.csv")

LIMITS = {
    "little action": "action <= 0.3",
    "some drama": "drama >= 0.3",
    "some family": "family >= 0.3",
}


@dataclass(frozen=True, eq=False)
class GenreTable:
    """Which films belong to which genres.

    Attributes
    ----------
    titles, genres : tuple of str
    belongs : (films, genres) array of bool
    """

    titles: tuple[str, ...]
    genres: tuple[str, ...]
    belongs: npt.NDArray[np.bool_]

    def choose(self, films: int, rng: np.random.Generator) -> GenreTable:
        """Some of the films, drawn at random, in the order of the table."""
        chosen = np.sort(rng.choice(len(self.titles), films, replace=False))
        return GenreTable(tuple(self.titles[i] for i in chosen), self.genres, self.belongs[chosen])


def read_genres(path: str | os.PathLike[str] = FILMS) -> GenreTable:
    """Read a genre table: a CSV file with the columns ``title`` and ``genres`` (``drama|war``).

    Raises
    ------
    SettingError
        If the file cannot be read or is not such a table.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise sx.SettingError(f"{path}: cannot read it: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise sx.SettingError(f"{path}: this is not a text file in UTF-8.") from None
    sets: dict[str, set[str]] = {}
    for number, row in enumerate(rows, 2):
        if set(row) != {"title", "genres"} or None in row.values():
            raise sx.SettingError(
                f"{path}, row {number}: it must have the columns 'title' and 'genres', which the "
                "first row names. Put titles with commas in quotes."
            )
        title = row["title"].strip()
        if not title or title in sets:
            fault = f"{title!r} stands in the table twice" if title else "the title is empty"
            raise sx.SettingError(f"{path}, row {number}: {fault}.")
        sets[title] = {name.strip() for name in row["genres"].split("|") if name.strip()}
    genres = sorted(set().union(*sets.values()))
    if len(genres) < len(WEIGHTS):
        raise sx.SettingError(
            f"{path}: users have {len(WEIGHTS)} favourite genres, and the table has "
            f"{len(genres)}; add some."
        )
    belongs = np.array([[genre in of for genre in genres] for of in sets.values()])
    return GenreTable(tuple(sets), tuple(genres), belongs)


def rate(table: GenreTable, rng: np.random.Generator, users: int = USERS) -> npt.NDArray[np.int64]:
    """Let users with random favourites rate all films.

    A user's rating of a film is the part of their liking that the film's genres hold, scaled
    to 5, plus a uniform number up to 3, rounded and clipped to 1..5. The paper does not say
    how favourites are drawn, nor the value of its offset w_0: here all genres are as likely,
    and there is no offset.

    Returns
    -------
    (users, films) array of int
    """
    liking = np.zeros((users, len(table.genres)))
    for user in range(users):
        favourites = rng.choice(len(table.genres), len(WEIGHTS), replace=False)
        liking[user, favourites] = WEIGHTS
    part = liking @ table.belongs.T / sum(WEIGHTS)
    scores = LIKING * part + CHANCE * rng.random(part.shape)
    return np.clip(np.rint(scores), LOWEST, HIGHEST).astype(np.int64)


def environment(
    table: GenreTable | str | os.PathLike[str] = FILMS,
    limits: Mapping[str, str] | Sequence[str] = LIMITS,
    *,
    films: int | None = None,
    seed: int = 0,
    scenario: str = "anytime",
    delta: float = 0.1,
) -> sx.catalog.Instance:
    """Make a problem of films to recommend, the way the paper makes its IMDB experiment.

    Rewards are Gaussian with the mean and standard deviation of each film's ratings. Samplers
    are told the largest standard deviation; `Instance.noise` has the true ones.

    Parameters
    ----------
    table : GenreTable or path, optional
        Which films have which genres, see `read_genres`.
    limits : mapping or sequence of str
        Constraints in which genres may be used; default: at most 0.3 action, at least 0.3
        drama and 0.3 family.
    films : int, optional
        How many films to draw from the table; default: all.
    seed : int
        The same seed gives the same films and ratings.
    """
    genres = table if isinstance(table, GenreTable) else read_genres(table)
    total = len(genres.titles)
    if films is not None and not 1 <= films <= total:
        raise sx.SettingError(f"films must be from 1 to {total}, what the table has; got {films}.")
    choosing, rating = np.random.SeedSequence(seed).spawn(2)
    chosen = genres.choose(films or total, np.random.default_rng(choosing))
    ratings = rate(chosen, np.random.default_rng(rating))
    deviations = ratings.std(axis=0, ddof=1)
    groups = {
        genre: [chosen.titles[i] for i in np.flatnonzero(members)]
        for genre, members in zip(chosen.genres, chosen.belongs.T, strict=True)
        if members.any()
    }
    try:
        problem = sx.Problem(
            chosen.titles,
            limits if isinstance(limits, Mapping) else list(limits),
            sx.Gaussian(float(deviations.max())),
            scenario=scenario,
            delta=delta,
            groups=groups,
            means=ratings.mean(axis=0),
        )
    except sx.ConstraintError as error:
        absent = [genre for genre in chosen.genres if genre not in groups]
        if not absent:
            raise
        raise sx.ConstraintError(
            f"{error}\nNone of the films drawn is of these genres: {', '.join(absent)}. Draw more "
            "films, or others with another seed."
        ) from None
    source = f"simulated ratings of {USERS} users, seed {seed}"
    return sx.catalog.Instance("films", problem, source, runs=500, noise=tuple(deviations.tolist()))
