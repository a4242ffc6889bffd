"""The twins themselves: against the 40-digit truth and against each other."""

from fractions import Fraction

import numpy as np
import pytest

from instances import TRUTH
from reference import Rewards, information_across
from reference_polytope import active_sides, edge_directions, sides, smallest_conflict, vertices
from reference_times import best_arm_time, conic_time, gaussian_lower_time, time_between


class Instance:
    def __init__(self, truth):
        self.truth = truth
        self.mu = np.array(truth["mu"])
        self.size = len(self.mu)
        rows = zip(truth["B"], truth["c"], strict=True)
        self.sides = sides(
            self.size, [(tuple(map(Fraction, row)), None, Fraction(str(b))) for row, b in rows]
        )
        self.directions = np.array(
            [[float(Fraction(x)) for x in edge["direction"]] for edge in truth["edges"]]
        )
        sigma = np.broadcast_to(np.array(truth["sigma"]), self.size)
        self.rewards = Rewards(truth["family"], sigma=sigma)

    def allowed(self, scenario):
        rows, limit = np.array(self.truth["B"], dtype=float), np.array(self.truth["c"])
        if scenario == "end-of-time":
            rows, limit = rows[:0], limit[:0]
        return rows, limit, np.ones((1, self.size)), np.ones(1)


@pytest.fixture(scope="module", params=TRUTH)
def instance(request):
    return Instance(TRUTH[request.param])


def test_edges(instance):
    point = tuple(map(Fraction, instance.truth["policy"]))
    expected = {tuple(map(Fraction, edge["direction"])) for edge in instance.truth["edges"]}
    assert edge_directions(instance.sides, point) == expected
    assert len(active_sides(instance.sides, point)) == instance.truth["active"]


def test_vertices(instance):
    if instance.size <= 8:  # twelve arms take a minute
        points = vertices(instance.sides, instance.size)
        assert len(points) == instance.truth["vertices"]
        best = max(points, key=lambda point: float(np.dot([float(x) for x in point], instance.mu)))
        assert best == tuple(map(Fraction, instance.truth["policy"]))


@pytest.mark.parametrize("scenario", ["end-of-time", "anytime"])
def test_times(instance, scenario):
    truth, allowed = instance.truth[scenario], instance.allowed(scenario)
    arguments = instance.directions, instance.mu, instance.rewards, *allowed
    digits = 1e-8 if instance.truth["family"] == "gaussian" else 1e-6
    assert conic_time(*arguments) == pytest.approx(truth["T"], rel=digits)
    w = np.array(truth["w"])
    lower, upper = time_between(w, *arguments)
    assert lower <= truth["T"] * (1 + 1e-9)
    assert upper >= truth["T"] * (1 - 1e-9)
    assert upper / lower < 1 + 1e-6
    information = [
        information_across(d, instance.mu, w, instance.rewards) for d in instance.directions
    ]
    assert 1 / min(information) == pytest.approx(truth["T"], rel=1e-9)
    if instance.truth["family"] == "gaussian":
        sigma = instance.rewards.sigma
        proven = gaussian_lower_time(instance.directions, instance.mu, sigma, *allowed)
        assert 0.99 * truth["T"] <= proven <= truth["T"] * (1 + 1e-12)


def test_bounds_hold_for_a_poor_allocation(instance):
    uniform = np.full(instance.size, 1 / instance.size)
    lower, upper = time_between(
        uniform,
        instance.directions,
        instance.mu,
        instance.rewards,
        *instance.allowed("end-of-time"),
    )
    assert lower <= instance.truth["end-of-time"]["T"] <= upper
    assert upper == pytest.approx(instance.truth["T_uniform"], rel=1e-8)
    assert lower < upper


def test_best_arm(instance):
    time, w = best_arm_time(instance.mu, instance.rewards)
    assert time == pytest.approx(instance.truth["unconstrained"]["T"], rel=1e-10)
    assert w == pytest.approx(instance.truth["unconstrained"]["w"], abs=1e-9)


def test_conflicts():
    half, one = Fraction(1, 2), Fraction(1)
    rows = [((one, Fraction(0)), None, half), ((Fraction(0), one), None, half / 2)]
    assert smallest_conflict(2, rows) == 2
    assert smallest_conflict(2, rows[:1]) == 0
    assert smallest_conflict(2, [*rows, ((one, one), None, half)]) == 1
