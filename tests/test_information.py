"""Information across edges against a general cone solver and finite differences."""

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest

import precise
from optimum import information_of
from reference import information_across
from simplexplore import Bernoulli, Gaussian, NotConvergedError, Poisson, Problem
from strategies import CASES, case

FAMILIES = [
    pytest.param(name, domain, id=f"{name}{'-domain' if domain else ''}")
    for name, domain in itertools.product(CASES, (False, True))
]


def instance(name, domain, rng):
    """Edges of two to four arms at the optimum of a random problem, and its means."""
    size = int(rng.integers(3, 7))
    chosen = case(name, size, domain=domain)
    rows = rng.integers(-1, 3, size=(2, size)).astype(float)
    rows[:, 0] = 2.0
    limit = rows @ rng.dirichlet(np.ones(size)) + rng.uniform(0, 0.2, 2)
    problem = Problem(size, (rows, limit), chosen.family)
    unit = rng.choice([0.12, 0.5, 0.88], size) + rng.uniform(-0.02, 0.02, size)
    means = chosen.means(unit)
    return chosen, means, *information_of(problem, means)


def allocation(rng, size):
    """Weights spread over three orders of magnitude."""
    w = 10.0 ** rng.uniform(-3, 0, size)
    return w / w.sum()


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_information_equals_a_general_solver(name, domain):
    rng = np.random.default_rng(2)
    checked = held = 0
    for _ in range(12):
        chosen, means, edges, information = instance(name, domain, rng)
        w = allocation(rng, len(means))
        closest = information.closest(w)
        held += int((closest.slope[information.used] == 0).sum())
        for value, direction in zip(closest.value, edges.dense(len(means)), strict=True):
            expected = information_across(direction, means, w, chosen.twin)
            assert value == pytest.approx(expected, rel=1e-7)
            checked += 1
    assert checked >= 20
    assert (held > 0) == domain  # domains matter in some of them


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_alternative_is_on_the_hyperplane_and_costs_what_it_says(name, domain):
    rng = np.random.default_rng(3)
    for _ in range(20):
        chosen, means, edges, information = instance(name, domain, rng)
        w = allocation(rng, len(means))
        closest = information.closest(w)
        directions = edges.dense(len(means))
        for e, direction in enumerate(directions):
            lam = information.alternative(closest, e, means)
            size = np.abs(direction) @ np.abs(lam)
            assert lam @ direction == pytest.approx(0, abs=1e-12 * size)
            untouched = direction == 0
            assert lam[untouched] == pytest.approx(means[untouched], rel=1e-14)
            if domain:
                low, high = chosen.family.domain
                assert ((lam >= low - 1e-12) & (lam <= high + 1e-12)).all()
            arms = np.arange(len(means))
            cost = w @ chosen.twin.divergence(means, lam, arms)
            assert cost == pytest.approx(closest.value[e], rel=1e-9)


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_gradient_is_the_derivative(name, domain):
    rng = np.random.default_rng(4)
    for _ in range(5):
        _, means, edges, information = instance(name, domain, rng)
        w = rng.dirichlet(np.full(len(means), 3.0)) + 0.01
        closest = information.closest(w)
        gradient = np.zeros((len(edges), len(means)))
        np.add.at(gradient, (np.arange(len(edges))[:, None], edges.index), closest.gradient)
        for a in range(len(means)):
            h = 1e-5 * w[a] * np.eye(len(means))[a]
            slope = information.closest(w + h).value - information.closest(w - h).value
            expected = slope / (2 * h[a])
            assert gradient[:, a] == pytest.approx(
                expected, rel=1e-5, abs=1e-7 * float(closest.value.max())
            )
        # D is homogeneous: Euler's identity.
        assert gradient @ w == pytest.approx(closest.value, rel=1e-10)
        assert information.closest(3 * w).value == pytest.approx(3 * closest.value, rel=1e-10)


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_curvature_is_the_second_derivative(name, domain):
    """slope and compliance make up the Hessian that the solver uses.

    With c = compliance, b = slope v c and k = sum v^2 c, the Hessian of D_e in w is
    b b' / k - diag(slope^2 c) (for weights as given).
    """
    rng = np.random.default_rng(5)
    for _ in range(5):
        _, means, edges, information = instance(name, domain, rng)
        size = len(means)
        w = rng.dirichlet(np.full(size, 3.0)) + 0.05
        closest = information.closest(w)
        for e in range(len(edges)):
            used = information.used[e]
            arms = edges.index[e, used]
            v, c, slope = (x[e, used] for x in (information.v, closest.compliance, closest.slope))
            stiffness = v * v @ c
            if stiffness == 0:
                continue
            bend = slope * v * c
            hessian = np.outer(bend, bend) / stiffness - np.diag(slope**2 * c)
            if not domain:
                scale = np.abs(hessian).max()
                for i, a in enumerate(arms):
                    h = 1e-4 * w[a] * np.eye(size)[a]
                    up, down = information.closest(w + h), information.closest(w - h)
                    column = (up.gradient[e, used] - down.gradient[e, used]) / (2 * h[a])
                    assert hessian[i] == pytest.approx(column, rel=1e-3, abs=1e-5 * scale)
            # Concave, and flat along the ray of w where no domain holds.
            assert np.linalg.eigvalsh(hessian).max() < 1e-9 * np.abs(hessian).max()


