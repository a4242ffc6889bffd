"""Characteristic times by a general solver of cone programs, and of the best arm in closed form.

Each says how accurate it is.
"""

from __future__ import annotations

import itertools
import math

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

from reference import Rewards, closest_alternative


def gaussian_lower_time(
    directions: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
    above: np.ndarray,
    limit: np.ndarray,
    equal: np.ndarray,
    total: np.ndarray,
) -> float:
    """A proven lower bound on T for Gaussian rewards, nearly always tight to 1e-5.

    min t subject to sum_a c_ea y_a <= t, y_a w_a >= 1 over {w >= 0 : above w <= limit,
    equal w = total}, by clarabel. Its multipliers enter the closed-form dual, whose value
    is a bound whatever the solver's accuracy was.
    """
    coefficients = 2 * sigma**2 * directions**2 / (directions @ mu)[:, None] ** 2
    edges, size = coefficients.shape
    scale = (coefficients.sum(axis=1) * size).max()
    c = coefficients / scale
    # Variables w, y, t: minimise t with c y <= t, above w <= limit and y_a w_a >= 1.
    rows, right = len(limit), []
    blocks, cones = [], []
    blocks.append(np.hstack([equal, np.zeros((len(total), size + 1))]))
    right.append(total)
    cones.append(clarabel.ZeroConeT(len(total)))
    blocks.append(np.hstack([np.zeros((edges, size)), c, -np.ones((edges, 1))]))
    right.append(np.zeros(edges))
    blocks.append(np.hstack([above, np.zeros((rows, size + 1))]))
    right.append(limit)
    cones.append(clarabel.NonnegativeConeT(edges + rows))
    for a in range(size):
        block = np.zeros((3, 2 * size + 1))
        block[0, [a, size + a]] = -1.0
        block[2, [a, size + a]] = 1.0, -1.0
        blocks.append(block)
        right.append(np.array([0.0, 2.0, 0.0]))
        cones.append(clarabel.SecondOrderConeT(3))
    objective = np.zeros(2 * size + 1)
    objective[-1] = 1.0
    _, z = solve_cone(objective, np.vstack(blocks), np.concatenate(right), cones)
    q = np.maximum(z[len(total) : len(total) + edges], 0.0)
    price_rows = np.maximum(z[len(total) + edges : len(total) + edges + rows], 0.0)
    lower = gaussian_dual(c, q, z[: len(total)], price_rows, above, limit, equal, total)
    return lower * scale


def gaussian_dual(
    coefficients: np.ndarray,
    q: np.ndarray,
    nu: np.ndarray,
    price: np.ndarray,
    above: np.ndarray,
    limit: np.ndarray,
    equal: np.ndarray,
    total: np.ndarray,
) -> float:
    """(sum_a sqrt(C_a s_a))^2 / (nu . total + price . limit) for multipliers made feasible.

    The first row of `equal` must be the total.
    """
    asked = (q / q.sum()) @ coefficients
    s = equal.T @ nu + above.T @ price
    lift = max(0.0, -float(s.min()))
    cost = float(nu @ total + price @ limit) + lift
    return float(np.sqrt(asked * np.maximum(s + lift, 0.0)).sum() ** 2 / cost)


