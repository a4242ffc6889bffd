"""What holds for a family that was added by following CONTRIBUTING.md, and no more."""

from typing import ClassVar

import numpy as np
import pytest

import simplexplore as sx
from simplexplore.bound.budget import swapped
from simplexplore.exploration.intervals import mean_intervals
from simplexplore.exploration.tilts import make_tilts
from simplexplore.problem.families import FAMILIES, Poisson
from simplexplore.problem.family import Family


class Visits(Poisson):
    """Has the variance function of counts, and so shares their code; `tilt` knows nothing of it."""

    name: ClassVar[str] = "visits"
    strongest_tilt: ClassVar[float] = Family.strongest_tilt


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
    evidence, ours = (explorer._engine.evidence()[0] for explorer in explorers)
    # Without tilts there is no more evidence than with them.
    assert (evidence <= ours + 1e-12).all()


def test_tilts_bet_nothing(problem):
    assert not make_tilts(problem.rewards).strength.any()
    counts, means = np.full(3, 30.0), np.array([3.0, 2.0, 1.0])
    low, high = mean_intervals(problem, counts, means, 0.05)
    assert (low < means).all()
    assert (means < high).all()


def test_a_bound_for_a_budget_is_refused(problem):
    with pytest.raises(sx.ProblemError, match="visits rewards have no bound for a given number"):
        swapped(problem.rewards)
