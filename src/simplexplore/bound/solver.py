"""Solvers for the least largest time over some edges (newton.py states the program).

`solve` tries a fast method first and slower, surer ones where that leaves a gap; a certificate
that trusts none of them picks the answer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .information import EPS, Closest, Information
from .newton import Newton, Point, Program, time

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Certified relative gap to aim at; the gap with which an answer is good enough; and the one
# that is promised, above which everything is tried.
TARGET_GAP = 1e-10
GOOD_GAP = 1e-9
PROMISED_GAP = 1e-8
MAX_STEPS = 100
MAX_WEIGHINGS = 2000
CHECKED_EVERY = 5  # of these, as a certificate costs twice as much as a step

# More edges than this, and than twice the arms, are looked at in rounds.
MANY_EDGES = 1000
MAX_ROUNDS = 50

# More rows than this are looked at in rounds if all of them name all arms.
FEW_ROWS = 20

# Steps, and certificates of weighings, without progress after which rounding has the last word.
PATIENCE = 6
STALLED = 40

# How far, as a factor, the gap may run ahead of the other optimality conditions.
AHEAD = 100.0


def lower_certificate(
    information: Information, program: Program, point: Point, closest: Closest
) -> float:
    """A lower bound on the least time of a program from any multipliers, by weak duality.

    For any weights p on edges and any alternative lam^e across each edge,
    1/T <= max over w in Pi of sum_a w_a G_a with G_a = sum_e p_e d(mu_a, lam^e_a), and that
    linear program is at most l.b + n.f + n_0 for every l >= 0, every n, and
    n_0 = max over arms of (G - A'l - E'n). Nothing here relies on convergence, signs included,
    and the rounding of every sum is counted. Arms that the program holds fast add what they add,
    and the free ones share the mass that is left.

    `closest` is the information's answer at the point.
    """
    value = closest.value[program.edges]
    weight = point.unit * np.maximum(point.y, 0.0) / (value * value)
    # An edge without a proven alternative gets no weight: any other weights will do.
    used = (weight > 0) & np.isfinite(closest.ceiling[program.edges]).all(axis=1)
    scale = float(weight[used].sum())
    if not 0 < scale < np.inf:
        return 0.0
    chosen = program.edges[used]
    gain = np.bincount(
        information.index[chosen].ravel(),
        ((weight[used] / scale)[:, None] * closest.ceiling[chosen]).ravel(),
        minlength=information.size,
    )
    allowed, free = program.allowed, program.allowed.free
    above, equal = np.maximum(point.l, 0.0) / scale, point.n / scale
    net = gain - (allowed.rows.transposed(above) + allowed.equal.T @ equal)
    fixed = point.w.copy()
    fixed[free] = 0.0
    mass = point.w[free].sum()
    best = mass * net[free].max() + net @ fixed + allowed.limit @ above + allowed.total @ equal
    # The same sums with all signs alike.
    size = gain + allowed.rows.sizes(above) + np.abs(allowed.equal).T @ np.abs(equal)
    most = mass * size[free].max() + size @ fixed
    most += np.abs(allowed.limit) @ above + np.abs(allowed.total) @ np.abs(equal)
    terms = len(chosen) + len(above) + len(equal) + len(fixed)
    best += (8 + terms) * EPS * most
    return 1.0 / float(best) if 0 < best < np.inf else 0.0


def time_and_error(information: Information, program: Program, w: Array) -> tuple[float, float]:
    """Largest time among the edges of a program, and the relative error of rounding in it."""
    closest = information.certified(w)
    values, errors = closest.value[program.edges], closest.error[program.edges]
    reached = 1.0 / float(values.min())
    # Edges that rounding could make the hardest count, too.
    least = float((values * (1.0 - errors)).min())
    return reached, 1.0 / (reached * least) - 1.0 if least > 0 else np.inf


def certified_gap(information: Information, program: Program, point: Point) -> float:
    """Relative distance between a feasible point's time and its lower certificate."""
    if not point.w[program.allowed.free].min() > 0:  # a solver gone astray; NaN is caught as well
        return np.inf
    closest = information.closest(point.w)
    lower = lower_certificate(information, program, point, closest)
    return 1.0 / float(closest.value[program.edges].min()) / lower - 1.0 if lower > 0 else np.inf


