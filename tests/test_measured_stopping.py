"""Evidence where limits are measured: bounds against integrals, minimisers and dense grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from measuring import (
    DISTANCE,
    EVIDENCE,
    EVIDENCE_OF_ROWS,
    INSIDE,
    LOSS,
    LOSS_OF_TRIANGLES,
    LOSS_PER_NAT,
    best_policy,
    faces,
    records_for,
    row_evidence,
    search,
    set_values,
)
from simplexplore import Gaussian, Measured, Problem

# The mixtures, once more: shifts of 2 / 3^j standard deviations, sharp to 0.7 of themselves.
SHIFTS = [2.0 / 3.0**j for j in range(6)]
KAPPA = 0.7


def problem(size, rows, constraints=(), independent=()):
    measured = [
        Measured(f"m{i}", 0.5, sigma=0.7 + i, tolerance=0.05, independent=i in independent)
        for i in range(rows)
    ]
    return Problem(size, constraints, rewards=Gaussian(1.3), epsilon=0.15, measured=measured)


def records(given, rng, scale=300):
    """Measured limits, and a run with random counts and means."""
    measured, run, work = records_for(given)
    run.n[:] = rng.integers(scale, 4 * scale, given.size)
    run.mean[0] = rng.normal(size=given.size)
    run.mean[1:] = rng.uniform(0, 1, (measured.rows, given.size))
    return measured, run, work


def log_mixture(n, y, shift):
    """Log of exp(n (theta y - theta^2 / 2)), mixed over theta ~ N(shift, (KAPPA shift)^2)."""
    s = 1 + n * (KAPPA * shift) ** 2
    return n * y * y / 2 - n * (y - shift) ** 2 / (2 * s) - math.log(s) / 2


def least_mixture(n, sigma, v, gap, shift):
    """The least log mixture of some arms over means with v . (seen - means) >= gap, by scipy.

    Arms shift in the direction of v; those with v = 0 do not move the gap.
    """
    reach = np.abs(v) * sigma

    def value(y):
        return sum(log_mixture(m, one, shift) for m, one in zip(n, y, strict=True))

    start = np.full(len(n), gap / max(reach.sum(), 1e-9))
    found = optimize.minimize(
        value,
        start,
        constraints=[{"type": "ineq", "fun": lambda y: reach @ y - gap}],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.fun


def evidence(measured, run, policy, cell, x, *, rewards=True, independent=()):
    """Log of the evidence against one competitor, from its definition; closed forms by scipy."""
    own = measured.used[cell] > 0
    both = own | (policy > 0)
    channels = [math.log(0.1)]
    if rewards:
        v = policy - x
        gap = measured.epsilon + v @ run.mean[0]
        parts = [closed(run.n[both], measured.variance[0, both], v[both], gap, r) for r in SHIFTS]
        mixed = np.logaddexp.reduce(parts) - math.log(len(SHIFTS))
        channels = [
            np.logaddexp(math.log(0.1), math.log(0.9) - measured.log_patterns[cell] + mixed)
        ]
    for i in range(measured.rows):
        gap = run.mean[1 + i] @ x - measured.limit[i]
        parts = [closed(run.n[own], measured.variance[1 + i, own], x[own], gap, r) for r in SHIFTS]
        mixed = np.logaddexp.reduce(parts) - math.log(len(SHIFTS))
        channels.append(np.logaddexp(math.log(0.1), math.log(0.9) + mixed))
    return combined(channels, independent)


def combined(channels, independent=()):
    """Rewards and rows that may depend on them are averaged; the others multiply."""
    averaged = [x for i, x in enumerate(channels) if i - 1 not in independent]
    return (
        np.logaddexp.reduce(averaged)
        - math.log(len(averaged))
        + sum(channels[1 + i] for i in independent)
    )


def closed(n, variance, v, gap, shift):
    """`least_mixture` in closed form, vectorised differently from the kernel's."""
    c = 1 / (KAPPA * shift) ** 2
    moved = gap + np.sum(np.sqrt(variance) * np.abs(v) / n) / (KAPPA**2 * shift)
    spread = np.sum(variance * v**2 * (n + c) / n**2)
    price = np.sum(0.5 / KAPPA**2 + 0.5 * np.log1p(n / c))
    if moved <= 0:
        return -price
    return (moved**2 / (2 * spread) if spread > 0 else math.inf) - price


