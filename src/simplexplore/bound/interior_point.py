"""Two solvers of the program that certificate.py states.

With F_e = 1 / D_e, which is convex,

    minimise t   subject to   F_e(w) <= t,   A w <= b,   E w = f,   w >= 0.

Every inequality has a slack and a multiplier, its dual: edges t - F_e(w) and y, rows b - A w and l,
arms w and z, always in this order. Equalities have multipliers n. `predictor_corrector` is tried
first, and `path_following` where it leaves a gap; the certificate, which trusts neither, picks the
answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .certificate import Program, lower_limit
from .newton_system import State, System, Weights

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Certified relative gap to aim at, and the gap with which an answer is good enough.
TARGET_GAP = 1e-10
GOOD_GAP = 1e-9
MAX_STEPS = 100

# Steps without progress after which rounding has the last word.
PATIENCE = 6

# How far, as a factor, the gap may run ahead of the other optimality conditions.
AHEAD = 100.0

# Compliances of one edge in the Hessian differ by no more: the digits that it loses, and keeps.
MAX_COMPLIANCE_RATIO = 1e8


@dataclass(frozen=True)
class Point:
    """An allocation over all arms, with slacks and multipliers.

    Times, and with them t, slacks of edges and all multipliers, are in units of 1 / unit. Of a step
    `w` has the free arms only.
    """

    w: Array
    t: float
    slack: Array
    dual: Array
    n: Array
    ends: tuple[int, int]  # of edges, and of rows
    unit: float

    def moved(self, step: Point, free: Indices, primal: float, dual: float) -> Point:
        """The point after a step, so far for allocation and slacks, and so far for multipliers."""
        w = self.w.copy()
        w[free] += primal * step.w
        return replace(
            self,
            w=w,
            t=self.t + primal * step.t,
            slack=self.slack + primal * step.slack,
            dual=self.dual + dual * step.dual,
            n=self.n + dual * step.n,
        )

    @property
    def duals(self) -> list[Array]:
        """Multipliers of edges, of rows, and of arms."""
        return np.split(self.dual, self.ends)

    @property
    def binding(self) -> list[Mask]:
        """Edges, rows and arms whose multiplier is larger than their slack."""
        return np.split(self.dual > self.slack, self.ends)

    def edge_weights(self, value: Array) -> Array:
        """Weights of edges in a certificate: multipliers of times, as those of information."""
        return np.asarray(self.unit * np.maximum(self.duals[0], 0.0) / (value * value))


@dataclass(frozen=True)
class Residuals:
    """By how much each optimality condition is missed."""

    slack: Array  # zero for arms
    edges: int  # how many of these are of edges
    equal: Array
    slope: Array  # of the Lagrangian, times w
    weights: float  # 1 - sum y
    products: Array  # slack times multiplier

    @cached_property
    def gap(self) -> float:
        return float(self.products.sum())

    def distance(self, t: float) -> float:
        edges, others = np.split(np.abs(self.slack), [self.edges])
        of_times = max(self.gap, float(edges.max()), float(np.abs(self.slope).max()))
        of_shares = max(others.max(initial=0.0), np.abs(self.equal).max(initial=0.0))
        return max(of_times / t, float(of_shares), abs(self.weights))

    def norm(self, target: float) -> float:
        """Distance of a feasible point from the one on the central path."""
        return float(np.linalg.norm([*self.slope, self.weights, *(self.products - target)]))


# ---------------------------------------------------------------------- which method, on what


def solve(program: Program) -> Point:
    """The first answer that is good enough, or the best."""
    newton, rounding = Newton(program), program.information.rounding()
    allowed = program.allowed

    def certified(point: Point) -> tuple[float, Point]:
        point = replace(point, w=allowed.restore_feasibility(point.w))
        return certified_gap(program, point), point

    best = certified(predictor_corrector(newton))
    if best[0] > GOOD_GAP + rounding and allowed.holds_strictly(allowed.max_slack):
        best = min(best, certified(path_following(newton)), key=lambda x: x[0])
    return best[1]


def certified_gap(program: Program, point: Point) -> float:
    """Relative distance between a feasible point's time and its lower certificate."""
    if not point.w[program.allowed.free].min() > 0:  # a solver gone astray; NaN is caught as well
        return np.inf
    closest = program.information.closest(point.w)
    weights = point.edge_weights(closest.value)
    prices = point.duals[1][: len(program.allowed.b_ub)]
    lower = lower_limit(program, point.w, weights, prices, point.n, closest)
    return 1.0 / float(closest.value.min()) / lower - 1.0 if lower > 0 else np.inf


# ---------------------------------------------------------------------- two methods


