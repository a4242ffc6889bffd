"""A fixed number of samples: rates against ground truth and exact probabilities, runs that stop."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import reference_polytope
import simplexplore as sx
from commands import run
from engines import engine_for, follow
from instances import EXAMPLES, paper
from pictures import results_figure
from simplexplore import (
    Bernoulli,
    Gaussian,
    ProblemError,
    StoppedError,
)
from simulated import made_up
from tables import results_table

THREE = {"cap": "a1 <= 0.6"}
HALVING = str(EXAMPLES / "samplers" / "halving.py")


def test_two_coins_against_their_exact_error():
    """Shares of samples are near a half: then it is a sum over binomials, ties an even chance."""
    samples = 40
    problem = sx.Problem(2, rewards=Bernoulli(), means=[0.7, 0.5])
    found = sx.forecast_budget(sx.lower_bound(problem), samples)
    k = np.arange(samples)
    half = samples // 2
    wrong = stats.binom.pmf(k, half, 0.7) @ stats.binom.sf(k, half, 0.5)
    tied = stats.binom.pmf(k, half, 0.7) @ stats.binom.pmf(k, half, 0.5)
    low, high = found.error_range
    assert found.runs == 2000
    assert low < found.error_probability < high
    exact = stats.binomtest(round(2000 * found.error_probability), 2000).proportion_ci()
    assert (low, high) == pytest.approx((exact.low, exact.high))
    # The sampler does not spread samples quite evenly; 2,000 runs know this share to 0.007.
    assert found.error_probability == pytest.approx(wrong + tied / 2, abs=0.04)
    np.testing.assert_allclose(found.allocation, [0.5, 0.5], atol=0.1)


@pytest.mark.parametrize("samples", [300, 40_000])
def test_simulations_err_as_often(samples):
    """More samples than there is time for are fewer with less noise."""
    sigma = 1.0 if samples == 300 else 12.0
    problem = paper("exp2").replace(rewards=Gaussian(sigma), stop_when={"budget": samples})
    found = sx.forecast_budget(sx.lower_bound(problem))
    assert found.samples == samples
    wrong = 1 - sx.simulate(problem, runs=200, seed=2).correct.mean()
    spread = math.sqrt(0.25 * (1 / 200 + 1 / found.runs))
    assert 0.05 < wrong < 0.95
    assert abs(found.error_probability - wrong) < 5 * spread
    assert found.allocation.sum() == pytest.approx(1)


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
    engine = engine_for(problem, HALVING, threshold="tilt")
    arms = follow(engine, rewards, 1000)
    sides = reference_polytope.sides(
        problem.size,
        [
            (tuple(Fraction(repr(x)) for x in row), None, Fraction(repr(bound)))
            for row, bound in zip(problem.matrix.tolist(), problem.upper.tolist(), strict=True)
        ],
    )
    corners = reference_polytope.vertices(sides, problem.size)
    policies = np.array([[float(x) for x in corner] for corner in corners])
    assert len(policies) == 9
    slow = slow_halving(policies, 90, lambda a, k: rewards[a, k], problem.size)
    assert arms == slow


def test_what_is_refused_and_what_is_written():
    with pytest.raises(ProblemError, match="a budget of 2 samples is too little: each of 3 arms"):
        sx.Explorer(sx.Problem(3), stop_when={"budget": 2})
    problem = sx.Problem(3, stop_when={"budget": 300})
    assert "stop_when = {budget = 300}" in problem.to_text()
    assert sx.Problem.from_text(problem.to_text()) == problem
    assert repr(problem).endswith("stops at 300 samples>")


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
    low, high = found["error_range"]
    assert 0 <= low < found["error_probability"] < high < 0.03
    assert sum(found["allocation"]) == pytest.approx(1)
    text = " ".join(run("bound", file, "--budget", "100").stdout.split())
    assert "After 100 samples of top-two the answer is wrong with probability 0." in text
    assert "95% interval, 2,000 runs simulated). This is an estimate, not a guarantee" in text


def test_pictures_and_tables_of_error_rates():
    star = paper("exp2")
    results = [
        made_up(star.replace(stop_when={"budget": n}), sampler, wrong=wrong)
        for n, rates in ((500, (20, 10)), (1000, (9, 1)), (2000, (4, 0)))
        for sampler, wrong in zip(("uniform", "top-two"), rates, strict=True)
    ]
    (axes,) = results_figure(results).axes
    assert axes.get_label() == "errors 0"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["500", "1,000", "2,000"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["uniform", "top-two"]
    shown = " ".join(results_table(results[-2:]).split())
    assert "Wrong answers after 2,000 samples" in shown
    assert "uniform 8% 2.2% and 19%" in shown
    assert "top-two 0% 0% and 7.1%" in shown
    assert "nothing guarantees that wrong answers are rarer than delta" in shown
    assert not results[0].is_proven


def test_compiled_runs_take_as_many_samples_as_there_are():
    problem = sx.Problem(3, THREE, means=[8.0, 4.0, 0.0], stop_when={"budget": 50})
    found = sx.simulate(problem, sampler=HALVING, runs=40, seed=1, workers=1)
    assert (found.stopping_times == 50).all()
    assert not found.capped.any()
    assert (found.pulls.sum(axis=1) == 50).all()
    # Every arm has eight samples or more in the first round: of 40 answers, none is wrong but with
    # probability 1e-13.
    assert found.correct.all()