def test_two_gaussian_arms_by_hand():
    # D = w1 w2 / (w1 + w2) gap^2 / (2 sigma^2), the closest instance is the weighted mean.
    means = np.array([1.0, 0.0])
    _, information = information_of(Problem(2, (), Gaussian(2.0)), means)
    w = np.array([0.8, 0.2])
    closest = information.closest(w)
    assert closest.value[0] == pytest.approx(0.16 / 8)
    assert information.alternative(closest, 0, means) == pytest.approx([0.8, 0.8])
    # Alone, w = (1/2, 1/2) is best: T = 8 sigma^2 / gap^2.
    assert information.edge_times() == pytest.approx([32.0])


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()])
def test_two_arms_meet_at_their_weighted_mean(family):
    means = np.array([0.7, 0.2])
    _, information = information_of(Problem(2, (), family), means)
    lam = information.alternative(information.closest(np.array([0.9, 0.1])), 0, means)
    assert lam == pytest.approx([0.65, 0.65])


@pytest.mark.parametrize(("name", "domain"), FAMILIES)
def test_time_of_one_edge_bounds_every_allocation(name, domain):
    rng = np.random.default_rng(6)
    for _ in range(5):
        chosen, means, edges, information = instance(name, domain, rng)
        times = information.edge_times()
        for time, direction in zip(times, edges.dense(len(means)), strict=True):
            tried = rng.dirichlet(np.ones(len(means)), size=3)
            spread = np.abs(direction) * np.sqrt(chosen.twin.variance(means, np.arange(len(means))))
            tried[0] = spread / spread.sum()  # the best one for Gaussian rewards
            reached = [1 / information_across(direction, means, w, chosen.twin) for w in tried]
            assert time <= min(reached) * (1 + 1e-7)
            if name in ("gaussian", "hetero") and not domain:
                assert time == pytest.approx(reached[0], rel=1e-7)
            # Nearly tight for the others: within a factor that a look at the numbers trusts.
            assert time >= 0.5 * min(reached)


def test_covered_arms():
    problem = Problem(["a", "b", "c"], ["a == 1/2"])
    _, information = information_of(problem, np.array([3.0, 2.0, 1.0]))
    assert information.covered().tolist() == [False, True, True]


