"""Every file in examples/ loads, can be solved, and says what it claims to."""

import math

import pytest

import simplexplore as sx
from instances import EXAMPLES


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_example(path):
    problem = sx.Problem.from_file(path)
    bound = sx.lower_bound(problem)
    assert not bound.ties
    assert sum(bound.policy) == pytest.approx(1)
    end, anytime = bound.scenarios["end-of-time"], bound.scenarios["anytime"]
    assert 0 < end.characteristic_time <= anytime.characteristic_time * (1 + 1e-8)
    assert end.characteristic_time <= bound.characteristic_time * (1 + 1e-8) < math.inf
    close = 1e-3 if bound.problem.measured else 1e-8  # a plan's is that of a search
    assert bound.relative_gap <= close
    assert max(end.relative_gap, anytime.relative_gap) <= close
    assert bound.redundant == ()
    assert bound.forced_to_zero == ()


def test_movies_are_those_of_the_paper():
    bound = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "movies.toml"))
    shares = dict(zip(bound.problem.arms, bound.policy.tolist(), strict=True))
    used = {arm: share for arm, share in shares.items() if share}
    assert used == {"The Net": 0.3, "Happily N'Ever After": 0.3, "Das Boot": 0.4}
    times = {name: s.characteristic_time for name, s in bound.scenarios.items()}
    assert times["end-of-time"] == pytest.approx(1149.35124991, rel=1e-8)
    assert times["anytime"] == pytest.approx(2165.79364813, rel=1e-8)


def test_meal_and_trial_are_mixes_that_their_limits_shape():
    meal = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "meal.toml"))
    assert meal.policy == pytest.approx([12 / 39, 16 / 39, 11 / 39])
    assert meal.active == ("energy", "price", "total")
    trial = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "trial.toml"))
    assert trial.problem.rewards.name == "bernoulli"
    assert trial.active == ("toxicity", "control", "low >= 0", "combination >= 0", "total")


def test_limits_and_costs_shape_how_to_explore():
    traffic = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "traffic.toml"))
    assert traffic.problem.scenario == "exploration"
    assert traffic.allocation == pytest.approx([0.3, 0.05, 0.05, 0.2987, 0.3013], abs=1e-4)
    laboratory = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "laboratory.toml"))
    own = laboratory.scenarios["exploration"]
    assert own.allocation[:2].sum() == pytest.approx(1 / 3)
    assert own.spend[:2].sum() > 0.75
    assert laboratory.cost > 4 * laboratory.samples
    trial = sx.lower_bound(sx.Problem.from_file(EXAMPLES / "strict_trial.toml"))
    toxicity = trial.problem.exploration[0].coefficients
    assert toxicity @ trial.policy == pytest.approx(0.2)
    assert toxicity @ trial.allocation == pytest.approx(0.12)


def test_tastings_go_on_where_they_were(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    import tastings

    url = f"sqlite:///{tmp_path / 'tastings.db'}"
    study = tastings.run(url, days=9)  # interrupted in the second week
    assert not study.stopped
    assert len(capsys.readouterr().out.splitlines()) == 1  # one week's word
    study = tastings.run(url)
    assert study.answer["policy"] == pytest.approx([12 / 39, 16 / 39, 11 / 39])
    status = study.status()
    assert status["expired"] > 0
    assert study.verify()
    before = study.head
    assert tastings.run(url).head == before  # nothing is left to do
    whole = tastings.run(f"{url}-whole").status()
    assert whole["expired"] > whole["late"] > 0  # what was given up and found counts
