"""Exploring with unknown standard deviations: evidence, its certificate, and whole runs."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

import simplexplore as sx
from simplexplore import Gaussian, Study
from simplexplore.exploration.arrays import make_hulls
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.kernels import gamma, unknown_variance

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
    """One arm, made ready."""
    made = np.zeros(unknown_variance.PLACES)
    unknown_variance.put_arm(made, n, False)
    return made


def test_log_gamma():
    x = np.geomspace(0.05, 1e8, 400)
    found = np.array([gamma.log_gamma(one) for one in x.tolist()])
    np.testing.assert_allclose(found, gammaln(x), rtol=4e-15, atol=2e-14)


@pytest.mark.parametrize(
    ("n", "scale", "y"), [(30, 0, 0.25), (100, 1, 0.3), (12, 1, -0.2), (9, 5, 2.0), (200, 2, 0.1)]
)
def test_mixture_is_the_least_integral(n, scale, y):
    found = unknown_variance.log_scale(arm(n), scale, y)[0]
    least = minimize_scalar(
        lambda sigma: log_evidence(n, *unknown_variance.scale_of(scale), y, sigma),
        bounds=(0.5, 6),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert found == pytest.approx(least.fun - math.log(unknown_variance.SCALES), abs=1e-8)


def scanned(n, y, scale):
    """The same as `log_scale`, from a scan over the hypothetical deviation."""
    r, c, a0 = unknown_variance.scale_of(scale)
    p = np.concatenate([[0.0], np.geomspace(1e-5, 100, 1500)])[:, None]
    k = 0.5 * c * n / (n + c)
    inner = a0 + 0.5 * n * p * p + k * (y * p - r) ** 2
    least = (0.5 * n * (1 + y * y) * p * p - (a0 + 0.5 * n) * np.log(inner)).min(axis=0)
    constant = gammaln(a0 + n / 2) - gammaln(a0) + a0 * math.log(a0) - 0.5 * math.log1p(n / c)
    return least + constant - math.log(unknown_variance.SCALES)


def scanned_arm(n, y):
    """The mixture of all scales, by scans."""
    return np.logaddexp.reduce([scanned(n, y, scale) for scale in range(unknown_variance.SCALES)])


def test_mixtures_have_one_minimum_and_grow_away_from_it():
    y = np.linspace(-6, 12, 300)
    for n in (2.0, 3.0, 17.0, 250.0, 4000.0):
        made = arm(n)
        for scale in range(unknown_variance.SCALES):
            found, slopes = np.array(
                [unknown_variance.log_scale(made, scale, x) for x in y.tolist()]
            ).T
            scan = scanned(n, y, scale)
            assert (found <= scan + 1e-9 * n).all()
            np.testing.assert_allclose(found, scan, atol=1e-4 * n, rtol=0)
            where = made[unknown_variance.LOWEST_OF + scale]
            least = made[unknown_variance.LEAST_OF + scale]
            assert found.min() >= least - 1e-7
            grows = np.diff(found)
            assert (grows[y[:-1] >= where] >= -1e-9 * n).all()
            assert (grows[y[1:] <= where] <= 1e-9 * n).all()
            assert (slopes[y > max(where, -6)] >= -1e-9 * n).all()


def test_arms_never_claim_more_than_their_scales():
    """From the minima on it is their sum; below it stays at what is below them all."""
    y = np.linspace(-1, 4, 120)
    for n in (2.0, 9.0, 400.0):
        made = arm(n)
        found = np.array([unknown_variance.mixture_of(made, one)[0] for one in y.tolist()])
        scan = scanned_arm(n, y)
        assert (found <= scan + 1e-9 * n).all()
        np.testing.assert_allclose(found[y >= 0], scan[y >= 0], atol=1e-4 * n, rtol=0)
        assert (np.diff(found) >= -1e-9 * n).all()
        assert found.min() >= made[unknown_variance.LEAST] - 1e-12
        step = 1e-6
        slope = unknown_variance.mixture_of(made, 0.7)[1]
        rise = (
            unknown_variance.mixture_of(made, 0.7 + step)[0]
            - unknown_variance.mixture_of(made, 0.7)[0]
        )
        assert slope == pytest.approx(rise / step, rel=1e-3)


def at_hand(n, coefficient, reach):
    """Hulls of some arms that lose so much for each empirical deviation."""
    hulls = make_hulls(len(n))
    for i, count in enumerate(n):
        hulls.slot[i] = unknown_variance.slot_of(hulls, i, count, False, reach)
    hulls.coefficient[:] = coefficient
    return hulls


@pytest.mark.parametrize("n", [2.0, 3.0, 12.0, 30.0, 200.0, 5000.0, 1e6])
def test_hulls_are_convex_and_below_the_mixture(n):
    """And close to it, where the mixture itself is convex."""
    hulls = at_hand([n], [1.0], 15.0)
    (slot,) = hulls.slot
    count = hulls.corners[slot]
    y, value = hulls.y[slot, :count], hulls.value[slot, :count]
    steps = np.diff(value) / np.diff(y)
    assert (np.diff(y) > 0).all()
    assert (np.diff(steps) >= 0).all()
    made = arm(n)
    between = np.concatenate([np.linspace(*pair, 7) for pair in itertools.pairwise(y)])
    found = np.array([unknown_variance.mixture_of(made, one)[0] for one in between.tolist()])
    lost = found - np.interp(between, y, value)
    assert lost.min() >= -1e-9
    assert (scanned_arm(n, between) >= found - 1e-9 * n).all()
    if n >= 200:
        assert lost[between >= 0].max() <= 0.05
        assert hulls.end[slot] - hulls.least[slot] >= 15
    further = np.linspace(y[-1], 3 * y[-1] + 1, 50)
    assert min(unknown_variance.mixture_of(made, one)[0] for one in further.tolist()) >= (
        hulls.end[slot] - 1e-7
    )


def test_a_mixture_bends_no_more_than_hulls_take_for_granted():
    """F(y) + F'(y) h + C h^2 / 2 is above F(y + h): C from n and the steepest scale."""
    rng = np.random.default_rng(8)
    for n in (2.0, 5.0, 25.0, 300.0, 1e5):
        made = arm(n)
        for y in (rng.uniform(0, 8, 60) / math.sqrt(n)).tolist():
            width = rng.uniform(0.01, 1.0) / math.sqrt(n)
            value, slope, steepest = unknown_variance.mixture_of(made, y)
            bend = 1.125 * n
            most = bend + (steepest + bend * width) ** 2 / 4
            further = unknown_variance.mixture_of(made, y + width)[0]
            assert further <= value + slope * width + most * width**2 / 2 + 1e-9


