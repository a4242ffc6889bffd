"""The pages of docs/theory: what they point to exists, and claims that no other test checks."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

from engines import engine_for, follow
from instances import AWKWARD, awkward, drawn
from simplexplore.kernels.exponential import regret_of_mixture
from simplexplore.kernels.records import ARM, BERNOULLI, POISSON
from simplexplore.problem.families import Bernoulli, Poisson
from simplexplore.problem.problem import SCENARIOS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_point_to_what_exists(page):
    for file, test in re.findall(r"`([a-z_]+/[a-z_]+\.(?:py|md))(?:::(\w+))?`", page.read_text()):
        top = ROOT if file.startswith(("tests/", "benchmarks/")) else ROOT / "src" / "simplexplore"
        assert (top / file).is_file(), file
        assert not test or f"def {test}(" in (top / file).read_text(), test


def test_code_points_to_pages_that_exist():
    for folder in ("src", "tests", "benchmarks", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            for page in re.findall(r"docs/[a-z_/]+\.md", file.read_text()):
                assert (ROOT / page).is_file(), f"{file}: {page}"


# ------------------------------------------------------------ stopping.md: one reward more


def log_mixture(family, rewards, n, s, mean):
    """log M(n; mean) of one arm after n rewards that sum to s."""
    fit = s / n
    distance = float(rewards.divergence(np.array(fit), np.array(mean), np.ones(())))
    return n * distance - regret_of_mixture(family, n, fit)


@pytest.mark.parametrize(("n", "s", "mean"), [(1.0, 1.0, 0.3), (7.0, 0.0, 0.9), (40.0, 13.0, 0.5)])
def test_mixtures_are_supermartingales(n, s, mean):
    def ratio(family, rewards, reward):
        before = log_mixture(family, rewards, n, s, mean)
        return math.exp(log_mixture(family, rewards, n + 1, s + reward, mean) - before)

    coin = [ratio(BERNOULLI, Bernoulli(), x) for x in (0.0, 1.0)]
    assert (1 - mean) * coin[0] + mean * coin[1] == pytest.approx(1)
    # A bounded reward of the same mean, between the ends: no more than the chord.
    assert ratio(BERNOULLI, Bernoulli(), mean) <= 1
    counts = np.arange(60)
    gains = [ratio(POISSON, Poisson(), float(x)) for x in counts]
    assert poisson.pmf(counts, mean) @ gains == pytest.approx(1)


# ------------------------------------------------------------ tracking.md


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", AWKWARD)
def test_cumulative_tracking_follows_within_a_constant(seed, scenario):
    problem = awkward(seed, scenario)
    engine = engine_for(problem, "ctns", delta=1e-9)
    size, inside = problem.size, engine._setting.inside
    made = np.zeros(size)

    def check(engine):
        arm = engine.run.integers[ARM]
        if engine.run.target.sum() < made.sum() + 0.5:  # stopped
            return
        made[arm] += 1
        off, t = made - engine.run.target, made.sum()
        if engine._setting.anytime:  # what limits delay is another matter
            use = problem.matrix @ made
            width = engine.excess_bound * np.abs(problem.matrix).max(axis=1)
            assert (use <= t * problem.upper + width + 1e-6).all()
            assert (use >= t * problem.lower - width - 1e-6).all()
            return
        assert -(size - 1) < off.min()
        assert off.max() < 1
        least = inside * (2 * size / 3) * (math.sqrt(size * size + t) - size) - (size - 1)
        assert (made > least - 1e-9).all()

    follow(engine, drawn(problem, 300, [seed, 4]), 300, each=check)
    assert made.sum() > size


@pytest.mark.parametrize("seed", AWKWARD)
def test_every_arm_has_its_turn_with_top_two(seed):
    problem = awkward(seed, "end-of-time")
    engine = engine_for(problem, "top-two", delta=1e-300)
    follow(engine, drawn(problem, 2000, [seed, 5]), 2000)
    size, arms = problem.size, engine._setting.first_arms
    turns = int(size / 2 * (math.sqrt(size * size + engine.pulls) - size))
    assert engine.pulls == 2000
    assert engine.run.n[arms].min() >= turns // len(arms)
