"""Expected samples against simulations, and against the rule that they speak of."""

import json
import math

import numpy as np
import pytest

import simplexplore as sx
from commands import run
from nightly import crossed, some
from simplexplore.bound.information import Information
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.expected_evidence import ExpectedEvidence
from simplexplore.exploration.expected_student import ExpectedStudent
from simplexplore.exploration.plan import prepare_simulation
from simplexplore.geometry.edges import Edges
from simplexplore.kernels import pooled as pooled_kernel
from simplexplore.kernels import student, student_mixture
from simplexplore.kernels.information import refresh
from simplexplore.kernels.records import VERTEX
from simplexplore.kernels.tilt import tilt_evidence
from simplexplore.report.bound_json import bound_to_dict
from simplexplore.report.bound_text import expectation

SCENARIOS = ("end-of-time", "anytime")
PROBLEMS = {
    "meal": sx.catalog.instance("meal").problem,
    "meal-b": sx.catalog.instance("meal-b").problem,
    "coins": sx.Problem(
        ["a", "b", "c", "d"],
        {"first": "a + b <= 0.5", "second": "a <= 0.2"},
        sx.Bernoulli(),
        means=[0.9, 0.6, 0.5, 0.2],
    ),
    "counts": sx.Problem(3, {"first": "a1 <= 0.5"}, sx.Poisson(), means=[3.0, 2.0, 1.0]),
    "scores": sx.Problem(3, rewards=sx.Bounded(0.0, 10.0), means=[8.0, 5.0, 4.0]),
    "unsure": sx.catalog.instance("meal-b").problem.replace(
        rewards=sx.Gaussian("unknown", sigma_guess=(1.0, 0.5, 2.0))
    ),
    "equally unsure": sx.catalog.instance("meal-b").problem.replace(
        rewards=sx.Gaussian("unknown", sigma_guess=1.0, equal_sigma=True)
    ),
}


@pytest.mark.parametrize(("name", "scenario"), crossed(PROBLEMS, SCENARIOS))
def test_simulations_agree(name, scenario):
    """The mean of 300 runs is known to 3.5%; to be off by 15% more has a probability of 1e-6."""
    problem = PROBLEMS[name].replace(scenario=scenario)
    for delta in (0.3, 0.001):
        results = sx.simulate(problem, sampler="top-two", threshold="tilt", delta=delta, runs=300)
        expected = sx.expected_samples(sx.lower_bound(problem, delta=delta))
        assert expected == pytest.approx(results.stopping_times.mean(), rel=0.25)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("star", {"exploration": ["each >= 0.1"], "scenario": "exploration"}),
        ("eight-arms", {"costs": [5, 5, 1, 1, 1, 1, 1, 1], "scenario": "anytime"}),
        ("triangle", {"costs": [1, 2, 1, 4, 1], "scenario": "end-of-time"}),
    ],
)
def test_within_limits_of_exploration_and_with_costs(name, changes):
    instance = sx.catalog.instance(name)
    problem = instance.problem.replace(means=instance.means, delta=0.1, **changes)
    bound = sx.lower_bound(problem)
    results = sx.simulate(problem, runs=200, seed=5)
    expected = sx.expected_samples(bound)
    assert expected == pytest.approx(results.stopping_times.mean(), rel=0.25)
    each = bound.scenarios[problem.scenario].cost_per_sample
    assert expected * each == pytest.approx(results.costs.mean(), rel=0.25)


@pytest.mark.parametrize("name", some(sx.catalog.names(), "star", "meal-b", "gaussian-2"))
def test_smaller_delta_takes_longer(name):
    problem = sx.catalog.instance(name).problem
    for scenario in SCENARIOS:
        bounds = [sx.lower_bound(problem, delta=delta) for delta in (0.3, 0.1, 0.01, 1e-6)]
        expected = [sx.expected_samples(bound, scenario) for bound in bounds]
        assert expected == sorted(expected)
        assert all(
            e > b.scenarios[scenario].lower_bound for e, b in zip(expected, bounds, strict=True)
        )
        assert expected == [sx.expected_samples(bound, scenario) for bound in bounds]


