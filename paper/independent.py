"""The paper's definitions, computed slowly and without simplexplore's geometry or solvers."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize

import simplexplore as sx

Array = npt.NDArray[np.float64]

# Of feasibility; and the least share that the program may choose.
ROUNDING, SMALLEST = 1e-9, 1e-9


def rows_of(problem: sx.Problem) -> tuple[Array, Array, Array, Array]:
    """F as A w <= b and E w = f, the simplex included."""
    eye, one = np.eye(problem.size), np.ones((1, problem.size))
    lower, upper = problem.lower, problem.upper
    equal = lower == upper
    below, above = np.isfinite(upper) & ~equal, np.isfinite(lower) & ~equal
    matrix = problem.matrix.reshape(-1, problem.size)
    a = np.vstack([-eye, matrix[below], -matrix[above]])
    b = np.concatenate([np.zeros(problem.size), upper[below], -lower[above]])
    rows = np.unique(np.c_[np.vstack([one, matrix[equal]]), np.append(1.0, upper[equal])], axis=0)
    return a, b, rows[:, :-1], rows[:, -1]


def vertices(problem: sx.Problem) -> Array:
    """All vertices of F: every choice of rows that determines a point, kept if it is feasible."""
    a, b, e, f = rows_of(problem)
    free = problem.size - np.linalg.matrix_rank(e)
    found: list[Array] = []
    for chosen in combinations(range(len(a)), int(free)):
        rows, sides = np.vstack([e, a[list(chosen)]]), np.append(f, b[list(chosen)])
        if np.linalg.matrix_rank(rows, tol=1e-10) < problem.size:
            continue
        point: Array = np.asarray(np.linalg.lstsq(rows, sides, rcond=None)[0], dtype=float)
        feasible = (a @ point <= b + ROUNDING).all() and np.abs(e @ point - f).max() < ROUNDING
        if feasible and all(np.abs(point - other).max() > 1e-7 for other in found):
            found.append(point)
    return np.array(found)


def projected(rewards: Any, means: Array, w: Array, direction: Array) -> tuple[float, Array]:
    """Least sum of w d(means, lam) over lam with lam @ direction = 0, and where it is.

    Gaussian: the solution of least norm of one linear equation, by singular values. Bernoulli: for
    a multiplier g each lam solves w (lam - mean) / (lam (1 - lam)) = -g direction, and the root in
    g is found by bisection.
    """
    if isinstance(rewards, sx.Gaussian):
        scale = np.sqrt(w) / rewards.sigmas(len(means))
        step = np.linalg.lstsq(
            (direction / scale)[None, :], np.array([-direction @ means]), rcond=None
        )[0]
        return float(step @ step) / 2, means + step / scale

    def at(g: float) -> Array:
        push = g * direction / w
        # lam^2 push - lam (push + 1) + means = 0, the root in [0, 1], without cancellation.
        middle = 1.0 + push
        other = middle + np.sqrt(np.maximum(middle**2 - 4 * push * means, 0.0))
        return np.asarray(2 * means / other)

    def left(g: float) -> float:
        return float(at(g) @ direction)

    sign = 1.0 if left(0.0) > 0 else -1.0
    far = sign * float(w.min())
    while left(far) * left(0.0) > 0 and abs(far) < 1e12:
        far *= 2
    lam = at(float(brentq(left, 0.0, far, xtol=1e-15, rtol=1e-14)))
    kl = means * np.log(means / lam) + (1 - means) * np.log((1 - means) / (1 - lam))
    return float(w @ kl), lam


def information(problem: sx.Problem, means: Array, best: Array, rivals: Array, w: Array) -> float:
    """D(w, means, F), over all rivals and not only neighbours."""
    every = (projected(problem.rewards, means, w, best - rival)[0] for rival in rivals)
    return min(every)


def gaussian_time(problem: sx.Problem, means: Array, points: Array, moves: Array) -> float:
    """T of Gaussian arms by sequential quadratic programming, over shares w and s <= 1 / T.

    Each move v asks for s <= (v @ means)^2 / (2 sum of sigma^2 v^2 / w). It is the T of an
    allocation that is allowed, so never below T; where it is above, it is started again from there.
    """
    size = problem.size
    parts = 2 * (problem.rewards.sigmas(size) * moves) ** 2 / (moves @ means)[:, None] ** 2
    a, b, e, f = rows_of(problem)
    if problem.scenario == "anytime":
        w = points.mean(axis=0)
    else:
        a, b, e, f = a[:size], b[:size], np.ones((1, size)), np.ones(1)
        w = np.full(size, 1 / size)
    a = np.c_[a, np.zeros(len(a))]
    e = np.c_[e, np.zeros(len(e))]
    unit, up = 1.0, np.append(np.zeros(size), -1.0)

    def room(z: Array) -> Array:
        return np.asarray(1 / (parts @ (1 / z[:size])) / unit - z[size])

    def slopes(z: Array) -> Array:
        values = 1 / (parts @ (1 / z[:size]))
        rates = values[:, None] ** 2 * parts / z[:size] ** 2 / unit
        return np.hstack([rates, -np.ones((len(parts), 1))])

    bounds: Any = [(SMALLEST, 1.0)] * size + [(None, None)]
    limits: Any = [
        {"type": "ineq", "fun": room, "jac": slopes},
        {"type": "ineq", "fun": lambda z: b - a @ z, "jac": lambda _: -a},
        {"type": "eq", "fun": lambda z: e @ z - f, "jac": lambda _: e},
    ]
    solve: Any = minimize
    least = math.inf
    for _ in range(2):
        unit = float(1 / (parts @ (1 / w)).max())
        found = solve(
            lambda z: -z[size], np.append(w, 1.0), jac=lambda _: up, method="SLSQP",
            constraints=limits, bounds=bounds,
            options={"maxiter": 500, "ftol": 1e-14},
        )  # fmt: skip
        w = np.maximum(found.x[:size], SMALLEST)
        z = np.append(w, 0.0)
        if (a @ z <= b + 1e-7).all() and np.abs(e @ z - f).max() < 1e-7:
            least = min(least, float((parts @ (1 / w)).max()))
    return least
