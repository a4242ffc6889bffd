"""Evidence where all arms share one unknown standard deviation, and whole runs with it."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

import simplexplore as sx
from engines import engine_for, follow, uncompiled
from simplexplore.kernels import pooled
from simplexplore.kernels.pooled import BEST, COEFFICIENT, N
from simplexplore.kernels.student_mixture import ROWS, SCALES, scale_of
from simplexplore.problem.families import Gaussian

EQUAL = Gaussian("unknown", equal_sigma=True, sigma_guess=1.0)
SCALE = np.array([scale_of(scale)[:2] for scale in range(SCALES)])


def combinations(n):
    """Shifts and precisions (combination, arm), all combinations of scales."""
    r, c = np.moveaxis(SCALE[list(itertools.product(range(SCALES), repeat=len(n)))], -1, 0)
    return r, c


def log_evidence(n, x, precision):
    """Log of the whole mixture at one hypothesis: x and the pooled variance in its deviations."""
    r, c = combinations(n)
    a0 = pooled.prior_of(n.sum())
    a = a0 + n.sum() / 2
    q = a0 + n.sum() * precision / 2 + (0.5 * c * n / (n + c) * (x - r) ** 2).sum(axis=1)
    prior = gammaln(a) - gammaln(a0) + a0 * math.log(a0) - math.log(2) - len(n) * math.log(SCALES)
    data = 0.5 * n.sum() * precision + (n * x * x).sum() / 2
    return prior + data + logsumexp(-0.5 * np.log1p(n / c).sum(axis=1) - a * np.log(q))


def test_mixture_is_an_integral_over_the_variance():
    n, x, precision = np.array([7.0, 4.0]), np.array([0.6, -0.2]), 0.8
    r, c = combinations(n)
    a0 = pooled.prior_of(n.sum())

    def density(log_square):
        square = math.exp(log_square)
        prior = a0 * math.log(a0) - gammaln(a0) - a0 * log_square - a0 / square
        shifted = (n * c / (n + c) * (x - r) ** 2).sum(axis=1)
        total = n.sum() * precision
        data = -0.5 * n.sum() * log_square - 0.5 * np.log1p(n / c).sum(axis=1)
        data = data - 0.5 * (total + shifted) / square + 0.5 * (total + (n * x * x).sum())
        return np.exp(prior + data).mean()

    found = math.log(integrate.quad(density, -7, 7, limit=300, epsrel=1e-10)[0])
    assert log_evidence(n, x, precision) == pytest.approx(found - math.log(2), abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_certificates_are_below_every_hypothesis_and_close_to_the_least(seed):
    rng = np.random.default_rng(seed)
    size = 2 + seed % 2
    n = np.round(np.exp(rng.uniform(1.1, 7.5, size)))
    v = rng.uniform(0.2, 1.0, size)
    across = (v * v / n).sum()
    gap = math.sqrt(2 * rng.uniform(8, 25) * across)
    work = np.zeros((ROWS, size))
    work[N], work[COEFFICIENT] = n, v
    a0 = pooled.prior_of(n.sum())
    constant = pooled.constant_of(n.sum(), a0)
    value, precision, slope = pooled.share_well(work, size, gap, n.sum(), a0)
    held = work[BEST].copy()
    given = (work, size, gap, n.sum(), a0, precision, slope)
    bound = value - 0.02
    while not pooled.reaches(*given, bound):
        bound -= 0.5

    def at(z):
        x = np.append(z[1:], 0.0)
        x[-1] = (gap * math.exp(z[0] / 2) - v[:-1] @ x[:-1]) / v[-1]
        return log_evidence(n, x, math.exp(z[0]))

    start = np.append(math.log(precision), held[:-1])
    options = {"xatol": 1e-6, "fatol": 1e-7, "maxfev": 400}
    least = minimize(at, start, method="Nelder-Mead", options=options).fun
    for _ in range(200):  # hypotheses of all kinds, none of them below
        other = start + rng.normal(size=size) * np.append(1.0, np.abs(held[:-1]) + 0.1)
        least = min(least, at(other))
    assert bound + constant <= least + 1e-6
    assert not pooled.reaches(*given, least - constant + 0.02)
    assert bound + constant > least - (0.5 if n.sum() > 60 else 6)


def test_runs_are_right():
    """Error rates within delta: more than 19 wrong of 40 at delta = 0.1 has probability 1e-9."""
    problem = sx.Problem(3, rewards=EQUAL, means=[1.0, 0.3, 0.0], delta=0.1)
    results = sx.simulate(problem, runs=40, seed=5)
    assert results.is_proven
    assert (~results.correct).sum() <= 19
    each = sx.simulate(problem.replace(rewards=Gaussian("unknown", sigma_guess=1.0)), runs=40)
    assert results.stopping_times.mean() < 1.3 * each.stopping_times.mean()


@pytest.mark.parametrize("seed", [15, 21])
def test_who_stops_is_as_sure_as_asked_for(seed):
    """A proof of more than the rule asks for may find less; confidence must not."""
    problem = sx.Problem(3, {"cap": "a1 <= 0.6"}, Gaussian(None, equal_sigma=True), delta=0.1)
    rng, means = np.random.default_rng(seed), dict(zip(problem.arms, (4.0, 2.0, 0.0), strict=True))
    explorer = sx.Explorer(problem, seed=seed)
    uncompiled(explorer._engine)
    while (arm := explorer.ask()) is not None:
        explorer.tell(arm, means[arm] + rng.normal())
    assert explorer.confidence >= 0.9


@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_rewards_that_hardly_vary_are_enough(noise):
    """They are no Gaussian rewards, or means are millions of deviations apart."""
    problem = sx.Problem(3, {"cap": "a1 <= 0.6"}, Gaussian(None, equal_sigma=True), delta=0.1)
    rng, means = np.random.default_rng(0), dict(zip(problem.arms, (4.0, 2.0, 1.0), strict=True))
    explorer = sx.Explorer(problem, seed=0)
    uncompiled(explorer._engine)
    count = 0
    while (arm := explorer.ask()) is not None and count < 100:
        explorer.tell(arm, means[arm] + noise * rng.normal())
        count += 1
    assert explorer.stopped
    assert 0.9 <= explorer.confidence < 1
    assert explorer.policy.tolist() == pytest.approx([0.6, 0.4, 0])


def test_samplers_see_one_variance():
    problem = sx.Problem(3, rewards=EQUAL, delta=0.1)
    engine = engine_for(problem, "top-two", threshold="tilt")
    rewards = np.random.default_rng(2).normal(size=(3, 60)) * 3.0
    arms = follow(engine, rewards, 50)
    variance = engine.run.variance
    assert np.ptp(variance) == 0.0
    seen = [rewards[a, : arms.count(a)] for a in range(3)]
    assert variance[0] == pytest.approx(sum(((x - x.mean()) ** 2).sum() for x in seen) / 50)


def test_a_study_sees_one_sigma_from_the_first_rewards_on(tmp_path):
    problem = sx.Problem(["a", "b"], rewards=EQUAL, delta=0.1)
    study = sx.Study.create(f"sqlite:///{tmp_path}/x.db", "x", problem, seed=2)
    told = {"a": [], "b": []}
    for reward in (3.0, 5.0, 1.0, 2.0, 4.5, 1.5, 3.5, 0.5):
        (pull,) = study.ask()
        study.tell(pull.id, reward)
        told[pull.arm].append(reward)
        seen = [arm["sigma"] for arm in study.status()["arms"]]
        free = sum(max(len(x) - 1, 0) for x in told.values())
        squares = sum(np.var(x) * len(x) for x in told.values() if x)
        assert seen == (pytest.approx([math.sqrt(squares / free)] * 2) if free else [None] * 2)
    assert study.status()["characteristic_time"] > 0


@pytest.mark.parametrize(
    ("rewards", "costs"),
    [
        (EQUAL, [1.0, 2.0]),
        (EQUAL, None),
        (Gaussian("unknown"), None),
        (Gaussian("unknown"), [1, 2]),
    ],
)
@pytest.mark.parametrize("told", [(0.0, 0.0), (1.0, 0.0), (1e99, -1e99)])
def test_every_study_has_a_status(tmp_path, rewards, costs, told):
    """With costs and one sigma there is no bound; equal rewards leave none to speak of."""
    problem = sx.Problem(["a", "b"], rewards=rewards, costs=costs)
    with sx.Study.create(f"sqlite:///{tmp_path}/s.db", "s", problem) as study:
        for _ in range(7):
            (pull,) = study.ask(1)
            study.tell(pull.id, told[pull.arm == "b"])
        status = study.status()
    assert status["rewards"] == 7
    assert status["policy"] is not None
    if costs and rewards is EQUAL:
        assert (status["characteristic_time"], status["to_go"]) == (None, None)