def test_special_answers():
    tied = sx.lower_bound(sx.Problem(3), [1.0, 1.0, 0.0])
    assert sx.expected_samples(tied) == math.inf
    assert bound_to_dict(tied)["scenarios"]["anytime"]["expected_samples"] is None
    assert expectation(tied) == []
    single = sx.lower_bound(sx.Problem(2, {"half": "a1 == 0.5"}), [1.0, 0.0])
    assert sx.expected_samples(single) == 0
    within = sx.lower_bound(sx.Problem(3), [1.0, 0.5, 0.0], epsilon=0.1)
    assert sx.expected_samples(within) is None
    assert bound_to_dict(within)["scenarios"]["end-of-time"]["expected_samples"] is None


@pytest.mark.parametrize("rewards", [sx.Gaussian(1.0), sx.Bernoulli(), sx.Poisson()])
def test_ties_elsewhere_do_no_harm(rewards):
    """Arms that are alike, but not part of the answer: policies tie, the best one does not."""
    rows = {"first": "a1 + a2 <= 0.5", "second": "a1 + 2*a3 + a5 <= 0.6"}
    tied = sx.lower_bound(sx.Problem(5, rows, rewards), [0.9, 0.5, 0.5, 0.7, 0.5])
    close = sx.lower_bound(sx.Problem(5, rows, rewards), [0.9, 0.5, 0.501, 0.7, 0.499])
    for scenario in SCENARIOS:
        expected = sx.expected_samples(tied, scenario)
        assert expected == pytest.approx(sx.expected_samples(close, scenario), rel=0.05)


def test_arms_are_played_before_anything_is_computed():
    rewards = sx.Gaussian("unknown", sigma_guess=1e-6)
    easy = sx.lower_bound(sx.Problem(3, rewards=rewards), [1.0, 0.5, 0.0], delta=0.3)
    assert sx.expected_samples(easy) >= 9


def test_every_arm_is_played_once():
    easy = sx.lower_bound(sx.Problem(6), [1000.0, 0.0, 0.0, 0.0, 0.0, 0.0], delta=0.3)
    assert sx.expected_samples(easy) == 6


def test_units_change_nothing():
    small = sx.lower_bound(sx.Problem(3, rewards=sx.Gaussian(1.0)), [0.3, 0.2, 0.0])
    large = sx.lower_bound(sx.Problem(3, rewards=sx.Gaussian(100.0)), [30.0, 20.0, 0.0])
    assert sx.expected_samples(small) == pytest.approx(sx.expected_samples(large), rel=1e-9)
    for pooled in (False, True):
        near, far = (
            sx.Problem(3, rewards=sx.Gaussian("unknown", sigma_guess=guess, equal_sigma=pooled))
            for guess in (1.0, 100.0)
        )
        small = sx.lower_bound(near, [0.3, 0.2, 0.0])
        large = sx.lower_bound(far, [30.0, 20.0, 0.0])
        assert sx.expected_samples(small) == pytest.approx(sx.expected_samples(large), rel=1e-9)
    coin = sx.lower_bound(sx.Problem(3, rewards=sx.Bernoulli()), [0.3, 0.2, 0.1])
    score = sx.lower_bound(sx.Problem(3, rewards=sx.Bounded(-1.0, 9.0)), [2.0, 1.0, 0.0])
    assert sx.expected_samples(coin) == pytest.approx(sx.expected_samples(score), rel=1e-9)


def test_more_directions_than_a_word_can_count():
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 100, (10, 300)) / 100
    problem = sx.Problem(300, (rows, rows.mean(axis=1) * 1.05))
    bound = sx.lower_bound(problem, rng.normal(size=300), delta=0.1)
    assert bound.samples < sx.expected_samples(bound) < 100 * bound.samples


