"""Exploring with unknown standard deviations: evidence, its certificate, and whole runs."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

import simplexplore as sx
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.kernels import student
from simplexplore.kernels.student import COEFFICIENT, ROWS, N
from simplexplore.problem.families import Gaussian
from simplexplore.study.study import Study

UNKNOWN = Gaussian("unknown", sigma_guess=(0.5, 1.0, 2.0))


def log_evidence(n, c, r, y, sigma):
    """Log of the mixture at one hypothesis, by integration over the variance of the alternative.

    In units of the empirical deviation; the mean's part is integrated by hand.
    """
    a0 = student.PRIOR * c

    def density(log_square):
        square = math.exp(log_square)
        prior = a0 * math.log(a0 * sigma**2) - gammaln(a0) - a0 * log_square
        prior -= a0 * sigma**2 / square
        shifted = n * c / (n + c) * (y - r * sigma) ** 2
        data = -0.5 * n * log_square + 0.5 * math.log(c / (n + c)) - 0.5 * (n + shifted) / square
        null = -n * math.log(sigma) - 0.5 * n * (1 + y * y) / sigma**2
        return math.exp(prior + data - null)

    return math.log(integrate.quad(density, -6, 6, limit=400, epsabs=0, epsrel=1e-11)[0])


@pytest.mark.parametrize(
    ("n", "c", "r", "y"), [(30, 5.0, 0.3, 0.25), (100, 50.0, 0.2, 0.3), (12, 4.0, 0.5, -0.2)]
)
def test_mixture_is_the_least_integral(n, c, r, y):
    found = student.log_mixture(n, c, r, y)[0] + student.constant_of_mixture(n, c)
    least = minimize_scalar(
        lambda sigma: log_evidence(n, c, r, y, sigma),
        bounds=(0.5, 3),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found == pytest.approx(least.fun, abs=1e-8)


def scanned(n, c, r, y):
    """The same as `log_mixture`, from a scan over the hypothetical deviation."""
    p = np.concatenate([[0.0], np.geomspace(1e-5, 100, 3000)])[:, None]
    a0 = student.PRIOR * c
    k = 0.5 * c * n / (n + c)
    inner = a0 + 0.5 * n * p * p + k * (y * p - r) ** 2
    return (0.5 * n * (1 + y * y) * p * p - (a0 + 0.5 * n) * np.log(inner)).min(axis=0)


def scales():
    shifts = student.STRONGEST / student.RATIO ** np.arange(float(student.SCALES))
    return [(1 / (student.SHARPNESS * r) ** 2, r) for r in shifts.tolist()]


def test_mixtures_have_one_minimum_and_no_more_than_their_top():
    y = np.linspace(-6, 12, 300)
    for n in (2.0, 3.0, 17.0, 250.0, 4000.0):
        for c, r in scales():
            found = np.array([student.log_mixture(n, c, r, one)[0] for one in y.tolist()])
            slopes = np.array([student.log_mixture(n, c, r, one)[1] for one in y.tolist()])
            scan = scanned(n, c, r, y)
            assert (found <= scan + 1e-9 * n).all()
            np.testing.assert_allclose(found, scan, atol=1e-4 * n, rtol=0)
            where, least = student.bottom_of_mixture(n, c, r)
            assert found.min() >= least - 1e-7
            grows = np.diff(found)
            assert (grows[y[:-1] >= where] >= -1e-9 * n).all()
            assert (grows[y[1:] <= where] <= 1e-9 * n).all()
            assert (slopes[y > max(where, -6)] >= -1e-9 * n).all()
            top = student.top_of_mixture(n, c, r)
            assert found[-1] <= top + 1e-9 * n


def test_certificates_are_below_every_alternative():
    """Edges of two and three arms against many alternatives; of two, close to the least."""
    rng = np.random.default_rng(7)
    lost = []
    for case in range(10):
        size = 2 + case % 2
        work = np.zeros((ROWS, size))
        n = rng.integers(3, 300, size).astype(float)
        coefficient = rng.uniform(0.3, 2.0, size)
        work[N], work[COEFFICIENT] = n, coefficient
        gap = math.sqrt(2 * rng.uniform(4, 30) * (coefficient**2 / n).sum())
        found, least = [], []
        for c, r in scales()[:4]:
            student.put_scale(work, size, r)
            value = student.descend(work, size, gap, -math.inf)
            found.append(student.certified(work, size, gap, value, -math.inf, math.inf))
            # Alternatives on the plane: y of all arms but the last; those close to the best more.
            y = rng.uniform(-0.5, 1.5, (150, size - 1)) * gap / coefficient[:-1]
            if size == 2:
                y = np.linspace(-1, 2, 150)[:, None] * gap / coefficient[0]
            last = (gap - y @ coefficient[:-1]) / coefficient[-1]
            total = sum(
                scanned(n[i], c, r, one) + student.constant_of_mixture(n[i], c)
                for i, one in enumerate([*y.T, last])
            )
            least.append(total.min())
            assert found[-1] <= least[-1] + 1e-6
        if size == 2:
            lost.append(max(least) - max(found))
    assert max(lost) < 0.6
    assert np.median(lost) < 0.05


def test_intervals_are_where_evidence_ends():
    """At an interval's end one of the mixtures says so, and just inside none does."""
    problem = sx.Problem(3, rewards=UNKNOWN)
    n, means = np.array([40.0, 3.0, 1.0]), np.array([1.0, -2.0, 0.0])
    squares = np.array([12.0, 3.0, 0.0])
    low, high = mean_intervals(problem, n, means, 0.1, None, squares)
    assert low[2] == -math.inf
    assert high[2] == math.inf
    level = math.log(3 / 0.1) + math.log(2 * student.SCALES)

    def evidence(a, lam):
        y = abs(means[a] - lam) / math.sqrt(squares[a] / n[a])
        return max(
            float(scanned(n[a], c, r, np.array([y]))[0]) + student.constant_of_mixture(n[a], c)
            for c, r in scales()
        )

    assert means[0] - low[0] == pytest.approx(high[0] - means[0])
    assert evidence(0, high[0]) == pytest.approx(level, abs=1e-3)
    assert evidence(0, (means[0] + high[0]) / 2) < level


