"""A fixed number of samples: rates against ground truth and exact probabilities, runs that stop."""

import itertools
import json
import math

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import simplexplore as sx
from commands import run
from engines import engine_for, follow, uncompiled
from instances import paper
from simplexplore.bound.budget import swapped
from simplexplore.errors import ProblemError, SettingError, StoppedError
from simplexplore.problem.families import Bernoulli, Bounded, Gaussian, Poisson
from simplexplore.problem.stop_when import StopWhen
from simplexplore.report.results_plot import results_figure
from simplexplore.report.results_table import print_results
from simulated import made_up

THREE = {"cap": "a1 <= 0.6"}

# Times of fixed budgets to the last digit shown: a multiplicative solver and cutting planes agree.
TIMES = {
    "bern_app1": 367.4523637169,
    "bern_app2": 804.6295991520,
}


def budget_of(problem, samples=1000, **options):
    return sx.lower_bound(problem, budget=samples, **options).budget


@pytest.mark.parametrize("name", TIMES)
def test_times_of_the_papers_instances(name):
    found = budget_of(paper(name))
    assert found.characteristic_time == pytest.approx(TIMES[name], rel=2e-9)
    assert found.relative_gap < 1e-8


def test_times_of_small_problems():
    two = budget_of(sx.Problem(2, rewards=Bernoulli(), means=[0.7, 0.4]))
    assert two.characteristic_time == pytest.approx(20.9592508737, rel=2e-9)
    np.testing.assert_allclose(two.allocation, [0.49447264, 0.50552736], atol=1e-6)
    three = budget_of(sx.Problem(3, THREE, Bernoulli(), means=[0.7, 0.5, 0.4]))
    assert three.characteristic_time == pytest.approx(210.0052927570, rel=2e-9)
    stars = sx.Problem(3, THREE, Bounded(1.0, 5.0), means=[3.8, 3.0, 2.6])
    assert budget_of(stars).characteristic_time == pytest.approx(210.0052927570, rel=2e-9)


def test_gaussian_rewards_have_the_times_of_the_bound():
    problem = paper("exp1")
    for scenario in ("end-of-time", "anytime"):
        bound = sx.lower_bound(problem.replace(scenario=scenario), budget=3000)
        assert bound.budget.characteristic_time == pytest.approx(
            bound.characteristic_time, rel=1e-8
        )
    unknown = problem.replace(rewards=Gaussian("unknown", sigma_guess=problem.rewards.sigma))
    found = budget_of(unknown, 3000)
    assert found.error_probability == pytest.approx(0.039, abs=5e-4)  # as if sigma were known


def test_two_arms_against_their_exact_error():
    """Equal shares of coins and counts: the exponent is that of sums of binomials."""
    samples = 400
    for rewards, means in ((Bernoulli(), [0.7, 0.5]), (Poisson(), [1.5, 1.1])):
        kind = stats.binom if rewards.name == "bernoulli" else stats.poisson

        def law(mean, kind=kind, n=samples // 2):
            return (n, mean) if kind is stats.binom else (n * mean,)

        k = np.arange(2000)
        wrong = kind.pmf(k, *law(means[0])) @ kind.sf(k, *law(means[1]))
        ties = kind.pmf(k, *law(means[0])) @ kind.pmf(k, *law(means[1]))
        found = budget_of(sx.Problem(2, rewards=rewards, means=means), samples)
        assert found.error_probability == pytest.approx(wrong + ties / 2, rel=0.1)


@pytest.mark.parametrize(
    ("family", "mu"), [(Bernoulli(), 0.3), (Bounded(), 0.999), (Poisson(), 2.5)]
)
def test_swapped_tilts(family, mu):
    """lam(s) minimises d(lam, mu) + s lam, and no digit is lost at either end."""
    one = np.ones(1)
    other = swapped(family)

    def cost(lam):
        return family.divergence(np.array([lam]), np.array([mu]), one)[0]

    for s in (-3.0, -0.2, 0.0, 0.4, 30.0):
        at = other.tilt(np.array([mu]), np.array([1 - mu]), np.array([s]), np.array([1 + s]), one)
        lam = at.mean[0]
        own = other.cost(np.array([mu]), np.array([1 - mu]), at, one)[0]
        assert own == pytest.approx(cost(lam), rel=1e-9, abs=1e-15)
        assert at.shift[0] == pytest.approx(lam - mu, abs=1e-15)
        for near in (lam * (1 - 1e-4), min(lam * (1 + 1e-4), (1 + lam) / 2 if mu < 1 else 1e9)):
            assert cost(near) + s * near >= own + s * lam - 1e-15
    assert other.tilt(
        np.array([mu]), np.array([1 - mu]), np.array([700.0]), np.array([701.0]), one
    ).mean[0] == pytest.approx(0.0, abs=1e-300)


def test_more_samples_make_surer_and_ties_say_nothing():
    problem = paper("exp2")
    errors = [budget_of(problem, n).error_probability for n in (10, 300, 1000, 2000)]
    assert errors[0] == 1.0
    assert errors[1:] == pytest.approx([0.486, 0.066, 0.005], abs=6e-4)
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))
    tied = budget_of(sx.Problem(3, means=[1.0, 1.0, 0.0]))
    assert (tied.error_probability, tied.characteristic_time) == (None, math.inf)
    single = budget_of(sx.Problem(2, {"only": "a1 == 1"}, means=[1.0, 0.0]))
    assert (single.error_probability, single.characteristic_time) == (0.0, 0.0)