def test_hopeless_numbers_are_refused_not_returned():
    problem = Problem(3, ["a1 <= 0.5"], Bernoulli())
    _, information = information_of(problem, np.array([0.9, 0.5, 0.1]))
    with (
        pytest.raises(NotConvergedError, match="closest alternative could not be computed"),
        np.errstate(all="ignore"),
    ):
        information.closest(np.array([np.nan, 0.01, 0.01]))


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "bounded"])
def test_weights_of_very_different_sizes(name):
    rng = np.random.default_rng(9)
    for _ in range(10):
        _, means, edges, information = instance(name, False, rng)
        w = 10.0 ** rng.uniform(-12, 0, len(means))
        closest = information.closest(w)
        balance = (information.v * closest.alternative).sum(axis=1)
        size = (np.abs(information.v) * closest.alternative).sum(axis=1)
        assert (np.abs(balance) <= 1e-12 * size).all()
        assert (closest.value > 0).all()
        assert len(edges) == len(closest.value)


def decimal_divergence(family, mu, lam):
    part = mu * (mu / lam).ln()
    if family.name == "poisson":
        return lam - mu + part
    return part + (1 - mu) * ((1 - mu) / (1 - lam)).ln()


@pytest.mark.parametrize("family", [Bernoulli(), Poisson()])
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8])
def test_close_means_keep_their_digits(family, gap):
    # D is of order gap^2 and a difference of terms of order 1. Two arms meet at the weighted
    # mean, so that D can be had in 50 digits.
    means, w = np.array([0.4 + gap, 0.4]), np.array([0.3, 0.7])
    _, information = information_of(Problem(2, (), family), means)
    with localcontext(prec=50):
        # The means that are meant: the shortest decimals that round to these floats.
        m = [Decimal(repr(float(x))) for x in means]
        weights = [Decimal("0.3"), Decimal("0.7")]
        lam = sum(x * y for x, y in zip(weights, m, strict=True))
        parts = [decimal_divergence(family, x, lam) for x in m]
        exact = float(sum(x * y for x, y in zip(weights, parts, strict=True)))
    value = float(information.closest(w).value[0])
    # Rounding a mean to a float moves the gap by as much.
    assert value == pytest.approx(exact, rel=1e-12 + 4e-16 / gap)
    assert abs(value / exact - 1) <= information.closest(w).error[0]


@pytest.mark.parametrize(
    "family",
    [Bernoulli(), Poisson(), Gaussian(tuple(np.linspace(0.5, 2, 70)), domain=(0.0, 1.0))],
    ids=lambda f: f.name,
)
@pytest.mark.parametrize("beside", [False, True])
def test_many_pairs_meet_at_their_weighted_mean(family, beside):
    rng = np.random.default_rng(9)
    means = 10.0 ** rng.uniform(-4, -0.01, 70)
    rows = [f"a{i} <= 1/35" for i in range(1, 71)]
    if beside:  # a row through the vertex: some edges are of three arms
        rows.append("a{} + a{} <= a{} + a{}".format(*np.argsort(-means)[:4] + 1))
    edges, information = information_of(Problem(70, rows, family), means)
    every = np.arange(len(edges))
    others = int(((edges.value != 0).sum(axis=1) > 2).sum())
    assert others == (140 if beside else 0)
    assert len(every) > 1000
    w = rng.dirichlet(np.full(70, 0.3)) + 1e-9
    together = information.closest(w)
    assert (together.error < 1e-8).all()
    # A few at a time end at the same alternatives.
    alone = [information.only(part).closest(w).value for part in np.array_split(every, 9)]
    assert together.value == pytest.approx(np.concatenate(alone), rel=1e-11)
    variance = family.sigmas(70) ** 2 if family.name == "gaussian" else None
    for e in rng.choice(every, 5):
        v = -edges.dense(70)[e]
        true = precise.information(
            family.name, v.tolist(), means.tolist(), w.tolist(), variance, 0, family.domain
        )
        assert abs(together.value[e] / float(true) - 1) <= together.error[e]