def predictor_corrector(newton: Newton) -> Point:
    """Mehrotra's predictor-corrector steps, which need not be feasible on the way."""
    free, goal = newton.free, max(TARGET_GAP, newton.information.rounding())
    point, state = newton.start()
    best, last, idle, blocked = (np.inf, point), np.inf, 0, False
    for _ in range(MAX_STEPS):
        off = newton.residuals(point, state)
        gap, distance = off.gap, off.distance(point.t)
        if distance < best[0]:
            best = distance, point
        idle = 0 if gap > goal * point.t or distance < 0.7 * last else idle + 1
        last = distance
        # A rare arm can miss its condition by much more than all arms on average, which is what
        # `distance` looks at, and the certificate takes the worst one.
        missed = float((-off.slope / point.w[free] - point.duals[2]).max()) / point.t
        if (distance < goal and missed < GOOD_GAP) or idle > PATIENCE:
            break
        try:
            newton.factor(point, state)
            step = newton.direction(point, off, 0.0)
        except np.linalg.LinAlgError:  # singular to rounding: the best point so far stands
            break
        primal, dual = newton.longest(point, step)
        reached = point.moved(step, free, min(1.0, primal), min(1.0, dual))
        mu = gap / len(point.dual)
        # After a blocked step only centre. A gap that closes long before the other conditions
        # are met leaves no room to meet them, and one far below the target costs their digits.
        target = mu if blocked else min(0.8, (float(reached.slack @ reached.dual) / gap) ** 2) * mu
        if distance > AHEAD * gap / point.t:
            target = max(target, 0.5 * mu)
        target = max(target, 0.3 * goal * point.t / len(point.dual))
        trust = 0.0 if blocked else 5.0 * mu
        step = newton.direction(point, off, target, (step, trust))
        primal, dual = newton.longest(point, step)
        primal, dual = min(1.0, 0.98 * primal), min(1.0, 0.98 * dual)
        if step.t < 0:
            primal = min(primal, -0.8 * point.t / step.t)
        point = point.moved(step, free, primal, dual)
        blocked = min(primal, dual) < 0.1
        state = newton.at(point.w, point.unit)
    return best[1]


def path_following(newton: Newton) -> Point:
    """Feasible steps only, from the allocation deepest inside.

    Newton's method finds the central path; then primal and dual follow it together, each
    step halved until the equations are closer to being met. Where the path is lost, the
    search for it starts again.
    """
    free = newton.free
    point, state = newton.point_at(2.0)
    mu = point.t / len(point.dual)
    best: tuple[float, Point] = (np.inf, point)
    lost, reduction = True, 0.1
    for _ in range(2 * MAX_STEPS):
        if lost:
            point = replace(point, dual=mu / point.slack)
        off = newton.residuals(point, state)
        if not lost and off.distance(point.t) < best[0]:
            best = off.distance(point.t), point
            if best[0] < TARGET_GAP:
                break
        target = mu if lost else reduction * off.gap / len(point.dual)
        try:
            newton.factor(point, state)
            step = newton.direction(point, off, target)
        except np.linalg.LinAlgError:
            break
        primal, dual = newton.longest(point, step)
        length = min(1.0, 0.99 * (primal if lost else min(primal, dual)))
        if lost:
            slope = float((step.slack / point.slack).sum()) - step.t / mu
        else:
            before = off.norm(target)
        while length > 1e-10:
            trial, there = newton.feasible(point.moved(step, free, length, length))
            if trial.slack.min() > 0:  # rounding may close them
                if lost:
                    gain = float(np.log(trial.slack).sum() - np.log(point.slack).sum())
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
            mu = float((point.slack * point.dual)[: point.ends[0]].mean())
    return best[1]


# ---------------------------------------------------------------------- their equations


def _levelled(v: Array, compliance: Array) -> Array:
    """Compliances of which none is beyond comparison with the others of its edge.

    Means many orders of magnitude apart make one arm take almost all of the change in an
    alternative, and the two parts of the Hessian that this arm appears in cancel. A little less
    compliance changes their difference as little, and leaves it its digits.
    """
    parts = v * v * compliance
    rows, largest = np.arange(len(v)), parts.argmax(axis=1)
    most = parts[rows, largest].copy()
    parts[rows, largest] = 0.0
    limit = MAX_COMPLIANCE_RATIO * parts.sum(axis=1)
    over = np.flatnonzero((limit > 0) & (most > limit))
    if len(over):
        compliance = compliance.copy()
        compliance[over, largest[over]] = limit[over] / v[over, largest[over]] ** 2
    return compliance


