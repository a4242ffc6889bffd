"""Costs of pulls in runs, results and studies: money is spent well, counted and shown."""

import json
from pathlib import Path

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from instances import paper
from nightly import crossed
from pictures import assert_texts_apart, results_figure, texts
from simplexplore import SAMPLERS
from simulated import RESULT_KEYS
from tables import results_table, status_table

# Newton's method in 30 digits: instance, costs and least cost of cases A1, A3 and A4.
COSTLY = json.loads((Path(__file__).parent / "data" / "truth_costs.json").read_text())
LABORATORY = Path(__file__).parents[1] / "examples" / "laboratory.toml"


def problem_of(name):
    """A case with its limits on samples, as limits on exploration."""
    truth = COSTLY[name]
    plain = paper(truth["instance"]).replace(costs=truth["costs"], scenario="end-of-time")
    if not truth["above"]:
        return plain
    rows = (truth["above"], truth["limit"])
    return plain.replace(exploration=rows, scenario="exploration")


@pytest.mark.parametrize(
    ("name", "sampler"), crossed(["A1", "A3", "A4"], ["top-two", "ctns", "cge"], every=3)
)
def test_at_known_means_the_least_cost_is_approached(name, sampler):
    """Without noise runs are deterministic; shares of pulls tend to the best allocation."""
    problem, least = problem_of(name), float(COSTLY[name]["characteristic_time"])
    # Forced exploration falls like 1 / sqrt(t), and so does the regret of cge.
    close, steps = {"top-two": (1.03, 30_000), "ctns": (1.05, 30_000), "cge": (1.06, 300_000)}[
        sampler
    ]
    known = {"noise": 1e-9, "delta": 1e-300, "threshold": "gk16", "max_steps": steps, "runs": 1}
    counts = sx.simulate(problem, None, sampler, **known).pulls[0]
    bound = sx.lower_bound(problem)
    assert bound.characteristic_time == pytest.approx(least, rel=1e-9)
    assert least * (1 - 1e-9) <= bound.time_of(counts) <= close * least
    blind = sx.simulate(problem.replace(costs=None), problem.means, sampler, **known).pulls[0]
    assert bound.time_of(counts) < bound.time_of(blind)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_equal_costs_change_nothing_but_the_unit(sampler):
    plain = problem_of("A4").replace(costs=None, delta=0.1)
    dear = plain.replace(costs=[2.5] * plain.size)
    given = {"runs": 3, "seed": 4, "threshold": "gk16", "max_steps": 2000}
    one, other = (sx.simulate(p, None, sampler, **given) for p in (plain, dear))
    assert one.pulls.tolist() == other.pulls.tolist()
    assert other.costs.tolist() == (2.5 * other.stopping_times).tolist()
    assert other.lower_bound == pytest.approx(2.5 * one.lower_bound, rel=1e-9)


def test_limits_hold_pull_by_pull_with_costs():
    rows = ["c <= 0.2", "a + 2*b <= 0.9"]  # d alone keeps both
    costs = [9.0, 1.0, 3.0, 0.2]
    problem = sx.Problem(list("abcd"), exploration=rows, scenario="exploration", costs=costs)
    for sampler in ("top-two", "cge"):
        explorer = sx.Explorer(problem, sampler, delta=1e-9, seed=1)
        rng, means, spent = np.random.default_rng(2), {"a": 1, "b": 0.8, "c": 0.5, "d": 0.4}, 0.0
        for _ in range(300):
            arm = explorer.ask()
            spent += costs["abcd".index(arm)]
            explorer.tell(arm, means[arm] + rng.normal())
            n, t = explorer.counts, explorer.pulls
            assert n[2] <= 0.2 * t + 1e-6
            assert n[0] + 2 * n[1] <= 0.9 * t + 1e-6
        assert explorer.cost == pytest.approx(spent)


def test_results_are_in_money_and_in_samples(tmp_path):
    problem = problem_of("A1").replace(delta=0.1)
    given = {"runs": 40, "seed": 3, "threshold": "gk16"}
    results = [sx.simulate(problem, None, sampler, **given) for sampler in ("top-two", "uniform")]
    for result in results:
        summary = result.summary()
        money = result.pulls @ np.array(COSTLY["A1"]["costs"])
        assert {*RESULT_KEYS, "cost", "lower_bound_samples"} <= set(summary)
        assert summary["cost"]["mean"] == pytest.approx(money.mean())
        assert summary["cost"]["max"] == money.max()
        assert summary["stopping_time"]["mean"] == pytest.approx(result.stopping_times.mean())
        own = result.bound.scenarios["end-of-time"]
        assert summary["lower_bound"] == own.lower_bound
        assert summary["lower_bound_samples"] == own.lower_bound / own.cost_per_sample
    sx.save_results(results, tmp_path / "runs")
    assert [one.summary() for one in sx.load_results(tmp_path / "runs")] == [
        one.summary() for one in results
    ]
    text = results_table(results)
    assert "costs 1 to 4, " in text
    least = f"{results[0].lower_bound:,.0f}"
    assert f"Cost until stopping, end-of-time (lower bound: {least})" in text
    for result in results:
        assert f"{np.median(result.costs):,.0f}" in text
        assert f"{result.stopping_times.mean():,.0f} ±" in text
    figure = results_figure(results)
    words = [text.get_text() for text in texts(figure)]
    assert any(word.startswith("Cost until the best mix is known") for word in words)
    assert {"samples", f"lower bound {least}"} <= set(words)
    samples = f"{results[0].stopping_times.mean():,.0f} ±"
    assert any(word.startswith(samples) for word in words)
    assert_texts_apart(figure)


def test_command_with_costs():
    given = ("simulate", LABORATORY, "--runs", "2", "--threshold", "gk16", "--json")
    (found,) = json.loads(run(*given).stdout)["results"]
    assert found["cost"]["mean"] > found["stopping_time"]["mean"]


def test_study_counts_money(sqlite_url):
    problem = sx.Problem(list("abc"), ["a <= 0.6"], costs=[4.0, 1.0, 0.5], delta=0.1)
    rng, means = np.random.default_rng(0), {"a": 1.0, "b": 0.4, "c": 0.0}
    study = sx.Study.create(sqlite_url, "lab", problem, "ctns", threshold="mixture", seed=1)
    assert study.status()["cost"] == 0.0
    assert study.status()["cost_to_go"] is None
    for _ in range(60):
        (pull,) = study.ask(1)
        study.tell(pull.id, means[pull.arm] + rng.normal())
    study.ask(5)
    status = study.status()
    assert json.loads(json.dumps(status, allow_nan=False)) == status
    handed = np.array([arm["rewards"] + arm["pending"] for arm in status["arms"]])
    assert handed.sum() == 65
    assert status["cost"] == pytest.approx(handed @ problem.costs)
    assert 0.5 * status["to_go"] <= status["cost_to_go"] <= 4.0 * status["to_go"]
    low, high = status["cost_to_go_range"]
    assert low <= status["cost_to_go"]
    assert high is None or high >= status["cost_to_go"]
    assert f"Cost: {status['cost']:g} so far, about " in status_table(status)
    plain = sx.Study.create(sqlite_url, "plain", problem.replace(costs=None)).status()
    assert not any(key.startswith("cost") for key in plain)