def test_many_edges():
    means = np.linspace(0.0, 1.0, 300)
    bound = sx.lower_bound(sx.Problem(300), means, delta=0.1)
    assert bound.samples < sx.expected_samples(bound) < 30 * bound.samples


@pytest.mark.parametrize("name", ["triangle", "eight-arms", "bernoulli-1", "bernoulli-2"])
def test_evidence_is_that_of_the_rule(name):
    """At the closest alternative: no less than the certified minimum, and close to it."""
    instance = sx.catalog.instance(name)
    plan = prepare_simulation(instance.problem, None, "top-two", "tilt")
    bound, engine = plan.bound, Engine(plan)
    information = Information(
        bound._edges, bound._edges.gaps(bound.means), bound.means, instance.problem.rewards
    )
    n = np.round(12 * bound.characteristic_time * bound.allocation) + 20
    statistics, evidence = ExpectedEvidence(information).at(n)
    engine.table.explore()
    engine._forget_growth()
    table, state, memory = engine._arrays
    state.mean[:] = state.clipped[:] = instance.problem.rewards.to_unit(bound.means)
    state.n[:] = n
    (state.integers[VERTEX],) = engine.table.right_answers(bound.means)
    refresh(engine._setting, table, state)
    first = table.first_edge[state.integers[VERTEX]]
    directions = engine.directions()
    for e, direction in enumerate(bound._edges.dense(len(n))):
        (same,) = np.flatnonzero(np.abs(directions - direction).max(axis=1) < 1e-9)
        value = state.value[same]
        assert statistics[e] == pytest.approx(value, rel=1e-9)
        least = tilt_evidence(
            engine._setting, table, state, memory, first + same, value, -math.inf, math.inf
        )
        if value < 20:  # beyond, other mixtures take part, and nobody asks
            assert least - 1e-6 <= evidence[e] <= least + 0.6


@pytest.mark.parametrize("pooled", [False, True])
def test_evidence_is_that_of_the_rule_where_sigma_is_unknown(pooled):
    """Some alternatives are looked at, so that it is no less than the least; and close to it."""
    rng = np.random.default_rng(4)
    work = np.zeros((student_mixture.ROWS, 3))
    for size in (2, 3, 3, 2):
        n, v = np.exp(rng.uniform(3, 8, size)).round(), rng.uniform(0.3, 1.0, size)
        edges = Edges(np.arange(size)[None], -v[None], lambda _: {})
        gap = math.sqrt(2 * rng.uniform(5, 12) * float((v * v / n).sum()))
        means = np.where(np.arange(size) == 0, gap / v[0], 0.0)
        information = Information(edges, np.array([gap]), means, sx.Gaussian(1.0))
        statistics, evidence = ExpectedStudent(information, pooled).at(n)
        work[student_mixture.N, :size], work[student_mixture.COEFFICIENT, :size] = n, v
        if pooled:
            total = float(n.sum())
            prior = pooled_kernel.prior_of(total)
            least = pooled_kernel.share_well(work, size, gap, total, prior)[0]
            least = value = least + pooled_kernel.constant_of(total, prior)
        else:
            for i in range(size):
                student_mixture.put_arm(work, i)
            value = student.descend(work, size, gap, -math.inf)
            least = student.certified(work, size, gap, value, -math.inf, math.inf)
        assert least - 0.02 <= evidence[0] <= value + 0.5
        assert evidence[0] < statistics[0]


def test_commands_say_it(tmp_path):
    file = tmp_path / "star.toml"
    sx.catalog.instance("star").problem.to_file(file)
    bound = sx.lower_bound(sx.Problem.from_file(file))
    found = json.loads(run("bound", file, "--json").stdout)["scenarios"]
    for scenario in SCENARIOS:
        assert found[scenario]["expected_samples"] == sx.expected_samples(bound, scenario)
    (sentence,) = expectation(bound)
    assert sentence in " ".join(run("bound", file).stdout.split())
    assert sentence.startswith("Expect about 3")
    assert sentence.endswith(f"fewer than {bound.samples:.4g}.")
