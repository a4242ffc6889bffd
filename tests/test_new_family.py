"""What holds for a family that was added by following CONTRIBUTING.md, and no more."""

from typing import ClassVar

import numpy as np
import pytest

import simplexplore as sx
from engines import engine_for
from simplexplore import Poisson
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.problem.families import FAMILIES, ExponentialTilt, Family


class Visits(Poisson):
    """Has the variance function of counts, and so shares their code; `tilt` knows nothing of it."""

    name: ClassVar[str] = "visits"
    strongest_tilt: ClassVar[float] = Family.strongest_tilt


class Halves(Family):
    """Half of a count: its tilt ends at -2."""

    name: ClassVar[str] = "halves"
    code: ClassVar[int] = 3
    mean_range: ClassVar[tuple[float, float]] = Poisson.mean_range
    lowest_tilt: ClassVar[float] = -2.0

    def cost(self, mu, complement, lam, sigma):
        twice = ExponentialTilt(2 * lam.mean, lam.complement, 2 * lam.shift, lam.rate)
        return Poisson().cost(2 * mu, complement, twice, sigma)

    def variance(self, mean, sigma):
        return mean / 2

    def tilt(self, mu, complement, s, room, sigma):
        lam = mu / np.maximum(room, 1e-50)
        return ExponentialTilt(
            lam, np.zeros_like(lam), -s * lam / 2, lam / np.maximum(room, 1e-50) / 2
        )


@pytest.mark.parametrize("domain", [None, (0.5, 4.0)])
def test_a_bound_wherever_the_tilt_ends(domain):
    halves, counts = (
        sx.lower_bound(sx.Problem(3, ["a1 + a2 <= 0.5"], family, means=means, scenario="anytime"))
        for family, means in (
            (Halves(domain=domain), [3.0, 2.0, 1.0]),
            (Poisson(domain=domain and (1.0, 8.0)), [6.0, 4.0, 2.0]),
        )
    )
    for name, one in halves.scenarios.items():
        same = counts.scenarios[name]
        assert one.characteristic_time == pytest.approx(same.characteristic_time, rel=1e-9)
        assert one.allocation == pytest.approx(same.allocation, abs=1e-6)


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setitem(FAMILIES, "visits", Visits)
    return sx.Problem(3, ["a1 + a2 <= 0.5"], Visits(), means=[3.0, 2.0, 1.0])


@pytest.mark.parametrize("threshold", ["gk16", "mixture", "tilt"])
def test_it_is_explored(problem, threshold):
    explorers = [
        sx.Explorer(one, "top-two", threshold=threshold, delta=1e-12)
        for one in (problem, problem.replace(rewards=Poisson()))
    ]
    draw = np.random.default_rng(0)
    for _ in range(40):
        arms = {explorer.ask() for explorer in explorers}
        assert len(arms) == 1
        reward = float(draw.poisson(problem.means[problem.arms.index(arm := arms.pop())]))
        for explorer in explorers:
            explorer.tell(arm, reward)
    if threshold == "tilt":  # without them there is no more evidence than with them
        found, ours = (
            np.array([edge["log_evidence"] for edge in explorer.edges()]) for explorer in explorers
        )
        assert (found <= ours + 1e-12).all()


def test_tilts_bet_nothing(problem):
    assert not engine_for(problem, threshold="tilt").workspace.config.tilts.strength.any()
    counts, means = np.full(3, 30.0), np.array([3.0, 2.0, 1.0])
    low, high = mean_intervals(problem.rewards, counts, means, 0.05)
    assert (low < means).all()
    assert (means < high).all()
