"""The catalogue against an independent copy of the paper's instances, tests/data/truth.json."""

import numpy as np
import pytest

import simplexplore as sx
from instances import EXAMPLES, TRUTH

# Names here, and there.
KNOWN = {
    "triangle": "exp1",
    "star": "exp2",
    "eight-arms": "ptns8",
    "movies": "imdb_sigma1.33",
    "bernoulli-1": "bern_app1",
    "bernoulli-2": "bern_app2",
    "gaussian-1": "gauss_app1",
    "gaussian-2": "gauss_app2",
}


def test_every_instance_but_the_meals_is_known_elsewhere():
    assert set(sx.catalog.names()) == {"meal", "meal-a", "meal-b", *KNOWN}


@pytest.mark.parametrize("name", KNOWN)
def test_instances_are_those_of_the_paper(name):
    truth, found = TRUTH[KNOWN[name]], sx.catalog.instance(name)
    problem = found.problem
    assert problem.means.tolist() == truth["mu"]
    assert problem.delta == truth["delta"]
    assert problem.rewards.name == truth["family"]
    if truth["family"] == "gaussian":
        assert problem.rewards.sigmas(problem.size) == pytest.approx(truth["sigma"])
    # All rows as "at most".
    rows, limits = problem.matrix.copy(), problem.upper.copy()
    above = np.isfinite(problem.lower)
    rows[above], limits[above] = -rows[above], -problem.lower[above]
    assert rows.tolist() == truth["B"]
    assert limits.tolist() == truth["c"]


@pytest.mark.parametrize("name", sx.catalog.names())
def test_the_printed_optimum_is_optimal(name):
    found = sx.catalog.instance(name)
    bound = sx.lower_bound(found.problem)
    assert not bound.ties
    if found.optimum is None:
        return
    used = {arm: x for arm, x in zip(bound.problem.arms, bound.policy.tolist(), strict=True) if x}
    # Printed to two decimals.
    assert used == pytest.approx(dict(found.optimum), abs=0.005)


@pytest.mark.parametrize("name", ["bernoulli-1", "bernoulli-2", "movies"])
def test_runs_of_the_paper(name):
    assert sx.catalog.instance(name).runs == 500
    assert sx.catalog.instance("star").runs == 1000


def test_movies_have_their_own_noise_and_are_told_the_largest():
    movies = sx.catalog.instance("movies")
    assert movies.noise == tuple(TRUTH["imdb_hetero"]["sigma"])
    assert movies.problem.rewards.sigmas(12).tolist() == [max(movies.noise)] * 12


@pytest.mark.parametrize("name", ["star", "movies"])
def test_examples_are_the_same_problems(name):
    assert sx.catalog.instance(name).problem == sx.Problem.from_file(EXAMPLES / f"{name}.toml")


def test_person_a_is_harder_and_person_b_easier_in_both_scenarios():
    bounds = {
        name: sx.lower_bound(sx.catalog.instance(name).problem)
        for name in ("meal", "meal-a", "meal-b")
    }
    for scenario in ("end-of-time", "anytime"):
        times = {n: b.scenarios[scenario].characteristic_time for n, b in bounds.items()}
        assert times["meal-b"] < times["meal"] < times["meal-a"]
    # Both must mix; closed forms: one edge decides for A, with gap 1/5: 8 / gap^2.
    assert bounds["meal-a"].policy.tolist() == [0.75, 0.0, 0.25]
    assert bounds["meal-b"].policy.tolist() == pytest.approx([0.8, 0.0, 0.2])
    assert bounds["meal-a"].characteristic_time == pytest.approx(8 / 0.2**2)


def test_unknown_instance():
    with pytest.raises(sx.SettingError, match=r"no instance 'stars'\. Did you mean 'star'\?"):
        sx.catalog.instance("stars")
