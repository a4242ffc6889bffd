"""Slow twins of the package's fast paths, written from the definitions.

Nothing here imports the package. Geometry is done in fractions by trying all subsets of
constraints; information and characteristic times are handed to a general solver. Each
twin says how accurate it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

Row = tuple[Fraction, ...]


# ---------------------------------------------------------------- geometry, in fractions


@dataclass(frozen=True)
class Side:
    """coefficients . x <= bound, or == bound."""

    coefficients: Row
    bound: Fraction
    equality: bool = False


def sides(size: int, rows: Sequence[tuple[Row, Fraction | None, Fraction | None]]) -> list[Side]:
    """All sides of {x >= 0 : sum x = 1, lower <= row . x <= upper for each row}."""
    found = [Side((Fraction(1),) * size, Fraction(1), equality=True)]
    for a in range(size):
        found.append(Side(tuple(Fraction(-(a == b)) for b in range(size)), Fraction(0)))
    for row, lower, upper in rows:
        if lower is not None and lower == upper:
            found.append(Side(row, upper, equality=True))
            continue
        if upper is not None:
            found.append(Side(row, upper))
        if lower is not None:
            found.append(Side(tuple(-x for x in row), -lower))
    return found


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(left, right, strict=True)), Fraction(0))


Echelon = tuple[tuple[int, tuple[Fraction, ...]], ...]


def add_row(echelon: Echelon, row: Sequence[Fraction], size: int) -> Echelon | None:
    """Gauss-Jordan elimination of one more row; None if its first `size` entries depend."""
    reduced = list(row)
    for column, other in echelon:
        factor = reduced[column]
        if factor:
            reduced = [x - factor * y for x, y in zip(reduced, other, strict=True)]
    pivot = next((a for a in range(size) if reduced[a]), None)
    if pivot is None:
        return None
    head = tuple(x / reduced[pivot] for x in reduced)
    cleared = tuple(
        (column, tuple(x - other[pivot] * y for x, y in zip(other, head, strict=True)))
        for column, other in echelon
    )
    return (*cleared, (pivot, head))


def independent_choices(
    base: Echelon, rows: Sequence[Sequence[Fraction]], count: int, size: int
) -> Iterator[Echelon]:
    """Eliminated forms of every choice of `count` rows independent of each other and `base`."""
    if count <= 0:
        if count == 0:
            yield base
        return
    for i in range(len(rows) - count + 1):
        grown = add_row(base, rows[i], size)
        if grown is not None:
            yield from independent_choices(grown, rows[i + 1 :], count - 1, size)


def equalities(all_sides: Sequence[Side], size: int) -> Echelon | None:
    """Eliminated equalities, bounds in the last column; None if they contradict."""
    echelon: Echelon = ()
    for side in all_sides:
        if side.equality:
            row = (*side.coefficients, side.bound)
            grown = add_row(echelon, row, size)
            if grown is not None:
                echelon = grown
            elif add_row(echelon, row, size + 1) is not None:
                return None
    return echelon


def vertices(all_sides: Sequence[Side], size: int) -> list[Row]:
    """Every vertex: all feasible solutions of `size` independent active sides."""
    base = equalities(all_sides, size)
    if base is None:
        return []
    inequalities = [side for side in all_sides if not side.equality]
    rows = [(*side.coefficients, side.bound) for side in inequalities]
    found: dict[Row, None] = {}
    for echelon in independent_choices(base, rows, size - len(base), size):
        values = {column: row[size] for column, row in echelon}
        point = tuple(values[a] for a in range(size))
        if point not in found and all(
            dot(side.coefficients, point) <= side.bound for side in inequalities
        ):
            found[point] = None
    return list(found)


def active_sides(all_sides: Sequence[Side], point: Row) -> list[Side]:
    """Inequalities that hold with equality at a point."""
    return [
        side
        for side in all_sides
        if not side.equality and dot(side.coefficients, point) == side.bound
    ]


def edge_directions(all_sides: Sequence[Side], point: Row) -> set[Row]:
    """Extreme rays of the cone of feasible directions at a vertex; positive parts sum to 1.

    A ray is what all but one dimension's worth of independent active rows leave.
    """
    size = len(point)
    base: Echelon = ()
    for side in all_sides:
        if side.equality:
            base = add_row(base, side.coefficients, size) or base
    rows = [side.coefficients for side in active_sides(all_sides, point)]
    found = set()
    for echelon in independent_choices(base, rows, size - 1 - len(base), size):
        pivots = dict(echelon)
        free = next(a for a in range(size) if a not in pivots)
        ray = tuple(-pivots[a][free] if a in pivots else Fraction(1) for a in range(size))
        for direction in (ray, tuple(-x for x in ray)):
            if all(dot(row, direction) <= 0 for row in rows):
                length = sum(x for x in direction if x > 0)
                found.add(tuple(x / length for x in direction))
    return found


def cone_rays(size: int, rows: Sequence[Sequence[int]]) -> set[Row]:
    """Extreme rays of {y >= 0 : row . y >= 0}, first positive entry scaled to 1."""
    normals = [tuple(Fraction(a == b) for b in range(size)) for a in range(size)]
    normals += [tuple(Fraction(x) for x in row) for row in rows]
    found = set()
    for echelon in independent_choices((), normals, size - 1, size):
        pivots = dict(echelon)
        free = next(a for a in range(size) if a not in pivots)
        ray = tuple(-pivots[a][free] if a in pivots else Fraction(1) for a in range(size))
        for direction in (ray, tuple(-x for x in ray)):
            if all(dot(normal, direction) >= 0 for normal in normals):
                first = next(x for x in direction if x)
                found.add(tuple(x / first for x in direction))
    return found


def step_length(all_sides: Sequence[Side], point: Row, direction: Row) -> Fraction:
    """How far a direction can be followed."""
    return min(
        (side.bound - dot(side.coefficients, point)) / rate
        for side in all_sides
        if not side.equality and (rate := dot(side.coefficients, direction)) > 0
    )


def smallest_conflict(
    size: int, rows: Sequence[tuple[Row, Fraction | None, Fraction | None]]
) -> int:
    """Least number of rows that cannot hold together on the simplex; 0 if all can."""
    if vertices(sides(size, rows), size):
        return 0
    return next(
        count
        for count in range(1, len(rows) + 1)
        if any(
            not vertices(sides(size, list(chosen)), size) for chosen in combinations(rows, count)
        )
    )


# ---------------------------------------------------------------- rewards


@dataclass(frozen=True)
class Rewards:
    """What the twins need to know about rewards, in the units of the means.

    Attributes
    ----------
    family : {"gaussian", "bernoulli", "poisson", "bounded"}
    sigma : (K,) array
        Standard deviations; only for Gaussian rewards.
    low, high : float
        Interval of the rewards; only for bounded ones.
    domain : (float, float) or None
    """

    family: str
    sigma: np.ndarray | None = None
    low: float = 0.0
    high: float = 1.0
    domain: tuple[float, float] | None = None

    def divergence(self, mu: np.ndarray, lam: np.ndarray, arms: np.ndarray) -> np.ndarray:
        if self.family == "gaussian":
            return (mu - lam) ** 2 / (2 * self.sigma[arms] ** 2)
        if self.family == "poisson":
            return lam - mu + mu * np.log(mu / lam)
        mu, lam = self.share(mu), self.share(lam)
        return mu * np.log(mu / lam) + (1 - mu) * np.log((1 - mu) / (1 - lam))

    def share(self, x: np.ndarray) -> np.ndarray:
        return (x - self.low) / (self.high - self.low)

    def slope(self, mu: np.ndarray, lam: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Derivative of the divergence in its second argument."""
        if self.family == "gaussian":
            return (lam - mu) / self.sigma[arms] ** 2
        if self.family == "poisson":
            return 1 - mu / lam
        return (lam - mu) / ((lam - self.low) * (self.high - lam))

    def limits(self, margin: float) -> tuple[float, float]:
        """Where alternatives may lie, a little inside what makes divergences infinite."""
        if self.family == "gaussian":
            low, high = -math.inf, math.inf
        elif self.family == "poisson":
            low, high = margin, math.inf
        else:
            low, high = self.low + margin, self.high - margin
        if self.domain is not None:
            low, high = max(low, self.domain[0]), min(high, self.domain[1])
        return low, high

    def variance(self, mu: np.ndarray, arms: np.ndarray) -> np.ndarray:
        if self.family == "gaussian":
            return self.sigma[arms] ** 2
        if self.family == "poisson":
            return mu
        return (mu - self.low) * (self.high - mu)


