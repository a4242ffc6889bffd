"""Measured limits where nobody knows standard deviations: evidence is below every hypothesis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import gammaln

from measuring import EVIDENCE, EVIDENCE_OF_ROWS, INSIDE, records_for, row_evidence, search
from simplexplore import Explorer, Gaussian, Measured, Problem

# The mixtures, once more: shift, samples that the priors of mean and variance are worth.
SCALES = [(3.0**-j, 9.0**j / 0.49, 2 * 9.0**j / 0.49) for j in range(5)] + [(0.0, 0.5, 0.25)]
FAR = np.concatenate(
    [-np.geomspace(30, 1e-3, 60), np.linspace(0, 0.5, 400), np.geomspace(0.501, 30, 90)]
)


def mixture(n, y=FAR):
    """Log of an arm's mixture, y empirical deviations away, at its least over a scan of sigma."""
    p = np.concatenate([[0.0], np.geomspace(0.05, 5, 500)])[:, None]
    total = -math.inf
    for r, c, a0 in SCALES:
        k, a = c * n / (n + c) / 2, a0 + n / 2
        constant = gammaln(a) - gammaln(a0) + a0 * math.log(a0) - math.log1p(n / c) / 2
        inner = a0 + n * p * p / 2 + k * (y * p - r) ** 2
        total = np.logaddexp(total, constant + n * p * p * (1 + y * y) / 2 - a * np.log(inner))
    return total.min(axis=0) - math.log(len(SCALES))


def least(arms, coefficients, gap):
    """The least sum of mixtures over the half-space, by scans and a simplex search."""
    moving = [(f, c) for f, c in zip(arms, coefficients, strict=True) if c > 0]
    rest = sum(f.min() for f, c in zip(arms, coefficients, strict=True) if c == 0)
    if not moving:
        return math.inf if gap > 0 else rest
    (last, weight), *others = moving[::-1]
    outwards = np.minimum.accumulate(last[::-1])[::-1]

    def value(*y):
        left = (gap - sum(c * one for (_, c), one in zip(others, y, strict=True))) / weight
        found = sum(np.interp(one, FAR, f) for (f, _), one in zip(others, y, strict=True))
        # Beyond what was scanned it is larger; farther out than the plane it may be less.
        return found + outwards[np.minimum(np.searchsorted(FAR, left), len(FAR) - 1)]

    if len(others) < 2:
        return rest + np.min(value(*[np.linspace(-0.3, 1.2, 1000) for _ in others]))
    starts = [np.full(len(others), s * gap / sum(coefficients)) for s in (0.3, 1.0, 1.5)]
    found = (optimize.minimize(lambda y: value(*y), x, method="Nelder-Mead") for x in starts)
    return rest + min(one.fun for one in found)


def evidence(measured, run, policy, cell, x, arms, *, rewards):
    own = measured.used[cell] > 0
    both = own | (policy > 0)
    deviations = np.sqrt(run.squares[:, :-1] / run.n)
    averaged = math.log(0.1)
    if rewards:
        gap = measured.epsilon + run.mean[0] @ (policy - x)
        found = least(arms[both], (np.abs(policy - x) * deviations[0])[both], gap)
        averaged = np.logaddexp(averaged, math.log(0.9) - measured.log_patterns[cell] + found)
    gap = run.mean[1] @ x - measured.limit[0]
    found = least(arms[own], (x * deviations[1])[own], gap)
    of_row = np.logaddexp(math.log(0.1), math.log(0.9) + found)
    return np.logaddexp(averaged, of_row) - math.log(2)  # they may depend on each other


def records(size, seed):
    rng = np.random.default_rng(seed)
    row = Measured("m", 0.5, tolerance=0.05)
    # With a small delta hulls reach far.
    given = Problem(size, rewards=Gaussian("unknown"), epsilon=0.15, measured=[row], delta=1e-30)
    measured, run, work = records_for(given)
    run.n[:] = rng.integers(150, 900, size)
    run.mean[0] = rng.normal(size=size)
    run.mean[1:] = rng.uniform(0, 1, (1, size))
    run.squares[:, :-1] = run.n * rng.uniform(0.3, 1.5, (2, size)) ** 2
    corners = measured.vertices[measured.cells[0]]
    policy = rng.dirichlet(np.ones(len(corners))) @ corners
    return measured, run, work, policy


