"""Films, users and ratings: against what can be worked out by hand."""

import math

import numpy as np
import pytest

import simplexplore as sx
from paper.ratings import WEIGHTS, GenreTable, environment, rate, read_genres

FIVE = ("action", "drama", "family", "horror", "war")


def table(rows, genres=FIVE):
    titles = tuple(f"film {i}" for i in range(len(rows)))
    return GenreTable(titles, genres, np.array(rows, dtype=bool))


def exact_rating(part):
    """Mean and standard deviation of clip(round(5 part + 3 U), 1, 5)."""
    edges = [1.5, 2.5, 3.5, 4.5]
    below = [min(max((edge - 5 * part) / 3, 0.0), 1.0) for edge in edges]
    shares = np.diff([0.0, *below, 1.0])
    mean = shares @ np.arange(1, 6)
    return mean, math.sqrt(shares @ (np.arange(1, 6) - mean) ** 2)


def test_ratings_are_as_worked_out():
    # With five genres every user has all of them as favourites, in random order.
    films = table([[0] * 5, [1] * 5, [1, 0, 0, 0, 0], [1, 1, 0, 0, 0]])
    users = 40_000
    ratings = rate(films, np.random.default_rng(3), users)
    assert ratings.shape == (users, 4)
    assert set(np.unique(ratings)) <= {1, 2, 3, 4, 5}
    assert (ratings[:, 1] == 5).all()
    total = sum(WEIGHTS)
    pairs = [a + b for i, a in enumerate(WEIGHTS) for j, b in enumerate(WEIGHTS) if i != j]
    for film, likings in ((0, [0.0]), (2, WEIGHTS), (3, pairs)):
        moments = [exact_rating(x / total) for x in likings]
        mean = np.mean([m for m, _ in moments])
        spread = math.sqrt(np.mean([s**2 + m**2 for m, s in moments]) - mean**2)
        # Five standard errors: a false alarm has probability 6e-7.
        assert ratings[:, film].mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(users))


def test_the_table_of_the_package():
    films = read_genres()
    assert len(films.titles) == len(set(films.titles)) >= 40
    assert films.belongs.any(axis=1).all()
    assert films.belongs.any(axis=0).all()
    # The films of the paper have the genres that its table gives.
    movies = sx.catalog.instance("movies").problem
    for genre, members in movies.groups.items():
        column = films.belongs[:, films.genres.index(genre)]
        ours = {title for title, flag in zip(films.titles, column, strict=True) if flag}
        assert ours & set(movies.arms) == set(members)


def test_an_environment_is_a_problem_that_can_be_solved():
    made = environment(films=12, seed=5)
    assert made.problem.size == 12
    assert made.problem.names == ("little action", "some drama", "some family")
    assert made.deviations.tolist() == list(made.noise)
    assert made.problem.rewards.sigmas(12).tolist() == [max(made.noise)] * 12
    assert (made.means >= 1).all()
    assert (made.means <= 5).all()
    assert math.isfinite(sx.lower_bound(made.problem).samples)


def test_the_seed_decides():
    one, same, other = (environment(films=12, seed=seed) for seed in (5, 5, 6))
    assert one.problem == same.problem
    assert one.noise == same.noise
    assert one.problem.arms != other.problem.arms
    everything = environment(seed=1).problem
    assert everything.arms == environment(seed=2).problem.arms
    assert everything.means.tolist() != environment(seed=2).problem.means.tolist()


def test_limits_of_ones_own():
    made = environment(limits=["horror + western <= 0.2", "`sci-fi` >= 0.1"], seed=1)
    assert made.problem.names == ("c1", "c2")
    use = made.problem.matrix @ sx.lower_bound(made.problem).policy
    assert use[0] <= 0.2 + 1e-12
    assert use[1] >= 0.1 - 1e-12


def test_a_table_of_ones_own(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text(
        "\ufeffgenres,title\naction,A\ndrama|war,B\nfamily| horror,C\n", encoding="utf-8"
    )
    lists = read_genres(path)
    assert (lists.titles, lists.genres) == (("A", "B", "C"), FIVE)
    assert lists.belongs.sum(axis=1).tolist() == [1, 2, 2]
    made = environment(path, ["war >= 0.2"])
    made.problem.to_file(tmp_path / "films.toml")
    assert sx.Problem.from_file(tmp_path / "films.toml") == made.problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "5 favourite genres, and the table has 0"),
        ("title,genres\n", "5 favourite genres, and the table has 0"),
        ("name,genres\nA,war\n", "row 2: it must have the columns 'title' and 'genres'"),
        ("title,genres\nA,war,drama\n", "row 2: it must have the columns"),
        ("title,genres\nA\n", "row 2: it must have the columns"),
        ("title,genres\nA,war\nA,drama\n", "row 3: 'A' stands in the table twice"),
        ("title,genres\n ,war\n", "row 2: the title is empty"),
        ("title,genres\nA,war|drama\n", "5 favourite genres, and the table has 2"),
    ],
)
def test_tables_that_are_none(tmp_path, text, message):
    path = tmp_path / "films.csv"
    path.write_text(text)
    with pytest.raises(sx.SettingError, match=f"films.csv.*{message}"):
        read_genres(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(sx.SettingError, match="cannot read it: No such file"):
        read_genres(tmp_path / "none.csv")
    (tmp_path / "odd.csv").write_bytes(b"title,genres\n\xff\xfe")
    with pytest.raises(sx.SettingError, match="not a text file in UTF-8"):
        read_genres(tmp_path / "odd.csv")


def test_a_genre_that_no_film_drawn_has():
    with pytest.raises(sx.ConstraintError, match=r"unknown arm 'family'(.|\n)*None of the films"):
        environment(films=12, seed=0)
    with pytest.raises(sx.ConstraintError, match="unknown arm 'comdy'; did you mean 'comedy'"):
        environment(limits=["comdy <= 0.1"])
    with pytest.raises(sx.SettingError, match=r"films must be from 1 to 45.*got 46"):
        environment(films=46)
