"""Unknown standard deviations: the projection against dense search, times against ground truth."""

import itertools
import math

import numpy as np
import pytest

import simplexplore as sx
from instances import paper
from nightly import crossed
from simplexplore.bound.student import Branch, Convex, phi
from simplexplore.bound.unknown_sigma import UnknownSigma
from simplexplore.errors import ProblemError, SettingError
from simplexplore.geometry.edges import Edges
from simplexplore.geometry.polytope import Polytope
from simplexplore.problem.families import Gaussian

# Characteristic times to the last digit shown: a multiplicative solver and cutting planes agree.
TIMES = {
    "exp1": (1200.2604763213, 1198.6851468668),
    "exp2": (444.0278292719, 441.5477030905),
    "ptns8": (342.2203348993, 338.5986906323),
    "gauss_app1": (493.1608619161, 490.6707280710),
}
SHARES = {"exp2": [0.156085036, 0.022323057, 0.017570249, 0.387745103, 0.416276556]}


def unknown(name, **options):
    problem = paper(name)
    guess = problem.rewards.sigma
    return problem.replace(rewards=Gaussian("unknown", sigma_guess=guess, **options))


def one_edge(c, g):
    """Information about one comparison of arms with sigma 1, coefficients c and gap g."""
    c = np.asarray(c, dtype=float)
    sides = np.where(np.arange(len(c)) == 0, 1.0, -1.0)
    edges = Edges(np.arange(len(c))[None], -(sides * c)[None], lambda _: {})
    means = np.zeros(len(c))
    means[0] = g / c[0]
    rewards = Gaussian("unknown", sigma_guess=1.0)
    return UnknownSigma(edges, np.array([float(g)]), means, rewards)


def dense(w, c, g):
    """The least over a grid, which is never below the minimum, and its best point."""
    if len(w) == 2:
        y = np.linspace(0, g / c[0], 20001)
        points = np.column_stack([y, (g - c[0] * y) / c[1]])
    else:
        share = np.linspace(0, 1, 301)
        first, second = (x.ravel() for x in np.meshgrid(share, share))
        kept = first + second <= 1
        points = np.column_stack([first[kept] * g / c[0], second[kept] * g / c[1]])
        points = np.column_stack([points, (g - points @ c[:2]) / c[2]])
    values = phi(points) @ w
    return values.min(), points[values.argmin()]


def test_two_hundred_edges_against_dense_search():
    rng = np.random.default_rng(0)
    large = 0
    for _ in range(200):
        size = int(rng.integers(2, 4))
        w = rng.dirichlet(np.full(size, 0.4)) + 1e-4
        c, g = rng.uniform(0.2, 1.5, size), rng.uniform(0.1, 6)
        information = one_edge(c, g)
        proven = information.certified(w).value.min()
        found = information.closest(w)
        e = found.value.argmin()
        y = np.abs(found.alternative[e] - information.mu[e])
        # The value is that of an alternative across the edge, proven, and not above the grid's.
        assert c @ y == pytest.approx(g, rel=1e-9)
        assert w @ phi(y) == pytest.approx(found.value[e], rel=1e-9)
        assert proven == pytest.approx(found.value[e], rel=1e-10)
        least, _ = dense(w, c, g)
        assert found.value[e] <= least * (1 + 1e-12)
        assert least <= found.value[e] * (1 + 2e-3)
        large += y.max() > 1
    assert 100 < large < 200  # both kinds of minima occur


def test_at_most_one_arm_is_farther_than_its_deviation():
    rng = np.random.default_rng(1)
    for _ in range(50):
        w, c = rng.dirichlet(np.ones(4)), rng.uniform(0.3, 2, 4)
        found = one_edge(c, rng.uniform(1, 12)).closest(w)
        e = found.value.argmin()
        y = phi(np.zeros(1)) + np.sqrt(np.expm1(2 * found.gradient[e]))
        assert np.count_nonzero(y > 1 + 1e-9) <= 1