def test_an_explorer_stops_when_all_is_spent():
    problem = sx.Problem(3, THREE, stop_when={"budget": 40}, delta=0.5)
    explorer = sx.Explorer(problem, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        assert not explorer.stopped
        arm = explorer.ask()
        # The evidence is enough long before: a budget is spent to the last sample.
        explorer.tell(arm, 10.0 * (arm == "a2") + rng.standard_normal())
    assert explorer.stopped
    assert explorer.ask() is None
    assert explorer.pulls == 40
    assert explorer.policy.tolist() == [0.0, 1.0, 0.0]
    assert explorer.confidence > 0.99
    assert explorer.regret_bound == 0.0


def slow_halving(policies, budget, draw, size):
    """Arms of sequential halving, step by step, in the plainest words."""
    left = list(range(len(policies)))
    sums, n, target = np.zeros(size), np.zeros(size), np.zeros(size)
    arms, w, end = [], None, -1.0
    for t in range(budget):
        if t < size:
            arm = t
            target += 1 / size
        else:
            if w is not None and len(left) > 1 and t >= end:
                earned = policies[left] @ (sums / n)
                order = np.argsort(-earned, kind="stable")[: (len(left) + 1) // 2]
                left, w = sorted(left[i] for i in order), None
            if w is None:
                differ = np.ptp(policies[left], axis=0) > 1e-12
                w = differ / differ.sum() if differ.any() else np.full(size, 1 / size)
                end = t + (budget - t) / max(1, math.ceil(math.log2(len(left))))
            target += w
            arm = int(np.argmin(np.where(w > 0, n - target, np.inf)))
        sums[arm] += draw(arm, int(n[arm]))
        n[arm] += 1
        arms.append(arm)
    return arms


def test_halving_against_a_slow_twin():
    problem = paper("exp1").replace(stop_when={"budget": 90})
    rewards = np.random.default_rng(3).normal(problem.means, 1, (90, problem.size)).T
    engine = uncompiled(engine_for(problem, "halving", threshold="tilt"))
    arms = follow(engine, rewards, 1000)
    policies = engine._setting.policies
    assert len(policies) == 9
    slow = slow_halving(policies, 90, lambda a, k: rewards[a, k], problem.size)
    assert arms == slow
    with pytest.raises(SettingError, match="halving sampler needs to know how many samples"):
        sx.Explorer(paper("exp1"), "halving")


def test_what_is_refused_and_what_is_written():
    with pytest.raises(ProblemError, match="a budget of 2 samples is too little: each of 3 arms"):
        sx.Explorer(sx.Problem(3), stop_when={"budget": 2})
    problem = sx.Problem(3, stop_when=StopWhen(budget=300))
    assert "stop_when = {budget = 300}" in problem.to_text()
    assert sx.Problem.from_text(problem.to_text()) == problem
    assert repr(problem).endswith("stops at 300 samples>")
    assert problem.accepted_regret == 0.0


def test_a_study_stops_with_what_it_knows(tmp_path):
    problem = sx.Problem(["x", "y"], stop_when={"budget": 6})
    with sx.Study.create(f"sqlite:///{tmp_path}/s.db", "s", problem) as study:
        for _ in range(6):
            assert study.status()["answer"] is None
            (pull,) = study.ask(1)
            study.tell(pull.id, 1.0 * (pull.arm == "x"))
        status = study.status()
        answer = status["answer"]
        words = study.answer_in_words
    assert (status["state"], status["stop_when"], status["proven"]) == (
        "stopped",
        {"budget": 6},
        False,
    )
    assert answer["mix"] == {"x": 1.0}
    assert answer["rewards"] == 6
    assert answer["confidence"] == status["confidence"] < 0.9
    assert answer["regret_bound"] == status["regret_bound"] > 0
    assert words.startswith(
        "The answer, after 6 samples (delta is not guaranteed), with confidence "
    )


def test_a_study_hands_out_no_more_than_its_budget(tmp_path):
    problem = sx.Problem(["x", "y"], stop_when={"budget": 5})
    with sx.Study.create(f"sqlite:///{tmp_path}/s.db", "s", problem) as study:
        first = study.ask(3)
        rest = study.ask(9, key="k")
        assert len(rest) == 2
        assert study.ask(9, key="k") == rest
        with pytest.raises(StoppedError, match="has handed out all 5 pulls of its budget"):
            study.ask(1)
        for pull in (*first, *rest):
            study.tell(pull.id, 0.5)
        assert study.stopped
        assert study.answer["rewards"] == 5
        with pytest.raises(StoppedError, match=r"The budget is spent: .* create another study\."):
            study.ask(1)


def test_commands(tmp_path):
    file = tmp_path / "two.toml"
    file.write_text('arms = ["a", "b"]\nmeans = [0.7, 0.4]\n[rewards]\nfamily = "bernoulli"\n')
    found = json.loads(run("bound", file, "--budget", "100", "--json").stdout)["budget"]
    assert found["samples"] == 100
    assert found["characteristic_time"] == pytest.approx(20.9592508737, rel=1e-8)
    assert 0 < found["error_probability"] < 0.01
    assert len(found["allocation"]) == 2
    text = " ".join(run("bound", file, "--budget", "100").stdout.split())
    assert "With 100 samples, spread as well as possible, the best-looking mix is wrong" in text


def test_pictures_and_tables_of_error_rates():
    star = paper("exp2")
    results = [
        made_up(star.replace(stop_when={"budget": n}), sampler, wrong=wrong)
        for n, rates in ((500, (20, 10)), (1000, (9, 1)), (2000, (4, 0)))
        for sampler, wrong in zip(("uniform", "halving"), rates, strict=True)
    ]
    (axes,) = results_figure(results).axes
    assert axes.get_label() == "errors 0"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["500", "1,000", "2,000"]
    names = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert names["halving"] < names["uniform"]
    console = Console(width=80, record=True, markup=False)
    print_results(results[-2:], console)
    shown = " ".join(console.export_text().split())
    assert "Wrong answers after 2,000 samples" in shown
    assert "uniform 8% 2.2% and 19%" in shown
    assert "halving 0% 0% and 7.1%" in shown
    assert "planned, means known 0.52%" in shown
    assert "nothing guarantees that wrong answers are rarer than delta" in shown
    assert results[0].summary()["budget"]["samples"] == 500
    assert not results[0].is_proven


def test_compiled_runs_take_as_many_samples_as_there_are():
    problem = sx.Problem(3, THREE, means=[8.0, 4.0, 0.0], stop_when={"budget": 50})
    found = sx.simulate(problem, sampler="halving", runs=40, seed=1, workers=1)
    assert (found.stopping_times == 50).all()
    assert not found.capped.any()
    assert (found.pulls.sum(axis=1) == 50).all()
    # Every arm has eight samples or more in the first round: of 40 answers, none is wrong but with
    # probability 1e-13.
    assert found.correct.all()
