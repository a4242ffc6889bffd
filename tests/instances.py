"""Problems that several test files use: the paper's, awkward ones, and rewards drawn for them."""

import json
import math
from pathlib import Path

import numpy as np

import simplexplore as sx
from simplexplore import Bernoulli, Gaussian, Poisson, Problem

EXAMPLES = Path(__file__).parent.parent / "examples"
TRUTH = json.loads((Path(__file__).parent / "data" / "truth.json").read_text())
AWKWARD = list(range(14))

# Limits on samples apart from the constraints.
LIMITED = """
arms = ["a", "b", "c"]
means = [1.0, 0.8, 0.5]

[groups]
front = ["a", "b"]

[constraints]
cap = "a <= 0.5"

[exploration]
fair = "each >= 0.05"
lab = "front <= 0.6"
"""


def paper(name, scenario="end-of-time"):
    """An instance of the paper, by its name in the file of true values."""
    truth = TRUTH[name]
    rewards = Gaussian(truth["sigma"]) if truth["family"] == "gaussian" else Bernoulli()
    return Problem(
        len(truth["mu"]),
        (truth["B"], truth["c"]),
        rewards,
        delta=truth["delta"],
        means=truth["mu"],
        scenario=scenario,
    )


def awkward(seed, scenario, family="gaussian"):
    """Random rows through one policy: degenerate vertices, an equality, a forced arm, limits."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 8))
    point = rng.integers(1, 4, size).astype(float)
    forced = seed % 3 == 1
    if forced:
        point[-1] = 0
    point /= point.sum()
    rows, bounds = [], []
    for _ in range(int(rng.integers(1, 4))):
        row = rng.integers(-1, 3, size).astype(float)
        room = rng.choice([0.0, 0.05, 0.2])  # tight rows meet in one point
        rows.append(row)
        bounds.append(float(row @ point) + room)
    if forced:
        rows.append(np.eye(size)[-1])  # last arm <= 0
        bounds.append(0.0)
    constraints = [
        sx.Constraint(f"c{i}", row.tolist(), -math.inf, bound)
        for i, (row, bound) in enumerate(zip(rows, bounds, strict=True))
    ]
    if seed % 3 == 2:
        row = rng.integers(0, 2, size).astype(float)
        row[0], row[1] = 1.0, 0.0
        total = float(row @ point)
        constraints.append(sx.Constraint("fixed", row.tolist(), total, total))
    if seed >= 9:  # limits on single arms as well, one of them an equality
        for a, x in enumerate(point[: size - forced].tolist()):
            low = x * rng.choice([0.0, 0.5, 0.9])
            high = x + rng.choice([0.02, 0.1, 1.0])
            limits = (x, x) if a == 1 else (low or -math.inf, high)
            constraints.append(sx.Constraint(f"limit{a}", np.eye(size)[a].tolist(), *limits))
    means = rng.uniform(0.2, 0.8, size)
    rewards = {"gaussian": Gaussian(0.5), "bernoulli": Bernoulli(), "poisson": Poisson()}[family]
    return Problem(size, constraints, rewards, means=means, scenario=scenario)


def drawn(problem, steps, seed):
    """Rewards by arm and number of the pull; bounded ones lie between the ends, not on them."""
    rng = np.random.default_rng(seed)
    shape = (steps, problem.size)
    mu, rewards = np.asarray(problem.means), problem.rewards
    if rewards.name == "gaussian":
        return rng.normal(mu, rewards.sigmas(problem.size), shape).T
    if rewards.name == "poisson":
        return rng.poisson(mu, shape).T.astype(float)
    if rewards.name == "bernoulli":
        return (rng.random(shape) < mu).T.astype(float)
    low, high = rewards.low, rewards.high
    share = (mu - low) / (high - low)
    return (high - low) * rng.beta(2 * share, 2 * (1 - share), shape).T + low