def points(corners, steps):
    """A lattice on a simplex."""
    for whole in itertools.product(range(steps + 1), repeat=len(corners) - 1):
        if sum(whole) <= steps:
            weights = np.array([steps - sum(whole), *whole]) / steps
            yield weights @ corners


def test_a_mixture_is_an_e_value_and_its_least_value_the_closed_form():
    for n, shift in ((3, 2.0), (40, 0.22), (1000, 0.07)):
        # Its mean over normal outcomes is 1, and over outcomes at two ends no more.
        def weighted(y, n=n, shift=shift):
            return math.exp(log_mixture(n, y, shift) + stats.norm.logpdf(y, 0, n**-0.5))

        far = 12 * (shift + n**-0.5)
        mean = integrate.quad(weighted, -far, far, points=[0, shift], limit=200)[0]
        assert mean == pytest.approx(1.0, abs=1e-7)
        heads = np.arange(n + 1)
        for p in (0.03, 0.5, 0.8):
            values = [log_mixture(n, (k / n - p) / 0.5, shift) for k in heads]
            assert np.logaddexp.reduce(values + stats.binom.logpmf(heads, n, p)) <= 0.0
    rng = np.random.default_rng(0)
    for _ in range(12):
        size = rng.integers(1, 4)
        n, variance = rng.integers(20, 400, size), rng.uniform(0.3, 2, size)
        v, shift = rng.normal(size=size), rng.choice(SHIFTS[:4])
        gap = rng.uniform(-0.1, 0.5)
        numeric = least_mixture(n, np.sqrt(variance), v, gap, shift)
        assert closed(n, variance, v, gap, shift) == pytest.approx(numeric, abs=1e-5)


def test_channels_that_depend_on_each_other_are_averaged_and_not_multiplied():
    # Two channels with the same noise, at the truth: the product of e-values is none, and gets
    # worse with each look; the average is one.
    for n, shift in ((5, 0.67), (40, 0.22)):

        def mean(value, n=n, shift=shift):
            def weighted(y):
                return math.exp(value(log_mixture(n, y, shift)) + stats.norm.logpdf(y, 0, n**-0.5))

            far = 12 * (shift + n**-0.5)
            return integrate.quad(weighted, -far, far, points=[0, shift], limit=400)[0]

        assert mean(lambda x: combined([x, x])) == pytest.approx(1.0, abs=1e-6)
        assert mean(lambda x: combined([x, x], (0,))) > 1.5


CONSTRAINTS = [(), ["a1 <= 0.4", "a2 + a3 <= 0.7"]]


@pytest.mark.parametrize(
    ("size", "rows", "known", "independent"),
    [(2, 1, 0, ()), (4, 1, 0, (0,)), (4, 1, 1, ()), (3, 2, 0, ()), (3, 2, 0, (1,))],
)
def test_the_search_is_below_every_competitor_and_not_far(size, rows, known, independent):
    rng = np.random.default_rng(size + 10 * known)
    given = problem(size, rows, CONSTRAINTS[known], independent)
    for _ in range(2 if rows == 1 else 1):
        measured, run, work = records(given, rng)
        corners = measured.vertices[measured.cells[rng.integers(len(measured.cells))]]
        policy = rng.dirichlet(np.ones(len(corners))) @ corners
        for mode in (EVIDENCE, EVIDENCE_OF_ROWS):
            everywhere = (-math.inf, math.inf, work.found)
            found = search(measured, run, work, run.n, policy, mode, *everywhere)
            least = min(
                evidence(
                    *(measured, run, policy, cell, x),
                    rewards=mode == EVIDENCE,
                    independent=independent,
                )
                for cell, numbers in enumerate(measured.cells)
                for x in points(measured.vertices[numbers], 100 if rows == 1 else 40)
            )
            assert found <= least + 1e-9
            # The lattice may miss the least by a little.
            assert found >= least - LOSS_OF_TRIANGLES - 0.3
            # Enough is enough, and too little is found out.
            assert search(
                measured, run, work, run.n, policy, mode, least - 1, found - 1, work.found
            )
            below = search(
                measured, run, work, run.n, policy, mode, least + 1, least + 1, work.found
            )
            assert below < least + 1


