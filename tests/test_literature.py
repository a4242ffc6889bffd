"""The samplers of the literature in examples/samplers: they compile, end, and are rarely wrong."""

import numpy as np
import pytest

import simplexplore as sx
from instances import EXAMPLES

FILES = sorted((EXAMPLES / "samplers").glob("*.py"))
RUNS, DELTA = 60, 0.2

# A rate of 0.2 gives more than this of 60 with probability below 1e-6 (8e-7, binomial).
MOST_WRONG = 28

PROBLEMS = {
    "best arm": sx.Problem(3, means=[1.0, 0.4, 0.0]),
    "mix": sx.Problem(list("abc"), {"cap": "a <= 0.5", "half": "c <= 0.6"}, means=[1.5, 0.5, 0.0]),
    "unused": sx.Problem(list("abcd"), {"off": "d <= 0"}, means=[1.5, 0.5, 0.0, 2.0]),
    "bernoulli": sx.Problem(
        list("abc"), ["a + b <= 0.7"], rewards=sx.Bernoulli(), means=[0.9, 0.4, 0.1]
    ),
}


def test_there_are_some():
    names = [file.stem for file in FILES]
    assert names == ["eb_tci", "frank_wolfe", "halving", "lagex", "lucb", "racing", "t3c"]


@pytest.mark.parametrize(
    ("means", "published"),
    [
        ([0.5, 0.45, 0.43, 0.4], [0.417, 0.390, 0.136, 0.057]),
        ([0.3, 0.21, 0.2, 0.19, 0.18], [0.336, 0.251, 0.177, 0.132, 0.104]),
    ],
)
def test_allocations_of_garivier_and_kaufmann(means, published):
    """Their table 1 (2016), to every printed digit."""
    bound = sx.lower_bound(sx.Problem(len(means), rewards=sx.Bernoulli(), means=means, delta=0.1))
    assert np.round(bound.allocation, 3) == pytest.approx(published)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_short_and_names_its_source(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert "(20" in text.split('"""')[1]


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_right_answers_with_a_proven_threshold(file, problem):
    for scenario in ("end-of-time", "anytime"):
        result = sx.simulate(
            problem, sampler=str(file), delta=DELTA, scenario=scenario, runs=RUNS, seed=7,
            max_steps=20_000,
        )  # fmt: skip
        assert result.is_proven
        assert not result.capped.any()
        assert int((~result.correct).sum()) <= MOST_WRONG
        assert not result.pulls[:, 3:].any()  # no policy uses a fourth arm
        # No sampler can do better than the bound.
        times = result.stopping_times
        error = float(times.std(ddof=1)) / np.sqrt(RUNS)
        assert times.mean() + 5 * error >= result.lower_bound


@pytest.mark.parametrize("name", ["eb_tci", "frank_wolfe", "lucb", "racing"])
def test_arms_above_a_threshold(name):
    """Edges of one arm each, on either side."""
    problem = sx.Problem(
        3, means=[1.0, 0.2, 0.0], question=sx.Question("threshold", at=0.5), delta=DELTA
    )
    result = sx.simulate(
        problem, sampler=str(EXAMPLES / "samplers" / f"{name}.py"), runs=RUNS, seed=5,
        max_steps=20_000,
    )  # fmt: skip
    assert not result.capped.any()
    assert int((~result.correct).sum()) <= MOST_WRONG


def test_learned_limits():
    toxicity = sx.Measured("toxicity", "<= 0.5", means=[1.0, 0.0], sigma=1.0)
    problem = sx.Problem(2, means=[1.0, 0.0], epsilon=0.3, delta=DELTA, measured=[toxicity])
    file = str(EXAMPLES / "samplers" / "lagex.py")
    ours, theirs = (
        sx.simulate(problem, sampler=sampler, runs=30, seed=4, max_steps=20_000)
        for sampler in ("ctns", file)
    )
    assert not theirs.capped.any()
    assert int((~theirs.correct).sum()) <= 18  # more of 30 have a probability below 1e-6
    assert theirs.stopping_times.mean() < 1.3 * ours.stopping_times.mean()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_pulls_follow_the_limits_on_average(file):
    problem = PROBLEMS["mix"]
    result = sx.simulate(
        problem, sampler=str(file), delta=1e-3, scenario="anytime", runs=10, seed=3
    )
    use = result.constraint_use()
    assert use["cap"] <= 0.5 + 1e-9
    assert use["half"] <= 0.6 + 1e-9
