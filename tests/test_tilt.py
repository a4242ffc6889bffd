"""Evidence by tilts against ground truth, the definition, and another solver."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import certificates
from engines import engine_for
from simplexplore import Bernoulli, Bounded, Gaussian, Poisson, Problem
from simplexplore.kernels import tilt, tilt_mixture
from tilting import Comparison, log_mixture

DATA = json.loads((Path(__file__).parent / "data" / "tilt.json").read_text())
TRUTH = DATA["evidence"]
FAMILIES = {"gaussian": Gaussian, "bernoulli": Bernoulli, "poisson": Poisson}


def family_of(name, sigma=None):
    return Gaussian(tuple(sigma)) if name == "gaussian" else FAMILIES[name]()


def comparison(row):
    if row["family"] == "bounded":
        told = [row["x0"] * row["repeat"], row["x1"] * row["repeat"]]
        return Comparison(Bounded(0.0, 1.0), row["v"], told=[np.array(x) for x in told])
    rewards = family_of(row["family"], row["sigma"])
    return Comparison(rewards, row["v"], row["n"], row["means"], row["offset"])


@pytest.mark.parametrize("row", TRUTH, ids=lambda row: row["family"])
def test_ground_truth(row):
    one = comparison(row)
    # Means at an end of the range are 1e-9 inside for the statistic.
    clipped = row["family"] == "bernoulli" and 0 in row["means"]
    assert one.statistic == pytest.approx(row["statistic"], abs=1e-8 if clipped else 1e-9)
    found, lam = one.certified()
    assert found == pytest.approx(row["log_evidence"], abs=1e-9)
    assert found <= row["log_evidence"] + 1e-10
    if "minimiser" in row:  # printed with eight decimals
        assert lam == pytest.approx(np.array(row["minimiser"]), abs=1e-6)


def test_constants():
    given = DATA["constants"]
    for rewards in (Gaussian(1.0), Bernoulli(), Bounded(0.0, 1.0), Poisson()):
        tilts = engine_for(Problem(2, rewards=rewards), threshold="tilt").workspace.config.tilts
        first = {**given["first"], "gaussian": 1.5}[rewards.name]
        strengths = first * given["ratio"] ** -np.arange(30.0)
        assert tilts.strength == pytest.approx(np.append(strengths, 0.0), rel=1e-15)
        assert tilts.scale == pytest.approx(np.array(given["p"]) / sum(given["p"]), rel=1e-15)
        assert len(tilts.scale) == given["scales"] == tilt_mixture.SCALES
        assert len(tilts.strength) == tilt_mixture.TILTS
        assert tilts.step.shape == tilts.share.shape == (2, tilt_mixture.OWN + 1)
        assert tilts.step[:, tilt_mixture.OWN].tolist() == [-1, -1]  # no tilt
        for side, name in enumerate(("lose", "win")):
            prior = given[name]
            used = tilts.share[side] > 0
            assert tilts.step[side][used].tolist() == [int(step) for step in prior]
            shares = np.array(list(prior.values())) / sum(prior.values())
            assert tilts.share[side][used] == pytest.approx(shares, rel=1e-15)


# GLR of four Gaussian comparisons: n, coefficients of the gap, gap, value.
STATISTICS = [
    ((400, 600), (1, 1), 0.22, 5.808),
    ((60, 900), (1, 1), 0.6, 10.125),
    ((120, 1000, 900), (1 / 7, 1, 6 / 7), 0.16, 6.443835616438357),
    ((900, 700, 500, 300), (0.5, 0.5, 0.6, 0.4), 0.25, 16.549680564895763),
]


@pytest.mark.parametrize(("n", "size", "gap", "value"), STATISTICS)
def test_statistics_and_evidence_below_them(n, size, gap, value):
    v = np.array(size) * np.array([1, -1, 1, -1])[: len(n)]
    means = gap * v / (v @ v)
    one = Comparison(Gaussian(1.0), v, n, means)
    assert one.statistic == pytest.approx(value, abs=1e-9)
    assert 0 < one.certified()[0] < value


def random_comparison(rng, name, decades=4.5):
    """Counts, means in an order that favours the edge, and a direction; borders included."""
    size = int(rng.choice([2, 2, 3, 4]))
    n = np.floor(10 ** rng.uniform(0, decades, size)) + 1
    v = np.where(rng.random(size) < 0.5, 1.0, -1.0) * 10 ** rng.uniform(-3, 0.5, size)
    v[0], v[1] = abs(v[0]), -abs(v[1])
    sigma = 10 ** rng.uniform(-1, 1, size)
    if name == "gaussian":
        means = rng.normal(size=size)
    elif name == "bernoulli":
        means = np.round(rng.random(size) * n) / n
        means[rng.random(size) < 0.15] = rng.choice([0.0, 1.0])
    else:
        means = np.round(10 ** rng.uniform(-2, 1.5) * rng.random(size) * n) / n
    if v @ means <= 0:
        v = -v
    return n, v, means, sigma


def half_space_points(rng, v, low, high, centre, count):
    """Random points of the box with v . lam <= 0, some of them on the plane."""
    for _ in range(count):
        lam = np.clip(centre + rng.normal(size=len(v)) * 10 ** rng.uniform(-4, 0.5), low, high)
        beyond = v @ lam
        if beyond > 0:
            # Along the box's diagonal to where all that helps is at its end.
            end = np.where(v > 0, low, high)
            end = np.where(np.isfinite(end), end, lam - np.sign(v) * (1 + abs(lam)))
            while v @ end > 0:
                end = end - np.sign(v) * (1 + abs(end))
            lam = lam + (end - lam) * beyond / (beyond - v @ end)
            lam = np.clip(lam, low, high)
        if v @ lam <= 0:
            yield lam


def check_tilts(name, count, seed, decades=4.5):
    """Of random comparisons: certified evidence, evidence where it was looked for, excess.

    Evidence there is that of the definition and the kernel's. The excess is by how much the first
    is above the evidence at any of 20 points of the half-space, in units of what is left open.
    """
    rng = np.random.default_rng(seed)
    low, high = {"gaussian": (-np.inf, np.inf), "bernoulli": (0, 1), "poisson": (0, np.inf)}[name]
    while count > 0:
        n, v, means, sigma = random_comparison(rng, name, decades)
        if v @ means <= 0:
            continue
        count -= 1
        one = Comparison(family_of(name, sigma), v, n, means)
        bound, lam = one.certified()
        assert bound <= one.statistic + 1e-9 * (1 + one.statistic)
        value = log_mixture(name, n, n * means, v, lam, sigma)
        points = half_space_points(rng, v, low, high, lam, 20)
        others = [log_mixture(name, n, n * means, v, point, sigma) for point in points]
        yield (
            bound,
            value,
            one.value(lam),
            (bound - min(others, default=math.inf)) / (1e-9 * (1 + abs(value))),
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_the_certificate_is_below_every_point_and_close_to_the_least(name):
    close = 0
    for bound, value, found, excess in check_tilts(name, 60, seed=20):
        assert excess <= 1
        assert found == pytest.approx(value, abs=1e-9 * (1 + abs(value)))
        if 0 < value < 60:  # beyond that tilts are outside their grid
            assert bound == pytest.approx(value, abs=1e-6)
            close += 1
    assert close >= 10


@pytest.mark.parametrize("name", FAMILIES)
def test_another_solver_finds_no_less(name):
    rng = np.random.default_rng(21)
    low, high = {"gaussian": (-9, 9), "bernoulli": (0, 1), "poisson": (0, 99)}[name]
    for _ in range(8):
        n, v, means, sigma = random_comparison(rng, name)
        if v @ means <= 0:
            continue
        one = Comparison(family_of(name, sigma), v, n, means)
        bound, lam = one.certified()
        found = scipy.optimize.minimize(
            lambda x, n=n, means=means, v=v, sigma=sigma: log_mixture(
                name, n, n * means, v, np.clip(x, low, high), sigma
            ),
            lam,
            method="SLSQP",
            bounds=[(low, high)] * len(v),
            constraints={"type": "ineq", "fun": lambda x, v=v: -v @ x / abs(v).max()},
            options={"ftol": 1e-14},
        )
        if -v @ found.x >= -1e-12 * abs(v).max():
            assert bound <= found.fun + 1e-8 * (1 + abs(found.fun))


@pytest.mark.parametrize("name", certificates.FAMILIES)
def test_no_certificate_is_above_a_feasible_point(name):
    # benchmarks/truth.py does it for thousands of states.
    points, excess, whole, losses = certificates.check_certificates(name, 20, seed=1)
    assert points > 200
    assert excess <= certificates.ROUNDING
    assert whole <= certificates.SLACK
    assert np.median(losses) < 1e-6


@pytest.mark.parametrize("other", [1e-2, 1e-5, 1e-8])
def test_an_arm_that_never_failed_against_a_small_share(other):
    # 1000 of 1000 against 2000 of 4000: the closest alternative has 3/5 for the second arm.
    one = Comparison(Bernoulli(), [1.0, -other], [1000, 4000], [1.0, 0.5])
    second = 4000 * (math.log(0.5 / 0.6) + math.log(0.5 / 0.4)) / 2
    assert one.statistic == pytest.approx(second - 1000 * math.log(0.6 * other), rel=1e-9)
    assert one.evidence() > 0.9 * one.statistic


def test_rounding_of_the_statistic_is_taken_off():
    # The multiplier is 1e15: what rounding does to the edge's loss may be half a nat of 750.
    rng = np.random.default_rng(25)
    n, means = np.array([622563.0, 9140.0]), np.array([0.0, 23 / 9140])
    for factor in np.linspace(1, 3, 40):
        v = np.array([-1e-12 * factor, 9.56087651])
        one = Comparison(Poisson(), v, n, means)
        state = certificates.State("poisson", n, means, v, 0.0, np.ones(2))
        lam = one.certified()[1]
        points = certificates.feasible_points(rng, state, lam, 0.0, math.inf, 20)
        least = float(state.log_conjugate(points).min()) + math.log(0.05)
        assert 700 < one.evidence() <= least


@pytest.mark.parametrize("rewards", [Gaussian(0.7), Bernoulli(), Poisson()], ids=lambda r: r.name)
def test_rounding_is_that_of_the_worst_tilt_that_matters(rewards):
    rng = np.random.default_rng(8)
    for _ in range(40):
        n, means = rng.integers(1, 10 ** rng.integers(1, 5), 2), rng.uniform(0.05, 0.95, 2)
        one = Comparison(rewards, [1.0, -1.0], n, means)
        config, run, lam = one.config, one.run, float(rng.uniform(0.05, 0.95))
        for side in (0, 1):
            own = tilt.own_of(config, run, side)
            tilts = [tilt.exponent(config, run, side, side, k, lam, own) for k in range(30)]
            top = max(0.0, *(value for value, _, _ in tilts))
            linear = rewards.name == "gaussian"
            sizes = [
                abs(slope * lam) + own[0] * s * s + own[1] * (abs(slope) if linear else own[0] * s)
                for s, (value, slope, _) in zip(config.tilts.strength, tilts, strict=False)
                if value > top - 60
            ]
            found = tilt.rounding_of_arm(config, run, side, side, lam, top)
            assert found == pytest.approx(2.0**-50 * (max(sizes, default=0.0) + top), rel=1e-12)


def test_zero_one_rewards_are_coins():
    rng = np.random.default_rng(22)
    told = [(rng.random(k) < p).astype(float) for k, p in ((80, 0.6), (120, 0.35))]
    coins = Comparison(Bernoulli(), [1, -1], [80, 120], [x.mean() for x in told])
    log_wealth = Comparison(Bounded(0.0, 1.0), [1, -1], told=told)
    assert log_wealth.certified()[0] == pytest.approx(coins.certified()[0], abs=1e-11)


def test_bets_know_more_than_coins():
    rng = np.random.default_rng(23)
    told = [rng.beta(50, 50, 60), rng.beta(45, 55, 60)]
    log_wealth = Comparison(Bounded(0.0, 1.0), [1, -1], told=told)
    coins = Comparison(Bernoulli(), [1, -1], [60, 60], [x.mean() for x in told])
    assert log_wealth.certified()[0] > coins.certified()[0] + 1


def test_units_do_not_matter():
    n, means, v = [100, 200, 50], np.array([1.0, 0.5, 0.2]), np.array([1.0, -0.7, -0.3])
    base = Comparison(Gaussian((1.0, 2.0, 0.5)), v, n, means).certified()[0]
    longer = Comparison(Gaussian((1.0, 2.0, 0.5)), 17 * v, n, means).certified()[0]
    larger = Comparison(Gaussian((1e6, 2e6, 5e5)), v, n, 1e6 * means).certified()[0]
    assert longer == pytest.approx(base, abs=1e-9)
    assert larger == pytest.approx(base, abs=1e-9)


def test_far_from_zero_rounding_is_counted():
    near = Comparison(Gaussian(1.0), [1, -1], [400, 400], [0.3, 0.0]).certified()[0]
    far = Comparison(Gaussian(1.0), [1, -1], [400, 400], [1e9 + 0.3, 1e9]).certified()[0]
    assert near - 1e-3 < far <= near + 1e-4  # 1e9 + 0.3 is 1e9 + 0.3 to 1e-7


def test_half_spaces_that_no_means_reach():
    kept = Gaussian(1.0, domain=(0.0, 1.0))
    assert Comparison(kept, [1, -1], [5, 5], [0.9, 0.1], offset=1.5).evidence() == math.inf
    assert Comparison(kept, [1, -1], [5, 5], [0.9, 0.1], offset=0.5).evidence() < 10


def test_a_domain_leaves_fewer_alternatives():
    free = Comparison(Gaussian(1.0), [1, -1], [50, 70], [0.9, 0.1]).certified()[0]
    domain = Gaussian(1.0, domain=(0.6, 2.0))
    kept = Comparison(domain, [1, -1], [50, 70], [0.9, 0.61]).certified()
    plain = Comparison(Gaussian(1.0), [1, -1], [50, 70], [0.9, 0.61]).certified()
    assert free > plain[0]
    assert kept[0] >= plain[0] - 1e-9
    assert (kept[1] >= 0.6 - 1e-12).all()


def test_early_answers_are_the_same():
    rng = np.random.default_rng(24)
    for name in FAMILIES:
        for _ in range(20):
            n, v, means, sigma = random_comparison(rng, name)
            if v @ means <= 0:
                continue
            whole = Comparison(family_of(name, sigma), v, n, means).evidence()
            level = float(whole + rng.normal())
            early = Comparison(family_of(name, sigma), v, n, means).evidence(level, level)
            assert (early >= level) == (whole >= level)


def test_conjugate_mixtures_help_where_evidence_is_overwhelming():
    # Between two tilts of the grid up to a twentieth of the evidence is lost.
    one = Comparison(Gaussian(1.0), [1, -1], [4000, 4000], [1.6, 0.0])
    assert one.certified()[0] + 10 < one.evidence() < one.statistic


def test_the_share_of_tilts_is_paid():
    one = Comparison(Gaussian(1.0), [1, -1], [400, 400], [0.3, 0.0])
    assert one.evidence() == pytest.approx(one.certified()[0] - math.log(1 / 0.95), abs=1e-9)


def test_a_start_off_the_plane_is_paid_for():
    # The certificate holds for any point: one beyond the half-space has more evidence than its
    # plane, and must give that back.
    one = Comparison(Gaussian(1.0), [1, -1], [400, 400], [0.3, 0.0])
    true, lam = one.certified()
    config, run, scratch = one.config, one.run, one.scratch
    for shift in (-0.02, 0.02):
        scratch.newton[tilt.LAM][:] = lam + np.array([shift, 0.0])
        value = tilt.descend(config, run, scratch, -math.inf)
        found = tilt.certified(config, run, scratch, value)
        assert true - 1 < found <= true + 1e-9