def information_across(
    direction: np.ndarray, mu: np.ndarray, w: np.ndarray, rewards: Rewards
) -> float:
    """min sum_a w_a d(mu_a, lam_a) subject to lam . direction >= 0; eight digits or more."""
    lam = closest_alternative(direction, mu, w, rewards)
    return float(w @ rewards.divergence(mu, lam, np.arange(len(mu))))


def closest_alternative(
    direction: np.ndarray, mu: np.ndarray, w: np.ndarray, rewards: Rewards
) -> np.ndarray:
    """The lam of `information_across`, by scipy's SLSQP.

    Variables are in standard deviations of each arm's mean, in which the objective is
    nearly a sphere.
    """
    arms = np.flatnonzero(direction)
    m, weight, v = mu[arms], w[arms], direction[arms]
    # Within a domain an arm may have no samples at all and still move only so far.
    least = 0.0 if rewards.domain is None else 1e-4
    unit = np.sqrt(rewards.variance(m, arms) / np.maximum(weight, least))
    # What a Gaussian would need sets the scale of both objective and variables.
    gap = -float(v @ m)
    rough = gap**2 / (2 * float(v**2 @ unit**2))
    unit = unit * math.sqrt(2 * rough)
    low, high = rewards.limits(margin=1e-9)

    def lam(x: np.ndarray) -> np.ndarray:
        return np.clip(m + unit * x, low, high)

    bounds = list(zip((low - m) / unit, (high - m) / unit, strict=True))
    x = np.clip((m.mean() - m) / unit, *np.transpose(bounds))  # all alike: on the hyperplane
    for _ in range(3):  # a fresh start forgets a bad quadratic model
        x = scipy.optimize.minimize(
            lambda x: float(weight @ rewards.divergence(m, lam(x), arms)) / rough,
            x,
            jac=lambda x: weight * rewards.slope(m, lam(x), arms) * unit / rough,
            bounds=bounds,
            constraints={
                "type": "ineq",
                "fun": lambda x: v @ lam(x) / gap,
                "jac": lambda _: v * unit / gap,
            },
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        ).x
    if v @ lam(x) < -1e-9 * gap:
        raise ArithmeticError("SLSQP left the half-space")
    found = mu.copy()
    found[arms] = lam(x)
    return found


# ---------------------------------------------------------------- characteristic times


def gaussian_lower_time(
    directions: np.ndarray,
    mu: np.ndarray,
    sigma: np.ndarray,
    above: np.ndarray,
    limit: np.ndarray,
    equal: np.ndarray,
    total: np.ndarray,
) -> float:
    """A proven lower bound on T for Gaussian rewards, nearly always tight to 1e-7.

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

    def quadratic(self, x: int, w: int, s: dict[int, float]) -> None:
        """2 x w >= s^2."""
        root = math.sqrt(0.5)
        self.parts["second order"] += [
            ({x: root, w: root}, 0.0),
            ({x: root, w: -root}, 0.0),
            (s, 0.0),
        ]

    def exponential(self, x: int, w: int, z: dict[int, float]) -> None:
        """x <= w log(z / w)."""
        self.parts["exponential"] += [({x: 1.0}, 0.0), ({w: 1.0}, 0.0), (z, 0.0)]

    def maximise(self, variable: int) -> float:
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
        objective[variable] = -1.0
        x, _ = solve_cone(objective, matrix, np.array([row[1] for row in rows]), cones)
        return float(x[variable])


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


# ---------------------------------------------------------------- best arm, closed form


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
