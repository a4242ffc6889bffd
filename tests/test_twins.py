"""The compiled step functions against the slow twin: the same arms step by step."""

import numpy as np
import pytest

from engines import SCENARIOS, engine_for, follow, quick, recommended, stream
from instances import TRUTH, drawn
from nightly import NIGHTLY, crossed
from simplexplore import SAMPLERS, Bernoulli, Bounded, Gaussian, Poisson, Problem
from twins import STOP, Twin

STEPS = 250 if NIGHTLY else 100

# Two groups of arms with a limit each; an equality; unequal deviations.
ROWS = ([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]], [0.5, 0.4])
MU = np.array([0.7, 0.42, 0.55, 0.36, 0.48])
COSTS = [3.0, 1.0, 0.5, 8.0, 2.0]


def gaussian(scenario):
    truth = TRUTH["gauss_app1"]
    return Problem(7, (truth["B"], truth["c"]), Gaussian(1.0), means=truth["mu"], scenario=scenario)


def hetero(scenario):
    rows = ["a + b <= 0.5", "c + d == 0.3", "a >= 0.1 + e"]
    rewards = Gaussian((0.5, 1.0, 0.7, 1.3, 0.9))
    return Problem(list("abcde"), rows, rewards, means=MU, scenario=scenario)


def bernoulli(scenario):
    return Problem(5, ROWS, Bernoulli(), means=MU, scenario=scenario)


def poisson(scenario):
    return Problem(5, ROWS, Poisson(), means=3 * MU, scenario=scenario)


def bounded(scenario):
    return Problem(5, ROWS, Bounded(-2.0, 3.0), means=5 * MU - 2, scenario=scenario)


def together(problem, sampler, tracking=None, seed=0, delta=1e-9, steps=STEPS):
    """Run both and compare everything at every step; returns the arms."""
    engine = quick(engine_for(problem, sampler, delta, tracking=tracking))
    words = stream(seed)
    arm = engine.begin(words)
    rule = "anytime" if engine.workspace.config.anytime else "end-of-time"
    tracking = tracking or engine.plan.sampler.tracking[rule]
    twin = Twin(engine, sampler, tracking, words, delta)
    rewards = drawn(problem, steps, [seed, 77])
    arms = []
    for step in range(steps):
        arms.append(arm)
        reward = float(rewards[arm, int(twin.n[arm])])
        engine.observe(arm, reward)
        twin.observe(arm, reward)
        arm = engine.advance()
        expected = twin.advance(engine.run)
        where = f"step {step + 1}"
        run = engine.run
        if engine.has_answer:
            vertex = engine.workspace.table.vertices[recommended(engine)]
            assert vertex.zero == twin.zero, where
            found = run.value[: len(twin.evidence)]
            assert np.allclose(found, twin.evidence, rtol=1e-8, atol=1e-10), where
        if expected is STOP:
            assert arm is None, where
            break
        assert arm == expected, where
        assert np.allclose(run.w, twin.w, rtol=0, atol=1e-6), where
        assert np.allclose(run.target, twin.target, rtol=0, atol=1e-5), where
        assert run.mean[0].tolist() == twin.mean.tolist(), where
    return arms


CASES = [gaussian, hetero, bernoulli, poisson, bounded]


def name_of(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(
    ("problem", "sampler", "scenario"), crossed(CASES, SAMPLERS, SCENARIOS), ids=name_of
)
def test_same_trajectory(problem, sampler, scenario):
    arms = together(problem(scenario), sampler)
    assert len(arms) == STEPS


@pytest.mark.parametrize(
    ("problem", "tracking"),
    crossed([hetero, bernoulli], ["cumulative", "direct", "sampled"]),
    ids=name_of,
)
def test_same_trajectory_with_other_trackings(problem, tracking):
    together(problem("anytime"), "ctns", tracking, seed=3)
    together(problem("end-of-time"), "oracle", tracking, seed=4)


@pytest.mark.parametrize("scenario", ["end-of-time", "exploration"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_same_trajectory_with_costs(sampler, scenario):
    plain = hetero("end-of-time").replace(exploration=["each >= 0.04", "e <= 0.3"])
    arms = together(plain.replace(costs=COSTS, scenario=scenario), sampler, seed=5)
    if scenario == "end-of-time" and sampler != "uniform":
        engine = quick(engine_for(plain, sampler, 1e-9))
        assert arms != follow(engine, drawn(plain, STEPS, [5, 77]), STEPS, seed=5)


@pytest.mark.parametrize(("sampler", "scenario"), [("ctns", "end-of-time"), ("top-two", "anytime")])
def test_same_trajectory_with_costs_and_roots(sampler, scenario):
    together(bernoulli(scenario).replace(costs=COSTS), sampler, seed=6)


@pytest.mark.parametrize("problem", CASES, ids=name_of)
def test_same_stop(problem):
    # Means farther apart, so that runs stop in time.
    easy = problem("end-of-time")
    mu = np.array(easy.means)
    factor = 1.2 if easy.rewards.name == "bernoulli" else 2.0
    easy = easy.replace(means=mu.mean() + factor * (mu - mu.mean()))
    ends = [len(together(easy, "ctns", seed=s, delta=0.9, steps=150)) for s in range(4)]
    assert min(ends) < 150