@pytest.mark.parametrize(("size", "seed"), [(2, 0), (2, 1), (3, 2)])
def test_the_search_is_below_every_hypothesis_and_not_far(size, seed):
    measured, run, work, policy = records(size, seed)
    arms = np.array([mixture(n) for n in run.n])
    for mode in (EVIDENCE, EVIDENCE_OF_ROWS):
        everywhere = (-math.inf, math.inf, work.found)
        found = search(measured, run, work, run.n, policy, mode, *everywhere)
        lowest = min(
            evidence(measured, run, policy, cell, x, arms, rewards=mode == EVIDENCE)
            for cell, numbers in enumerate(measured.cells)
            for x in np.linspace(0, 1, 81 if size == 2 else 31)[:, None]
            * (measured.vertices[numbers[0]] - measured.vertices[numbers[1]])
            + measured.vertices[numbers[1]]
        )
        assert found <= lowest + 0.01  # by which scans and interpolation may be too low
        assert found >= lowest - 0.6 - 0.03 * abs(lowest)


def test_evidence_for_a_row():
    measured, run, work, _ = records(3, 4)
    run.mean[1] = [0.3, 0.35, 0.9]
    run.answer[:] = [0.3, 0.7, 0.0]
    run.integers[INSIDE] = 1
    arms = np.array([mixture(n) for n in run.n])
    deviations = np.sqrt(run.squares[1, :-1] / run.n)
    gap = 0.55 - run.mean[1] @ run.answer
    expected = least(arms[:2], (run.answer * deviations)[:2], gap) - math.log(4)
    found = row_evidence(measured, run, work, 0)
    assert expected - 0.03 * (8 + abs(expected)) <= found <= expected + 0.01
    # An arm whose measurements are all the same says more, and hulls are those of its counts.
    run.squares[1, 1] = 0.0
    assert row_evidence(measured, run, work, 0) > found
    run.n[0] = 1.0
    assert row_evidence(measured, run, work, 0) == -math.inf


@pytest.mark.parametrize(("noise", "most"), [(0.0, 40), (1e-8, 60)])
def test_outcomes_without_noise(noise, most):
    """What is certain is soon found, however little is known of it: no evidence is infinite."""
    row = Measured("m", 0.5, tolerance=0.3)
    problem = Problem(["a", "b"], rewards=Gaussian("unknown"), epsilon=0.5, measured=[row])
    explorer = Explorer(problem, seed=1)
    rng = np.random.default_rng(0)
    while (arm := explorer.ask()) is not None:
        value = float(arm == "a")
        explorer.tell(arm, value + noise * rng.normal(), {"m": value})
        assert explorer.pulls < most
    assert 0 < explorer.confidence < 1
    assert explorer.policy[0] <= 0.8


def test_intervals_of_an_explorer():
    row = Measured("m", 0.5, tolerance=0.3)
    problem = Problem(["a", "b"], rewards=Gaussian("unknown"), epsilon=0.5, measured=[row])
    explorer = Explorer(problem, seed=1)
    rng = np.random.default_rng(0)
    means = {"a": (1.0, 0.9), "b": (0.2, 0.1)}
    while (arm := explorer.ask()) is not None:
        reward, value = rng.normal(means[arm], [0.5, 0.3])
        explorer.tell(arm, reward, {"m": value})
        assert explorer.pulls < 400
    (shown,) = explorer.measured
    assert (shown.low < [0.9, 0.1]).all()
    assert (shown.high > [0.9, 0.1]).all()
    assert (shown.high - shown.low < 1).all()
    assert shown.means @ explorer.policy <= 0.8
    assert shown.p_value < 0.05
    assert explorer.confidence >= 0.9