def solve(information: Information, program: Program) -> Point:
    """The best feasible point that any of the methods finds.

    Rows of what is spent name all arms, even those of a cap, and many make Newton's equations
    slow. Few of them bind: the program is solved with none, and with those that the solution
    violates, until it violates none.
    """
    allowed = program.allowed
    if not (allowed.is_spent and len(allowed.limit) > FEW_ROWS):
        return _solve_with_rows(information, program)
    chosen = np.zeros(len(allowed.limit), dtype=bool)
    for _ in range(MAX_ROUNDS):
        some = replace(allowed, above=allowed.above[chosen], limit=allowed.limit[chosen])
        point = _solve_with_rows(information, Program(program.edges, some))
        room = allowed.room(point.w)
        over = (room < 0) & ~chosen
        if not over.any():
            l = np.zeros(len(room))  # noqa: E741
            l[chosen], room[chosen] = point.l, point.r
            return replace(point, r=room, l=l)
        chosen |= over
    return _solve_with_rows(information, program)


def _solve_with_rows(information: Information, program: Program) -> Point:
    """The same with all rows.

    Where caps leave no arm between its ends, edges are pairs of arms, far more than arms. Few of
    them bind: the program is solved with some, and with those that the solution violates, until
    it violates none.
    """
    edges, size = program.edges, information.size
    if len(edges) <= max(MANY_EDGES, 2 * size):
        return _solve(information, program)
    chosen, over = np.zeros(len(edges), dtype=bool), np.ones(len(edges), dtype=bool)
    times = 1.0 / information.values(program.allowed.deep, edges)
    for _ in range(MAX_ROUNDS):
        chosen[_hardest(information.index[edges], np.where(over, times, 0.0), size)] = True
        some = information.only(edges[chosen])
        few = Program(np.arange(len(some.gaps)), program.allowed)
        point = _solve(some, few)
        worst = time(some, few, point.w)
        times = 1.0 / information.values(point.w, edges, 1.0 / worst)
        over = (times > (1.0 + 0.1 * TARGET_GAP) * worst) & ~chosen
        if not over.any():
            break
    y, s = np.zeros(len(edges)), np.maximum(point.t - point.unit * times, 0.0)
    y[chosen], s[chosen] = point.y, point.s
    return replace(point, y=y, s=s)


def _hardest(index: Indices, times: Array, size: int) -> Indices:
    """The edges with the longest times: of all as many as arms, and of each arm one."""
    order = np.argsort(times)
    order = order[times[order] > 0]
    of_arm = np.full(size, order[-1])
    of_arm[index[order]] = order[:, None]  # the last one stays
    return np.concatenate([order[-size:], of_arm])


def _solve(information: Information, program: Program) -> Point:
    newton, rounding = Newton(information, program), information.rounding()
    allowed, inside = program.allowed, program.allowed.deep

    def certified(point: Point) -> tuple[float, Point]:
        point = replace(point, w=allowed.mended(point.w))
        return certified_gap(information, program, point), point

    best = (np.inf, newton.cold_start(inside, 1.0)[0])
    if allowed.is_simplex and information.closed_form:  # then it hardly ever fails
        best = certified(_solve_by_weights(newton))
    if best[0] > GOOD_GAP + rounding:
        best = min(best, certified(_solve_fast(newton)), key=_gap)
    if best[0] <= GOOD_GAP + rounding:
        return best[1]
    for far in (0.01, 1.0) if best[0] < 0.1 else (1.0,):
        start = (1.0 - far) * best[1].w + far * inside
        if not allowed.holds_strictly(start):
            break
        best = min(best, certified(_solve_surely(newton, start, far)), key=_gap)
        if best[0] <= PROMISED_GAP + rounding:
            break
    if best[0] > PROMISED_GAP + rounding and not newton.system.is_whole:
        whole = Newton(information, program, whole=True)
        best = min(best, certified(_solve_fast(whole)), key=_gap)
    if best[0] > PROMISED_GAP + rounding and allowed.is_simplex:  # slow, and sure of every scale
        best = min(best, certified(_solve_by_weights(newton)), key=_gap)
    return best[1]


