"""Forecasts against simulations with other seeds, of plans, budgets and runs under way."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from engines import engine_for
from instances import EXAMPLES
from nightly import some
from simplexplore.exploration.engine import streams
from simplexplore.exploration.forecast import samples_to_go
from tables import bound_to_dict, expectation

UNKNOWN = sx.Gaussian("unknown", sigma_guess=1.0)


def example(name, **changes):
    return sx.Problem.from_file(EXAMPLES / f"{name}.toml").replace(**changes)


PROBLEMS = {
    "meal": example("meal"),
    "meal within 0.1": example("meal", epsilon=0.1),
    "meal, unknown sigma": example("meal", rewards=UNKNOWN),
    "meal, unknown sigma, within 0.2": example("meal", rewards=UNKNOWN, epsilon=0.2),
    "meal, counts": example("meal", rewards=sx.Poisson(), epsilon=0.2),
    "meal, a regret": example("meal", stop_when={"regret": 0.2}),
    "laboratory": example("laboratory"),
    "star within 0.02": example("star", epsilon=0.02),
    "coins": sx.Problem(3, {"cap": "a1 <= 0.6"}, sx.Bernoulli(), means=[0.9, 0.5, 0.2]),
    "scores": sx.Problem(3, rewards=sx.Bounded(0.0, 10.0), means=[8.0, 5.0, 4.0]),
    "dose": example("dose_mix"),
}


@pytest.mark.parametrize(
    "name", some(PROBLEMS, "meal", "meal within 0.1", "meal, unknown sigma", "coins", "dose")
)
def test_simulations_agree(name):
    """Both means are known to 5% or better: to be off by a quarter has a probability below 1e-6.

    `simulate` takes no seed of the forecast's, whose runs have 20240502.
    """
    problem = PROBLEMS[name]
    found = sx.forecast(sx.lower_bound(problem))
    results = sx.simulate(problem, runs=300, seed=1)
    times = results.stopping_times
    assert found.error < 0.05
    assert found.ease == 1.0
    assert found.samples == pytest.approx(times.mean(), rel=0.25)
    assert found.cost == pytest.approx(results.costs.mean(), rel=0.25)
    # Four in five of 300: outside of 190 to 282 with a probability below 1e-6, if the ends were
    # exact; they are those of 50 runs or more.
    assert 160 <= ((times >= found.low) & (times <= found.high)).sum() <= 290


def test_a_forecast_repeats():
    bound = sx.lower_bound(PROBLEMS["meal"])
    assert sx.forecast(bound) == sx.forecast(bound)
    one, other = (sx.forecast_budget(bound, 50).to_dict() for _ in range(2))
    assert one == other


@pytest.mark.parametrize("known", [True, False], ids=["known sigma", "unknown sigma"])
def test_long_runs_have_less_noise(known):
    """Samples are in proportion to the variance, but for logarithms of their number."""

    def found(sigma):
        rewards = sx.Gaussian(sigma) if known else sx.Gaussian("unknown", sigma_guess=sigma)
        return sx.forecast(sx.lower_bound(sx.Problem(2, rewards=rewards), [1.0, 0.0], delta=0.1))

    short, long = found(10.0), found(1000.0)
    assert (short.ease, long.ease) == (1.0, pytest.approx(4 ** round(math.log(long.ease, 4))))
    assert long.ease > 100
    assert 0.7 < long.samples / short.samples / 1e4 < 1.5


def test_long_runs_of_counts_are_as_if_normal():
    counts = sx.lower_bound(sx.Problem(2, rewards=sx.Poisson()), [1000.0, 999.0])
    normal = sx.lower_bound(sx.Problem(2, rewards=sx.Gaussian(1000**0.5)), [1000.0, 999.0])
    assert sx.forecast(counts).ease > 1.0
    assert sx.forecast(counts).samples == pytest.approx(sx.forecast(normal).samples, rel=0.25)


def test_many_arms_take_fewer_forced_pulls_the_longer_runs_are():
    """Of 100 arms long runs force a twentieth of their pulls, those with less noise a seventh."""
    problem = sx.random_instances(1, arms=100, constraints=1, hardness=20_000.0, seed=31)[0].problem
    found = sx.forecast(sx.lower_bound(problem))
    times = sx.simulate(problem, runs=20, seed=1).stopping_times
    assert found.ease > 1.0
    assert found.samples == pytest.approx(times.mean(), rel=0.25)


def test_special_answers():
    tied = sx.lower_bound(sx.Problem(3), [1.0, 1.0, 0.0])
    assert sx.forecast(tied) is None
    own = bound_to_dict(tied)["scenarios"]["anytime"]
    assert (own["expected_samples"], own["expected_range"]) == (None, None)
    assert expectation(tied) == []
    # With a goal that ties do not matter for, runs end.
    goal = sx.lower_bound(sx.Problem(3, stop_when={"regret": 0.5}), [1.0, 1.0, 0.0])
    assert 10 < sx.forecast(goal).samples < 1000
    single = sx.lower_bound(sx.Problem(2, {"half": "a1 == 0.5"}), [1.0, 0.0])
    assert sx.forecast(single).samples == 0
    assert sx.forecast_budget(single, 10).error_probability == 0.0
    easy = sx.lower_bound(sx.Problem(6), [1000.0, 0.0, 0.0, 0.0, 0.0, 0.0], delta=0.3)
    assert sx.forecast(easy).samples == 6  # every arm once


def test_what_cannot_be_explored_has_no_forecast():
    """No arm is known to be safe, nor how bad one can be: samples cannot keep the limit."""
    bound = sx.lower_bound(example("dose_mix"))
    with pytest.raises(sx.SettingError, match="in the scenario 'anytime' an arm is tried only"):
        sx.forecast(bound, "anytime")
    found = bound_to_dict(bound)["scenarios"]
    assert found["anytime"]["expected_samples"] is None
    assert found["end-of-time"]["expected_samples"] > 1000
    many = sx.lower_bound(sx.Problem(1001, means=[1.0] + [0.0] * 1000))
    (sentence,) = expectation(many)
    assert sentence.startswith("Samples to expect are not known: no more than 1,000 arms")


def test_guesses_of_measurements_count():
    """With less of the side effect than the file says the limit does not matter."""
    problem = example("dose_mix")
    harmless = sx.lower_bound(problem, measured_means={"toxicity": [0.0] * problem.size})
    assert sx.forecast(harmless).samples != sx.forecast(sx.lower_bound(problem)).samples


# ---------------------------------------------------------------- commands


def test_commands_say_it():
    file = EXAMPLES / "laboratory.toml"
    bound = sx.lower_bound(sx.Problem.from_file(file))
    found = json.loads(run("bound", file, "--json").stdout)["scenarios"]
    for scenario, own in found.items():
        expected = sx.forecast(bound, scenario)
        assert own["expected_samples"] == expected.samples
        assert own["expected_range"] == [expected.low, expected.high]
        assert own["expected_cost"] == expected.cost
    text = " ".join(run("bound", file).stdout.split())
    (sentence,) = expectation(bound)
    assert sentence in text
    assert sentence.startswith("Expect about 7,8")
    assert "in four runs of five (200 runs simulated)." in sentence


def test_no_forecast_needs_no_compiler():
    """Nor does the bound in Python."""
    file = str(EXAMPLES / "laboratory.toml")
    script = f"""
