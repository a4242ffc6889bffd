"""Interior-point methods for one convex program: the least largest time over some edges.

    minimise t   subject to   F_e(w) <= t,   A w <= b,   E w = f,   w >= 0,

with F_e = 1 / D_e convex. Slacks and multipliers: s and y for edges, r and l for rows, w
itself and z for w >= 0, n for equalities. `solve` tries a fast method first and slower, surer
ones where that leaves a gap; a certificate that trusts none of them picks the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .information import Information

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
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

# Multiplicative steps before the first Newton step of the fast method.
WARM_UP = 10

# Blocks of edge matrices are added up in pieces of at most this many numbers.
CHUNK = 4_000_000


@dataclass(frozen=True)
class Program:
    """Which edges count, which arms are free, within which rows (over all arms).

    The equalities are independent on the free arms and fix their total.
    """

    edges: Indices
    free: Indices
    above: Array  # A
    limit: Array  # b
    equal: Array  # E
    total: Array  # f

    def made_feasible(self, w: Array, inside: Array) -> Array:
        """Mend the last digits: meet equalities again, then lean inwards until rows hold."""
        w = w.copy()
        equal = self.equal[:, self.free]
        weighted = equal * w[self.free]
        shift = np.linalg.solve(weighted @ equal.T, self.total - self.equal @ w)
        w[self.free] *= 1.0 + equal.T @ shift
        excess = self.above @ w - self.limit
        room = self.limit - self.above @ inside
        broken = excess > 0
        lean = float((excess[broken] / (excess[broken] + room[broken])).max(initial=0.0))
        return (1.0 - lean) * w + lean * inside

    @property
    def is_simplex(self) -> bool:
        """Whether nothing but the total restricts all arms."""
        return (
            len(self.limit) == 0 and len(self.total) == 1 and len(self.free) == self.equal.shape[1]
        )

    def is_inside(self, w: Array) -> bool:
        """Whether all inequalities hold strictly."""
        rows = self.limit - self.above @ w
        return bool(rows.min(initial=1.0) > 0 and w[self.free].min() > 0)


@dataclass(frozen=True)
class Point:
    """An allocation over all arms, with slacks and multipliers.

    Times, and with them t, s and all multipliers, are in units of 1 / unit.
    """

    w: Array
    t: float
    s: Array
    r: Array
    y: Array
    l: Array  # noqa: E741 - the letter of the formulas
    z: Array  # of the free arms
    n: Array
    unit: float

    def moved(self, step: Point, free: Indices, primal: float, dual: float) -> Point:
        w = self.w.copy()
        w[free] += primal * step.w
        return Point(
            w=w,
            t=self.t + primal * step.t,
            s=self.s + primal * step.s,
            r=self.r + primal * step.r,
            y=self.y + dual * step.y,
            l=self.l + dual * step.l,
            z=self.z + dual * step.z,
            n=self.n + dual * step.n,
            unit=self.unit,
        )


def time(information: Information, program: Program, w: Array) -> float:
    """Largest time among the edges of a program."""
    return 1.0 / float(information.closest(w).value[program.edges].min())


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
    newton = _Newton(information, program)

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


def _solve_by_weights(newton: _Newton, start: Array) -> Point:
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


def _solve_fast(newton: _Newton, start: Array) -> Point:
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


def _solve_surely(newton: _Newton, start: Array, far: float) -> Point:
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


@dataclass(frozen=True)
class _State:
    """F_e at an allocation, in units of 1 / unit, with its derivatives on free arms."""

    time: Array  # F_e
    gradient: Array  # (E, L): -dF_e / dw_a
    curvature: Array  # (E, L): diagonal part of the Hessian of F_e
    bend: Array  # (E, L): u, with - bend_scale u u' in the Hessian
    bend_scale: Array


@dataclass(frozen=True)
class _Residuals:
    """By how much each optimality condition is missed."""

    edges: Array
    rows: Array
    equal: Array
    slope: Array  # of the Lagrangian, times w
    weights: float  # 1 - sum y
    products: tuple[Array, Array, Array]

    @cached_property
    def gap(self) -> float:
        return float(sum(product.sum() for product in self.products))

    def distance(self, point: Point) -> float:
        return max(
            self.gap / point.t,
            float(np.abs(self.edges).max()) / point.t,
            float(np.abs(self.slope).max()) / point.t,
            float(np.abs(self.rows).max(initial=0.0)),
            float(np.abs(self.equal).max(initial=0.0)),
            abs(self.weights),
        )

    def norm(self, target: float) -> float:
        """Distance of a feasible point from the one on the central path."""
        parts = (self.slope, np.array(self.weights), *(p - target for p in self.products))
        return float(np.sqrt(sum(float(np.vdot(part, part)) for part in parts)))


class _Newton:
    """Newton's equations of one program."""

    def __init__(
        self, information: Information, program: Program, *, all_bounds: bool = False
    ) -> None:
        self.information = information
        self.program = program
        place = np.full(information.size, -1)
        place[program.free] = np.arange(len(program.free))
        self.place = place[information.index[program.edges]]
        self.moves = information.used[program.edges] & (self.place >= 0)
        self.place = np.where(self.moves, self.place, 0)
        self.size = len(program.free)
        self.above = program.above[:, program.free]
        self.equal = program.equal[:, program.free]
        # Where w >= 0 needs a multiplier: arms that edges do not keep off zero by
        # themselves. Those are the arms that no edge moves, and all arms if means are
        # bounded: an alternative can then only move so far, and an arm may be worth no
        # sample at all.
        covered = information.covered()[program.free] & information.closed_form
        self.bounded = np.ones(self.size, dtype=bool) if all_bounds else ~covered
        self.count = len(program.edges) + len(program.limit) + int(self.bounded.sum())

    def with_all_bounds(self) -> _Newton:
        """The same with a multiplier on every w >= 0."""
        return _Newton(self.information, self.program, all_bounds=True)

    # ------------------------------------------------------------------ starting points

    def warm_start(self, inside: Array) -> tuple[Point, _State]:
        """Multiplicative steps on the simplex; rows are left to the method itself.

        Each step multiplies an edge's weight by its time and answers with the best w.
        """
        program, free = self.program, self.program.free
        w, unit = inside.copy(), 1.0 / time(self.information, program, inside)
        state = self.at(w, unit)
        y = np.full(len(program.edges), 1.0 / len(program.edges))
        for _ in range(WARM_UP):
            y *= state.time
            y /= y.sum()
            asked = np.sqrt(w[free] ** 2 * self.pull(state, y))
            asked += 1e-6 * asked.max()
            w[free] = asked * (inside[free].sum() / asked.sum())
            state = self.at(w, unit)
        y = 0.9 * y + 0.1 / len(y)
        t = 1.5 * float(state.time.max())
        s = t - state.time
        r = np.maximum(program.limit - program.above @ w, 1e-3)
        l = float(y @ s) / len(s) / r  # noqa: E741
        pull = self.pull(state, y)
        z = np.where(self.bounded, 0.1 * float(pull @ w[free]), 0.0)
        n = np.linalg.lstsq(self.equal.T, pull + z - self.above.T @ l, rcond=None)[0]
        return Point(w, t, s, r, y, l, z, np.asarray(n, dtype=float), unit), state

    def cold_start(self, inside: Array, far: float) -> tuple[Point, _State]:
        """Primal variables only; the caller sets the multipliers."""
        program = self.program
        unit = 1.0 / time(self.information, program, inside)
        state = self.at(inside, unit)
        t = (1.0 + far) * float(state.time.max())
        s, r = t - state.time, program.limit - program.above @ inside
        z = np.zeros(self.size)
        point = Point(inside, t, s, r, 0 * s, 0 * r, z, np.zeros(len(program.equal)), unit)
        return point, state

    # ------------------------------------------------------------------ evaluation

    def at(self, w: Array, unit: float) -> _State:
        """Times and their derivatives at an allocation."""
        information, chosen = self.information, self.program.edges
        closest = information.closest(w)
        times = unit / closest.value[chosen]
        square = times * times / unit
        slope, compliance = closest.slope[chosen], closest.compliance[chosen]
        v = information.v[chosen]
        if information.closed_form:  # the two rank-one parts cancel
            bend, bend_scale = np.zeros_like(v), np.zeros(len(v))
        else:
            stiffness = (v * v * compliance).sum(axis=1)
            bend = np.where(self.moves, slope * v * compliance, 0.0)
            bend_scale = np.divide(
                square, stiffness, out=np.zeros_like(v[:, 0]), where=stiffness > 0
            )
        return _State(
            time=times,
            gradient=np.where(self.moves, square[:, None] * closest.gradient[chosen], 0.0),
            curvature=np.where(self.moves, square[:, None] * slope**2 * compliance, 0.0),
            bend=bend,
            bend_scale=bend_scale,
        )

    def feasible(self, point: Point) -> tuple[Point, _State]:
        """The point with slacks recomputed from its allocation."""
        program = self.program
        state = self.at(point.w, point.unit)
        s, r = point.t - state.time, program.limit - program.above @ point.w
        return replace(point, s=s, r=r), state

    def _sum_over_edges(self, values: Array) -> Array:
        sums = np.bincount(self.place.ravel(), values.ravel(), minlength=self.size)
        return np.asarray(sums, dtype=float)

    def pull(self, state: _State, y: Array) -> Array:
        """Information that the multipliers on edges ask for, per arm: C_a / w_a^2."""
        return self._sum_over_edges(y[:, None] * state.gradient)

    def gap(self, point: Point) -> float:
        """Sum of all products of slack and multiplier."""
        arms = point.w[self.program.free] @ point.z
        return float(point.s @ point.y + point.r @ point.l + arms)

    def residuals(self, point: Point, state: _State) -> _Residuals:
        program, w = self.program, point.w[self.program.free]
        price = self.above.T @ point.l + self.equal.T @ point.n
        return _Residuals(
            edges=state.time + point.s - point.t,
            rows=program.above @ point.w + point.r - program.limit,
            equal=program.equal @ point.w - program.total,
            slope=(price - point.z - self.pull(state, point.y)) * w,
            weights=1.0 - float(point.y.sum()),
            products=(point.s * point.y, point.r * point.l, w * point.z),
        )

    def log_room(self, point: Point) -> float:
        """Logarithmic barrier of all slacks."""
        room = np.concatenate([point.s, point.r, point.w[self.program.free]])
        return float(np.log(room).sum())

    def log_slope(self, point: Point, step: Point) -> float:
        """Its derivative along a step."""
        w = point.w[self.program.free]
        parts = (step.s / point.s).sum() + (step.r / point.r).sum() + (step.w / w).sum()
        return float(parts)

    # ------------------------------------------------------------------ steps

    def longest(self, point: Point, step: Point) -> tuple[float, float]:
        """Steps after which some slack, or some multiplier, would vanish (at most 1/0.98)."""
        w = point.w[self.program.free]
        primal = ((point.s, step.s), (point.r, step.r), (w, step.w))
        dual = ((point.y, step.y), (point.l, step.l), (point.z, step.z))
        return min(_until_zero(*p) for p in primal), min(_until_zero(*p) for p in dual)

    def factor(self, point: Point, state: _State) -> None:
        """Set up the system left when slacks and multipliers of inequalities are eliminated.

        Unknowns are the free arms (in units of themselves), t and the equalities.
        """
        size, rows, w = self.size, len(self.equal), point.w[self.program.free]
        stiff = point.y / point.s
        matrix = np.zeros((size + 1 + rows, size + 1 + rows))
        matrix[:size, :size] = self._hessian(state, point.y, stiff)
        matrix[:size, :size] += self.above.T @ ((point.l / point.r)[:, None] * self.above)
        matrix[np.arange(size), np.arange(size)] += point.z / w
        matrix[:size, size] = matrix[size, :size] = self.pull(state, stiff)
        matrix[size, size] = stiff.sum()
        matrix[:size, size + 1 :] = self.equal.T
        matrix[size + 1 :, :size] = self.equal
        self.scale = np.concatenate([w, np.ones(1 + rows)])
        self.matrix = self.scale[:, None] * matrix * self.scale

    def direction(
        self,
        point: Point,
        state: _State,
        off: _Residuals,
        target: float,
        correction: tuple[Point, float] | None = None,
    ) -> Point:
        """Newton's direction towards products of slack and multiplier equal to the target.

        A correction is an earlier direction whose own second-order products are made up
        for, each as far as it can be trusted. The result's `w` has the free arms only.
        """
        w = point.w[self.program.free]
        edges: Array | float
        rows: Array | float
        arms: Array | float
        edges = rows = arms = target
        if correction is not None:
            d, trust = correction
            edges = target - np.clip(d.s * d.y, -trust, trust)
            rows = target - np.clip(d.r * d.l, -trust, trust)
            arms = target - np.clip(d.w * d.z, -trust, trust)
        pull_edges = (edges + point.y * (off.edges - point.s)) / point.s
        pull_rows = (rows + point.l * (off.rows - point.r)) / point.r
        pull_arms = np.where(self.bounded, arms / w - point.z, 0.0)
        right = np.concatenate(
            [
                self.pull(state, pull_edges) - self.above.T @ pull_rows + pull_arms,
                [pull_edges.sum() - off.weights],
                -off.equal,
            ]
        )
        right[: self.size] -= off.slope / w
        solved = self.scale * np.linalg.solve(self.matrix, self.scale * right)
        dw, dt = solved[: self.size], float(solved[self.size])
        change = -(state.gradient * dw[self.place]).sum(axis=1)  # of F_e
        change_rows = self.above @ dw
        return Point(
            w=dw,
            t=dt,
            s=dt - change - off.edges,
            r=-change_rows - off.rows,
            y=pull_edges + point.y / point.s * (change - dt),
            l=pull_rows + point.l / point.r * change_rows,
            z=pull_arms - point.z / w * dw,
            n=solved[self.size + 1 :],
            unit=point.unit,
        )

    def _hessian(self, state: _State, y: Array, stiff: Array) -> Array:
        """Lagrangian's Hessian plus what eliminating the edges' slacks adds."""
        size, width = self.size, self.place.shape[1]
        steep = stiff if self.information.closed_form else stiff + 2.0 * y / state.time
        bend = y * state.bend_scale
        total = np.zeros(size * size)
        chunk = max(1, CHUNK // max(1, width * width))
        for i in range(0, len(y), chunk):
            part = slice(i, i + chunk)
            g, u = state.gradient[part], state.bend[part]
            blocks = steep[part, None, None] * (g[:, :, None] * g[:, None, :])
            if not self.information.closed_form:
                blocks -= bend[part, None, None] * (u[:, :, None] * u[:, None, :])
            where = self.place[part, :, None] * size + self.place[part, None, :]
            total += np.bincount(where.ravel(), blocks.ravel(), minlength=size * size)
        matrix = total.reshape(size, size)
        matrix[np.diag_indices(size)] += self._sum_over_edges(y[:, None] * state.curvature)
        return matrix


def _until_zero(x: Array, dx: Array) -> float:
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min(initial=1.0 / 0.98))