def solve_cone(
    objective: np.ndarray, matrix: np.ndarray, right: np.ndarray, cones: list[object]
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise objective . x subject to right - matrix x in the cones; (x, multipliers)."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_iter = 500
    solver = clarabel.DefaultSolver(
        scipy.sparse.csc_matrix((len(objective), len(objective))),
        objective,
        scipy.sparse.csc_matrix(matrix),
        right,
        cones,
        settings,
    )
    solution = solver.solve()
    return np.array(solution.x), np.array(solution.z)


def gaussian_cost(
    directions: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
    costs: np.ndarray,
    above: np.ndarray,
    limit: np.ndarray,
) -> float:
    """Least cost of Gaussian samples: min costs . n with sum_a c_ea y_a <= 1, y_a n_a >= 1.

    Of the shares n / sum n, above @ share <= limit.
    """
    coefficients = 2 * sigma**2 * directions**2 / (directions @ mu)[:, None] ** 2
    edges, size = coefficients.shape
    scale = coefficients.max()
    homogeneous = above - limit[:, None]
    blocks = [
        np.hstack([np.zeros((edges, size)), coefficients / scale]),
        np.hstack([homogeneous, np.zeros((len(limit), size))]),
    ]
    right = [np.ones(edges), np.zeros(len(limit))]
    cones: list[object] = [clarabel.NonnegativeConeT(edges + len(limit))]
    for a in range(size):
        block = np.zeros((3, 2 * size))
        block[0, [a, size + a]] = -1.0
        block[2, [a, size + a]] = 1.0, -1.0
        blocks.append(block)
        right.append(np.array([0.0, 2.0, 0.0]))
        cones.append(clarabel.SecondOrderConeT(3))
    objective = np.concatenate([costs, np.zeros(size)])
    x, _ = solve_cone(objective, np.vstack(blocks), np.concatenate(right), cones)
    return float(costs @ x[:size]) * scale


def conic_time(
    directions: np.ndarray,
    mu: np.ndarray,
    rewards: Rewards,
    above: np.ndarray,
    limit: np.ndarray,
    equal: np.ndarray,
    total: np.ndarray,
    epsilon: float = 0.0,
) -> float:
    """T for every family, with and without domain, by clarabel.

    Alternatives are lam . direction >= epsilon for some direction; its length matters then.

    Eight digits for Gaussian rewards; four or more for the others, whose divergences are
    small differences of large terms.

    maximise D over w and, per edge, multipliers gamma >= 0 of the half-space, alpha, beta >= 0
    of the domain's ends, subject to

        D <= gamma epsilon + sum_a min_l [w_a d(mu_a, l) + s_a l] + alpha_a low - beta_a high,
        s_a = -gamma direction_a - alpha_a + beta_a.

    The inner minimum is, in closed form,

    - Gaussian: s mu - s^2 sigma^2 / (2 w);
    - Poisson: mu w log((w + s) / w);
    - Bernoulli: max over n of w - n + mu w log((s + n) / w) + (1 - mu) w log(n / w).
    """
    if rewards.family == "bounded":
        # The Bernoulli problem on the rescaled interval; directions sum to zero.
        domain = rewards.domain and tuple(rewards.share(np.array(rewards.domain)))
        return conic_time(
            directions,
            rewards.share(mu),
            Rewards("bernoulli", domain=domain),
            above,
            limit,
            equal,
            total,
            epsilon / (rewards.high - rewards.low),
        )
    size = len(mu)
    program = _Program()
    w = program.variables(size)
    value = program.variables(1)[0]
    for row, bound in zip(equal, total, strict=True):
        program.zero({w[a]: -row[a] for a in range(size)}, bound)
    for row, bound in zip(above, limit, strict=True):
        program.nonnegative({w[a]: -row[a] for a in range(size)}, bound)
    for a in range(size):
        program.nonnegative({w[a]: 1.0})
    # D is small where means are close: solve for it in units of a rough guess.
    unit = _rough_information(directions, mu, rewards, epsilon)
    for direction in directions:
        arms = np.flatnonzero(direction)
        gamma = program.variables(1)[0]
        program.nonnegative({gamma: 1.0})
        inner: dict[int, float] = {value: -unit, gamma: epsilon}
        for a in arms:
            s = {gamma: -float(direction[a])}
            if rewards.domain is not None:
                alpha, beta = program.variables(2)
                program.nonnegative({alpha: 1.0})
                program.nonnegative({beta: 1.0})
                s |= {alpha: -1.0, beta: 1.0}
                _add(inner, {alpha: rewards.domain[0], beta: -rewards.domain[1]})
            m = float(mu[a])
            x = program.variables(1)[0]
            if rewards.family == "gaussian":
                # x >= s^2 sigma^2 / (2 w)
                spread = float(rewards.sigma[a])
                program.quadratic(x, w[a], {k: spread * c for k, c in s.items()})
                _add(inner, s, m)
                _add(inner, {x: -1.0})
            elif rewards.family == "poisson":
                program.exponential(x, w[a], _sum({w[a]: 1.0}, s))
                _add(inner, {x: m})
            else:
                other, n = program.variables(2)
                program.exponential(x, w[a], _sum(s, {n: 1.0}))
                program.exponential(other, w[a], {n: 1.0})
                _add(inner, {w[a]: 1.0, n: -1.0, x: m, other: 1.0 - m})
        program.nonnegative(inner)
    return 1.0 / (unit * program.maximise(value))


def least_times_within(
    corners: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
    above: np.ndarray,
    limit: np.ndarray,
    epsilon: float,
    pieces: int,
) -> tuple[float, float]:
    """T of the best answer within epsilon, Gaussian, end-of-time: no less, and no more, than these.

    What an answer loses is cut into pieces. In each, minimise over answers and allocations the
    largest 2 sum_a sigma_a^2 (pi_a - x_a)^2 / w_a / gap_x^2 with the gaps of its largest value, by
    clarabel (six digits); what the answer of a piece takes with its own gaps is attained.
    """
    size = len(mu)
    losses = (corners @ mu).max() - corners @ mu
    ends = np.linspace(0.0, min(epsilon, losses.max()), pieces + 1)
    low, high = math.inf, math.inf
    for least, most in itertools.pairwise(ends):
        program = _Program()
        pi, w = program.variables(size), program.variables(size)
        value = program.variables(1)[0]
        program.zero(dict.fromkeys(pi, -1.0), 1.0)
        program.zero(dict.fromkeys(w, -1.0), 1.0)
        for a in range(size):
            program.nonnegative({pi[a]: 1.0})
            program.nonnegative({w[a]: 1.0})
        for row, bound in zip(above, limit, strict=True):
            program.nonnegative({pi[a]: -row[a] for a in range(size)}, bound)
        earned = {pi[a]: float(mu[a]) for a in range(size)}
        top = float((corners @ mu).max())
        program.nonnegative(earned, most - top)
        program.nonnegative({k: -x for k, x in earned.items()}, top - least)
        for corner, loss in zip(corners, losses, strict=True):
            terms = {value: 1.0}
            for a in range(size):
                x = program.variables(1)[0]
                s = {pi[a]: float(sigma[a])}
                program.quadratic(x, w[a], s, -float(sigma[a] * corner[a]))
                terms[x] = -4.0 * (epsilon / (epsilon - least + loss)) ** 2
            program.nonnegative(terms)
        x = program.solution(value, -1.0)
        answer, allocation = x[pi], np.maximum(x[w], 1e-9)
        low = min(low, float(x[value]) / epsilon**2)
        gaps = epsilon + answer @ mu - corners @ mu
        spread = (sigma**2 * (answer - corners) ** 2 / (allocation / allocation.sum())).sum(axis=1)
        if (gaps > 0).all():
            high = min(high, float((2 * spread / gaps**2).max()))
    return low, high


def _rough_information(
    directions: np.ndarray, mu: np.ndarray, rewards: Rewards, epsilon: float
) -> float:
    """D for equal weights if rewards were Gaussian."""
    variance = rewards.variance(mu, np.arange(len(mu)))
    return float(
        ((directions @ mu - epsilon) ** 2 / (directions**2 @ variance)).min() / (2 * len(mu))
    )


def _add(into: dict[int, float], terms: dict[int, float], factor: float = 1.0) -> None:
    for k, x in terms.items():
        into[k] = into.get(k, 0.0) + factor * x


def _sum(*parts: dict[int, float]) -> dict[int, float]:
    total: dict[int, float] = {}
    for part in parts:
        _add(total, part)
    return total


class _Program:
    """A cone program, row by row. A row says that `terms` plus a constant lies in a cone."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: dict[str, list[tuple[dict[int, float], float]]] = {
            "zero": [],
            "nonnegative": [],
            "second order": [],
            "exponential": [],
        }

    def variables(self, count: int) -> list[int]:
        self.count += count
        return list(range(self.count - count, self.count))

    def zero(self, terms: dict[int, float], constant: float = 0.0) -> None:
        self.parts["zero"].append((terms, constant))

    def nonnegative(self, terms: dict[int, float], constant: float = 0.0) -> None:
        self.parts["nonnegative"].append((terms, constant))

    def quadratic(self, x: int, w: int, s: dict[int, float], constant: float = 0.0) -> None:
        """2 x w >= (s + constant)^2."""
        root = math.sqrt(0.5)
        self.parts["second order"] += [
            ({x: root, w: root}, 0.0),
            ({x: root, w: -root}, 0.0),
            (s, constant),
        ]

    def exponential(self, x: int, w: int, z: dict[int, float]) -> None:
        """x <= w log(z / w)."""
        self.parts["exponential"] += [({x: 1.0}, 0.0), ({w: 1.0}, 0.0), (z, 0.0)]

    def maximise(self, variable: int) -> float:
        return float(self.solution(variable, 1.0)[variable])

    def solution(self, variable: int, sign: float) -> np.ndarray:
        """Where a variable is largest, or with sign -1 least."""
        rows = [row for part in self.parts.values() for row in part]
        matrix = np.zeros((len(rows), self.count))
        for i, (terms, _) in enumerate(rows):
            for k, x in terms.items():
                matrix[i, k] -= x
        cones: list[object] = [
            clarabel.ZeroConeT(len(self.parts["zero"])),
            clarabel.NonnegativeConeT(len(self.parts["nonnegative"])),
        ]
        cones += [clarabel.SecondOrderConeT(3)] * (len(self.parts["second order"]) // 3)
        cones += [clarabel.ExponentialConeT()] * (len(self.parts["exponential"]) // 3)
        objective = np.zeros(self.count)
        objective[variable] = -sign
        return solve_cone(objective, matrix, np.array([row[1] for row in rows]), cones)[0]


def time_between(
    w: np.ndarray,
    directions: np.ndarray,
    mu: np.ndarray,
    rewards: Rewards,
    above: np.ndarray,
    limit: np.ndarray,
    equal: np.ndarray,
    total: np.ndarray,
) -> tuple[float, float]:
    """Proven bounds on T from any allocation w: what w attains, and a dual of our own.

    For alternatives lam^e across each edge, here the closest ones for w, and any p in the
    simplex, 1/T <= max over allowed w' of sum_a w'_a sum_e p_e d(mu_a, lam^e_a). The best p
    is a linear program, once the maximum is written as its dual; HiGHS solves it. The
    bounds meet where w is optimal.
    """
    size, edges = len(mu), len(directions)
    gains = np.array(
        [
            rewards.divergence(mu, closest_alternative(d, mu, w, rewards), np.arange(size))
            for d in directions
        ]
    )
    worst = float((gains @ w).min())
    # Variables p, l >= 0 and free n: minimise limit.l + total.n with
    # sum_e p_e gains_e <= above'l + equal'n. In units of what w attains.
    result = scipy.optimize.linprog(
        np.concatenate([np.zeros(edges), limit, total]),
        A_ub=np.hstack([gains.T / worst, -above.T, -equal.T]),
        b_ub=np.zeros(size),
        A_eq=np.concatenate([np.ones(edges), np.zeros(len(limit) + len(total))])[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * (edges + len(limit)) + [(None, None)] * len(total),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return 1.0 / (worst * float(result.fun)), 1.0 / worst


def best_arm_time(mu: np.ndarray, rewards: Rewards) -> tuple[float, np.ndarray]:
    """T and w of the unconstrained problem: Garivier & Kaufmann (2016), Theorem 5.

    For the best arm 1 and a rival a, with w_a / w_1 = x, the information per sample of arm 1
    is g_a(x) = d(mu_1, m) + x d(mu_a, m) with m = (mu_1 + x mu_a) / (1 + x). All g_a equal one
    y at the optimum, and sum_a d(mu_1, m_a) / d(mu_a, m_a) = 1 there.

    For unequal standard deviations m weighs each arm by its precision.
    """
    best = int(np.argmax(mu))
    rivals = [a for a in range(len(mu)) if a != best]

    def divergence(arm: int, m: float) -> float:
        return float(rewards.divergence(mu[[arm]], np.array([m]), np.array([arm]))[0])

    def ratio(position: float, a: int) -> tuple[float, float]:
        """x and m, for m at a position between mu_a (0) and mu_1 (1)."""
        x = (1 - position) / position
        if rewards.family == "gaussian":
            x *= float(rewards.sigma[a] / rewards.sigma[best]) ** 2
        return x, float(mu[a] + position * (mu[best] - mu[a]))

    def ratio_for(y: float, a: int) -> tuple[float, float]:
        def excess(position: float) -> float:
            x, m = ratio(position, a)
            return divergence(best, m) + x * divergence(a, m) - y

        return ratio(scipy.optimize.brentq(excess, 1e-7, 1 - 1e-12, xtol=1e-16, rtol=1e-14), a)

    def balance(y: float) -> float:
        middles = [(a, ratio_for(y, a)[1]) for a in rivals]
        return sum(divergence(best, m) / divergence(a, m) for a, m in middles) - 1.0

    # y ranges from 0 to the least d(mu_1, mu_a), where some ratio becomes infinite.
    top = min(divergence(best, float(mu[a])) for a in rivals)
    y = scipy.optimize.brentq(balance, 1e-8 * top, (1 - 1e-5) * top, xtol=1e-16 * top, rtol=1e-14)
    shares = np.ones(len(mu))
    for a in rivals:
        shares[a] = ratio_for(y, a)[0]
    return float(shares.sum() / y), shares / shares.sum()