def _gap(candidate: tuple[float, Point]) -> float:
    return candidate[0]


def _solve_by_weights(newton: Newton) -> Point:
    """Multiplicative steps on the edges' weights (docs/theory/characteristic_time.md).

    Each weight is multiplied by its edge's time; then w answers the weighted edges as well
    as the simplex allows, in proportion to sqrt(C). Cheap, and the dual never falls.
    """
    information, program, free = newton.information, newton.program, newton.free
    w = newton.allowed.deep
    unit = 1.0 / time(information, program, w)
    y = np.full(len(program.edges), 1.0 / len(program.edges))
    best: tuple[float, Point] = (np.inf, newton.cold_start(w, 1.0)[0])
    stalled = 0
    for step in range(MAX_WEIGHINGS):
        state = newton.at(w, unit)
        if step % CHECKED_EVERY == 0:
            t = float(state.time.max())
            # On the simplex the certificate needs no prices: arms share one.
            point = replace(best[1], w=w, t=t, s=t - state.time, y=y, unit=unit)
            gap = certified_gap(information, program, point)
            stalled = 0 if gap < 0.95 * best[0] else stalled + 1
            best = min(best, (gap, point), key=_gap)
            if best[0] <= GOOD_GAP or stalled > STALLED:
                break
        y = y * state.time
        y = np.maximum(y / y.sum(), 1e-300)
        asked = w[free] ** 2 * newton.pull(state, y)
        asked = np.sqrt(np.maximum(asked, 1e-26 * asked.max()))  # a trace of what nobody asks for
        w = w.copy()
        w[free] = asked / asked.sum()
    return best[1]


def _solve_fast(newton: Newton) -> Point:
    """Predictor-corrector steps that need not be feasible on the way."""
    free, goal = newton.free, max(TARGET_GAP, newton.information.rounding())
    point, state = newton.warm_start()
    best, last, idle, blocked = (np.inf, point), np.inf, 0, False
    for _ in range(MAX_STEPS):
        off = newton.residuals(point, state)
        gap, distance = off.gap, off.distance(point)
        if distance < best[0]:
            best = distance, point
        idle = 0 if gap > goal * point.t or distance < 0.7 * last else idle + 1
        last = distance
        # A rare arm can miss its condition by much more than all arms on average, which is what
        # `distance` looks at, and the certificate takes the worst one.
        missed = float((-off.slope / point.w[free] - point.z).max()) / point.t
        if (distance < goal and missed < GOOD_GAP) or idle > PATIENCE:
            break
        try:
            newton.factor(point, state)
            step = newton.direction(point, state, off, 0.0)
        except np.linalg.LinAlgError:  # singular to rounding: the best point so far stands
            break
        primal, dual = newton.longest(point, step)
        reached = newton.gap(point.moved(step, free, min(1.0, primal), min(1.0, dual)))
        mu = gap / newton.count
        # After a blocked step only centre. A gap that closes long before the other conditions
        # are met leaves no room to meet them, and one far below the target costs their digits.
        target = mu if blocked else min(0.8, (reached / gap) ** 2) * mu
        if distance > AHEAD * gap / point.t:
            target = max(target, 0.5 * mu)
        target = max(target, 0.3 * goal * point.t / newton.count)
        trust = 0.0 if blocked else 5.0 * mu
        step = newton.direction(point, state, off, target, (step, trust))
        primal, dual = newton.longest(point, step)
        primal, dual = min(1.0, 0.98 * primal), min(1.0, 0.98 * dual)
        if step.t < 0:
            primal = min(primal, -0.8 * point.t / step.t)
        point = point.moved(step, free, primal, dual)
        blocked = min(primal, dual) < 0.1
        state = newton.at(point.w, point.unit)
    return best[1]


def _solve_surely(newton: Newton, start: Array, far: float) -> Point:
    """Feasible steps only, from an allocation strictly inside.

    Newton's method finds the central path; then primal and dual follow it together, each
    step halved until the equations are closer to being met. Where the path is lost, the
    search for it starts again. `far` guesses the relative distance from the solution.
    """
    free = newton.free
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
            if min(trial.s.min(), trial.r.min(initial=1.0)) > 0:  # rounding may close them
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