def test_an_arm_whose_first_rewards_are_equal():
    """It is not taken for one without variance: it goes on being played, and wins in the end."""
    problem = sx.Problem(["a", "b"], rewards=Gaussian("unknown"), delta=0.1)
    rng = np.random.default_rng(3)
    explorer = sx.Explorer(problem, seed=1)
    while not explorer.stopped and explorer.pulls < 2000:
        arm = explorer.ask()
        first = explorer.counts[problem.arms.index(arm)] < 5
        mean = 0.5 if arm == "a" else 0.0
        explorer.tell(arm, (0.0 if arm == "a" else 0.3) if first else mean + rng.normal())
    assert explorer.stopped
    assert explorer.policy.tolist() == [1.0, 0.0]
    assert explorer.counts.min() > 0.2 * explorer.pulls
    assert explorer.confidence >= 0.9
    constant = sx.Explorer(problem, seed=1)
    for _ in range(40):
        constant.tell(constant.ask(), 1.0)
    assert constant.confidence == 0.0
    assert constant.regret_bound >= 0.0


def test_runs_are_right_and_repeat():
    """Error rates within delta: more than 19 wrong of 40 at delta = 0.1 has probability 1e-9."""
    problem = sx.Problem(3, rewards=UNKNOWN, means=[1.0, 0.3, 0.0], delta=0.1)
    results = sx.simulate(problem, runs=40, seed=5)
    assert results.is_proven
    assert (~results.correct).sum() <= 19
    again = sx.simulate(problem, runs=40, seed=5)
    assert results.stopping_times.tolist() == again.stopping_times.tolist()
    for sampler in ("ctns", "uniform"):
        assert (~sx.simulate(problem, sampler=sampler, runs=40, seed=5).correct).sum() <= 19
    near = sx.simulate(problem, means=[0.5, 0.49, 0.49], runs=40, seed=6, max_steps=2000)
    assert (~near.correct & ~near.capped).sum() <= 19


def test_a_study_says_the_same_as_an_explorer(tmp_path):
    problem = sx.Problem(["a", "b"], rewards=Gaussian("unknown"), delta=0.1)
    rng = np.random.default_rng(4)
    study = Study.create(f"sqlite:///{tmp_path}/taste.db", "taste", problem, seed=2)
    explorer = sx.Explorer(problem, seed=2)
    for _ in range(120):
        if explorer.stopped:
            break
        (pull,) = study.ask()
        arm = explorer.ask()
        assert pull.arm == arm
        reward = (1.0 if arm == "a" else 0.0) + rng.normal()
        study.tell(pull.id, reward)
        explorer.tell(arm, reward)
    status = study.status()
    assert status["policy"] == explorer.policy.tolist()
    assert status["confidence"] == pytest.approx(explorer.confidence)
    assert status["characteristic_time"] > 0
    for a, arm in enumerate(status["arms"]):
        low, high = arm["low"], arm["high"]
        assert (-math.inf if low is None else low) < explorer.means[a]
        assert explorer.means[a] < (math.inf if high is None else high)
    assert study.export(tmp_path / "taste.csv") == explorer.pulls
    other = Study.open(f"sqlite:///{tmp_path}/taste.db", "taste").status()
    assert other["arms"] == status["arms"]
    assert other["confidence"] == pytest.approx(status["confidence"], rel=1e-9)
