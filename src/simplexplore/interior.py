"""Solvers for the least largest time over some edges (newton.py states the program).

`solve` tries a fast method first and slower, surer ones where that leaves a gap; a certificate
that trusts none of them picks the answer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .information import Information
from .newton import Newton, Point, Program, time

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Certified relative gap to aim at, well inside the promised 1e-8; the gap with which an
# answer is good enough; and the one above which the last resort is tried.
TARGET_GAP = 1e-10
GOOD_GAP = 1e-9
FAIR_GAP = 1e-7
MAX_STEPS = 100
MAX_WEIGHINGS = 2000

# Steps without progress after which rounding has the last word.
PATIENCE = 6


def lower_certificate(information: Information, program: Program, point: Point) -> float:
    """A lower bound on the least time of a program from any multipliers, by weak duality.

    For any weights p on edges and any alternative lam^e across each edge,
    1/T <= max over w in Pi of sum_a w_a G_a with G_a = sum_e p_e d(mu_a, lam^e_a), and that
    linear program is at most l.b + n.f + n_0 for every l >= 0, every n, and
    n_0 = max over arms of (G - A'l - E'n). Nothing here relies on convergence. Arms that
    the program holds fast add what they add, and the free ones share the mass that is left.
    """
    closest = information.closest(point.w)
    value = closest.value[program.edges]
    weight = point.unit * point.y / (value * value)
    scale = float(weight.sum())
    if not scale > 0:
        return 0.0
    gain = np.bincount(
        information.index[program.edges].ravel(),
        ((weight / scale)[:, None] * closest.gradient[program.edges]).ravel(),
        minlength=information.size,
    )
    net = gain - (program.above.T @ point.l + program.equal.T @ point.n) / scale
    free = program.free
    fixed = point.w.copy()
    fixed[free] = 0.0
    best = point.w[free].sum() * net[free].max() + net @ fixed
    best += (program.limit @ point.l + program.total @ point.n) / scale
    return 1.0 / float(best) if best > 0 else 0.0


def certified_gap(information: Information, program: Program, point: Point) -> float:
    """Relative distance between a feasible point's time and its lower certificate."""
    if not point.w[program.free].min() > 0:  # a solver gone astray; NaN is caught as well
        return np.inf
    lower = lower_certificate(information, program, point)
    return time(information, program, point.w) / lower - 1.0 if lower > 0 else np.inf


def solve(information: Information, program: Program, inside: Array) -> Point:
    """The best feasible point that any of the methods finds, from one strictly inside."""
    newton = Newton(information, program)

    def certified(point: Point) -> tuple[float, Point]:
        return certified_gap(information, program, point), point

    best = (np.inf, newton.cold_start(inside, 1.0)[0])
    weigh_first = program.is_simplex and information.closed_form  # then it hardly ever fails
    if weigh_first:
        best = certified(_solve_by_weights(newton, inside))
        if best[0] <= GOOD_GAP:
            return best[1]
    fast = _solve_fast(newton, inside)
    fast = replace(fast, w=program.made_feasible(fast.w, inside))
    best = min(best, certified(fast), key=lambda pair: pair[0])
    if best[0] <= GOOD_GAP or not program.is_inside(inside):
        return best[1]
    far = 0.01 if best[0] < 0.1 else 1.0
    sure = _solve_surely(newton, (1.0 - far) * best[1].w + far * inside, far)
    best = min(best, certified(sure), key=lambda pair: pair[0])
    if best[0] > FAIR_GAP and not weigh_first:
        weighed = _solve_by_weights(newton, inside)
        best = min(best, certified(weighed), key=lambda pair: pair[0])
    return best[1]


