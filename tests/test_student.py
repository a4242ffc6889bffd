"""Exploring with unknown standard deviations: evidence, its certificate, and whole runs."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

import simplexplore as sx
from engines import engine_for, follow, natively, uncompiled
from nightly import NIGHTLY
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.kernels import student, student_mixture
from simplexplore.kernels.gamma import log_gamma
from simplexplore.kernels.student_mixture import COEFFICIENT, LEAST, ROWS, N, Y
from simplexplore.problem.families import Gaussian
from simplexplore.study.study import Study

pytestmark = pytest.mark.usefixtures("bounds_once")

UNKNOWN = Gaussian("unknown", sigma_guess=(0.5, 1.0, 2.0))


def log_evidence(n, r, c, a0, y, sigma):
    """Log of the mixture at one hypothesis, by integration over the variance of the alternative.

    In units of the empirical deviation; the mean's part is integrated by hand.
    """

    def density(log_square):
        square = math.exp(log_square)
        prior = a0 * math.log(a0 * sigma**2) - gammaln(a0) - a0 * log_square
        prior -= a0 * sigma**2 / square
        shifted = n * c / (n + c) * (y - r * sigma) ** 2
        data = -0.5 * n * log_square + 0.5 * math.log(c / (n + c)) - 0.5 * (n + shifted) / square
        null = -n * math.log(sigma) - 0.5 * n * (1 + y * y) / sigma**2
        return math.exp(prior + data - null)

    return math.log(integrate.quad(density, -6, 6, limit=400, epsabs=0, epsrel=1e-11)[0])


def arm(n):
    """One arm's rows, made ready."""
    work = np.zeros((ROWS, 1))
    work[N] = n
    student_mixture.put_arm(work, 0)
    return work


def test_log_gamma():
    x = np.geomspace(0.05, 1e8, 400)
    found = np.array([log_gamma(one) for one in x.tolist()])
    np.testing.assert_allclose(found, gammaln(x), rtol=4e-15, atol=2e-14)


