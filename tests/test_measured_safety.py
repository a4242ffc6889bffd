"""Samples within measured limits, at the upper ends of what is plausible."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from commands import run
from engines import ASKED, EXPIRED, TOLD, engine_for, stream, streams
from measuring import records_for
from simplexplore import (
    Explorer,
    Gaussian,
    MeansError,
    Measured,
    Problem,
    ProblemError,
    SettingError,
    Study,
    lower_bound,
)
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.exploration.measured_evidence import EXCEEDED
from simplexplore.kernels.measured_limits import reach_of_known
from simplexplore.kernels.unknown_variance import reach_of_learned
from tables import bound_table, status_table

ARMS = ["strong", "weak", "placebo"]
MEANS = [1.0, 0.5, 0.0]
TOXICITY = Measured(
    "toxicity",
    0.4,
    sigma=0.2,
    tolerance=0.2,
    means=(0.9, 0.35, 0.1),
    domain=(0, 1),
    safe=("placebo",),
)


def trial(*rows, **changes):
    given = {"means": MEANS, "epsilon": 0.4, "delta": 0.2, "scenario": "anytime"}
    return Problem(ARMS, **{**given, "measured": rows or (TOXICITY,), **changes})


ROWS = {
    "known": TOXICITY,
    "unknown": replace(TOXICITY, sigma="unknown", sigma_guess=0.2),
    "bounded": replace(TOXICITY, sigma=None, domain=None, low=0, high=1),
    "from below": Measured(
        "health",
        ">= 0.6",
        sigma=0.2,
        tolerance=0.2,
        means=(0.1, 0.65, 0.9),
        domain=(0, 1),
        safe=["placebo"],
    ),
}


def simulated(problem, truth=None, runs=30, cap=2500, sampler="top-two"):
    """Outcomes, counts and true coefficients of runs; `truth` replaces these."""
    engine = engine_for(problem, sampler, threshold="tilt")
    (row,) = problem.measured
    if truth is not None:
        other = trial(replace(row, means=truth, safe=None), scenario="end-of-time")
        engine.workspace.plan = replace(engine.plan, problem=other)
    words = streams(2, range(runs))
    _, outcomes, counts, *_ = engine.simulate(np.array(MEANS), np.ones(3), words, cap)
    return outcomes, counts, row.signed(truth or row.means)


@pytest.mark.parametrize("kind", ROWS)
def test_no_prefix_of_the_samples_exceeds_the_limit_in_expectation(kind):
    """Of 30 runs with delta 0.2 no more than 18 do: more has probability 3e-7 if 0.2 is kept."""
    row = ROWS[kind]
    outcomes, counts, coefficients = simulated(trial(row))
    exceeded = outcomes & EXCEEDED > 0
    assert exceeded.sum() <= 18
    used = counts @ coefficients / counts.sum(axis=1)
    assert (used <= row.bound + 1e-9)[~exceeded].all()
    assert np.isin(outcomes, [0, EXCEEDED]).sum() >= 11
    # The harmful arm is tried all the same, and without the promise more often than allowed.
    assert (counts[:, 0] >= 3).all()
    _, counts, coefficients = simulated(trial(row, scenario="end-of-time"), runs=1, cap=9)
    assert counts @ coefficients > 9 * row.bound


def test_dear_arms_are_not_starved_by_cheaper_ones():
    """Room is saved for what a sampler asks for, though others are affordable meanwhile."""
    row = Measured(
        "toxicity",
        0.45,
        sigma="unknown",
        sigma_guess=0.5,
        tolerance=0.05,
        means=(0.9, 0.6, 0.3, 0.2),
        domain=(0, 1),
        safe=["a4"],
    )
    given = Problem(4, epsilon=0.1, measured=[row], scenario="anytime")
    engine = engine_for(given, "ctns", threshold="tilt")
    means = np.array([1.0, 0.8, 0.5, 0.3])
    counts = engine.simulate(means, np.ones(4), streams(0, range(1)), 1500).counts
    assert (counts >= 20).all()


def test_an_excess_is_seen():
    """Where what is said to be safe is not, every run says so."""
    outcomes, _, _ = simulated(trial(), truth=(0.9, 0.8, 0.7), runs=3, cap=50)
    assert (outcomes & EXCEEDED > 0).all()


def test_every_pull_is_affordable_by_what_is_known():
    """Against a slow twin, with pulls in flight, expired and known constraints beside it."""
    problem = trial(constraints=["strong <= 0.25", "weak <= 0.5"])
    engine = engine_for(problem, "uniform", threshold="tilt")
    engine.reset(stream(1))
    rng = np.random.default_rng(3)
    waiting, counts = [], np.zeros(3)
    upper = np.array([1.0, 1.0, 0.4])
    seen = [[], [], []]
    for step in range(150):
        arms = np.array([-1])
        engine.fold(np.array([ASKED]), arms, np.zeros(1))
        counts[arms[0]] += 1
        waiting.append(int(arms[0]))
        if arms[0] != 2:
            assert upper @ counts <= 0.4 * counts.sum() + 1e-9
        assert counts[0] <= 0.25 * counts.sum() + 1e-9
        assert counts[1] <= 0.5 * counts.sum() + 1e-9
        if len(waiting) == 4:
            arm = waiting.pop(int(rng.integers(4)))
            if step % 9 == 0:
                engine.fold(np.array([EXPIRED]), np.array([arm]), np.zeros(1))
                continue
            value = rng.normal(TOXICITY.means[arm], 0.2)
            engine.fold(np.array([TOLD]), np.array([arm]), np.zeros(1), np.array([[value]]))
            seen[arm].append(value)
            n = len(seen[arm])
            end = np.mean(seen[arm]) + 0.2 * reach_of_known(n, math.log(3 / 0.2))
            upper[arm] = min(upper[arm], end)
    assert counts[0] > 3
    assert engine.evidence.worst_use(0) == pytest.approx(upper @ counts / counts.sum())
    assert engine.evidence.worst_use(0) <= 0.4


def test_upper_ends_are_those_of_intervals_or_closer():
    _, _, work = records_for(trial(ROWS["unknown"]))
    for n in (3, 30, 400):
        found = reach_of_learned(work.hulls.arm, n, math.log(100.0))
        given, squares = (np.array([n]), np.zeros(1), 0.02), np.array([float(n)])
        high = mean_intervals(Gaussian("unknown"), *given, squares=squares)[1][0]
        assert found == pytest.approx(high, rel=1e-5)
        known = mean_intervals(Gaussian(), *given)[1][0]
        assert reach_of_known(n, math.log(100.0)) == pytest.approx(known, rel=0.25)


def refused(words, error=SettingError, problem=None, **changes):
    with pytest.raises(error, match=words):
        Explorer(problem or trial(**changes))


def test_what_cannot_be_promised_is_refused_in_words():
    refused(
        "nothing says how much toxicity that is: add 'domain",
        measured=[replace(TOXICITY, domain=None)],
    )
    refused(
        "none is: if there is one, name it in .measured.toxicity.",
        measured=[replace(TOXICITY, safe=None)],
    )
    refused("alone keeps all constraints, and none is", constraints=["placebo <= 0.9"])
    refused("write one as an inequality", constraints=["strong == weak"])
    refused("initial_excess does not go with measured limits", initial_excess=1.0)
    refused(
        "limits on exploration do not go with", exploration=["each >= 0.1"], scenario="exploration"
    )
    # A range of means that keeps the limit is enough.
    assert Explorer(trial(replace(TOXICITY, limit=1.0, safe=None))).ask() in ARMS
    for change, error, words in (
        ({"safe": ["x"]}, ProblemError, "safe names 'x', which is no arm"),
        ({"safe": ["strong"]}, ProblemError, "'strong' is said to be safe, but its mean 0.9"),
        ({"safe": "placebo"}, ProblemError, "safe must be a list of arms"),
        ({"safe": [1]}, ProblemError, r"safe must be a list of arms; got \[1\]"),
        ({"domain": (0.5, 1)}, MeansError, "outside .0.5, 1.; correct it, or the domain"),
        ({"domain": (1, 0)}, ProblemError, "low < high"),
        ({"sigma": None, "low": 0, "high": 1}, ProblemError, "domain does not go with low"),
    ):
        with pytest.raises(error, match=words):
            trial(replace(TOXICITY, **change))


def test_the_promise_is_said(tmp_path, sqlite_url):
    file = str(tmp_path / "trial.toml")
    row = replace(TOXICITY, means=(0.9, 0.1))
    given = Problem(
        ["strong", "placebo"],
        means=[1.0, 0.0],
        epsilon=0.4,
        delta=0.2,
        measured=[row],
        scenario="anytime",
    )
    given.to_file(file)
    assert Problem.from_file(file) == given
    words = "with probability 0.8, at every moment the true mean over all pulls handed out keeps"
    shown = " ".join(run("simulate", file, "--runs", "2", "--max-steps", "400").stdout.split())
    assert words in shown
    assert "In 0% of the runs that mean was above it at some moment." in shown
    bound = lower_bound(given)
    assert words in " ".join(bound_table(bound).split())
    assert "So they begin with placebo, known to keep the limits" in shown
    unsafe = given.replace(measured=[replace(row, safe=None)])
    with pytest.raises(SettingError, match="samples begin with an arm that is known to") as refused:
        Study.create(sqlite_url, "unsafe", unsafe)
    with pytest.raises(SettingError) as caught:  # the same words
        lower_bound(unsafe)
    assert str(caught.value) == str(refused.value)
    study, explorer = Study.create(sqlite_url, "dose", given, seed=1), Explorer(given, seed=1)
    for _ in range(30):
        (pull,) = study.ask()
        assert explorer.ask() == pull.arm
        toxicity = row.means[given.arms.index(pull.arm)]
        study.tell(pull, 0.5, measured={"toxicity": toxicity})
        explorer.tell(pull.arm, 0.5, {"toxicity": toxicity})
    status = study.status()
    assert words in status["promise"]
    (found,) = status["measured"]
    assert found["explored"] <= found["explored_worst"] <= 0.4
    assert explorer.measured[0].worst == found["explored_worst"]
    assert words in status_table(status)
    study.extend(1e-3)
    assert words in study.status()["promise"]  # of pulls made before, too
    assert study.verify()