def _solve_by_weights(newton: Newton, start: Array) -> Point:
    """Multiplicative steps on the edges' weights (THEORY 2.2): cheap, and monotone.

    Each weight is multiplied by its edge's time; then w answers the weighted edges as well
    as the set allows: sqrt(C) on the simplex, sqrt(C / price) within rows.
    """
    information, program, free = newton.information, newton.program, newton.program.free
    unit = 1.0 / time(information, program, start)
    rows = np.vstack([newton.above, newton.equal])
    fixed = np.where(np.isin(np.arange(len(start)), free), 0.0, start)
    bounds = np.concatenate(
        [program.limit - program.above @ fixed, program.total - program.equal @ fixed]
    )
    signed = np.arange(len(rows)) < len(newton.above)
    w, x = start.copy(), np.zeros(len(rows))
    y = np.full(len(program.edges), 1.0 / len(program.edges))
    best: tuple[float, Point] = (np.inf, newton.cold_start(start, 1.0)[0])
    for _ in range(MAX_WEIGHINGS if program.is_simplex else MAX_WEIGHINGS // 4):
        state = newton.at(w, unit)
        t = float(state.time.max())
        m = len(newton.above)
        point = Point(
            w=w,
            t=t,
            s=t - state.time,
            r=program.limit - program.above @ w,
            y=y,
            l=x[:m],
            z=np.zeros(newton.size),
            n=x[m:],
            unit=unit,
        )
        gap = certified_gap(information, program, point)
        if gap < best[0]:
            best = gap, point
        if gap <= GOOD_GAP:
            break
        y = y * state.time
        y = np.maximum(y / y.sum(), 1e-300)
        asked = w[free] ** 2 * newton.pull(state, y)
        # Arms that nobody asks for keep a trace: on the simplex no more than rounding, within
        # rows enough for Newton's method on their prices.
        asked = np.maximum(asked, (1e-26 if program.is_simplex else 1e-12) * asked.max())
        w = w.copy()
        if program.is_simplex:
            w[free] = np.sqrt(asked) / np.sqrt(asked).sum()
            continue
        x = _row_prices(asked, rows, bounds, signed, x)
        w[free] = np.sqrt(asked / (rows.T @ x))
        w = program.made_feasible(w, start)
    return best[1]


def _row_prices(asked: Array, rows: Array, bounds: Array, signed: Mask, x: Array) -> Array:
    """Multipliers of the rows for argmin of sum asked / w: projected Newton on the dual."""

    def value(x: Array) -> float:
        price = rows.T @ x
        if not price.min() > 0:
            return -np.inf
        return float(2.0 * np.sqrt(asked * price).sum() - bounds @ x)

    height = value(x)
    if height == -np.inf:
        even = np.linalg.lstsq(rows[~signed].T, np.ones(rows.shape[1]), rcond=None)[0]
        x = np.zeros(len(rows))
        x[~signed] = np.sqrt(asked).sum() ** 2 * even
        height = value(x)
    for _ in range(50):
        price = rows.T @ x
        w = np.sqrt(asked / price)
        slope = rows @ w - bounds
        free = ~signed | (x > 0) | (slope > 0)
        if np.abs(slope[free]).max() < 1e-12:
            break
        curvature = 0.5 * (rows[free] * (w / price)) @ rows[free].T
        curvature[np.diag_indices(len(curvature))] *= 1.0 + 1e-13
        try:
            step = np.linalg.solve(curvature, slope[free])
        except np.linalg.LinAlgError:
            break
        length = 1.0
        while length > 1e-9:
            trial = x.copy()
            trial[free] += length * step
            trial[signed] = np.maximum(trial[signed], 0.0)
            reached = value(trial)
            if reached >= height + 1e-4 * slope @ (trial - x) - 1e-14 * abs(height):
                break
            length *= 0.4
        else:
            break
        x, height = trial, reached
    return x


def _solve_fast(newton: Newton, start: Array) -> Point:
    """Predictor-corrector steps that need not be feasible on the way.

    What makes them few is the step in w. Stationarity says w_a^2 P_a = C_a, where both the
    information C_a (that multipliers on edges ask for) and the price P_a (that those on
    rows set) are linear in the multipliers: after a step in them, w = sqrt(C / P) is right
    where the linear step in w would be far off. Other families than the Gaussian follow
    the same rule with C frozen at the last w.
    """
    free = newton.program.free
    point, state = newton.warm_start(start)
    best, idle, blocked = (np.inf, point), 0, False
    for _ in range(MAX_STEPS):
        off = newton.residuals(point, state)
        gap = off.gap
        distance = off.distance(point)
        if distance < best[0]:
            best, idle = (distance, point), 0
        idle += 1
        if distance < TARGET_GAP or (gap < TARGET_GAP * point.t and idle > PATIENCE):
            break
        try:
            newton.factor(point, state)
            step = newton.direction(point, state, off, 0.0)
        except np.linalg.LinAlgError:  # singular to rounding: the best point so far stands
            break
        primal, dual = newton.longest(point, step)
        reached = newton.gap(point.moved(step, free, min(1.0, primal), min(1.0, dual)))
        mu = gap / newton.count
        # After a blocked step only centre; gaps far below the target lose digits elsewhere.
        target = mu if blocked else min(0.8, (reached / gap) ** 2) * mu
        target = max(target, 0.3 * TARGET_GAP * point.t / newton.count)
        trust = 0.0 if blocked else 5.0 * mu
        step = newton.direction(point, state, off, target, (step, trust))
        primal, dual = newton.longest(point, step)
        primal, dual = min(1.0, 0.98 * primal), min(1.0, 0.98 * dual)
        if step.t < 0:
            primal = min(primal, -0.8 * point.t / step.t)
        following = point.moved(step, free, primal, dual)
        blocked = min(primal, dual) < 0.1
        if not blocked:
            asked = point.w[free] ** 2 * newton.pull(state, following.y)
            price = newton.above.T @ following.l + newton.equal.T @ following.n
            following.w[free] = _leap(
                asked, price, np.where(newton.bounded, target, 0.0), following.w[free]
            )
        point = following
        state = newton.at(point.w, point.unit)
    return best[1]


def _leap(asked: Array, price: Array, target: Array, linear: Array) -> Array:
    """The w that solves asked / w^2 + target / w = price, where that beats a linear step.

    Close to stationarity the linear step converges quadratically; far from it, or where a
    price is mere rounding, the formula is not to be trusted either.
    """
    sound = price > 1e-6 * price.max()
    root = target[sound] + np.sqrt(target[sound] ** 2 + 4.0 * price[sound] * asked[sound])
    solved = linear.copy()
    solved[sound] = root / (2.0 * price[sound])
    change = solved / linear
    leap = (np.abs(change - 1.0) > 0.01) & (change > 0.2) & (change < 5.0)
    return np.where(leap, solved, linear)


def _solve_surely(newton: Newton, start: Array, far: float) -> Point:
    """Feasible steps only, from an allocation strictly inside.

    Newton's method finds the central path; then primal and dual follow it together, each
    step halved until the equations are closer to being met. Where the path is lost, the
    search for it starts again. `far` guesses the relative distance from the solution.
    """
    newton = newton.with_all_bounds()
    free = newton.program.free
    point, state = newton.cold_start(start, far)
    mu = far * point.t / newton.count
    best: tuple[float, Point] = (np.inf, point)
    lost, reduction = True, 0.1
    for _ in range(2 * MAX_STEPS):
        if lost:
            point = replace(point, y=mu / point.s, l=mu / point.r, z=mu / point.w[free])
        off = newton.residuals(point, state)
        if not lost and off.distance(point) < best[0]:
            best = off.distance(point), point
            if best[0] < TARGET_GAP:
                break
        target = mu if lost else reduction * off.gap / newton.count
        try:
            newton.factor(point, state)
            step = newton.direction(point, state, off, target)
        except np.linalg.LinAlgError:
            break
        primal, dual = newton.longest(point, step)
        length = min(1.0, 0.99 * (primal if lost else min(primal, dual)))
        if lost:
            slope = newton.log_slope(point, step) - step.t / mu
        else:
            before = off.norm(target)
        while length > 1e-10:
            trial, there = newton.feasible(point.moved(step, free, length, length))
            if trial.s.min() > 0:
                if lost:
                    gain = newton.log_room(trial) - newton.log_room(point)
                    if gain - (trial.t - point.t) / mu >= 0.1 * length * slope:
                        break
                elif newton.residuals(trial, there).norm(target) <= (1 - 0.01 * length) * before:
                    break
            length *= 0.5
        else:
            break
        point, state = trial, there
        if lost:
            lost, reduction = slope > 0.3, 0.1
        else:
            lost = length < 0.1
            reduction = 0.3 if length < 0.5 else 0.1 if length < 0.9 else 0.02
            mu = float(point.s @ point.y) / len(point.y)
    return best[1]