@pytest.mark.parametrize(
    ("n", "scale", "y"), [(30, 0, 0.25), (100, 1, 0.3), (12, 1, -0.2), (9, 5, 2.0), (200, 2, 0.1)]
)
def test_mixture_is_the_least_integral(n, scale, y):
    found = student_mixture.log_scale(arm(n), 0, scale, y)[0]
    least = minimize_scalar(
        lambda sigma: log_evidence(n, *student_mixture.scale_of(scale), y, sigma),
        bounds=(0.5, 6),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found == pytest.approx(least.fun - math.log(student_mixture.SCALES), abs=1e-8)


def scanned(n, y, scale):
    """The same as `log_scale`, from a scan over the hypothetical deviation."""
    r, c, a0 = student_mixture.scale_of(scale)
    p = np.concatenate([[0.0], np.geomspace(1e-5, 100, 1500)])[:, None]
    k = 0.5 * c * n / (n + c)
    inner = a0 + 0.5 * n * p * p + k * (y * p - r) ** 2
    least = (0.5 * n * (1 + y * y) * p * p - (a0 + 0.5 * n) * np.log(inner)).min(axis=0)
    constant = gammaln(a0 + n / 2) - gammaln(a0) + a0 * math.log(a0) - 0.5 * math.log1p(n / c)
    return least + constant - math.log(student_mixture.SCALES)


def scanned_arm(n, y):
    """The mixture of all scales, by scans."""
    return np.logaddexp.reduce([scanned(n, y, scale) for scale in range(student_mixture.SCALES)])


def test_mixtures_have_one_minimum_and_grow_away_from_it():
    y = np.linspace(-6, 12, 300)
    for n in (2.0, 3.0, 17.0, 250.0, 4000.0):
        work = arm(n)
        for scale in range(student_mixture.SCALES):
            found, slopes = np.array(
                [student_mixture.log_scale(work, 0, scale, x) for x in y.tolist()]
            ).T
            scan = scanned(n, y, scale)
            assert (found <= scan + 1e-9 * n).all()
            np.testing.assert_allclose(found, scan, atol=1e-4 * n, rtol=0)
            where = work[student_mixture.LOWEST_OF + scale, 0]
            least = work[student_mixture.LEAST_OF + scale, 0]
            assert found.min() >= least - 1e-7
            grows = np.diff(found)
            assert (grows[y[:-1] >= where] >= -1e-9 * n).all()
            assert (grows[y[1:] <= where] <= 1e-9 * n).all()
            assert (slopes[y > max(where, -6)] >= -1e-9 * n).all()


def test_arms_never_claim_more_than_their_scales():
    """From the minima on it is their sum; below it stays at what is below them all."""
    y = np.linspace(-1, 4, 120)
    for n in (2.0, 9.0, 400.0):
        work = arm(n)
        found = np.array([student_mixture.mixture_of(work, 0, one)[0] for one in y.tolist()])
        scan = scanned_arm(n, y)
        assert (found <= scan + 1e-9 * n).all()
        np.testing.assert_allclose(found[y >= 0], scan[y >= 0], atol=1e-4 * n, rtol=0)
        assert (np.diff(found) >= -1e-9 * n).all()
        assert found.min() >= work[LEAST, 0] - 1e-12
        step = 1e-6
        slope = student_mixture.mixture_of(work, 0, 0.7)[1]
        rise = (
            student_mixture.mixture_of(work, 0, 0.7 + step)[0]
            - student_mixture.mixture_of(work, 0, 0.7)[0]
        )
        assert slope == pytest.approx(rise / step, rel=1e-3)


def test_certificates_are_below_every_alternative():
    """Edges of two and three arms against many alternatives; of two, close to the least."""
    rng = np.random.default_rng(7)
    lost = {2: [], 3: []}
    for case in range(16):
        size = 2 + case % 2
        work = np.zeros((ROWS, size))
        n = np.round(np.exp(rng.uniform(1.2, 8.0, size)))
        coefficient = rng.uniform(0.1, 2.0, size)
        work[N], work[COEFFICIENT] = n, coefficient
        gap = math.sqrt(2 * rng.uniform(8, 40) * (coefficient**2 / n).sum())
        for i in range(size):
            student_mixture.put_arm(work, i)
        value = student.descend(work, size, gap, -math.inf)
        reached = work[Y].copy()
        found = student.certified(work, size, gap, value, -math.inf, math.inf)
        # Alternatives on the plane: y of all arms but the last; those close to the best more.
        y = rng.uniform(-0.5, 1.5, (100, size - 1)) * gap / coefficient[:-1]
        if size == 2:
            y = np.linspace(-1, 2, 100)[:, None] * gap / coefficient[0]
        near = reached[:-1] + 0.05 * rng.normal(size=(30, size - 1)) * abs(reached[:-1])
        y = np.concatenate([y, near, reached[None, :-1]])
        last = (gap - y @ coefficient[:-1]) / coefficient[-1]
        y = np.column_stack([y, last])
        total = sum(scanned_arm(n[i], y[:, i]) for i in range(size))
        assert found <= total.min() + 1e-6
        claimed = [
            sum(student_mixture.mixture_of(work, i, row[i])[0] for i in range(size))
            for row in y.tolist()
        ]
        lost[size].append(min(claimed) - found)
    assert np.median(lost[2]) < 0.05
    assert max(lost[2]) < 0.3
    assert np.median(lost[3]) < 0.3
    assert max(lost[3]) < 5


def test_intervals_are_where_evidence_ends():
    """At an interval's end one of the mixtures says so, and just inside none does."""
    problem = sx.Problem(3, rewards=UNKNOWN)
    n, means = np.array([40.0, 3.0, 1.0]), np.array([1.0, -2.0, 0.0])
    squares = np.array([12.0, 3.0, 0.0])
    low, high = mean_intervals(problem, n, means, 0.1, None, squares)
    assert low[2] == -math.inf
    assert high[2] == math.inf
    level = math.log(3 / 0.1) + math.log(2)

    def evidence(a, lam):
        y = abs(means[a] - lam) / math.sqrt(squares[a] / n[a])
        return float(scanned_arm(n[a], np.array([y]))[0])

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
    for sampler in ("ctns", "cge", "uniform"):
        assert (~sx.simulate(problem, sampler=sampler, runs=40, seed=5).correct).sum() <= 19
    near = sx.simulate(problem, means=[0.5, 0.49, 0.49], runs=40, seed=6, max_steps=2000)
    assert (~near.correct & ~near.capped).sum() <= 19


def test_answers_within_epsilon():
    """More than 19 wrong of 40 at delta = 0.1 has probability 1e-9; a tie is no trouble."""
    for equal in (False, True):
        rewards = Gaussian("unknown", equal_sigma=equal, sigma_guess=1.0)
        problem = sx.Problem(
            3, {"cap": "a1 <= 0.6"}, rewards, means=[1.0, 1.0, -1.0], delta=0.1, epsilon=0.7
        )
        results = sx.simulate(problem, runs=40, seed=3)
        assert results.is_proven
        assert (~results.correct).sum() <= 19
        assert not results.capped.any()


def test_compiled_and_uncompiled_evidence_have_the_same_bits():
    """Rewards of all sizes; edges of two and of three arms."""
    limits = {"front": "a + b <= 0.6", "mix": "4*a - c <= 1"}
    problem = sx.Problem(list("abcd"), limits, Gaussian("unknown"), delta=0.3)
    compiled, plain = (engine_for(problem, "top-two", threshold="tilt") for _ in range(2))
    natively(compiled)
    for entry in ("evidence", "surplus", "gain"):
        compiled._program.compile(entry)
    uncompiled(plain)
    sigma = np.array([[1.0], [0.3], [1.5], [1.0]])
    rewards = np.array([[3.0], [1.0], [0.0], [-2.0]]) + sigma * np.random.default_rng(8).normal(
        size=(4, 200)
    )
    found = ([], [])
    for engine, seen in zip((compiled, plain), found, strict=True):

        def look(engine, seen=seen):
            if engine.is_warm and engine.pulls % (20 if NIGHTLY else 80) == 0:
                moment = (*engine.evidence(), engine.surplus(), engine.gain_bounds())
                seen.append(np.hstack(moment).tobytes())

        follow(engine, rewards, 160 if NIGHTLY else 140, each=look)
    assert found[0] == found[1]
    assert compiled.evidence()[0].max() > 3
    for name, array in compiled.state().items():
        assert array.tobytes() == plain.state()[name].tobytes(), name


def test_a_study_says_the_same_as_an_explorer(tmp_path):
    problem = sx.Problem(["a", "b"], rewards=Gaussian("unknown"), delta=0.1)
    rng = np.random.default_rng(4)
    study = Study.create(f"sqlite:///{tmp_path}/taste.db", "taste", problem, seed=2)
    explorer = sx.Explorer(problem, seed=2)
    rewards = {}
    for _ in range(120):
        if explorer.stopped:
            break
        (pull,) = study.ask()
        arm = explorer.ask()
        assert pull.arm == arm
        reward = (1.0 if arm == "a" else 0.0) + rng.normal()
        rewards.setdefault(arm, []).append(reward)
        study.tell(pull.id, reward)
        explorer.tell(arm, reward)
    status = study.status()
    assert status["policy"] == explorer.policy.tolist()
    assert status["confidence"] == explorer.confidence
    assert status["characteristic_time"] > 0
    seen = [arm["sigma"] for arm in status["arms"]]
    assert seen == pytest.approx([np.std(rewards[arm], ddof=1) for arm in problem.arms])
    for a, arm in enumerate(status["arms"]):
        low, high = arm["low"], arm["high"]
        assert (-math.inf if low is None else low) < explorer.means[a]
        assert explorer.means[a] < (math.inf if high is None else high)
    assert study.export(tmp_path / "taste.csv") == explorer.pulls
    other = Study.open(f"sqlite:///{tmp_path}/taste.db", "taste").status()
    assert other["arms"] == status["arms"]
    assert other["confidence"] == status["confidence"]