import json, sys
import simplexplore as sx
sx.lower_bound(sx.Problem.from_file({file!r}))
from simplexplore.cli.app import main
for more in ["--json"], ["--budget", "100", "--json"], []:
    try:
        main(["bound", {file!r}, "--no-forecast", *more])
    except SystemExit as end:
        assert not end.code, end.code
assert not {{"numba", "llvmlite"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    first, second, *table = done.stdout.splitlines()
    for own in json.loads(first)["scenarios"].values():
        assert {own["expected_samples"], own["expected_cost"], own["expected_range"]} == {None}
    assert json.loads(second)["budget"] == {
        "samples": 100,
        "error_probability": None,
        "error_range": None,
        "allocation": None,
    }
    assert "Expect" not in "".join(table)


# ---------------------------------------------------------------- runs under way


@pytest.mark.parametrize("name", ["meal", "coins"])
def test_the_rest_of_a_run_is_in_its_range(name):
    """Four in five of them, about: 7 in 10 at least.

    As if the moments of a run were one, of 60 runs fewer than 4 in 10 have a probability of 1e-6.
    """
    problem, moments, found = PROBLEMS[name], (30, 100, 250), []
    engine = engine_for(problem, sampler="top-two", threshold="tilt")
    means, noise = np.array(problem.means), problem.rewards.sigmas(problem.size)
    for words in streams(7, range(60)):
        seen = []
        for stopped in engine.played(means, noise, words, 10**6):
            if engine.pulls in moments and not stopped:
                before = {name: array.copy() for name, array in engine.workspace.state().items()}
                seen.append((engine.pulls, samples_to_go(engine)))
                for part, array in engine.workspace.state().items():
                    np.testing.assert_array_equal(array, before[part])  # only looked at
        found += [rest.low <= engine.pulls - at <= rest.high for at, rest in seen]
    assert len(found) > 60
    assert np.mean(found) > 0.4
    assert np.mean(found) < 0.95


def test_a_run_that_will_not_end_has_no_number_of_samples_to_go():
    """Arms that have been equal for so long may be equal: half of the draws take too long."""
    problem = sx.Problem(2, delta=0.01)
    engine = engine_for(problem, sampler="top-two", threshold="tilt")
    engine.begin(streams(1, range(1))[0])
    for _ in range(400):
        for arm in range(2):
            engine.observe(arm, 0.0)
    engine.advance()
    rest = samples_to_go(engine)
    assert rest.high == math.inf
    assert rest.low > 100
