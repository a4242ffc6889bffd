"""The pages of docs/theory: what they point to exists, and claims that no other test checks."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

from engines import SCENARIOS, chosen, engine_for, follow
from instances import AWKWARD, awkward, drawn
from simplexplore import Bernoulli, Poisson
from simplexplore.kernels.exponential import regret_of_mixture

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


def log_mixture(rewards, n, s, mean):
    """log M(n; mean) of one arm after n rewards that sum to s."""
    fit = s / n
    distance = float(rewards.divergence(np.array(fit), np.array(mean), np.ones(())))
    return n * distance - regret_of_mixture(rewards.code, n, fit)


@pytest.mark.parametrize(("n", "s", "mean"), [(1.0, 1.0, 0.3), (7.0, 0.0, 0.9), (40.0, 13.0, 0.5)])
def test_mixtures_are_supermartingales(n, s, mean):
    def ratio(rewards, reward):
        before = log_mixture(rewards, n, s, mean)
        return math.exp(log_mixture(rewards, n + 1, s + reward, mean) - before)

    coin = [ratio(Bernoulli(), x) for x in (0.0, 1.0)]
    assert (1 - mean) * coin[0] + mean * coin[1] == pytest.approx(1)
    # A bounded reward of the same mean, between the ends: no more than the chord.
    assert ratio(Bernoulli(), mean) <= 1
    counts = np.arange(60)
    gains = [ratio(Poisson(), float(x)) for x in counts]
    assert poisson.pmf(counts, mean) @ gains == pytest.approx(1)


# ------------------------------------------------------------ tracking.md


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("seed", AWKWARD)
def test_cumulative_tracking_follows_within_a_constant(seed, scenario):
    problem = awkward(seed, scenario)
    engine = engine_for(problem, "ctns", delta=1e-9, tracking="cumulative")
    size, config = problem.size, engine.workspace.config
    made = np.zeros(size)

    def check(engine):
        if engine.run.target.sum() < made.sum() + 0.5:  # stopped
            return
        made[chosen(engine)] += 1
        off, t = made - engine.run.target, made.sum()
        if config.anytime:  # what limits delay is another matter
            use = problem.matrix @ made
            width = engine.workspace.excess_bound * np.abs(problem.matrix).max(axis=1)
            assert (use <= t * problem.upper + width + 1e-6).all()
            assert (use >= t * problem.lower - width - 1e-6).all()
            return
        assert -(size - 1) < off.min()
        assert off.max() < 1
        least = config.interior_allocation * (2 * size / 3) * (
            math.sqrt(size * size + t) - size
        ) - (size - 1)
        assert (made > least - 1e-9).all()

    follow(engine, drawn(problem, 300, [seed, 4]), 300, each=check)
    assert made.sum() > size


@pytest.mark.parametrize("seed", AWKWARD)
def test_direct_tracking_leaves_no_arm_far_behind(seed):
    problem = awkward(seed, "end-of-time")
    engine = engine_for(problem, "ctns", delta=1e-300)
    assert engine.plan.sampler.tracking["end-of-time"] == "direct"
    size, arms = problem.size, engine.workspace.config.useful_arms

    def check(engine):
        least = (math.sqrt(size * size + engine.pulls) - size) / 2 - 1
        assert engine.run.n[arms].min() >= least

    follow(engine, drawn(problem, 2000, [seed, 6]), 2000, each=check)
    assert engine.pulls == 2000


@pytest.mark.parametrize("seed", AWKWARD)
def test_every_arm_has_its_turn_with_top_two(seed):
    problem = awkward(seed, "end-of-time")
    engine = engine_for(problem, "top-two", delta=1e-300)
    follow(engine, drawn(problem, 2000, [seed, 5]), 2000)
    size, arms = problem.size, engine.workspace.config.useful_arms
    turns = int(size / 2 * (math.sqrt(size * size + engine.pulls) - size))
    assert engine.pulls == 2000
    assert engine.run.n[arms].min() >= turns // len(arms)