def test_branches_are_bounded_from_below_whatever_is_asked():
    # Two minima of nearly the same value, and one at either end.
    rng = np.random.default_rng(2)
    for _ in range(100):
        w, c, g = rng.uniform(0.01, 1, 2), rng.uniform(0.1, 2, 2), rng.uniform(2.5, 9)
        low, high = max(1.0, (g - c[1]) / c[0]), g / c[0]
        if not low < high:
            continue
        others = Convex(np.array([[w[1]]]), np.array([[c[1]]]))
        branch = Branch(others, *(np.array([x]) for x in (w[0], c[0], g, low, high)))
        y = np.linspace(low, high, 50001)
        values = w[0] * phi(y) + w[1] * phi((g - c[0] * y) / c[1])
        bound = branch.no_less_than(np.array([np.inf]))[0]
        assert values.min() * (1 - 1e-6) <= bound <= values.min() * (1 + 1e-12)
        at, _ = branch.locally()
        rest = (g - c[0] * at) / c[1]
        assert (w[0] * phi(at) + w[1] * phi(rest))[0] == pytest.approx(bound, rel=1e-9)


def test_edges_together_say_what_the_hardest_says_alone():
    rng = np.random.default_rng(3)
    rewards = Gaussian("unknown", sigma_guess=1.0)
    for _ in range(8):
        means = np.append(rng.uniform(3, 6), rng.uniform(0, 3, 4))
        gaps, w = means[0] - means[1:], rng.dirichlet(np.full(5, 0.4)) + 1e-4
        index = np.column_stack([np.zeros(4, dtype=int), np.arange(1, 5)])
        edges = Edges(index, np.tile([-1.0, 1.0], (4, 1)), lambda _: {})
        together = UnknownSigma(edges, gaps, means, rewards)
        alone = [one_edge([1.0, 1.0], gap) for gap in gaps]
        values = [one.certified(w[[0, a]]).value.min() for a, one in enumerate(alone, 1)]
        assert together.certified(w).value.min() == pytest.approx(min(values), rel=1e-10)
        times = [one.edge_times()[0] for one in alone]
        np.testing.assert_allclose(together.edge_times(), times, rtol=1e-9)
        assert together.edge_times(longest=True).max() == pytest.approx(max(times), rel=1e-9)


@pytest.mark.parametrize("name", TIMES)
def test_times_are_the_true_ones(name):
    own, common = TIMES[name]
    for equal, truth in ((False, own), (True, common)):
        bound = sx.lower_bound(unknown(name, equal_sigma=equal))
        found = bound.scenarios["end-of-time"]
        assert found.characteristic_time == pytest.approx(truth, rel=2e-9)
        assert all(s.relative_gap < 1e-8 for s in bound.scenarios.values())
        known = sx.lower_bound(paper(name))
        for place, scenario in bound.scenarios.items():
            time = known.scenarios[place].characteristic_time
            assert scenario.known_sigma_time == time
            # Neither knowledge nor equality can hurt.
            assert time < scenario.characteristic_time
            assert bound.time_of(scenario.allocation) >= found.characteristic_time * (1 - 1e-9)
        assert bound.time_of(found.allocation) == pytest.approx(truth, rel=2e-9)
        if equal:
            np.testing.assert_allclose(found.allocation, known.allocation, rtol=1e-12)
    assert own > common


def test_shares_are_the_true_ones():
    bound = sx.lower_bound(unknown("exp2"))
    np.testing.assert_allclose(bound.allocation, SHARES["exp2"], atol=2e-7)


@pytest.mark.parametrize("gap", [0.5, 1.9, 2.1, 4.0, 20.0])
def test_two_arms_by_direct_search(gap):
    # Far apart the best allocation has two closest alternatives, one beyond either arm.
    problem = sx.Problem(2, rewards=Gaussian(None, sigma_guess=1.0))
    bound = sx.lower_bound(problem, [gap, 0.0])
    least, _ = dense(np.array([0.5, 0.5]), np.ones(2), gap)
    assert bound.characteristic_time == pytest.approx(1 / least, rel=1e-5)
    np.testing.assert_allclose(bound.allocation, [0.5, 0.5], atol=1e-6)
    assert bound.relative_gap < 1e-8
    assert bound.scenarios["end-of-time"].binding_edges == (0,)