def test_bounds_are_below_every_alternative_and_close_to_the_least():
    """Edges of two and three arms; with 25 samples an arm or more the dual loses little."""
    rng = np.random.default_rng(7)
    lost = []
    for case in range(16):
        size = 2 + case % 2
        n = np.round(np.exp(rng.uniform(1.2 if case < 8 else 3.3, 8.0, size)))
        coefficient = rng.uniform(0.1, 2.0, size)
        gap = math.sqrt(2 * rng.uniform(8, 20) * (coefficient**2 / n).sum())
        found = unknown_variance.least_evidence(at_hand(n, coefficient, 30.0), size, gap)
        # Alternatives on the plane: y of all arms but the last; those close to the best more.
        closest = gap * coefficient / (n * (coefficient**2 / n).sum())
        y = rng.uniform(-0.5, 1.5, (150, size - 1)) * gap / coefficient[:-1]
        near = closest[:-1] * rng.uniform(0.5, 1.5, (150, size - 1))
        y = np.concatenate([y, near, closest[None, :-1]])
        last = (gap - y @ coefficient[:-1]) / coefficient[-1]
        y = np.column_stack([y, last])
        total = sum(scanned_arm(n[i], y[:, i]) for i in range(size))
        assert found <= total.min() + 1e-6
        if n.min() >= 25:
            lost.append(total.min() - found)
    assert len(lost) >= 6
    assert np.median(lost) < 0.2
    assert max(lost) < 1


def test_the_same_hulls_whatever_was_asked_before():
    """Slots are shared: hulls that others needed in between change nothing."""
    n, coefficient = [40.0, 40.0 + unknown_variance.SLOTS, 7.0], [1.0, 0.5, 2.0]
    alone = unknown_variance.least_evidence(at_hand(n, coefficient, 12.0), 3, 2.0)
    hulls = at_hand(n, coefficient, 20.0)
    for i, count in enumerate(reversed(n)):
        unknown_variance.slot_of(hulls, i, count + 1.0, True, 12.0)
    for i, count in enumerate(n):
        hulls.slot[i] = unknown_variance.slot_of(hulls, i, count, False, 12.0)
    assert len(set(hulls.slot.tolist())) == 3
    assert unknown_variance.least_evidence(hulls, 3, 2.0) == alone


def test_intervals_are_where_evidence_ends():
    """At an interval's end one of the mixtures says so, and just inside none does."""
    problem = sx.Problem(3, rewards=UNKNOWN)
    n, means = np.array([40.0, 3.0, 1.0]), np.array([1.0, -2.0, 0.0])
    squares = np.array([12.0, 3.0, 0.0])
    low, high = mean_intervals(problem.rewards, n, means, 0.1, None, squares)
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
    rewards = Gaussian("unknown", sigma_guess=1.0)
    problem = sx.Problem(
        3, {"cap": "a1 <= 0.6"}, rewards, means=[1.0, 1.0, -1.0], delta=0.1, epsilon=0.7
    )
    results = sx.simulate(problem, runs=40, seed=3)
    assert results.is_proven
    assert (~results.correct).sum() <= 19
    assert not results.capped.any()


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