def test_distances_are_those_of_the_closest_alternative():
    rng = np.random.default_rng(5)
    given = problem(3, 1)
    for _ in range(3):
        measured, run, work = records(given, rng)
        corners = measured.vertices[measured.cells[0]]
        policy = rng.dirichlet(np.ones(2)) @ corners
        work.found[:] = -1.0
        found = search(measured, run, work, run.n, policy, DISTANCE, -1.0, math.inf, work.found)

        def distance(x, measured=measured, run=run, policy=policy):
            gap = measured.epsilon + run.mean[0] @ (policy - x)
            value = max(gap, 0) ** 2 / (
                2 * (measured.variance[0] * (policy - x) ** 2 / run.n).sum()
            )
            over = max(run.mean[1] @ x - measured.limit[0], 0)
            return value + over**2 / (2 * (measured.variance[1] * x**2 / run.n).sum())

        least = min(
            distance(x) for cell in measured.cells for x in points(measured.vertices[cell], 1000)
        )
        assert found <= least + 1e-9
        assert found >= least * (1 - LOSS * LOSS_PER_NAT) - LOSS - 0.02
        assert distance(work.found) == pytest.approx(least, rel=2 * LOSS * LOSS_PER_NAT, abs=0.02)


def test_evidence_for_a_row():
    rng = np.random.default_rng(1)
    measured, run, work = records(problem(3, 1), rng)
    run.answer[:] = [0.3, 0.7, 0.0]
    used = run.answer > 0
    gap = 0.55 - run.mean[1] @ run.answer
    given = (run.n[used], measured.variance[1, used], run.answer[used], gap)
    mixed = np.logaddexp.reduce([closed(*given, r) for r in SHIFTS]) - math.log(len(SHIFTS))
    # Three supports of two arms share 3/4 of the prior, three of one arm the rest.
    for inside, prior in ((1, 0.25), (0, 0.25 / 3)):
        run.integers[INSIDE] = inside
        assert row_evidence(measured, run, work, 0) == pytest.approx(mixed + math.log(prior))


@pytest.mark.parametrize("rows", [1, 2])
def test_the_best_policy_is_that_of_a_linear_program(rows):
    rng = np.random.default_rng(rows)
    for trial in range(6):
        given = problem(4, rows, CONSTRAINTS[trial % 2])
        measured, run, work = records(given, rng)
        work.bounds[0] = measured.limit
        set_values(measured, run, work)
        for tightened in (0.0, 0.15, 0.3):
            work.bounds[0] = measured.limit - tightened
            value = best_policy(measured, work, work.policy)
            rest = given.matrix if len(given.names) else np.zeros((0, 4))
            linear = optimize.linprog(
                -run.mean[0],
                A_ub=np.vstack([run.mean[1:], rest]),
                b_ub=np.concatenate([work.bounds[0], given.upper]),
                A_eq=np.ones((1, 4)),
                b_eq=[1.0],
            )
            if linear.status == 2:
                assert value == -math.inf
            else:
                assert value == pytest.approx(-linear.fun, abs=1e-9)
                assert run.mean[0] @ work.policy == pytest.approx(value)


def test_signed_supports_are_counted():
    for size in (2, 3, 4, 5):
        found = faces(size, (), 1)
        # By hand: on the same edge 2; with a third arm 3; with two others 1 for each pair.
        assert set(found.patterns) == {2 + 3 * (size - 2) + math.comb(size - 2, 2)}
        inside, outside = found.supports
        assert (len(inside), len(outside)) == (math.comb(size, 2), size)
    rng = np.random.default_rng(3)
    found = faces(4, CONSTRAINTS[1], 2)
    seen = {cell: set() for cell in range(len(found.cells))}
    for _ in range(4000):
        cell, other = rng.integers(len(found.cells), size=2)
        x = rng.dirichlet(np.ones(3)) @ found.vertices[found.cells[cell]]
        weights = rng.dirichlet(np.ones(3)) * (rng.permutation(3) < rng.integers(1, 4))
        answer = weights / weights.sum() @ found.vertices[found.cells[other]]
        sign = np.where(np.abs(answer - x) < 1e-12, 0, np.sign(answer - x))
        if sign.any():
            seen[cell].add(tuple(sign))
    for cell, signs in seen.items():
        assert len(signs) <= found.patterns[cell]


def test_cells_cover_faces():
    # Every vertex of the known polytope cut by random rows lies on a cell: as the best policy.
    assert len(faces(4, (), 2).cells) == 4
    square = 4, ["a1 + a2 == 1/2"]
    assert faces(*square, 1).cells.shape == (4, 2)
    assert faces(*square, 2).cells.shape == (2, 3)
    assert faces(2, (), 2).cells.shape == (1, 2)
    cube = 6, ["a1 + a2 == 1/3", "a3 + a4 == 1/3"]
    assert faces(*cube, 2).cells.shape == (12, 3)