@pytest.mark.parametrize(
    ("scenario", "seed"), crossed(["end-of-time", "anytime", "exploration"], range(3), every=3)
)
def test_certificates_of_easy_problems(scenario, seed):
    """Gaps of several deviations, where the divergence is not convex, under every kind of limit."""
    rng = np.random.default_rng(seed)
    size = 5
    problem = sx.Problem(
        size,
        {"front": "a1 + a2 <= 0.6", "each": "each <= 0.7"},
        Gaussian("unknown", sigma_guess=tuple(rng.uniform(0.2, 1.5, size))),
        scenario=scenario,
        exploration={"fair": "each >= 0.02", "lab": "a3 + a4 <= 0.5"},
        costs=rng.uniform(1, 5, size) if seed else None,
        means=rng.uniform(0, 6, size),
    )
    bound = sx.lower_bound(problem)
    assert bound.relative_gap < 1e-8
    # Nothing near the optimum is better, and the time there is what dense search says.
    allowed = bound.scenarios[scenario].allocation
    time, costs = bound.characteristic_time, problem.costs
    edges = Polytope(problem).edges(bound._vertex)
    sigma = np.array(problem.rewards.sigma_guess)
    values = []
    for index, value, gap in zip(edges.index, edges.value, edges.gaps(bound.means), strict=True):
        used = value != 0
        if np.count_nonzero(used) <= 3:
            c = np.abs(value[used]) * sigma[index[used]]
            values.append(dense(allowed[index[used]], c, gap)[0])
    assert min(values) >= 1 / (time / (costs @ allowed)) * (1 - 1e-9)


def test_a_good_enough_answer_takes_longer_without_sigma():
    problem = paper("exp2").replace(epsilon=0.02)
    known = sx.lower_bound(problem)
    rewards = Gaussian("unknown", sigma_guess=1.0)
    own = sx.lower_bound(problem.replace(rewards=rewards))
    common = sx.lower_bound(
        problem.replace(rewards=Gaussian("unknown", sigma_guess=1.0, equal_sigma=True))
    )
    for bound in (own, common):
        assert bound.characteristic_time > known.characteristic_time
        assert bound.scenarios["end-of-time"].least_time <= bound.characteristic_time
    truth = 2 / math.log1p(2 / known.characteristic_time)
    assert common.characteristic_time == pytest.approx(truth, rel=1e-12)


def test_sigma_is_known_in_the_limit():
    """Where gaps are small the price of not knowing sigma vanishes."""
    ratios = []
    for scale in (1.0, 0.1, 0.01):
        problem = paper("exp2")
        rewards = Gaussian("unknown", sigma_guess=problem.rewards.sigma / scale)
        bound = sx.lower_bound(problem.replace(rewards=rewards))
        own = bound.scenarios["end-of-time"]
        ratios.append(own.characteristic_time / own.known_sigma_time - 1)
    assert all(0 < later < 0.02 * earlier for earlier, later in itertools.pairwise(ratios))


def test_what_is_said_and_what_is_refused():
    problem = sx.Problem(["a", "b"], rewards=Gaussian("unknown"), means=[1.0, 0.0])
    with pytest.raises(ProblemError, match="sigma is unknown and no guess of it is given"):
        sx.lower_bound(problem)
    guessed = problem.replace(rewards=Gaussian("unknown", sigma_guess=2.0))
    found = sx.lower_bound(guessed).to_dict()
    assert (found["sigma"], found["sigma_guess"]) == ("unknown", [2.0, 2.0])
    assert found["scenarios"]["anytime"]["known_sigma_characteristic_time"] == pytest.approx(32.0)
    assert "sigma" not in sx.lower_bound(sx.Problem(2, means=[1, 0])).to_dict()
    for call in (sx.simulate, sx.Explorer):
        with pytest.raises(SettingError, match="the threshold 'mixture' is for a known sigma"):
            call(guessed, threshold="mixture")
    equal = Gaussian("unknown", sigma_guess=2.0, equal_sigma=True)
    with pytest.raises(SettingError, match=r"equal_sigma and \[costs\] do not go together yet"):
        sx.lower_bound(guessed.replace(rewards=equal, costs=[1.0, 2.0]))