class Newton:
    """Newton's equations of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.information = information = program.information
        self.allowed, self.free = program.allowed, program.allowed.free
        self.size = len(self.free)
        place = np.full(information.size, -1)
        place[self.free] = np.arange(self.size)
        place = place[information.index]
        self.moves = information.used & (place >= 0)
        self.equal = self.allowed.A_eq[:, self.free]
        above = self.allowed.rows.among(self.free)
        place = np.where(self.moves, place, 0)
        self.system = System(place, self.moves, above, self.equal)
        self.above, self.all_above = self.system.above, self.allowed.rows
        self.ends = program.count, program.count + len(self.allowed.limits)

    # ------------------------------------------------------------------ starting points

    def start(self) -> tuple[Point, State]:
        """Deep inside, with the same weight on all edges."""
        point, state = self.point_at(1.5)
        s, r, w = np.split(point.slack, self.ends)
        y = np.full(len(s), 1.0 / len(s))
        l = float(y @ s) / len(s) / r  # noqa: E741 - the letter of the formulas
        asked = self.system.information_per_arm(state, y)
        z = np.full(self.size, 0.1 * float(asked @ w))
        n = np.linalg.lstsq(self.equal.T, asked + z - self.above.transposed(l), rcond=None)[0]
        return replace(point, dual=np.concatenate([y, l, z]), n=np.asarray(n, dtype=float)), state

    def point_at(self, longer: float) -> tuple[Point, State]:
        """The allocation deepest inside, t so many times its largest time, no multipliers."""
        w = self.allowed.max_slack
        unit = 1.0 / self.program.time(w)
        t, none = longer * float(self.at(w, unit).time.max()), np.zeros(self.ends[1] + self.size)
        return self.feasible(Point(w, t, none, none, np.zeros(len(self.equal)), self.ends, unit))

    # ------------------------------------------------------------------ evaluation

    def at(self, w: Array, unit: float) -> State:
        """Times and their derivatives at an allocation."""
        information = self.information
        closest = information.closest(w)
        times = unit / closest.value
        square = times * times / unit
        slope, compliance = closest.slope, closest.compliance
        v = information.v
        if information.closed_form:  # the two rank-one parts cancel
            vector = np.zeros_like(v)
            curvature_weight = gradient_weight = np.zeros(len(v))
        else:
            compliance = _levelled(v, compliance)
            stiffness = (v * v * compliance).sum(axis=1)
            vector = np.where(self.moves, slope * v * compliance, 0.0)
            curvature_weight = np.divide(
                square, stiffness, out=np.zeros_like(v[:, 0]), where=stiffness != 0
            )
            gradient_weight = 2.0 / times
        return State(
            time=times,
            gradient=np.where(self.moves, square[:, None] * closest.gradient, 0.0),
            curvature=np.where(self.moves, square[:, None] * slope**2 * compliance, 0.0),
            gradient_weight=gradient_weight,
            curvature_vector=vector,
            curvature_weight=curvature_weight,
        )

    def feasible(self, point: Point) -> tuple[Point, State]:
        """The point with slacks recomputed from its allocation."""
        state, room = self.at(point.w, point.unit), self.allowed.room(point.w)
        slack = np.concatenate([point.t - state.time, room, point.w[self.free]])
        return replace(point, slack=slack), state

    def residuals(self, point: Point, state: State) -> Residuals:
        allowed, w = self.allowed, point.w[self.free]
        y, l, z = point.duals  # noqa: E741
        price = self.above.transposed(l) + self.equal.T @ point.n
        room = allowed.limits - self.all_above @ point.w
        return Residuals(
            slack=point.slack - np.concatenate([point.t - state.time, room, w]),
            edges=len(y),
            equal=allowed.A_eq @ point.w - allowed.b_eq,
            slope=(price - z - self.system.information_per_arm(state, y)) * w,
            weights=1.0 - float(y.sum()),
            products=point.slack * point.dual,
        )

    # ------------------------------------------------------------------ steps

    def longest(self, point: Point, step: Point) -> tuple[float, float]:
        """Steps after which some slack, or some multiplier, would vanish (at most 1/0.98)."""
        return _until_zero(point.slack, step.slack), _until_zero(point.dual, step.dual)

    def factor(self, point: Point, state: State) -> None:
        """Set up the equations at a point."""
        ratios = np.split(point.dual / point.slack, self.ends)
        self.system.factor(point.w[self.free], state, Weights(point.duals[0], *ratios))

    def direction(
        self,
        point: Point,
        off: Residuals,
        target: float,
        correction: tuple[Point, float] | None = None,
    ) -> Point:
        """Newton's direction towards products of slack and multiplier equal to the target.

        A correction is an earlier direction whose own second-order products are made up
        for, each as far as it can be trusted.
        """
        wanted = np.full(len(point.dual), target)
        if correction is not None:
            earlier, trust = correction
            wanted -= np.clip(earlier.slack * earlier.dual, -trust, trust)
        pushed = (wanted + point.dual * (off.slack - point.slack)) / point.slack
        edges, rows, arms = np.split(pushed, self.ends)
        alone = arms - self.above.transposed(rows) - off.slope / point.w[self.free]
        step = self.system.solve(edges, alone, -off.weights, -off.equal)
        change = np.concatenate([step.time - step.times, -step.use, step.arms])
        dual = pushed - point.dual / point.slack * change
        dual[self.ends[0] : self.ends[1]] = rows + step.rows
        slack = change - off.slack
        return Point(step.arms, step.time, slack, dual, step.equal, self.ends, point.unit)


def _until_zero(x: Array, dx: Array) -> float:
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min(initial=1.0 / 0.98))
